"""Student's t distribution: its tail, by the continued fraction of the incomplete beta function, and its quantiles."""

from __future__ import annotations

import functools
import math

TINY = 1e-300  # stands for a zero divisor in the continued fraction
PRECISION = 1e-15


def tail(t: float, df: float) -> float:
    """The chance that a t variable with `df` degrees of freedom exceeds `t`: the one-sided p."""
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
    """The value that a t variable with `df` degrees of freedom stays below with chance `p`."""
    _check(df)
    if not 0 < p < 1:
        raise ValueError(f"there is no quantile at {p}; p must lie between 0 and 1, both excluded")
    if p == 0.5:
        return 0.0
    return -_exceeded(p, df) if p < 0.5 else _exceeded(1 - p, df)


def _exceeded(p: float, df: float) -> float:
    """Where the tail is p < 1/2: bisection, until the two ends are neighbours."""
    low, high = 0.0, 1.0
    while tail(high, df) > p:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if tail(middle, df) > p else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised, I_x(a, b); `rest` is 1 - x."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - _incomplete_beta(b, a, rest, x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(scale) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1 x / (1 + d2 x / (1 + ...)) by Lentz's method, from the front."""
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
