"""Curves over the steps, a colour for each arm: the mean over its seeds, and a band from the lowest to the highest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
from numpy.typing import NDArray

from benchmarks.mbpp.results import Trained
from benchmarks.mbpp.train import ARMS
from microcoder.runs.plot import STYLE, series, smooth

HUES = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C", "#000000")
COLOURS = dict(zip(ARMS, HUES, strict=True))  # an arm keeps its colour, whichever others there are
PANELS = {  # metric: title
    "accuracy": "Training: share of responses accepted",
    "test_accuracy": "Validation: accuracy, mean of the tries",
    "diversity": "Diversity D of the training responses",
    "length_mean": "Length of the training responses (tokens)",
    "truncated_share": "Share stopped by the limit",
    "masked_share": "Share masked",
}


def plot(runs: Sequence[Trained], path: Path) -> None:
    """Draw the runs into a .png or .svg file."""
    arms = dict.fromkeys(run.arm for run in runs)
    with matplotlib.rc_context({**STYLE, "axes.titlepad": 6}):
        figure = matplotlib.figure.Figure(figsize=(10.5, 6.2), layout="constrained")
        axes = figure.subplots(2, 3, sharex=True).ravel()
        for axis, (metric, title) in zip(axes, PANELS.items(), strict=True):
            for arm in arms:
                _curve(axis, [run for run in runs if run.arm == arm], metric, arm, COLOURS[arm])
            axis.set_title(title)
            axis.set_ylim(bottom=0)
            axis.xaxis.get_major_locator().set_params(integer=True)
        for axis in axes[3:]:
            axis.set_xlabel("step")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8.5)
        figure.suptitle(
            "Mean over the seeds (how many: in brackets), smoothed but for validation; band: lowest to highest seed",
            x=0.01,
            ha="left",
        )
        figure.savefig(path, dpi=180)


def _curve(axis: Any, runs: Sequence[Trained], metric: str, arm: str, colour: str) -> None:
    tested = metric.startswith("test_")
    curves = [_values(run.evaluations if tested else run.steps, metric, tested) for run in runs]
    steps = sorted(set.intersection(*(set(curve) for curve in curves)))
    if not steps:
        return
    values = np.array([[curve[step] for step in steps] for curve in curves])  # (seeds, steps)
    marker = "o" if tested or len(steps) == 1 else None
    axis.plot(steps, values.mean(0), color=colour, linewidth=1.6, marker=marker, label=f"{arm} ({len(runs)})")
    if len(runs) > 1:
        axis.fill_between(steps, values.min(0), values.max(0), color=colour, alpha=0.13, linewidth=0)


def _values(lines: Sequence[dict[str, Any]], metric: str, raw: bool) -> dict[int, float]:
    """{step: value}, smoothed unless raw."""
    values: NDArray[np.float64] = series(lines, metric)
    shown = values if raw or not len(values) else smooth(values)
    return {line["step"]: float(value) for line, value in zip(lines, shown, strict=True) if np.isfinite(value)}
