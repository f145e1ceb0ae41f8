"""Effects: the change of a statistic between arms, paired by seed, with its 95% interval over the seeds.

Arms share their seeds, so the influence of a seed on all arms cancels. A seed counts only if every arm has a finite
number for it; the others are left out, and counted.

The spread between seeds is the test's own spread, blended with that of its study's other arms. Three seeds of two arms
say little about their spread, and that costs a t test much power. The weight of the other arms is estimated over all
tests of a report: it is large if the variances of the tests differ from those of the other arms no more than so few
seeds explain. These are the moderated t statistics of Smyth (2004), who had few samples of many genes. If all variances
are alike, the result is the analysis of randomised blocks; if they differ, each test keeps its own variance.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TINY = 1e-300  # replaces a zero divisor in the continued fraction
PRECISION = 1e-15
CONFIDENCE = 0.95
ROUNDING = 1e-18  # numbers whose variance is below this share of their squares count as equal


def tail(t: float, df: float) -> float:
    """Return the one-sided p of Student's t: the chance that a t variable with `df` degrees of freedom exceeds `t`."""
    _check(df)
    if math.isnan(t):
        return math.nan
    ratio = t * t / df
    x = 1 / (1 + ratio)
    rest = ratio * x if ratio < 1 else 1 - x  # 1 - x, without loss of digits on either side
    beyond = 0.5 * _incomplete_beta(df / 2, 0.5, x, rest)
    return beyond if t > 0 else 1 - beyond


@functools.cache
def quantile(p: float, df: float) -> float:
    """Return the quantile `p` of Student's t with `df` degrees of freedom."""
    _check(df)
    if not 0 < p < 1:
        raise ValueError(f"there is no quantile at {p}; p must lie between 0 and 1, both excluded")
    if p == 0.5:
        return 0.0
    return -_exceeded(p, df) if p < 0.5 else _exceeded(1 - p, df)


def _exceeded(p: float, df: float) -> float:
    """Find the t whose tail is p < 1/2, by bisection until both ends are neighbouring floats."""
    low, high = 0.0, 1.0
    while tail(high, df) > p:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if tail(middle, df) > p else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 - x."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - _incomplete_beta(b, a, rest, x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(scale) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction 1 + d1 x / (1 + d2 x / (1 + ...)), by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for n in range(1, 10_000):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or TINY)
        c = (1 + term / c) or TINY
        value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return value


def _check(df: float) -> None:
    if not 0 < df < math.inf:
        raise ValueError(f"there is no t distribution with {df} degrees of freedom; it takes more than 0")


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean over seeds with its t interval; one seed has no interval, and without seeds the mean is NaN."""

    estimate: float
    low: float | None
    high: float | None
    seeds: tuple[int, ...]  # the seeds that count
    values: tuple[float, ...]  # one for each of these seeds
    left_out: int = 0  # seeds without a number in some arm
    error: float = math.nan  # the standard error
    freedom: float = 0.0  # degrees of freedom of the standard error


def paired(of: Mapping[int, float], against: Mapping[int, float] | None = None) -> Effect:
    """Return the effect of two arms' difference within each seed; or of one arm, against 0."""
    return _weighted([of], [1.0]) if against is None else _weighted([of, against], [1.0, -1.0])


def trend(arms: Sequence[Mapping[int, float]]) -> Effect:
    """Return the effect of the least-squares slope over the arms in order, within each seed: the change per arm."""
    if len(arms) < 2:
        raise ValueError(f"a trend over {len(arms)} arm(s) has no slope; it takes two or more")
    return _weighted(arms, slope_weights(len(arms)))


def slope_weights(count: int) -> list[float]:
    """Return the weights of the arms in the least-squares slope."""
    places = np.arange(count) - (count - 1) / 2  # around 0
    return list((places / (places @ places)).tolist())


def _weighted(arms: Sequence[Mapping[int, float]], weights: Sequence[float]) -> Effect:
    everyone = sorted(set().union(*arms))
    seeds = tuple(seed for seed in everyone if all(math.isfinite(arm.get(seed, math.nan)) for arm in arms))
    values = tuple(sum(weight * arm[seed] for weight, arm in zip(weights, arms, strict=True)) for seed in seeds)
    estimate = math.fsum(values) / len(values) if values else math.nan
    effect = Effect(estimate, None, None, seeds, values, len(everyone) - len(seeds))
    if len(values) < 2:
        return effect
    return with_error(effect, float(np.std(values, ddof=1)) / math.sqrt(len(values)), len(values) - 1)


def with_error(effect: Effect, error: float, freedom: float) -> Effect:
    """Replace the standard error of an effect and, accordingly, its interval."""
    reach = quantile((1 + CONFIDENCE) / 2, freedom) * error
    low, high = effect.estimate - reach, effect.estimate + reach
    return dataclasses.replace(effect, low=low, high=high, error=error, freedom=freedom)


@dataclass(frozen=True, slots=True)
class Spread:
    """Two independent estimates of the variance of a test's effect in one seed, with their degrees of freedom."""

    own: float
    freedom: int
    others: float  # estimated from the study's other arms
    lent: int

    @property
    def excess(self) -> float:
        """The logarithm of the ratio of both variances; 0 on average if they are alike."""
        return math.log(self.own / self.others) - _log_bias(self.freedom) + _log_bias(self.lent)

    @property
    def expected(self) -> float:
        """The mean square of `excess` if both variances are alike."""
        return trigamma(self.freedom / 2) + trigamma(self.lent / 2)


def spread(effect: Effect, weights: Mapping[str, float], arms: Mapping[str, Mapping[int, float]]) -> Spread | None:
    """Compute both variances of an effect, a weighted sum of arms; None if no other arm has all of its seeds."""
    whole: dict[str, list[float]] = {}
    for name in [*weights, *(name for name in arms if name not in weights)]:
        row = [arms[name].get(seed, math.nan) for seed in effect.seeds]
        # an arm with the numbers of another, whose runs it shares or like which it trained, is no second estimate
        if all(map(math.isfinite, row)) and (name in weights or row not in whole.values()):
            whole[name] = row
    table = np.array(list(whole.values()), dtype=float)  # (arms, seeds)
    between = abs(math.fsum(weights.values())) < 1e-12  # then the influence of a seed on all arms cancels
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
    """Estimate how many degrees of freedom the variance of the other arms is worth, 0 to infinity.

    The difference between true variances is estimated, and its standard error is added to be careful: to treat
    variances as alike that differ a little would give too many verdicts.
    """
    beyond = np.array([each.excess**2 - each.expected for each in spreads if each.own and each.others])
    if len(beyond) < 2:
        return 0.0
    most = float(beyond.mean() + beyond.std(ddof=1) / math.sqrt(len(beyond)))
    return 2 * _where_trigamma_is(most) if most > 0 else math.inf


def moderated(effect: Effect, found: Spread | None, weight: float) -> Effect:
    """Blend the variance of an effect with that of the other arms."""
    lent = min(weight, found.lent) if found else 0.0
    if found is None or not lent or not found.others:
        return effect
    freedom = found.freedom + lent
    variance = (found.own * found.freedom + found.others * lent) / freedom
    return with_error(effect, math.sqrt(variance / len(effect.values)), freedom)


def trigamma(x: float) -> float:
    """Return the second derivative of the logarithm of the gamma function."""
    found = 0.0
    while x < 8:
        found, x = found + 1 / (x * x), x + 1
    y = 1 / (x * x)
    return found + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


def digamma(x: float) -> float:
    """Return the first derivative of the logarithm of the gamma function."""
    found = 0.0
    while x < 8:
        found, x = found - 1 / x, x + 1
    y = 1 / (x * x)
    return found + math.log(x) - 1 / (2 * x) - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))


def _log_bias(freedom: float) -> float:
    """Return the expected error of the logarithm of an estimated variance."""
    return digamma(freedom / 2) - math.log(freedom / 2)


def _where_trigamma_is(value: float) -> float:
    """Invert `trigamma`, which falls, by bisection on the logarithm of its argument."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(math.exp(middle)) > value else (low, middle)
    return math.exp(low)
