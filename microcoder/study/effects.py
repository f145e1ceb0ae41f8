"""An effect: what a change does to a statistic, seed by seed, with its 95% interval over the seeds.

Arms share their seeds, so that what a seed does to all arms cancels within it. A seed counts only where every arm has
a finite number for it; the others are left out, and counted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .student import quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean over seeds, and the t interval around it; one seed has no interval, no seed a NaN."""

    estimate: float
    low: float | None
    high: float | None
    seeds: tuple[int, ...]  # those that count
    values: tuple[float, ...]  # one for each of them
    left_out: int = 0  # seeds that some arm lacks, or has no number for
    error: float = math.nan  # the standard error
    freedom: float = 0.0  # degrees of freedom that it is known with


def paired(of: Mapping[int, float], against: Mapping[int, float] | None = None) -> Effect:
    """The difference of two arms within each seed; or one arm by itself, against 0."""
    return _weighted([of], [1.0]) if against is None else _weighted([of, against], [1.0, -1.0])


def trend(arms: Sequence[Mapping[int, float]]) -> Effect:
    """Within each seed, the least-squares slope over the arms in their order: the change per arm."""
    if len(arms) < 2:
        raise ValueError(f"a trend over {len(arms)} arm(s) has no slope; it takes two or more")
    return _weighted(arms, slope_weights(len(arms)))


def slope_weights(count: int) -> list[float]:
    """What each arm counts in the slope."""
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
    """The same effect with the interval that this error gives it."""
    reach = quantile((1 + CONFIDENCE) / 2, freedom) * error
    low, high = effect.estimate - reach, effect.estimate + reach
    return dataclasses.replace(effect, low=low, high=high, error=error, freedom=freedom)
