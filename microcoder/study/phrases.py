"""Numbers of a study in words: `+4.1 points (+1.2 to +7.0)`, `at least +2 points`, `p = 0.003`.

The width of the interval decides the number of digits. A number is never rounded across a bound that a verdict depends
on: 1.996 points, less than the bound 2, are not shown as 2.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .decisions import LEVEL
from .effects import Effect
from .measures import parse
from .plan import ClaimTest

MINUS = "\N{MINUS SIGN}"
MOST = 12  # most decimals
SHARES = ("accuracy", "_share", "_at_k", "_mistaken", "_refused", "_accepted", "clip_low", "clip_high", "_also")


def unit_of(statistic: str) -> tuple[float, str]:
    """Return the factor and the unit for showing a statistic: (100.0, "points"); the unit may be empty."""
    kinds = {_unit(function, metric) for _, function, metric in parse(statistic)}
    return kinds.pop() if len(kinds) == 1 else (1.0, "")


def _unit(function: str, metric: str) -> tuple[float, str]:
    if function == "peak_step":
        return 1.0, "steps"
    factor, unit = 1.0, ""
    if metric.endswith(SHARES):
        factor, unit = 100.0, "points"
    elif metric == "tokens_per_s":
        unit = "tokens/s"
    elif metric.startswith(("length", "tokens", "test_length")):
        unit = "tokens"
    elif metric.endswith("_s"):
        unit = "s"
    return factor, f"{unit} a step".strip() if function in ("slope", "growth") else unit


def effect_words(test: ClaimTest, effect: Effect) -> str:
    """Write the effect of a test with its interval, in its unit."""
    factor, unit = unit_of(test.statistic)
    if test.over:
        unit = f"{unit} per arm".strip()
    return signed(effect, factor, unit, bounds=(0.0, -test.by, test.by))


def signed(effect: Effect, factor: float = 1.0, unit: str = "", bounds: Iterable[float] = (0.0,)) -> str:
    """Write `+4.1 points (+1.2 to +7.0)`, without rounding across any of `bounds`."""
    if not effect.values:
        return "not recorded"
    numbers = [factor * x for x in (effect.estimate, effect.low, effect.high) if x is not None]
    places = decimals(numbers, [factor * bound for bound in bounds])
    estimate, *ends = (f"{x + 0.0:+.{places}f}".replace("-", MINUS) for x in (round(x, places) for x in numbers))
    words = f"{estimate} {unit}".rstrip()
    return f"{words} ({' to '.join(ends)})" if ends else words


def expected_words(test: ClaimTest) -> str:
    """Write the expectation of a test: `at least +2 points`."""
    factor, unit = unit_of(test.statistic)
    size = f"{factor * test.by:g} {unit}".rstrip() + (" per arm" if test.over else "")
    if test.expect == "same":
        return f"within {size} of 0"
    if test.by == 0:
        return f"{test.expect} than 0"
    return f"at least +{size}" if test.expect == "more" else f"at most {MINUS}{size}"


def comparison(test: ClaimTest) -> str:
    """Write the statistic and the arms of a test as Markdown."""
    arms = f"trend over {', '.join(test.over)}" if test.over else f" {MINUS} ".join(test.arms)
    return f"`{test.statistic}`, {arms}"


def p_words(p: float) -> str:
    """Write a p value without rounding across the level: `= 0.012`, `< 0.001`."""
    if p < 0.001:
        return "< 0.001"
    places = max(2, 1 - math.floor(math.log10(p)))  # two figures
    return f"= {p:.{_kept([p], [LEVEL], places)}f}"


def share_words(share: float | None) -> str:
    return "" if share is None or math.isnan(share) else f"{100 * share:.1f}%"


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def decimals(numbers: list[float], bounds: list[float]) -> int:
    """Return the number of decimals: two digits of half the interval, and more if rounding would cross a bound."""
    half = (numbers[-1] - numbers[1]) / 2 if len(numbers) == 3 else 0.0
    width = half if half > 1e-9 * abs(numbers[0]) else abs(numbers[0]) or 1.0  # seeds that agree have no interval
    return _kept(numbers, bounds, min(MOST, max(0, 1 - math.floor(math.log10(width)))))


def _kept(numbers: list[float], bounds: list[float], places: int) -> int:
    def faithful(places: int) -> bool:
        return all(_side(round(x, places), bound) == _side(x, bound) for x in numbers for bound in bounds)

    return next((more for more in range(places, MOST) if faithful(more)), MOST)


def _side(x: float, bound: float) -> int:
    """Return the side of a bound: 1 above, -1 below, 0 on it, except for rounding errors of a sum."""
    return 0 if math.isclose(x, bound, rel_tol=1e-9, abs_tol=1e-9) else 1 if x > bound else -1
