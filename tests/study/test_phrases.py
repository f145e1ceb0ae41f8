"""Effects, expectations and p values as a report tells them: units, rounding, bounds."""

from __future__ import annotations

import numpy as np
import pytest

from microcoder.study.decisions import surviving
from microcoder.study.effects import Effect, paired
from microcoder.study.phrases import effect_words, expected_words, p_words, signed, unit_of
from microcoder.study.plan import ClaimTest
from microcoder.study.results import adjust


def effect(estimate, low, high):
    return Effect(estimate, low, high, (0, 1), (estimate, estimate))


@pytest.mark.parametrize(
    ("statistic", "by", "numbers", "words"),
    [
        ("last(test_accuracy)", 0.02, (0.041, 0.012, 0.07), "+4.1 points (+1.2 to +7.0)"),
        ("last(test_accuracy)", 0.02, (0.01996, 0.001, 0.04), "+1.996 points (+0.100 to +4.000)"),  # short of 2
        ("last(test_accuracy)", 0.02, (0.02 + 1e-15, 0.001, 0.04), "+2.0 points (+0.1 to +4.0)"),  # 2, but for rounding
        ("last(diversity)", 0.0, (0.31, -0.0004, 0.62), "+0.3100 (−0.0004 to +0.6200)"),  # 0 is inside
        ("growth(length_mean)", 0.0, (-12.3, -24.0, -0.6), "−12 tokens a step (−24 to −1)"),
        ("peak_step(accuracy)", 0.5, (3.0, 1.0, 5.0), "+3.0 steps (+1.0 to +5.0)"),
        ("mean(step_s)", 0.0, (-200.0, -400.0, -10.0), "−200 s (−400 to −10)"),
        ("last(exact_mistaken) - last(robust_mistaken)", 0.01, (0.2, 0.2, 0.2), "+20 points (+20 to +20)"),
    ],
)
def test_an_effect_is_rounded_to_its_interval_and_never_across_a_bound(statistic, by, numbers, words):
    assert effect_words(ClaimTest(statistic, "more", by, "a", "b"), effect(*numbers)) == words


def test_effects_without_an_interval_or_a_number_and_trends_are_told_too():
    trended = ClaimTest("last(reward)", "less", 0.5, over=("a", "b"))
    assert effect_words(trended, effect(-0.25, -0.5, 0.1)) == "−0.25 per arm (−0.50 to +0.10)"
    assert signed(paired({0: 0.5})) == "+0.50"
    assert signed(paired({})) == "not recorded"


@pytest.mark.parametrize(
    ("expect", "by", "words"),
    [
        ("more", 0.02, "at least +2 points"),
        ("less", 0.07, "at most −7 points"),
        ("same", 0.05, "within 5 points of 0"),
        ("less", 0.0, "less than 0"),
    ],
)
def test_an_expectation_is_told_in_the_unit_of_its_statistic(expect, by, words):
    assert expected_words(ClaimTest("last(test_accuracy)", expect, by, "a")) == words


def test_sums_of_different_units_have_none():
    assert unit_of("last(length_mean) - first(length_mean)") == (1.0, "tokens")
    assert unit_of("last(length_mean) - first(reward)") == (1.0, "")


@pytest.mark.parametrize(
    ("p", "words"), [(0.0499, "= 0.0499"), (0.0504, "= 0.0504"), (0.05, "= 0.050"), (0.31, "= 0.31"), (1e-9, "< 0.001")]
)
def test_a_p_value_stays_on_its_side_of_the_level(p, words):
    assert p_words(p) == words


def test_adjusted_p_values_of_at_most_the_level_are_those_that_survive():
    assert adjust([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5])
    generator = np.random.default_rng(0)
    for size in range(30):
        ps = (generator.random(size) ** 3).tolist()
        assert [p <= 0.05 for p in adjust(ps)] == surviving(ps)
