"""How far seeds lie apart, where a test has few of them: its own spread, blended with that of its study's other arms.

Three seeds of two arms say little about their spread, and a t test pays dearly for not knowing it. The seeds of the
study's other arms are asked too. How much they count is estimated over all tests of a report: the less the variances
of the tests differ from those of the other arms beyond what so few seeds must, the more. These are the moderated t
statistics of Smyth (2004), who had few samples of many genes. Where all variances are alike it comes to the analysis
of randomised blocks, where they are not it stays with the test's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .effects import Effect, with_error

ROUNDING = 1e-18  # a variance below this share of the squares is that of numbers which agree


@dataclass(frozen=True, slots=True)
class Spread:
    """Two variances of a test's effect in one seed, with their degrees of freedom; they are independent."""

    own: float
    freedom: int
    others: float  # what the study's other arms would have it be
    lent: int

    @property
    def excess(self) -> float:
        """The logarithm of their ratio, 0 on average where they are alike."""
        return math.log(self.own / self.others) - _log_bias(self.freedom) + _log_bias(self.lent)

    @property
    def expected(self) -> float:
        """The mean square of `excess` where they are alike."""
        return trigamma(self.freedom / 2) + trigamma(self.lent / 2)


def spread(
    effect: Effect, weights: Mapping[str, float], arms: Mapping[str, Mapping[int, float]]
) -> Spread | None:
    """Of an effect that is the sum of `weights` over arms; None where no other arm has numbers for all of its seeds."""
    whole = {
        name: [arm[seed] for seed in effect.seeds]
        for name, arm in arms.items()
        if all(math.isfinite(arm.get(seed, math.nan)) for seed in effect.seeds)
    }
    table = np.array(list(whole.values()), dtype=float)  # (arms, seeds)
    between = abs(math.fsum(weights.values())) < 1e-12  # then what a seed does to all arms cancels
    freedom = len(effect.seeds) - 1
    lent = freedom * (len(table) - 1 - between)
    if freedom < 1 or lent < 1:
        return None
    rest = table - table.mean(axis=1, keepdims=True)
    if between:
        rest = rest - rest.mean(axis=0)
    squares = math.fsum(weight * weight for weight in weights.values())
    own = float(np.var(effect.values, ddof=1))
    others = squares * max(0.0, float((rest**2).sum()) - own * freedom / squares) / lent
    least = ROUNDING * squares * float((table**2).max())
    return Spread(own if own > least else 0.0, freedom, others if others > least else 0.0, lent)


def weight_of_others(spreads: Sequence[Spread]) -> float:
    """How many degrees of freedom the others' variance is worth, 0 to infinity.

    What is estimated is how far true variances differ. Its standard error is added, on the side of caution: variances
    that differ a little and are taken to be alike would make too many verdicts.
    """
    beyond = np.array([each.excess**2 - each.expected for each in spreads if each.own and each.others])
    if len(beyond) < 2:
        return 0.0
    most = float(beyond.mean() + beyond.std(ddof=1) / math.sqrt(len(beyond)))
    return 2 * _where_trigamma_is(most) if most > 0 else math.inf


def moderated(effect: Effect, found: Spread | None, weight: float) -> Effect:
    """The effect with the blended variance."""
    lent = min(weight, found.lent) if found else 0.0
    if found is None or not lent or not found.others:
        return effect
    freedom = found.freedom + lent
    variance = (found.own * found.freedom + found.others * lent) / freedom
    return with_error(effect, math.sqrt(variance / len(effect.values)), freedom)


def trigamma(x: float) -> float:
    """The second derivative of the logarithm of the gamma function."""
    found = 0.0
    while x < 8:
        found, x = found + 1 / (x * x), x + 1
    y = 1 / (x * x)
    return found + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


def digamma(x: float) -> float:
    """The first derivative."""
    found = 0.0
    while x < 8:
        found, x = found - 1 / x, x + 1
    y = 1 / (x * x)
    return found + math.log(x) - 1 / (2 * x) - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))


def _log_bias(freedom: float) -> float:
    """By how much the logarithm of a variance is expected to miss that of the true one."""
    return digamma(freedom / 2) - math.log(freedom / 2)


def _where_trigamma_is(value: float) -> float:
    """Bisection on the logarithm of its argument: it falls."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp(low)
