"""Metrics as arrays, and figures: the training dynamics of a run (reward, length, diversity, time); a calibration.

Values that were not recorded leave a gap, and curves are not smoothed across a stage boundary. The colours (Okabe and
Ito's) suit colour-blind readers. The time of evaluations is not part of a step's time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .disk import RunError, writing

BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8C8C8C"
PHASES = {"generation": BLUE, "judging": ORANGE, "update": GREEN, "other": GREY}
STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 17,  # room for the legend under the title
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.markersize": 3.5,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "microcoder",  # the same metrics give the same file
}


Metrics = Sequence[dict[str, Any]]
Series = NDArray[np.float64]
STAGED = {"temperature": "T", "max_response_tokens": "limit"}  # settings that are fixed within a stage


def plot_dynamics(metrics: Metrics, path: str | Path, title: str) -> None:
    """Draw the metrics of a run into `path`, a .png or an .svg."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise RunError(f"a figure cannot be written as {path.name}; name a file that ends in .png or .svg")
    if not metrics:
        raise RunError("there is nothing to plot: no step has been logged yet; try again after the first one")
    matplotlib = _matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7.6, 5.4), layout="constrained")
        axes = figure.subplots(2, 2, sharex=True).ravel()
        for axis, draw in zip(axes, (_reward, _length, _diversity, _time), strict=True):
            draw(axis, metrics)
        first, last = metrics[0]["step"], metrics[-1]["step"]
        margin = max(0.5, 0.015 * (last - first))
        axes[0].set_xlim(first - margin, last + margin)
        axes[0].xaxis.get_major_locator().set_params(integer=True)
        for axis in axes[2:]:
            axis.set_xlabel("step")
        _mark_stages(axes, metrics)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix.lower() == ".svg" else {})


def _curve(axis: Any, metrics: Metrics, name: str, label: str, color: str, raw: bool = True, **style: Any) -> None:
    for stage in stages(metrics):
        steps, values = series(stage, "step"), series(stage, name)
        marker = "o" if np.isfinite(values).sum() == 1 else None  # a line of one point cannot be seen
        if np.isfinite(values).any():
            if raw:
                axis.plot(steps, values, color=color, linewidth=0.6, alpha=0.45)
            axis.plot(steps, smooth(values), label=label, color=color, marker=marker, **{"linewidth": 1.8, **style})
            label = "_"  # one entry in the legend is enough


def _points(axis: Any, metrics: Metrics, name: str, label: str) -> None:
    """Draw evaluations as squares, with their intervals if known."""
    tested = [line for line in metrics if line.get(name) is not None]
    if tested:
        values, low, high = (series(tested, name + end) for end in ("", "_low", "_high"))
        bars = np.nan_to_num(np.clip([values - low, high - values], 0.0, None))  # (2, evaluations)
        style = {"fmt": "s--", "linewidth": 1.0, "capsize": 2.0, "color": RED, "label": label}
        axis.errorbar(series(tested, "step"), values, yerr=bars, **style)


def _reward(axis: Any, metrics: Metrics) -> None:
    _curve(axis, metrics, "reward", "reward (train)", BLUE)
    _points(axis, metrics, "test_accuracy", "accuracy (test)")
    _finish(axis, "Reward and accuracy")


def _length(axis: Any, metrics: Metrics) -> None:
    _curve(axis, metrics, "length_mean", "mean", BLUE)
    limit = series(metrics, "max_response_tokens")
    if np.isfinite(limit).any():
        axis.plot(series(metrics, "step"), limit, ":", color="black", drawstyle="steps-mid", linewidth=1, label="limit")
    axis.set_ylim(bottom=0)
    if np.isfinite(series(metrics, "truncated_share")).any():
        axis.plot([], [], "--", color=RED, linewidth=1.2, label="truncated share (right)")
        right = axis.twinx()
        _curve(right, metrics, "truncated_share", "", RED, raw=False, linestyle="--", linewidth=1.2)
        right.set(ylim=(0, 1.02), yticks=[0, 0.25, 0.5, 0.75, 1])
        right.tick_params(axis="y", colors=RED)
        right.grid(visible=False)
    _finish(axis, "Response length (tokens)")


def _diversity(axis: Any, metrics: Metrics) -> None:
    _curve(axis, metrics, "diversity", "train", BLUE)
    _points(axis, metrics, "test_diversity", "test")
    axis.set_ylim(0, 1.02)
    _finish(axis, "Diversity D")


def _time(axis: Any, metrics: Metrics) -> None:
    parts = np.stack([np.nan_to_num(series(metrics, f"{name}_s")) for name in PHASES])  # (phases, steps)
    if parts.any():
        edges = np.append(series(metrics, "step") - 0.5, metrics[-1]["step"] + 0.5)  # (steps + 1,)
        for name, part, top in zip(PHASES, parts, np.cumsum(parts, axis=0), strict=True):
            axis.stairs(top, edges, baseline=top - part, fill=True, color=PHASES[name], label=name)
    _finish(axis, "Time per step (s)")


def _finish(axis: Any, title: str) -> None:
    """Set the title, and under it the legend; write "not recorded" if there is no curve."""
    axis.set_title(title)
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        spacing = {"handlelength": 1.6, "handletextpad": 0.4, "columnspacing": 1.0, "borderpad": 0.0}
        axis.legend(handles, labels, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0), **spacing)
    else:
        axis.text(0.5, 0.5, "not recorded", transform=axis.transAxes, ha="center", va="center", color=GREY)
        axis.set_yticks([])


def _mark_stages(axes: Sequence[Any], metrics: Metrics) -> None:
    """Draw a thin line in each panel where a stage begins, labelled in the first."""
    for before, after in itertools.pairwise(stages(metrics)):
        at = after[0]["step"] - 0.5
        for axis in axes:
            axis.axvline(at, color="black", linewidth=0.6)
        place = {"xy": (at, 0.02), "xytext": (2, 0), "textcoords": "offset points"}
        words = changes(before[-1], after[0])
        axes[0].annotate(words, xycoords=axes[0].get_xaxis_transform(), fontsize=7, **place)


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError:
        raise RunError("a figure needs matplotlib; install it with: pip install matplotlib") from None
    return matplotlib


def plot_calibration(record: dict[str, Any], path: str | Path, title: str) -> None:
    """Draw the measurements of `microcoder calibrate` into `path`, a .png or an .svg."""
    matplotlib, path = _matplotlib(), Path(path)
    probes, chosen = record["probes"], record["temperature"]
    grid = [probe["temperature"] for probe in probes]
    names = {"signal": "Signal", "diversity": "Diversity D", "accuracy": "Accuracy"}
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7.6, 3.0), layout="constrained")
        for axis, (name, words) in zip(figure.subplots(1, 3), names.items(), strict=True):
            values = [probe[name] for probe in probes]
            axis.plot(grid, values, color=BLUE, linewidth=1.8, marker="o", clip_on=False)
            axis.set_xlabel("temperature T")
            axis.set_ylim(0, max(1e-3, axis.get_ylim()[1]))
            axis.axvline(chosen, color="black", linewidth=0.8, zorder=1, label=f"chosen: {chosen:g}")
            _finish(axis, words)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200)


def series(metrics: Metrics, name: str) -> Series:
    """Return the values of one metric (steps,), NaN where it was not recorded."""
    values = [line.get(name) for line in metrics]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)  # (steps,)


def smooth(values: Series) -> Series:
    """Smooth values by their mean in a window around each step: a tenth of all steps wide, but from 3 to 21."""
    half = min(max(1, len(values) // 20), 10)
    known, window = np.isfinite(values), np.ones(2 * half + 1)
    total = np.convolve(np.where(known, values, 0.0), window)[half:-half]  # (steps,)
    count = np.convolve(known.astype(float), window)[half:-half]
    return np.where(known, total / np.maximum(count, 1.0), np.nan)


def stages(metrics: Metrics) -> list[Metrics]:
    """Split the metrics where the temperature or the response limit changes."""
    cuts = [n for n in range(1, len(metrics)) if changes(metrics[n - 1], metrics[n])]
    return [metrics[start:end] for start, end in itertools.pairwise([0, *cuts, len(metrics)])]


def changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Describe what changes between two steps at a stage boundary; "" if nothing does."""
    known = [name for name in STAGED if None not in (before.get(name), after.get(name))]
    return ", ".join(f"{STAGED[name]} {after[name]:g}" for name in known if before[name] != after[name])
