"""The spread of a test's effect: its own, blended with that of the study's other arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microcoder.study.effects import Spread, digamma, moderated, paired, spread, trend, trigamma, weight_of_others


def table(arms, seeds, seed=0, spreads=1.0):
    """Numbers of arms by seed: noise, beside an arm's own mean and a seed's own."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(arms, seeds)) * np.reshape(spreads, (-1, 1))
    return numbers + rng.normal(size=(arms, 1)) + 5 * rng.normal(size=seeds)


def arms_of(numbers):
    return {str(n): dict(enumerate(row)) for n, row in enumerate(numbers.tolist())}


def test_the_derivatives_of_the_logarithm_of_gamma_have_their_known_values():
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, rel=1e-9)
    assert trigamma(0.5) == pytest.approx(math.pi**2 / 2, rel=1e-9)
    assert digamma(1) == pytest.approx(-0.5772156649015329, rel=1e-9)
    assert digamma(30.5) == pytest.approx((math.lgamma(30.5 + 1e-5) - math.lgamma(30.5 - 1e-5)) / 2e-5, rel=1e-8)


@pytest.mark.parametrize("weights", [{"0": 1.0, "3": -1.0}, {"1": -0.5, "2": 0.0, "4": 0.5}])
def test_if_others_count_fully_the_variance_is_that_of_randomised_blocks(weights):
    numbers = table(arms=6, seeds=4)
    arms = arms_of(numbers)
    effect = paired(arms["0"], arms["3"]) if len(weights) == 2 else trend([arms["1"], arms["2"], arms["4"]])
    found = moderated(effect, spread(effect, weights, arms), math.inf)
    rest = numbers - numbers.mean(1, keepdims=True) - numbers.mean(0) + numbers.mean()
    variance = (rest**2).sum() / 15 * sum(weight**2 for weight in weights.values())
    assert (found.error, found.freedom) == (pytest.approx(math.sqrt(variance / 4)), 15)
    assert (found.estimate, found.values) == (effect.estimate, effect.values)
    assert found.high - found.estimate == pytest.approx(2.131449545559323 * found.error)  # t of 15


def test_an_arm_against_nothing_is_blended_with_what_others_vary_between_seeds():
    numbers = table(arms=3, seeds=5)
    arms = arms_of(numbers)
    effect = paired(arms["1"])
    found = moderated(effect, spread(effect, {"1": 1.0}, arms), math.inf)
    assert (found.error, found.freedom) == (pytest.approx(math.sqrt(numbers.var(axis=1, ddof=1).mean() / 5)), 12)


def test_others_are_asked_only_where_they_have_a_number_for_every_seed_of_the_effect():
    arms = arms_of(table(arms=5, seeds=3))
    effect = paired(arms["0"], arms["1"])
    assert spread(effect, {"0": 1.0, "1": -1.0}, arms).lent == 6
    del arms["2"][1]
    arms["3"][2] = math.nan
    assert spread(effect, {"0": 1.0, "1": -1.0}, arms).lent == 2
    assert spread(effect, {"0": 1.0, "1": -1.0}, {name: arms[name] for name in "01"}) is None
    arms["4"] = arms["1"]  # one run for both: it would be counted twice
    assert spread(effect, {"0": 1.0, "1": -1.0}, arms) is None
    one = paired({0: 1.0}, {0: 2.0})
    assert spread(one, {"0": 1.0, "1": -1.0}, arms) is None
    assert moderated(effect, None, math.inf) is effect


def test_seeds_that_agree_take_the_spread_of_others_and_lend_none():
    arms = {"a": dict.fromkeys(range(3), 0.3), "b": dict.fromkeys(range(3), 0.1), **arms_of(table(arms=2, seeds=3))}
    effect = paired(arms["a"], arms["b"])
    found = spread(effect, {"a": 1.0, "b": -1.0}, arms)
    assert found.own == 0 and found.others > 0
    assert moderated(effect, found, 4.0).error > 0.1
    assert weight_of_others([found, found]) == 0
    alike = {name: dict(enumerate((base, base + 1, base + 2))) for base, name in enumerate("abcd")}
    found = spread(paired(alike["a"], alike["b"]), {"a": 1.0, "b": -1.0}, alike)
    assert (found.own, found.others) == (0, 0)


def spreads_of(count, ratio):
    """Tests with 4 seeds whose own true variance is that of the others times `ratio(rng)`."""
    rng = np.random.default_rng(1)
    draws = [(ratio(rng) * rng.chisquare(3) / 3, rng.chisquare(15) / 15) for _ in range(count)]
    return [Spread(own, 3, others, 15) for own, others in draws]


def test_others_count_the_more_the_less_true_variances_differ():
    alike = weight_of_others(spreads_of(400, lambda rng: 1.0))
    unlike = weight_of_others(spreads_of(400, lambda rng: 8 / rng.chisquare(8)))
    wild = weight_of_others(spreads_of(400, lambda rng: math.exp(3 * rng.normal())))
    assert alike > 10 > unlike > 2.5 > 1 > wild > 0
    assert weight_of_others(spreads_of(1, lambda rng: 1.0)) == weight_of_others([]) == 0
