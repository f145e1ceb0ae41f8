"""The spread of a test's effect: its own, blended with that of the study's other arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microcoder.study.claims import Claim, ClaimTest
from microcoder.study.deciding import decide
from microcoder.study.effects import paired, trend
from microcoder.study.spread import Spread, digamma, moderated, spread, trigamma, weight_of_others


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


def reports(count, seeds, spreads, gain):
    """Whole reports of 32 claims in 8 studies of 7 arms each: half of them true, by `gain`."""
    claims = [
        Claim(n, "", str(study), (ClaimTest("last(reward)", "more", 0.0, of, against),))
        for n, (study, of, against) in enumerate(
            (study, *pair) for study in range(8) for pair in ("03", "14", "34", "56")
        )
    ]
    rng = np.random.default_rng(2)
    for number in range(count):
        studies = []
        for study in range(8):
            numbers = table(7, seeds, seed=1000 * number + study, spreads=np.exp(spreads * rng.normal(size=7)))
            numbers -= numbers.mean(axis=1, keepdims=True) - rng.normal(size=(7, 1)) / math.sqrt(seeds)
            studies.append(arms_of(numbers + gain * (np.arange(7) < 3)[:, None]))
        yield claims, studies


@pytest.mark.parametrize(("seeds", "spreads"), [(3, 0.0), (3, 0.5), (5, 0.3)])
def test_in_whole_reports_few_verdicts_are_false_and_more_are_found_than_by_a_tests_own_spread(seeds, spreads):
    found, plain, false, findings = 0, 0, 0, 0
    for claims, studies in reports(40, seeds, 0.0, 2.5):
        every = decide(claims, lambda study, arm, _, of=studies: of[int(study)][arm])
        one_by_one = [decide([claim], lambda study, arm, _, of=studies: of[int(study)][arm])[0] for claim in claims]
        found += sum(each.verdict == "supported" for each in every if each.claim.tests[0].of in "01")
        plain += sum(each.p_for < 0.001 for each in one_by_one if each.claim.tests[0].of in "01")
    for claims, studies in reports(40, seeds, spreads, 2.5):
        every = decide(claims, lambda study, arm, _, of=studies: of[int(study)][arm])
        wrong = [each.verdict != "undecided" for each in every if each.claim.tests[0].of in "35"]
        false, findings = false + sum(wrong), findings + sum(each.verdict != "undecided" for each in every)
    assert found > 1.5 * plain
    assert false < 0.05 * findings
