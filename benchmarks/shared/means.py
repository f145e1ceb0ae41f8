"""Means with their intervals: over seeds by Student's t, and over problems and seeds by the bootstrap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from microcoder.study.effects import paired

RESAMPLES = 10_000
Scores = NDArray[np.float64]  # (seeds, problems)
Interval = tuple[float, float] | None


def t_interval(means: list[float]) -> Interval:
    """The 95% interval of the mean of the seeds; none for fewer than two."""
    if len(means) < 2:
        return None
    found = paired(dict(enumerate(means)))
    return found.low, found.high


def bootstrap(scores: Scores) -> Interval:
    """The 95% interval of the mean, problems and seeds both drawn with replacement."""
    return _middle(_means(scores, *_draws(scores)))


def gain(scores: Scores, against: Scores) -> dict[str, float | Interval]:
    """How much better `scores` are, in points and relative, with the paired bootstrap over problems and seeds.

    Both have the same problems and the same seeds, in the same order: each draw takes the same ones of both.
    """
    draws = _draws(scores)
    ours, theirs = _means(scores, *draws), _means(against, *draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = ours / theirs - 1
    was, now = float(against.mean()), float(scores.mean())
    return {
        "points": 100 * (now - was),
        "points_interval": _middle(100 * (ours - theirs)),
        "relative": now / was - 1 if was else math.nan,
        "relative_interval": _middle(relative) if np.isfinite(relative).all() else None,
    }


def _draws(scores: Scores) -> tuple[Scores, Scores]:
    """How often each seed and each problem is drawn, as shares: (resamples, seeds), (resamples, problems)."""
    random = np.random.default_rng(0)
    seeds, problems = (random.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n for n in scores.shape)
    return seeds, problems


def _means(scores: Scores, seeds: Scores, problems: Scores) -> NDArray[np.float64]:
    return ((seeds @ scores) * problems).sum(1)  # (resamples,)


def _middle(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
