"""The arms of a study in one figure, like the paper's: held-out accuracy, response length, diversity, reward, time.

1. The mean over seeds is drawn in front of each seed's raw values, with whiskers at the evaluations. The paper's
   figures show one run.
2. Any study can show its step times, not only the evaluator's (figure 6).
3. A mean over seeds exists only at steps where every seed that recorded the metric has a value. If a seed dropped out,
   the mean would jump, and the jump would look like an effect of training.
4. Arms differ in colour, dashes and marker, so they can be told apart in black and white print too. The colours are
   Okabe and Ito's, with wine and grey instead of yellow, which is hard to see on white paper.

The effects behind all verdicts are on one page: a forest plot, grouped by aspect. Estimates are standardised, so that
tokens, seconds and shares fit on one axis. The axis reaches at most twice as far as nine tenths of the values, because
one wide interval of two seeds would make all others too small to see. Values beyond the axis end in an arrow, with
their numbers beside it.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..runs.disk import writing
from ..runs.plot import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PHASES,
    RED,
    STYLE,
    Metrics,
    Series,
    _finish,
    _matplotlib,
    series,
    smooth,
    stages,
)
from .decisions import CONTRADICTED, NOT_RUN, NOT_TESTABLE, SUPPORTED, UNDECIDED
from .effects import quantile
from .plan import StudyError

TITLES = {
    "test_accuracy": "Accuracy (held out)",
    "length_mean": "Response length (tokens)",
    "diversity": "Response diversity D",
    "reward": "Critic reward",
    "time": "Time per step (s)",
    "entropy": "Entropy",
    "truncated_share": "Truncated share",
    "trace_share": "Share of traces",
    "loop_share": "Share of loops",
}
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "dashes": ()},
    {"color": RED, "marker": "s", "dashes": (5, 1.5)},
    {"color": GREEN, "marker": "^", "dashes": (1.2, 1.2)},
    {"color": ORANGE, "marker": "D", "dashes": (6, 1.5, 1.2, 1.5)},
    {"color": "#CC79A7", "marker": "v", "dashes": (2.8, 1.4)},
    {"color": "#56B4E9", "marker": "P", "dashes": (9, 2)},
    {"color": "black", "marker": "X", "dashes": (4, 1.2, 1.2, 1.2, 1.2, 1.2)},
    {"color": "#882255", "marker": "<", "dashes": (1.2, 3)},
    {"color": "#6E6E6E", "marker": "*", "dashes": (9, 1.5, 3, 1.5)},
)
HATCHES = ("", "/" * 5, "\\" * 5, "")  # of the phases, for print without colours
PANELS = ("test_accuracy", "length_mean", "diversity", "reward", "time")
STYLE_PANELS = ("test_accuracy", "trace_share", "loop_share", *PANELS[1:])  # where the styles of answers were counted
WIDTH = 7.6  # inches
LINE = 112  # characters in a line of the legend
HASHED = re.compile(r'(?<=id=")[a-z][0-9a-f]{10}(?=")|(?<=#)[a-z][0-9a-f]{10}(?=["\)])')  # names in an SVG, and uses
FIGURE_STYLE = {**STYLE, "axes.titlepad": 6, "legend.fontsize": 8, "hatch.linewidth": 0.7}


VERDICT_LOOKS: dict[str, dict[str, Any]] = {
    SUPPORTED: {"color": GREEN, "marker": "o"},
    CONTRADICTED: {"color": RED, "marker": "D"},
    UNDECIDED: {"color": GREY, "marker": "s", "markerfacecolor": "white"},
    NOT_TESTABLE: {"color": GREY, "marker": "", "linestyle": "none"},
    NOT_RUN: {"color": GREY, "marker": "", "linestyle": "none"},
}
PAGE_HEIGHT = 10.75  # most inches: with the width, a page of A4
LABEL_LINE = 58  # characters in a line of a label

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArmCurves:
    """An arm of a study for a figure: its name, its label for readers, and the metrics of each seed."""

    name: str
    label: str
    runs: Sequence[Metrics]


def curve(arm: ArmCurves, name: str, smoothed: bool = False) -> tuple[Series, Series, Series]:
    """Return the curve of an arm: steps (n,), values (seeds, n), mean of the smoothed values (n,), NaN if unknown.

    Each seed is smoothed within its own stages, as in the figure of a single run; `smoothed`: the values too.
    """
    steps, values = _by_step(arm, name, lambda run: series(run, name))
    _, soft = _by_step(arm, name, lambda run: np.concatenate([smooth(series(s, name)) for s in stages(run)]))
    return steps, soft if smoothed else values, soft.sum(axis=0) / max(1, len(soft))  # a sum with a NaN is NaN


def evaluations(arm: ArmCurves, name: str) -> tuple[Series, Series, Series]:
    """Return the evaluations of an arm: steps (n,), mean over seeds (n,), lower and upper ends of whiskers (2, n).

    Whiskers are the 95% t interval for three seeds or more, and the range for fewer: an interval of two seeds would be
    almost 13 times as wide. Those of an accuracy end where accuracies do.
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
    ends = np.stack([mean - half, mean + half])
    return steps, mean, np.clip(ends, 0, 1) if "accuracy" in name else ends


def boundaries(arm: ArmCurves) -> list[float]:
    """Return the steps at which a stage of any seed begins, minus half a step."""
    cuts = (itertools.pairwise(stages(run)) for run in arm.runs)
    return sorted({after[0]["step"] - 0.5 for _, after in itertools.chain.from_iterable(cuts)})


def step_time(arm: ArmCurves) -> Series:
    """Return the seconds of each phase (phases,): the mean over the steps of the fastest seed; zeros if never timed.

    Runs share a machine, and other runs slowed the fastest seed down least.
    """
    means = []
    for run in arm.runs:
        parts = np.stack([series(run, f"{phase}_s") for phase in PHASES])  # (phases, steps)
        timed = np.isfinite(parts).any(axis=0)
        if timed.any():
            means.append(np.nan_to_num(parts[:, timed]).mean(axis=1))
    return min(means, key=np.sum) if means else np.zeros(len(PHASES))


def _by_step(arm: ArmCurves, name: str, values: Callable[[Metrics], Series]) -> tuple[Series, Series]:
    """Return all steps (n,), and a row of `values` for each seed that recorded the metric (seeds, n)."""
    runs = [run for run in arm.runs if np.isfinite(series(run, name)).any()]
    steps = np.unique(np.concatenate([series(run, "step") for run in runs] or [np.empty(0)]))
    rows = np.full((len(runs), len(steps)), np.nan)
    for row, run in zip(rows, runs, strict=True):
        row[np.searchsorted(steps, series(run, "step"))] = values(run)
    return steps, rows


def draw_metric(axis: Any, name: str, arms: Sequence[ArmCurves], bands: bool = False) -> None:
    """Draw one metric over the steps; all panels have the same range of steps. `bands`: see `draw`."""
    steps = [line["step"] for arm in arms for run in arm.runs for line in run] or [0]
    first, last = min(steps), max(steps)
    margin = max(0.5, 0.03 * (last - first))
    for n, (arm, look) in enumerate(zip(arms, LOOKS, strict=False)):
        look = {**look, "markersize": 4, "zorder": 3, "gid": f"{name} of {arm.name}"}
        shift = (n + 0.5) / len(arms)
        if name.startswith("test_"):
            _evaluations(axis, *evaluations(arm, name), margin * (shift - 0.5), look)
        else:
            _curves(axis, *curve(arm, name, bands), shift, look, bands)
    if axis.has_data():
        axis.set_title(TITLES.get(name, name))
        for arm, look in zip(arms, LOOKS, strict=False):
            for step in boundaries(arm):
                axis.axvline(step, color=look["color"], dashes=look["dashes"], linewidth=0.7, zorder=1)
    else:
        _finish(axis, TITLES.get(name, name))  # writes "not recorded" if there is no curve
    axis.set_xlim(first - margin, last + margin)
    axis.xaxis.get_major_locator().set_params(integer=True)


def _evaluations(axis: Any, steps: Series, mean: Series, ends: Series, shift: float, look: dict[str, Any]) -> None:
    """Draw evaluations with whiskers. `shift`, in steps, keeps the whiskers of the arms apart."""
    if steps.size:
        axis.vlines(steps + shift, *ends, color=look["color"], linewidth=0.9, alpha=0.6)
        axis.plot(steps + shift, mean, linewidth=1.3, **look)


def _curves(
    axis: Any, steps: Series, values: Series, mean: Series, shift: float, look: dict[str, Any], bands: bool
) -> None:
    """Draw the curves of an arm. `shift`, between 0 and 1, keeps the markers of the arms apart."""
    if steps.size:
        if bands:
            ends = values.min(axis=0), values.max(axis=0)  # NaN where a seed has no value, as the mean
            axis.fill_between(steps, *ends, color=look["color"], alpha=0.13, linewidth=0)
        else:
            axis.plot(steps, values.T, color=look["color"], linewidth=0.5, alpha=0.2)
        every = max(1, len(steps) // 5)
        known = np.pad(np.isfinite(mean), 1)  # (n + 2,)
        marked = known[1:-1] & ~known[:-2] & ~known[2:]  # a point between gaps has no line, so it needs a marker
        marked[int(shift * every) :: every] = True
        axis.plot(steps, mean, linewidth=1.6, markevery=marked, **look)


def draw_time(axis: Any, arms: Sequence[ArmCurves]) -> None:
    """Draw a bar of step time for each arm, phase after phase."""
    parts = np.stack([step_time(arm) for arm in arms])  # (arms, phases)
    if not parts.any():
        return _finish(axis, TITLES["time"])
    ends, places = np.cumsum(parts, axis=1), np.arange(len(arms))
    for n, (phase, color) in enumerate(PHASES.items()):
        look = {"color": color, "edgecolor": "white", "linewidth": 0.5, "hatch": HATCHES[n], "label": phase}
        axis.barh(places, parts[:, n], left=ends[:, n] - parts[:, n], height=0.7, **look)
    for place, total in zip(places, ends[:, -1], strict=True):
        words = f"{total:.{2 if total < 100 else 0}f}" if total else "not recorded"
        axis.annotate(words, (total, place), xytext=(3, 0), textcoords="offset points", va="center")
    axis.set_title(TITLES["time"])
    axis.set_yticks(places, [textwrap.shorten(arm.label, 40, placeholder=" …") for arm in arms], parse_math=False)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x")
    axis.invert_yaxis()
    axis.margins(x=0.08)
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(PHASES), borderpad=0.0, columnspacing=1.0)


def panels_of(arms: Sequence[ArmCurves]) -> Sequence[str]:
    """Return the panels of a study's figure: with the styles of answers where these were counted."""
    counted = any("trace_share" in line for arm in arms for run in arm.runs for line in run)
    return STYLE_PANELS if counted else PANELS


def draw(
    study_title: str,
    figure: int,
    arms: Sequence[ArmCurves],
    path: str | Path,
    panels: Sequence[str] = PANELS,
    bands: bool = False,
) -> None:
    """Draw the arms into `path` + ".png" and `path` + ".svg"; `figure` is the number of the paper's figure, or 0.

    A panel is "time" or a metric; a metric of evaluations (test_...) gets a marker and whiskers at each. Behind a mean
    lie the raw values of each seed; `bands`: a band from the lowest to the highest smoothed seed instead.
    """
    if not 1 <= len(arms) <= len(LOOKS):
        raise StudyError(f"{len(arms)} arms cannot be drawn: a figure tells 1 to {len(LOOKS)} apart; choose among them")
    if not panels:
        raise StudyError(f"there is no panel to draw; name some of {', '.join(PANELS)}, or another metric")
    metrics = [name for name in panels if name != "time"]
    columns = {1: 1, 2: 2, 4: 2}.get(len(metrics), 3)
    heights = [2.1 * math.ceil(len(metrics) / columns)] if metrics else []
    if "time" in panels:
        heights.append(0.7 + 0.17 * len(arms))
    matplotlib = _matplotlib()
    with matplotlib.rc_context(FIGURE_STYLE):
        page = matplotlib.figure.Figure(layout="constrained")
        parts = page.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        if metrics:
            _draw_metrics(parts[0], metrics, columns, arms, bands)
        if "time" in panels:
            draw_time(parts[-1].subplots(), arms)  # a separate part: the labels of bars would narrow the panels
        title = f"{study_title} (the paper's figure {figure})" if figure else study_title
        page.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        lines = _legend(matplotlib, page, arms, panels, bands) if metrics else 0
        page.set_size_inches(WIDTH, 0.3 + sum(heights) + 0.17 * lines)
        save(page, path)


def save(page: Any, path: str | Path) -> None:
    """Write a figure as .png, in 256 colours, and as .svg; equal figures give equal bytes."""
    from PIL import Image

    picture, drawing = (Path(f"{path}{end}") for end in (".png", ".svg"))  # not with_suffix: T-0.6 has a dot
    pixels, text = io.BytesIO(), io.StringIO()
    page.savefig(pixels, format="png", dpi=200)
    few = Image.open(pixels).convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the file
    with writing(picture):
        few.save(picture, optimize=True)
    page.savefig(text, format="svg", metadata={"Date": None})
    with writing(drawing):
        drawing.write_text(_in_order(text.getvalue()), encoding="utf-8")


def _in_order(svg: str) -> str:
    """Number the clips of an SVG. Matplotlib names them by a hash of their position, whose last bit varies."""
    names: dict[str, str] = {}
    return HASHED.sub(lambda found: names.setdefault(found[0], f"{found[0][0]}{len(names)}"), svg)


def _draw_metrics(part: Any, metrics: Sequence[str], columns: int, arms: Sequence[ArmCurves], bands: bool) -> None:
    axes = part.subplots(math.ceil(len(metrics) / columns), columns, squeeze=False).ravel()
    for unused in axes[len(metrics) :]:
        unused.remove()
    for place, (axis, name) in enumerate(zip(axes, metrics, strict=False)):
        draw_metric(axis, name, arms, bands)
        if place + columns >= len(metrics):  # the lowest panel of its column
            axis.set_xlabel("step")


def _legend(matplotlib: Any, page: Any, arms: Sequence[ArmCurves], panels: Sequence[str], bands: bool) -> int:
    """Draw the legend under the panels, and return its number of lines."""
    evaluated = [name.startswith("test_") for name in panels if name != "time"]
    notes = {
        "thick: mean over seeds, smoothed; thin: each seed": not all(evaluated) and not bands,
        "line: mean over seeds, smoothed; band: lowest to highest seed": not all(evaluated) and bands,
        "whiskers: 95% t interval, or range of fewer than 3 seeds": any(evaluated),
        "vertical: a stage begins": any(map(boundaries, arms)),
        "time: of the fastest seed": "time" in panels,
    }
    title = textwrap.fill("; ".join(note for note, needed in notes.items() if needed), LINE)
    labels = [textwrap.fill(arm.label if any(arm.runs) else f"{arm.label} (not run)", LINE - 12) for arm in arms]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(3, LINE // (longest + 12)))
    lines = [matplotlib.lines.Line2D([], [], linewidth=1.6, markersize=4, **look) for look in LOOKS[: len(arms)]]
    place = {"loc": "outside lower left", "ncols": columns, "alignment": "left"}
    legend = page.legend(lines, labels, title=title, title_fontsize=8, handlelength=4.0, **place)
    for words in legend.get_texts():
        words.set_parse_math(False)
    return sum(words.count("\n") + 1 for words in [title, *labels[::columns]])


def draw_effects(rows: Sequence[Row], path: str | Path, title: str = "", scale: str = "standardised effect") -> None:
    """Draw rows of {"aspect", "label", "estimate", "low", "high", "verdict"} into `path` + ".png" and + ".svg".

    Aspects are headings, in the order in which they first occur. `low` and `high` are None if there is no interval;
    the estimate is None for a claim that was not run or is not testable. `scale` names the axis.
    """
    if not rows:
        raise StudyError("there are no effects to draw: name at least one claim")
    lines = list(_lines(rows))
    total = sum(height for _, height, _ in lines)
    inches = min(PAGE_HEIGHT, 1.2 + 0.135 * total)
    matplotlib = _matplotlib()
    with matplotlib.rc_context(FIGURE_STYLE):
        page = matplotlib.figure.Figure(figsize=(WIDTH, inches))
        sides = {"left": 0.01, "right": 0.99, "bottom": 0.75 / inches, "top": 1 - 0.45 / inches, "wspace": 0.0}
        words, axis, numbers = page.subplots(1, 3, sharey=True, width_ratios=(3.6, 2.2, 1.6), gridspec_kw=sides)
        axis.set(xlim=_effect_limits(rows), ylim=(total, 0), yticks=[], xlabel=scale)
        axis.axvline(0, color="black", linewidth=0.8, zorder=1)
        axis.grid(visible=True, axis="x")
        axis.spines["left"].set_visible(False)
        axis.set_zorder(1)  # arrows may reach beyond the axis
        axis.patch.set_visible(False)
        words.set_axis_off()
        numbers.set_axis_off()
        numbers.set_title("  estimate (95% interval)", fontsize=8, fontweight="normal")
        _write(words, axis, numbers, lines)
        _verdict_legend(matplotlib, page, rows)
        page.suptitle(title, fontsize=10, x=0.01, y=1 - 0.1 / inches, ha="left", parse_math=False)
        save(page, path)


def _lines(rows: Sequence[Row]) -> Iterator[tuple[str, float, Row | None]]:
    """Yield the lines of the plot: text, height in lines, and row (None for a heading)."""
    for aspect in dict.fromkeys(row["aspect"] for row in rows):
        yield aspect, 1.5, None
        for row in rows:
            if row["aspect"] == aspect:
                wrapped = textwrap.wrap(row["label"], LABEL_LINE, max_lines=2, placeholder=" …")
                yield "\n".join(wrapped), 0.2 + max(1, len(wrapped)), row


def _write(words: Any, axis: Any, numbers: Any, lines: Sequence[tuple[str, float, Row | None]]) -> None:
    top = 0.0
    for n, (text, height, row) in enumerate(lines):
        at, top = top + height / 2, top + height
        if row is None:
            words.text(0, at + 0.2, text, va="center", weight="bold", parse_math=False)  # nearer to the rows below it
            continue
        words.text(0, at, text, va="center", linespacing=1.05, parse_math=False)
        numbers.text(0, at, f"  {_in_figures(row)}", va="center")
        if row["estimate"] is not None:
            _interval(axis, row, at)
        if n % 2:
            for part in (words, axis, numbers):
                part.axhspan(top - height, top, color="#F3F3F3", linewidth=0, zorder=0)


def _effect_limits(rows: Sequence[Row]) -> tuple[float, float]:
    ends = np.concatenate([series(rows, name) for name in ("estimate", "low", "high")])
    ends = ends[np.isfinite(ends)]
    if not ends.any():
        return -1.0, 1.0
    reach = 2 * np.quantile(np.abs(ends), 0.9)
    low, high = np.clip([ends.min(), ends.max()], -reach, reach)
    margin = 0.05 * (max(high, 0) - min(low, 0))
    return min(low, 0) - margin, max(high, 0) + margin


def _interval(axis: Any, row: Row, at: float) -> None:
    """Draw a dot and its interval; an arrow if they reach beyond the axis."""
    look, (left, right) = VERDICT_LOOKS[row["verdict"]], axis.get_xlim()
    estimate, low, high = (series([row], name)[0] for name in ("estimate", "low", "high"))
    axis.plot(np.clip([low, high], left, right), [at, at], color=look["color"], linewidth=1.4)
    axis.plot(estimate, at, markersize=5, zorder=3, **look)
    arrow = {"color": look["color"], "markersize": 5, "clip_on": False, "zorder": 3}
    if np.fmin(low, estimate) < left:
        axis.plot(left, at, marker="<", **arrow)
    if np.fmax(high, estimate) > right:
        axis.plot(right, at, marker=">", **arrow)


def _in_figures(row: Row) -> str:
    if row["estimate"] is None:
        return str(row["verdict"])
    estimate, *ends = [f"{row[name]:+.2f}" for name in ("estimate", "low", "high") if row[name] is not None]
    return (f"{estimate} ({' to '.join(ends)})" if ends else estimate).replace("-", "\N{MINUS SIGN}")


def _verdict_legend(matplotlib: Any, page: Any, rows: Sequence[Row]) -> None:
    """Draw the legend: each verdict that occurs, with its count."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICT_LOOKS}
    there = [verdict for verdict, count in counts.items() if count]
    handles = [matplotlib.lines.Line2D([], [], linewidth=1.4, **VERDICT_LOOKS[verdict]) for verdict in there]
    labels = [f"{verdict}: {counts[verdict]}" for verdict in there]
    page.legend(handles, labels, loc="lower left", ncols=len(there))
