"""Each rule speaks up when it should, is silent when it should be, and says what can really be typed."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.advise import QUIET, advise, answers, new_advice, policy
from microcoder.config import load

RULES = (*answers.RULES, *policy.RULES)
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
    "judging_s": 1.5,
    "diversity": 0.5,
    "entropy": 0.3,
    "kl": 0.01,
    "loss": 0.02,
    "grad_norm": 0.3,
    "learning_rate": 1e-6,
    "temperature": 1.2,
    "max_response_tokens": 4096,
}


def history(length=20, **series):
    """A healthy run, but for the metrics given: one value throughout, or a list of the last ones."""
    lines = [{"step": step} | HEALTHY for step in range(1, length + 1)]
    for name, values in series.items():
        values = values if isinstance(values, list) else [values] * length
        for line, value in zip(lines[-len(values) :], values, strict=True):
            line[name] = value
    return lines


def codes(lines):
    return [advice.code for advice in advise(lines)]


FIRES = [
    ("no_reward", {"reward": [0.0] * 5}),
    ("no_reward", {"length": 3, "reward": 0.0}),
    ("no_reward", {"reward": [-0.5] * 5}),  # where what is too long is punished
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
]
SILENT = [
    ("no_reward", {"length": 2, "reward": 0.0}),
    ("no_reward", {"reward": [0.0, 0.0, 0.0, 0.0, 0.1]}),
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
]


@pytest.mark.parametrize(("code", "series"), FIRES)
def test_a_rule_speaks_up(code, series):
    assert codes(history(**series)) == [code]


@pytest.mark.parametrize(("code", "series"), SILENT)
def test_a_rule_is_silent(code, series):
    assert code not in codes(history(**series))


def test_every_rule_has_a_case_of_each_kind():
    named = {rule.code for rule in RULES}
    assert {code for code, _ in FIRES} == named
    assert {code for code, _ in SILENT} == named
    assert len(named) == len(RULES)


@pytest.mark.parametrize("length", [0, 1, 5, 50])
def test_of_a_healthy_run_nothing_is_said(length):
    assert advise(history(length)) == []


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
    (advice,) = advise(history(**series))
    for setting in re.findall(r"\w+\.\w+=[^\s;,)]+(?:,\d\])?", advice.remedy):
        assert load(None, [setting])


def test_a_remedy_names_no_option_of_rollouts_that_does_not_exist():
    from microcoder.cli.rollouts import command

    options = {option for parameter in command.params for option in parameter.opts}
    lines = [line for rule in RULES for line in re.findall(r"microcoder rollouts RUN ([^;]*)", rule.remedy)]
    assert len(lines) >= 3
    assert {word for line in lines for word in line.split() if word.startswith("-")} <= options


def test_what_goes_on_is_said_once_and_again_only_after_it_was_well_for_long():
    rates = [1e-6] * 10 + [0.0] * 10 + [1e-6] * 3 + [0.0] * 5 + [1e-6] * (QUIET + 3) + [0.0] * 5
    lines = history(len(rates), learning_rate=rates)
    said = [a.step for end in range(1, len(lines) + 1) for a in new_advice(lines[:end])]
    assert said == [13, 28 + QUIET + 3 + 3]


VALUE = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.just({"accepted": 3}))


@given(st.lists(st.dictionaries(st.sampled_from(sorted(HEALTHY)), VALUE), max_size=14))
def test_no_metrics_whatever_make_it_fail(lines):
    for advice in advise(lines):
        assert "{" not in advice.message + advice.remedy
