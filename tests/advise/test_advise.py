"""Each rule speaks up when it should, is silent when it should be, and says what can really be typed."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.advise import EVERY, PASSING, QUIET, RULES, advise, advise_run, new_advice
from microcoder.advise.rules import CAUSES
from microcoder.config import load

CONFIG = load(None).model_dump()
HEALTHY = {
    "reward": 0.4,
    "accuracy": 0.4,
    "length_mean": 500.0,
    "truncated_share": 0.1,
    "no_code_share": 0.05,
    "no_signal_share": 0.3,
    "judge_faults": 0,
    "cut_stragglers": 0,
    "rows": 512,
    "verdicts": {"accepted": 205, "wrong_answer": 281, "compile_error": 26},
    "tests_mean": 12.0,
    "quoted_share": 0.0,
    "judging_s": 1.5,
    "diversity": 0.5,
    "entropy": 0.3,
    "kl": 0.01,
    "loss": 0.02,
    "grad_norm": 0.3,
    "learning_rate": 1e-6,
    "temperature": 1.2,
    "max_response_tokens": 4096,
    "test_accuracy": 0.4,
    "test_accuracy_high": 0.5,
    "test_truncated_share": 0.05,
}
NOISE = {"accepted": 26, "wrong_answer": 186, "compile_error": 300}


def history(length=20, **series):
    """A healthy run, but for the metrics given: one value throughout, or a list of the last ones."""
    lines = [{"step": step} | HEALTHY for step in range(1, length + 1)]
    for name, values in series.items():
        values = values if isinstance(values, list) else [values] * length
        for line, value in zip(lines[-len(values) :], values, strict=True):
            line[name] = value
    return lines


def codes(lines):
    return [advice.code for advice in advise(lines, CONFIG)]


SHORTER = {  # what was cut off is given up
    "truncated_share": [0.2] * 5 + [0.05] * 15,
    "length_mean": [500.0] * 10 + [300.0] * 10,
    "test_accuracy": [0.4] * 10 + [0.2] * 10,
    "test_accuracy_high": 0.3,
}
GIVEN_BACK = {  # a mask's gain
    "masked_share": [0.1] * 5 + [0.4] * 10 + [0.05] * 5,
    "length_mean": [500.0] * 5 + [700.0] * 10 + [500.0] * 5,
    "test_accuracy": [0.4] * 5 + [0.7] * 10 + [0.5] * 5,
    "test_accuracy_high": 0.6,
}
FIRES = [
    ("too_cold", {"diversity": 0.1, "no_signal_share": 0.75}),
    ("too_hot", {"accuracy": 0.05, "verdicts": NOISE}),
    ("limit_too_short", {"truncated_share": 0.6, "test_truncated_share": 0.7}),
    ("limit_too_short", SHORTER),
    ("masked_in_mean", GIVEN_BACK),
    ("weak_judge", {"tests_mean": 1.0, "accuracy": 0.75}),
    ("weak_judge", {"accuracy_also": 0.25}),
    ("quoted_tests", {"quoted_share": [0.0] * 15 + [0.1, 0.1, 0.2, 0.3, 0.4]}),
    ("all_easy", {"accuracy": 0.9, "no_signal_share": 0.6}),
    ("rate_too_high", {"accuracy": [0.05] * 3, "test_accuracy": [0.1], "test_accuracy_high": [0.2]}),
    ("rate_too_high", {"accuracy": [0.03] * 3, "test_accuracy": None}),  # nothing held out: the fall must be deeper
    ("no_reward", {"reward": [0.0] * 5, "accuracy": [0.0] * 5}),
    ("no_reward", {"reward": 0.0, "accuracy": 0.0, "test_accuracy": None}),  # from the start: nothing fell
    ("no_reward", {"length": 3, "reward": 0.0, "accuracy": 0.0}),
    ("no_reward", {"reward": [-0.5] * 5, "accuracy": [0.0] * 5}),  # where what is too long is punished
    ("all_truncated", {"truncated_share": [0.9, 0.95, 1.0]}),
    ("no_code", {"no_code_share": [0.6, 0.6, 0.6]}),
    ("too_easy", {"no_signal_share": [0.97] * 3, "accuracy": [0.98] * 3}),
    ("too_hard", {"no_signal_share": [0.97] * 3, "accuracy": [0.02] * 3}),
    ("one_answer", {"no_signal_share": [0.97] * 3, "accuracy": [0.5] * 3}),
    ("judge_faults", {"judge_faults": [1]}),
    ("judge_faults", {"judge_faults": [25]}),
    ("judge_failing", {"judge_faults": [26]}),
    ("judge_failing", {"judge_faults": [1], "rows": [None]}),
    ("many_cut", {"cut_stragglers": [26] * 3}),
    ("diversity_lost", {"diversity": [0.15] * 5}),
    ("entropy_collapse", {"entropy": [0.02] * 5}),
    ("entropy_explosion", {"entropy": [1.5] * 5}),
    ("length_explosion", {"length_mean": [800.0] * 2, "truncated_share": [0.2] * 2}),
    ("not_finite", {"loss": [math.nan]}),
    ("not_finite", {"loss": [None]}),
    ("not_finite", {"grad_norm": [math.inf]}),
    ("gradient_spike", {"grad_norm": [3.1]}),
    ("no_learning_rate", {"learning_rate": [0.0] * 3}),
    ("kl_explosion", {"kl": [0.6] * 3}),
    ("samplers_apart", {"mismatch_mean": [0.06] * 5}),
    ("samplers_apart", {"mismatch_mean": [0.005] * 15 + [0.03] * 5, "mismatch_ess": [0.9] * 20}),
]
SILENT = [
    ("quoted_tests", {"quoted_share": [0.0] * 15 + [0.1] * 4 + [0.05]}),
    ("too_cold", {"diversity": [0.1] * 19, "no_signal_share": 0.75}),  # an update's fault
    ("too_cold", {"diversity": [0.1] * 12 + [0.5] * 8, "no_signal_share": 0.75}),  # it was so, until a warmer stage
    ("too_cold", {"diversity": 0.1}),  # alike, but not in what they earn
    ("too_cold", {"diversity": 0.1, "no_signal_share": 0.75, "accuracy": 0.05}),  # too hard
    ("too_hot", {"accuracy": 0.05}),  # hard problems, but programs
    ("too_hot", {"accuracy": 0.05, "verdicts": [NOISE] * 19}),  # the first step was well, so an update was not
    ("too_hot", {"accuracy": 0.25, "verdicts": NOISE}),
    ("too_hot", {"accuracy": 0.05, "verdicts": NOISE, "temperature": 0.6}),  # evaluations are no cooler
    ("limit_too_short", {"truncated_share": [0.6] * 19, "test_truncated_share": 0.7}),  # an update's fault
    ("limit_too_short", {"truncated_share": 0.6}),  # cooler answers end before the same limit
    ("limit_too_short", {"truncated_share": 0.6, "test_truncated_share": 0.7, "repeated_share": 0.5}),
    ("limit_too_short", SHORTER | {"length_mean": 500.0}),
    ("limit_too_short", SHORTER | {"truncated_share": 0.05}),  # shorter for another reason
    ("limit_too_short", SHORTER | {"repeated_share": 0.15}),  # what was cut off repeated itself
    ("limit_too_short", SHORTER | {"test_accuracy_high": 0.4}),  # within the interval
    ("masked_in_mean", GIVEN_BACK | {"length_mean": 700.0}),
    ("masked_in_mean", GIVEN_BACK | {"masked_share": 0.4}),  # the mask goes on
    ("masked_in_mean", GIVEN_BACK | {"masked_share": 0.1}),
    ("masked_in_mean", GIVEN_BACK | {"test_accuracy_high": 0.7}),
    ("weak_judge", {"tests_mean": 3.0, "accuracy": 0.75}),
    ("weak_judge", {"tests_mean": 1.0, "accuracy": 0.5}),  # within the evaluation's interval
    ("weak_judge", {"accuracy_also": 0.35}),
    ("all_easy", {"accuracy": [0.95] * 15, "no_signal_share": 0.8}),  # it was learnt
    ("all_easy", {"accuracy": 0.95, "test_accuracy": [0.46]}),  # easy, but it helps
    ("rate_too_high", {"accuracy": [0.05] * 3}),  # no evaluation has confirmed it
    ("rate_too_high", {"accuracy": [0.05] * 3 + [0.4] * 3, "test_accuracy": [0.1], "test_accuracy_high": [0.2]}),
    ("rate_too_high", {"accuracy": [0.4 - 0.02 * n for n in range(20)], "test_accuracy_high": [0.2]}),  # slowly
    ("rate_too_high", {"accuracy": [0.05] * 3, "test_accuracy": None}),
    ("no_reward", {"length": 2, "reward": 0.0, "accuracy": 0.0}),
    ("no_reward", {"reward": [0.0, 0.0, 0.0, 0.0, 0.1], "accuracy": [0.0] * 5}),
    ("no_reward", {"length": 3, "reward": -0.1}),  # accepted ones among them earn one, but length costs more
    ("all_truncated", {"truncated_share": [0.89, 1.0, 1.0]}),
    ("no_code", {"no_code_share": [0.6, 0.5, 0.6]}),
    ("no_code", {"no_code_share": [0.7] * 3, "truncated_share": [0.8] * 3}),  # cut off before the program
    ("too_easy", {"no_signal_share": [0.97, 0.9, 0.97], "accuracy": [0.98] * 3}),
    ("too_easy", {"no_signal_share": [0.97] * 3, "accuracy": [0.85] * 3}),
    ("too_hard", {"no_signal_share": [1.0] * 3, "accuracy": [0.0] * 3}),  # that is no_reward
    ("one_answer", {"no_signal_share": [0.97] * 3, "accuracy": [0.95] * 3}),
    ("judge_faults", {"judge_faults": [5, 0]}),
    ("judge_failing", {"judge_faults": [25]}),
    ("many_cut", {"cut_stragglers": [26, 25, 26]}),
    ("diversity_lost", {"diversity": [0.22] * 5}),  # less than half, but not little
    ("diversity_lost", {"diversity": 0.15}),  # little, but no fall
    ("entropy_collapse", {"entropy": 0.02}),
    ("entropy_explosion", {"entropy": 1.5}),
    ("length_explosion", {"length_mean": [800.0] * 2}),  # longer, but none the more cut off
    ("length_explosion", {"length_mean": [700.0] * 2, "truncated_share": [0.2] * 2}),
    ("not_finite", {"loss": [None, 0.1]}),
    ("gradient_spike", {"grad_norm": [2.9]}),
    ("gradient_spike", {"grad_norm": [9.0, 0.3]}),
    ("no_learning_rate", {"learning_rate": [0.0]}),  # the end of a decay
    ("kl_explosion", {"kl": [0.01, 0.01, 0.6]}),
    ("samplers_apart", {"mismatch_mean": [0.03] * 20}),  # as at first
    ("samplers_apart", {"mismatch_mean": [0.002] * 15 + [0.015] * 5}),  # more, and still little
]


@pytest.mark.parametrize(("code", "series"), FIRES)
def test_a_rule_speaks_up(code, series):
    assert codes(history(**series)) == [code]


@pytest.mark.parametrize(("code", "series"), SILENT)
def test_a_rule_is_silent(code, series):
    assert code not in codes(history(**series))


def test_every_rule_has_a_case_of_each_kind():
    assert {code for code, _ in FIRES} == set(RULES)
    assert {code for code, _ in SILENT} == set(RULES)


@pytest.mark.parametrize("length", [0, 1, 5, 50])
def test_of_a_healthy_run_nothing_is_said(length):
    assert advise(history(length), CONFIG) == []
    assert advise_run(history(length), CONFIG) == []


def test_a_healthy_fall_of_diversity_with_growing_length_is_no_fault():
    falling = [0.3 + 0.4 * 0.95**step for step in range(60)]
    growing = [300.0 + 20 * step for step in range(60)]
    assert advise(history(60, diversity=falling, length_mean=growing)) == []


def test_advice_says_what_why_and_what_to_type_with_values_from_those_in_use():
    (advice,) = advise(history(truncated_share=[1.0] * 3))
    assert (advice.severity, advice.step, advice.message) == ("error", 20, "100% of the responses are cut off")
    assert "limit is too small" in advice.reason
    assert "train.max_response_tokens=8192" in advice.remedy
    assert "grpo.temperature=1.4" in advice.remedy
    (advice,) = advise(history(kl=[1.0] * 3))
    assert "train.lr=2e-07" in advice.remedy
    (advice,) = advise(history(cut_stragglers=[40] * 3))
    assert advice.message == "40 of 512 responses were not judged in time"
    assert "rollout.straggler_s=3;" in advice.remedy  # twice what was waited


def test_a_value_that_is_not_known_leaves_dots_in_the_remedy():
    assert "train.max_response_tokens=..." in advise([{"step": n, "truncated_share": 1.0} for n in range(3)])[0].remedy


def test_errors_come_first():
    severities = [a.severity for a in advise(history(diversity=[0.1] * 5, kl=[1.0] * 3, learning_rate=[0.0] * 3))]
    assert severities == ["error", "warning", "warning"]


@pytest.mark.parametrize("series", [series for _, series in FIRES])
def test_what_a_remedy_says_to_type_is_accepted(series):
    (advice,) = advise(history(**series), CONFIG)
    for setting in re.findall(r"\w+\.\w+=[^\s;,)]+(?:,\d\])?", advice.remedy):
        assert load(None, [setting])


def test_a_remedy_names_no_command_and_no_option_that_does_not_exist():
    from microcoder.cli import COMMANDS
    from microcoder.cli.rollouts import command

    typed = [words for rule in RULES.values() for words in re.findall(r"(?<!=)microcoder (\w+)([^;]*)", rule.remedy)]
    assert {"calibrate", "doctor", "data", "rollouts"} <= {name for name, _ in typed} <= set(COMMANDS)
    options = {option for parameter in command.params for option in parameter.opts}
    assert {w for name, rest in typed if name == "rollouts" for w in rest.split() if w.startswith("-")} <= options


# --- causes and what they explain


def test_a_cause_stands_first_and_what_it_explains_stands_beneath_it():
    found = advise(history(kl=[1.0] * 3, diversity=0.1, no_signal_share=0.97), CONFIG)
    assert [(one.code, [symptom.code for symptom in one.symptoms]) for one in found] == [
        ("too_cold", ["one_answer"]),
        ("kl_explosion", []),
    ]


def test_what_a_cause_explains_is_a_rule_and_itself_explains_it_not():
    for rule in RULES.values():
        assert rule.explains <= set(RULES)
        assert not any(rule.code in RULES[other].explains for other in rule.explains)
        assert not rule.explains or rule in CAUSES


def test_causes_name_the_claim_and_the_figure_behind_them():
    assert [(rule.code, rule.claim, rule.figure) for rule in CAUSES] == [
        ("too_cold", 8, 3),
        ("too_hot", 12, 3),
        ("limit_too_short", 19, 9),
        ("masked_in_mean", 25, 2),
        ("weak_judge", 3, 6),
        ("quoted_tests", 3, 6),
        ("all_easy", 15, 5),
        ("rate_too_high", 31, 8),
    ]
    (advice,) = advise(history(accuracy=0.9, no_signal_share=0.8), CONFIG)
    assert (advice.claim, advice.figure) == (15, 5)
    assert all((rule.claim is None) == (rule.figure is None) for rule in RULES.values())


def test_a_temperature_that_is_too_hot_is_moved_towards_that_of_the_evaluations():
    (advice,) = advise(history(accuracy=0.05, verdicts=NOISE, temperature=1.8), CONFIG)
    assert "5% are accepted at temperature 1.8, but 40% in evaluations at temperature 0.6" in advice.message
    assert "grpo.temperature=1.2;" in advice.remedy


def test_a_lenient_policy_is_named_beside_the_one_that_refuses():
    config = load(None, ["judge.policy=paper", "judge.also=exact"]).model_dump()
    (advice,) = advise(history(accuracy_also=0.25), config)
    assert advice.message == "the policy paper accepts 40%, but exact 25% of the same programs"


def test_where_masked_responses_leave_their_group_the_mask_is_not_blamed():
    config = load(None, ["grpo.masked_in_group=false"]).model_dump()
    lines = history(**GIVEN_BACK)
    assert "masked_in_mean" in codes(lines) and "masked_in_mean" not in [one.code for one in advise(lines, config)]


def test_without_the_settings_only_what_needs_them_is_not_said():
    assert advise(history(accuracy=0.05, verdicts=NOISE)) == []
    (advice,) = advise(history(diversity=0.1, no_signal_share=0.75))
    assert advice.code == "too_cold"


# --- a whole run


def test_of_a_whole_run_each_finding_has_its_first_step_and_its_latest_numbers():
    (advice,) = advise_run(history(30, kl=[0.01] * 10 + [1.0] * 10 + [2.0] * 10), CONFIG)
    assert (advice.code, advice.step, advice.holds) == ("kl_explosion", 12, True)  # the mean of three is above 0.5
    assert "2.00 nats" in advice.message


@pytest.mark.parametrize("length", [1, 2, 3, 9])
def test_of_a_whole_run_that_earned_nothing_this_is_said_however_short_it_was(length):
    (advice,) = advise_run([{"step": 0, "test_accuracy": 0.0}, *history(length, reward=0.0, accuracy=0.0)], CONFIG)
    assert (advice.code, advice.holds) == ("no_reward", True)
    assert advice.message.startswith("no program earned a reward")
    assert advise_run(history(2, reward=0.0), CONFIG) == []  # some were accepted: length took their reward


def test_what_is_over_is_said_to_be_over_and_what_passed_at_once_is_not_said():
    gone = history(30, learning_rate=[0.0] * (PASSING + 2) + [1e-6] * 20)
    (advice,) = advise_run(gone, CONFIG)
    assert (advice.code, advice.step, advice.holds) == ("no_learning_rate", 30 - 20 - PASSING + 1, False)
    assert advise_run(history(30, grad_norm=[3.1] + [0.3] * 10), CONFIG) == []


def test_a_long_run_is_looked_at_ever_more_seldom_but_at_its_last_step_always(monkeypatch):
    looked: list[int] = []
    monkeypatch.setattr("microcoder.advise._found", lambda metrics, config: looked.append(len(metrics)) or [])
    advise_run(history(EVERY, reward=0.5), CONFIG)
    assert looked == list(range(1, EVERY + 1))
    looked.clear()
    advise_run([{"step": n, "reward": 0.5} for n in range(4001)], CONFIG)
    assert len(looked) < 5 * EVERY and looked[-1] == 4001


def test_a_cause_outranks_a_symptom_that_was_there_before_it():
    fall = {"accuracy": [0.0] * 8, "reward": [0.0] * 8, "test_accuracy": [0.1], "test_accuracy_high": [0.2]}
    (advice,) = advise_run(history(**fall), CONFIG)
    assert (advice.code, advice.step) == ("rate_too_high", 20)
    assert [(one.code, one.step) for one in advice.symptoms] == [("no_reward", 17)]


def test_a_display_says_the_cause_instead_of_its_symptoms():
    lines = history(diversity=0.1, no_signal_share=0.97)
    said = [one.code for end in range(1, len(lines) + 1) for one in new_advice(lines[:end], CONFIG)]
    assert said == ["one_answer", "too_cold"]  # after three steps the one, after five the other, and no more


def test_what_goes_on_is_said_once_and_again_only_after_it_was_well_for_long():
    rates = [1e-6] * 10 + [0.0] * 10 + [1e-6] * 3 + [0.0] * 5 + [1e-6] * (QUIET + 3) + [0.0] * 5
    lines = history(len(rates), learning_rate=rates)
    said = [a.step for end in range(1, len(lines) + 1) for a in new_advice(lines[:end])]
    assert said == [13, 28 + QUIET + 3 + 3]


VALUE = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.just({"accepted": 3}))


@settings(deadline=None)  # a host may be busy
@given(st.lists(st.dictionaries(st.sampled_from(sorted(HEALTHY)), VALUE), max_size=14))
def test_no_metrics_whatever_make_it_fail(lines):
    for advice in [*advise(lines), *advise_run(lines, CONFIG)]:
        assert "{" not in advice.message + advice.remedy
