"""What a figure of a study shows, as arrays: curves, evaluations with their spread, stage boundaries, step times.

A mean over seeds exists only where every seed that recorded the metric has a value. A mean that loses a seed on the way
jumps, and the jump would be read as an effect of training.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...runs.plot import PHASES
from ...runs.series import Metrics, Series, series, smooth, stages
from ..student import quantile


@dataclass(frozen=True, slots=True)
class ArmCurves:
    """An arm of a study as a figure needs it: a name for programs, a label for readers, the metrics of each seed."""

    name: str
    label: str
    runs: Sequence[Metrics]


def curve(arm: ArmCurves, name: str) -> tuple[Series, Series, Series]:
    """Steps (n,), the values of each seed (seeds, n), and the mean of the smoothed ones (n,); NaN where there is none.

    Each seed is smoothed within its own stages, as in the figure of a single run.
    """
    steps, values = _by_step(arm, name, lambda run: series(run, name))
    _, smoothed = _by_step(arm, name, lambda run: np.concatenate([smooth(series(s, name)) for s in stages(run)]))
    return steps, values, smoothed.sum(axis=0) / max(1, len(smoothed))  # a sum with a NaN is one


def evaluations(arm: ArmCurves, name: str) -> tuple[Series, Series, Series]:
    """Steps (n,), the mean over seeds (n,), and where its whiskers begin and end (2, n).

    They span the 95% t interval of three seeds or more, and the range of fewer: the interval of two would be almost 13
    times as wide.
    """
    steps, values = _by_step(arm, name, lambda run: series(run, name))
    shared = np.isfinite(values).all(axis=0)
    steps, values = steps[shared], values[:, shared]
    if not steps.size:
        return steps, steps, np.empty((2, 0))
    mean, seeds = values.mean(axis=0), len(values)
    if seeds < 3:
        return steps, mean, np.stack([values.min(axis=0), values.max(axis=0)])
    half = quantile(0.975, seeds - 1) * values.std(axis=0, ddof=1) / np.sqrt(seeds)  # (n,)
    return steps, mean, np.stack([mean - half, mean + half])


def boundaries(arm: ArmCurves) -> list[float]:
    """Where a stage of any seed begins: half a step before its first one."""
    cuts = (itertools.pairwise(stages(run)) for run in arm.runs)
    return sorted({after[0]["step"] - 0.5 for _, after in itertools.chain.from_iterable(cuts)})


def step_time(arm: ArmCurves) -> Series:
    """Seconds of each phase (phases,), the mean over the steps of the fastest seed; zeros if never timed.

    Runs share their machine, and the fastest is the one that others slowed down least.
    """
    means = []
    for run in arm.runs:
        parts = np.stack([series(run, f"{phase}_s") for phase in PHASES])  # (phases, steps)
        timed = np.isfinite(parts).any(axis=0)
        if timed.any():
            means.append(np.nan_to_num(parts[:, timed]).mean(axis=1))
    return min(means, key=np.sum) if means else np.zeros(len(PHASES))


def _by_step(arm: ArmCurves, name: str, values: Callable[[Metrics], Series]) -> tuple[Series, Series]:
    """All steps (n,), and a row of `values` for each seed that recorded the metric (seeds, n)."""
    runs = [run for run in arm.runs if np.isfinite(series(run, name)).any()]
    steps = np.unique(np.concatenate([series(run, "step") for run in runs] or [np.empty(0)]))
    rows = np.full((len(runs), len(steps)), np.nan)
    for row, run in zip(rows, runs, strict=True):
        row[np.searchsorted(steps, series(run, "step"))] = values(run)
    return steps, rows
