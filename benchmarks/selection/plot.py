"""Curves over the steps, a colour for each arm: the mean over its seeds, and a band from the lowest to the highest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.figure
import numpy as np

from benchmarks.selection.data import ARMS
from benchmarks.selection.results import Arm
from benchmarks.shared.means import Scores
from microcoder.runs.plot import BLUE, GREY, RED, STYLE, smooth

COLOURS = dict(zip(ARMS, (RED, GREY, BLUE), strict=True))
TITLES = (
    "Accuracy on held-out problems",
    "Share of training groups with signal",
    "Diversity D of the training responses",
    "Length of the training responses (tokens)",
)


def plot(arms: Sequence[Arm], path: Path) -> None:
    """Draw the arms into a .png or .svg file."""
    with matplotlib.rc_context({**STYLE, "axes.titlepad": 6}):
        figure = matplotlib.figure.Figure(figsize=(7.6, 5.2), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True).ravel()
        for arm in arms:
            curves = 1 - arm.measured("no_signal_share"), arm.measured("diversity"), arm.measured("length_mean")
            _curve(axes[0], arm.steps, arm.scored("accuracy"), arm.name, marker="o")
            for axis, values in zip(axes[1:], curves, strict=True):
                smoothed = np.array([smooth(row) for row in values])  # (seeds, steps)
                _curve(axis, range(1, smoothed.shape[1] + 1), smoothed, arm.name)
        for axis, title in zip(axes, TITLES, strict=True):
            axis.set_title(title)
            axis.set_ylim(bottom=0)
            axis.xaxis.get_major_locator().set_params(integer=True)
        for axis in axes[2:]:
            axis.set_xlabel("step")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8.5)
        seeds = len(arms[0].scores)
        words = f"Mean over {seeds} seeds, smoothed but for accuracy; band: lowest to highest seed"
        figure.suptitle(words, x=0.01, ha="left")
        figure.savefig(path, dpi=180, metadata={"Date": None} if path.suffix.lower() == ".svg" else {})


def _curve(axis: Any, steps: Sequence[int], values: Scores, arm: str, marker: str | None = None) -> None:
    """values (seeds, steps)"""
    axis.plot(steps, values.mean(0), color=COLOURS[arm], linewidth=1.6, marker=marker, label=arm)
    axis.fill_between(steps, values.min(0), values.max(0), color=COLOURS[arm], alpha=0.13, linewidth=0)
