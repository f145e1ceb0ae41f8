"""Claims are read strictly and decided by a rule whose errors are known: by hand, and by simulation."""

from __future__ import annotations

import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.study.decisions import decide, p_values, reaches, surviving
from microcoder.study.effects import paired, quantile, tail, trend
from microcoder.study.plan import Claim, ClaimTest, Gate, StudyError, read_claims, read_gates

FILE = """
[[claims]]
number = 30
text = "Masking some truncated responses ends higher than masking none."
[[claims.tests]]
statistic = "last(test_accuracy)"
of = "conditional"
against = "none"
expect = "more"
by = 0.02
[[claims.tests]]
statistic = "growth(length_mean)"
over = ["none", "mask-10", "all"]
expect = "more"
by = 0
"""
ARMS = ("conditional", "none", "mask-10", "all")


# Student's t distribution


@pytest.mark.parametrize(
    ("p", "df", "value"),
    [  # as tabulated
        (0.975, 1, 12.706205),
        (0.975, 2, 4.302653),
        (0.975, 4, 2.776445),
        (0.975, 9, 2.262157),
        (0.975, 30, 2.042272),
        (0.975, 120, 1.979930),
        (0.95, 4, 2.131847),
        (0.95, 10, 1.812461),
        (0.995, 4, 4.604095),
        (0.9995, 5, 6.868827),
        (0.025, 4, -2.776445),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_are_the_tabulated_ones(p, df, value):
    assert quantile(p, df) == pytest.approx(value, abs=6e-7)


@given(st.floats(1e-6, 1e6))
def test_tails_of_one_and_two_degrees_of_freedom_have_their_closed_forms(t):
    assert tail(t, 1) == pytest.approx(math.atan2(1, t) / math.pi, rel=1e-11)
    root = math.sqrt(2 + t * t)
    assert tail(t, 2) == pytest.approx(1 / (root * (root + t)), rel=1e-11)


@given(st.floats(-8, 8))
def test_with_many_degrees_of_freedom_the_tail_is_the_normal_one(t):
    assert tail(t, 1e7) == pytest.approx(0.5 * math.erfc(t / math.sqrt(2)), rel=1e-3)


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 200))
def test_a_quantile_is_exceeded_with_the_chance_that_was_asked_for(p, df):
    assert tail(quantile(p, df), df) == pytest.approx(1 - p, rel=1e-9)


def test_the_ends_of_the_distribution():
    assert (tail(math.inf, 4), tail(0.0, 4), tail(-math.inf, 4)) == (0.0, 0.5, 1.0)
    assert math.isnan(tail(math.nan, 4))


@pytest.mark.parametrize("call", [lambda: tail(1, 0), lambda: quantile(0.9, -1), lambda: quantile(1, 4)])
def test_what_the_distribution_does_not_have_is_refused(call):
    with pytest.raises(ValueError, match="there is no"):
        call()


# Effects


def test_a_paired_effect_is_the_mean_difference_with_its_t_interval():
    effect = paired({0: 0.5, 1: 0.6, 2: 0.7}, {0: 0.4, 1: 0.4, 2: 0.4})
    assert effect.values == pytest.approx((0.1, 0.2, 0.3))
    assert effect.estimate == pytest.approx(0.2)
    reach = 4.302653 * 0.1 / math.sqrt(3)
    assert (effect.low, effect.high) == pytest.approx((0.2 - reach, 0.2 + reach))
    assert (effect.seeds, effect.left_out) == ((0, 1, 2), 0)


def test_what_a_seed_does_to_both_arms_cancels():
    effect = paired({0: 10.1, 1: 0.1}, {0: 10.0, 1: 0.0})
    assert (effect.low, effect.high) == pytest.approx((0.1, 0.1))


def test_an_arm_by_itself_is_held_against_zero():
    assert paired({3: 1.0, 5: 2.0}).values == (1.0, 2.0)


def test_a_trend_is_the_least_squares_slope_within_each_seed():
    arms = [{0: 1.0, 1: 3.0}, {0: 2.0, 1: 1.0}, {0: 4.0, 1: 8.0}, {0: 4.0, 1: -2.0}]
    by_numpy = [np.polyfit(range(4), [arm[seed] for arm in arms], 1)[0] for seed in (0, 1)]
    assert trend(arms).values == pytest.approx(by_numpy)
    assert trend([{0: 1.0}, {0: 2.0}, {0: 4.0}]).estimate == pytest.approx(1.5)
    with pytest.raises(ValueError, match="two or more"):
        trend([{0: 1.0}])


def test_a_seed_without_a_number_in_every_arm_is_left_out_and_counted():
    effect = paired({0: 1.0, 1: math.nan, 2: 3.0, 3: 4.0}, {0: 0.0, 1: 0.0, 2: math.inf, 4: 0.0})
    assert (effect.seeds, effect.values, effect.left_out) == ((0,), (1.0,), 4)


def test_one_seed_has_no_interval_and_no_seed_no_estimate():
    one, none = paired({0: 1.0}), paired({}, {0: 1.0})
    assert (one.estimate, one.low, one.high) == (1.0, None, None)
    assert math.isnan(none.estimate) and none.low is None and none.left_out == 1


# Claims


def read(text):
    return read_claims(tomllib.loads(text), "truncation", ARMS, "truncation.toml")


def test_claims_are_read_from_the_file_of_their_study():
    (claim,) = read(FILE)
    assert (claim.number, claim.study) == (30, "truncation")
    assert claim.text == "Masking some truncated responses ends higher than masking none."
    assert claim.tests == (
        ClaimTest("last(test_accuracy)", "more", 0.02, of="conditional", against="none"),
        ClaimTest("growth(length_mean)", "more", 0.0, over=("none", "mask-10", "all")),
    )
    assert [test.arms for test in claim.tests] == [("conditional", "none"), ("none", "mask-10", "all")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("text =", "txet =", "claim 30: unknown key 'txet'; did you mean 'text'?"),
        ("against =", "agianst =", "claim 30, test 1: unknown key 'agianst'; did you mean 'against'?"),
        ("number = 30", 'number = 30\nstudy = "batch"', "claim 30: unknown key 'study'; known are number, text, tests"),
        ("number = 30", "number = true", "claim True: number is True; it must be a whole number"),
        ("number = 30", "", "claim at place 1: number is None"),
        ('text = "Masking some truncated responses ends higher than masking none."', "", "text is missing"),
        ('"Masking some truncated responses ends higher than masking none."', '" "', "text is ' '; write it as text"),
        ('of = "conditional"', 'of = "condition"', "test 1: the study has no arm 'condition'; did you mean"),
        ('against = "none"', 'against = "x"', "test 1: the study has no arm 'x'; there are conditional, none, mask-10"),
        ('over = ["none", "mask-10", "all"]', 'over = ["none", "mask-1"]', "no arm 'mask-1'; did you mean 'mask-10'?"),
        ('"last(test_accuracy)"', '"lsat(test_accuracy)"', "claim 30, test 1: the statistic 'lsat(test_accuracy)'"),
        ('expect = "more"\nby = 0.02', 'expect = "higher"\nby = 0.02', "it must be one of more, less, same"),
        ("by = 0.02", "", "by is None"),
        ("by = 0.02", "by = -0.02", "by is -0.02"),
        ("by = 0.02", "by = nan", "by is nan"),
        ("by = 0.02", "by = true", "by is True"),
        ('"more"\nby = 0\n', '"same"\nby = 0\n', "claim 30, test 2: by is 0, but no two measurements are equal"),
        ('of = "conditional"\nagainst = "none"', "", 'it has neither of "of" and "over"'),
        ("over = [", 'of = "all"\nover = [', 'it has both of "of" and "over"'),
        ("over = [", 'against = "all"\nover = [', '"against" goes with "of"'),
        ('against = "none"', 'against = "conditional"', "'conditional' is compared with itself"),
        ('over = ["none", "mask-10", "all"]', 'over = ["all"]', "two or more arms"),
        ('over = ["none", "mask-10", "all"]', 'over = ["all", 1]', "two or more arms"),
        ('over = ["none", "mask-10", "all"]', 'over = ["a", "b", "a"]', "an arm twice"),
        (FILE, FILE + FILE, "claim 30 occurs twice"),
        (FILE[FILE.index("[[claims.tests]]") :], "", "write [[claims.tests]]"),
        (FILE, "claims = 3", "write [[claims]]"),
    ],
)
def test_a_claim_that_cannot_be_used_names_its_file_its_number_and_the_remedy(old, new, words):
    assert FILE.count(old) == 1
    with pytest.raises(StudyError) as error:
        read(FILE.replace(old, new))
    assert str(error.value).startswith("truncation.toml: ") and words in str(error.value)


def test_a_study_may_claim_nothing():
    assert read("title = 'nothing'") == ()


# Deciding


def claim(*tests, number=1, study="s"):
    return Claim(number, "text", study, tests)


def expecting(expect, by, **arms):
    return ClaimTest("last(reward)", expect, by, **(arms or {"of": "a"}))


def decided(claim, **arms):
    """The decision on one claim, from each arm's numbers."""
    (decision,), _ = decide([claim], lambda study, arm, statistic: dict(enumerate(arms.get(arm, ()))))
    return decision


def around(centre, noise):
    return [centre + noise * step for step in (-2, -1, 0, 1, 2)]


def test_p_values_of_a_test_are_what_a_hand_works_out():
    effect = paired({0: 0.1, 1: 0.2, 2: 0.3})  # t with two degrees of freedom: 1/2 - t / (2 sqrt(2 + t^2))
    at = {distance: tail(distance * 10 * math.sqrt(3), 2) for distance in (-0.2, -0.1, 0.1, 0.2, 0.3, 0.5)}
    assert (at[0.2], at[0.1]) == pytest.approx((0.0370899, 0.1127017), abs=1e-7)
    assert p_values(expecting("more", 0.3), effect) == pytest.approx((at[0.2], at[0.1]))
    assert p_values(expecting("less", 0.0), effect) == pytest.approx((at[-0.2], at[0.2]))
    assert p_values(expecting("less", 0.3), effect) == pytest.approx((at[-0.2], at[0.5]))
    assert p_values(expecting("same", 0.3), effect) == pytest.approx((at[0.1], at[-0.1] + at[0.5]))
    assert p_values(expecting("same", 0.1), effect) == pytest.approx((at[-0.1], at[0.1] + at[0.3]))


def test_seeds_that_agree_exactly_count_by_their_signs_alone():
    effect = paired({0: 0.3, 1: 0.1 + 0.2, 2: 0.3})
    assert p_values(expecting("more", 0.1), effect) == (1 / 8, 1.0)
    assert p_values(expecting("same", 0.1), paired({0: 0.0, 1: 0.0})) == (1 / 4, 1.0)


@pytest.mark.parametrize(
    ("expect", "by", "one", "other"), [("more", 0.1, 0.5, 0.4), ("more", 0.05, 0.3, 0.25), ("less", 0.1, 0.4, 0.5)]
)
def test_seeds_that_agree_on_exactly_the_size_of_a_claim_do_not_speak_against_it(expect, by, one, other):
    effect = paired(dict.fromkeys(range(5), one), dict.fromkeys(range(5), other))
    assert reaches(expecting(expect, by), effect) and p_values(expecting(expect, by), effect)[1] == 1.0


def test_the_false_discovery_rule_steps_up():
    assert surviving([0.01, 0.04, 0.03, 0.5]) == [True, False, False, False]
    assert surviving([0.05, 0.02, 0.05, 0.04]) == [True] * 4  # the largest is at its bound and takes the others along
    assert surviving([0.051]) == [False]
    assert surviving([]) == []


@pytest.mark.parametrize(
    ("expect", "by", "centre", "verdict"),
    [
        ("more", 0.1, 0.2, "supported"),
        ("more", 0.1, 0.0, "contradicted"),
        ("more", 0.1, 0.05, "contradicted"),  # an effect, and clearly a smaller one than claimed
        ("more", 0.1, 0.097, "undecided"),  # it may well be 0.1, but the estimate is not
        ("more", 0.1, 0.8 - 0.7, "supported"),  # a little less than 0.1, which only a computer would say
        ("less", 0.1, 0.7 - 0.8, "supported"),
        ("more", 0.0, 0.001, "undecided"),
        ("less", 0.1, -0.2, "supported"),
        ("less", 0.1, 0.0, "contradicted"),
        ("less", 0.0, 0.2, "contradicted"),
        ("same", 0.1, 0.05, "supported"),
        ("same", 0.1, -0.05, "supported"),
        ("same", 0.1, 0.095, "undecided"),
        ("same", 0.1, -0.2, "contradicted"),
    ],
)
def test_a_verdict_needs_certainty_and_size(expect, by, centre, verdict):
    assert decided(claim(expecting(expect, by)), a=around(centre, 0.005)).verdict == verdict


def test_a_claim_needs_all_of_its_tests_and_one_is_enough_to_contradict_it():
    both = claim(expecting("more", 0.1), expecting("less", 0.1, of="b", against="a"))
    assert decided(both, a=around(1, 0.01), b=around(0, 0.01)[::-1]).verdict == "supported"
    assert decided(both, a=around(1, 0.01), b=around(0, 3)[::-1]).verdict == "undecided"
    wrong = decided(both, a=around(1, 0.01), b=around(2, 0.01)[::-1])
    assert wrong.verdict == "contradicted"
    assert wrong.p_against == pytest.approx(2 * p_values(*wrong.tests[1])[1])
    assert wrong.p_for == pytest.approx(p_values(*wrong.tests[1])[0])


def test_a_claim_over_arms_is_decided_by_their_trend():
    rising = claim(expecting("more", 0.5, over=("a", "b", "c")))
    assert decided(rising, a=around(0, 0.1), b=around(1, 0.2), c=around(2, 0.3)).verdict == "supported"


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ({"a": [1.0, 2.0]}, "study 's' has no runs of b"),
        ({}, "study 's' has no runs of a, b"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "last(reward), a - b: 1 seed (1 left out), but an interval needs two"),
        ({"a": [math.nan] * 2, "b": [1.0, 2.0]}, "0 seeds (2 left out), but an interval needs two"),
    ],
)
def test_a_claim_without_two_seeds_of_every_arm_was_not_run(arms, words):
    decision = decided(claim(expecting("more", 0.1, of="a", against="b")), **arms)
    assert (decision.verdict, decision.p_for, decision.p_against) == ("not run", None, None)
    assert words in decision.words


def test_claims_that_were_not_run_make_no_other_claim_harder():
    claims = [claim(expecting("more", 0.0), number=n, study=str(n)) for n in range(20)]
    numbers = {"0": dict(enumerate(around(0.1, 0.05)))}  # p = 0.017: it would not survive among twenty
    decisions, _ = decide(claims, lambda study, arm, statistic: numbers.get(study, {}))
    assert [d.verdict for d in decisions] == ["supported", *["not run"] * 19]


# Gates


@pytest.mark.parametrize(
    ("bounds", "found", "verdict"),
    [
        ({"at_least": 0.6}, [0.5, 0.8], "contradicted"),  # 0.65 in the mean
        ({"at_least": 0.6}, [0.5, 0.6], "not testable"),
        ({"at_least": 0.3}, [0.1 + 0.2, 0.3], "contradicted"),
        ({"at_most": 0.5}, [0.4, 0.5], "contradicted"),
        ({"at_most": 0.5}, [0.6, 0.5], "not testable"),
        ({"at_least": 0.1, "at_most": 0.5}, [0.05, 0.05], "not testable"),
        ({"at_least": 0.6}, [math.nan, math.nan], "not testable"),
        ({"at_least": 0.6}, [], "not testable"),
        ({"at_least": 0.9, "claims": (2,)}, [0.5, 0.5], "contradicted"),  # it concerns another claim
    ],
)
def test_a_claim_is_decided_only_where_its_gates_hold(bounds, found, verdict):
    numbers = {"last(reward)": around(0, 0.005), "mean(masked_share)": found}
    gates = {"s": [Gate("text", "mean(masked_share)", "a", **bounds)]}
    (decision,), _ = decide(
        [claim(expecting("more", 0.1))], lambda study, arm, statistic: dict(enumerate(numbers[statistic])), gates=gates
    )
    assert (decision.verdict, decision.tested) == (verdict, verdict == "contradicted")
    assert (decision.p_against is None) == (verdict == "not testable")


def test_a_missing_arm_says_more_than_a_gate_that_fails():
    gates = {"s": [Gate("text", "last(reward)", "a", at_least=9)]}
    claims = [claim(expecting("more", 0.1, of="a", against="b"))]
    (decision,), _ = decide(claims, lambda study, arm, statistic: {0: 1.0, 1: 2.0} if arm == "a" else {}, gates=gates)
    assert (decision.verdict, decision.words) == ("not run", "study 's' has no runs of b")


def test_claims_that_are_not_testable_make_no_other_claim_harder():
    claims = [claim(expecting("more", 0.0), number=n, study=str(n)) for n in range(20)]
    gates = {str(n): [Gate("text", "last(accuracy)", "a", at_least=9)] for n in range(1, 20)}
    numbers = {n: dict(enumerate(around(0.1 if n == 0 else 0.0, 0.05))) for n in range(20)}
    decisions, _ = decide(claims, lambda study, arm, statistic: numbers[int(study)], weight=0.0, gates=gates)
    assert [d.verdict for d in decisions] == ["supported", *["not testable"] * 19]
    assert "last(accuracy) of a: 0" in decisions[1].words and "needed at least 9" in decisions[1].words


GATE = """
[[gates]]
text = "Half of the groups have signal."
statistic = "mean(no_signal_share)"
of = "none"
at_most = 0.5
claims = [30]
[gates.at.smollm2]
at_most = 0.9
"""


def gates_of(text, scale="nano"):
    return read_gates(tomllib.loads(text), scale, ARMS, [claim(number=30)], "truncation.toml")


def test_gates_are_read_with_the_bounds_of_their_scale():
    assert gates_of(FILE) == ()
    (gate,) = gates_of(FILE + GATE)
    assert gate == Gate("Half of the groups have signal.", "mean(no_signal_share)", "none", at_most=0.5, claims=(30,))
    assert [each.at_most for each in gates_of(FILE + GATE, "smollm2")] == [0.9]
    assert gate.concerns(claim(number=30)) and not gate.concerns(claim(number=29))


def test_a_gate_with_bounds_at_one_scale_stands_at_that_scale_alone():
    text = FILE + GATE.replace("at_most = 0.5\n", "", 1)
    assert gates_of(text, "nano") == () and [each.at_most for each in gates_of(text, "smollm2")] == [0.9]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('of = "none"', 'of = "nome"', "gate 1: of is 'nome'; did you mean 'none'?"),
        ("mean(no_signal_share)", "mean(no_signal)", "names the unknown metric 'no_signal'; did you mean"),
        (
            "at_most = 0.5\nclaims = [30]\n[gates.at.smollm2]\nat_most = 0.9\n",
            "",
            "gate 1: its bounds are missing; give",
        ),
        ("at_most = 0.5\n", "at_most = '0.5'\n", "its bounds are {'at_most': '0.5'}; give a number"),
        ("at_most = 0.5\n", "at_most = 0.5\nat_least = 0.7\n", "at_least is 0.7, above at_most, 0.5; nothing passes"),
        ("at_most = 0.5\n", "atmost = 0.5\n", "gate 1: unknown key 'atmost'; did you mean 'at_most'?"),
        ("claims = [30]", "claims = [31]", "claims are [31]; list numbers of the study's claims: [30]"),
        ("claims = [30]", "claims = [[30]]", "claims are [[30]]; list numbers of the study's claims: [30]"),
        ("[gates.at.smollm2]", "[gates.at.smollm3]", "unknown key 'smollm3'; did you mean 'smollm2'?"),
        ('text = "Half of the groups have signal."', "", "gate 1: text is missing"),
    ],
)
def test_a_gate_that_cannot_be_used_names_its_place_and_the_remedy(old, new, words):
    assert GATE.count(old) == 1
    with pytest.raises(StudyError) as error:
        gates_of(FILE + GATE.replace(old, new))
    assert "truncation.toml" in str(error.value) and words in str(error.value)


@pytest.mark.parametrize(
    ("test", "numbers", "words"),
    [
        (
            expecting("more", 0.02, of="conditional", against="none"),
            {"conditional": [0.5067, 0.534, 0.534, 0.534, 0.5613], "none": [0.5] * 5},
            "last(reward), conditional - none: +0.034 (0.010 to 0.058), 5 seeds, expected at least +0.02",
        ),
        (
            expecting("less", 0.0, over=("a", "b")),
            {"a": [100, 200, 300], "b": [0, 90, 210]},
            "last(reward), slope over a, b: -100 (-125 to -75), 3 seeds, expected less than 0",
        ),
        (
            expecting("same", 1, of="a"),
            {"a": [0.5, 0.5, math.nan]},
            "last(reward), a: +0.50 (0.50 to 0.50), 2 seeds (1 left out), expected within 1 of 0",
        ),
    ],
)
def test_a_decision_gives_its_numbers_in_words(test, numbers, words):
    assert decided(claim(test), **numbers).words == words


# The rule as a whole, on simulated studies of 34 claims with five seeds: noise of 1 in each arm, beside a seed's own


def simulated(effects, by, seed, repetitions):
    """(repetitions, claims) verdicts, for claims that arm a has `by` more than arm b."""
    generator = np.random.default_rng(seed)
    claims = [claim(expecting("more", by, of="a", against="b"), number=n, study=str(n)) for n in range(len(effects))]
    verdicts = []
    for _ in range(repetitions):
        noise = generator.normal(size=(2, len(effects), 5)) + generator.normal(size=5)  # (arms, claims, seeds)
        arms = {"a": noise[0] + np.array(effects)[:, None], "b": noise[1]}
        found, _ = decide(claims, lambda study, arm, _, arms=arms: dict(enumerate(arms[arm][int(study)].tolist())))
        verdicts.append([decision.verdict for decision in found])
    return np.array(verdicts)


ERROR = math.sqrt(2 / 5)  # the standard error of a difference of two arms over five seeds


def test_of_34_claims_without_an_effect_any_is_supported_or_contradicted_in_about_one_study_of_twenty():
    verdicts = simulated([0.0] * 34, by=0.0, seed=0, repetitions=400)
    for verdict in ("supported", "contradicted"):
        share = (verdicts == verdict).any(axis=1).mean()
        assert 0.01 < share < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_effects_of_three_standard_errors_are_mostly_found_and_never_contradicted():
    verdicts = simulated([3 * ERROR] * 34, by=0.0, seed=1, repetitions=50)
    assert (verdicts == "supported").mean() > 0.6
    assert not (verdicts == "contradicted").any()


def test_among_supported_claims_about_one_in_twenty_is_false_at_most():
    verdicts = simulated([6 * ERROR] * 17 + [0.0] * 17, by=0.0, seed=2, repetitions=100)
    supported = verdicts == "supported"
    false_share = supported[:, 17:].sum(axis=1) / np.maximum(supported.sum(axis=1), 1)  # (repetitions,)
    assert supported[:, :17].mean() > 0.8
    assert false_share.mean() < 0.05


def test_a_large_effect_that_is_claimed_and_absent_is_contradicted():
    assert (simulated([0.0] * 34, by=10.0, seed=3, repetitions=20) == "contradicted").mean() > 0.99
