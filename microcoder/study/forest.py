"""The effects behind all verdicts on one page: a forest plot, grouped by aspect.

Estimates come standardised, so that tokens, seconds and shares can stand on one axis. The axis reaches at most twice as
far as nine tenths of the values: one interval of two seeds would squeeze all others into dots. What lies beyond ends
in an arrow, with its numbers beside it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..runs.plot import GREEN, GREY, RED, _matplotlib
from ..runs.series import series
from .decisions import CONTRADICTED, NOT_RUN, SUPPORTED, UNDECIDED
from .figures import FIGURE_STYLE, WIDTH, save
from .plan import StudyError

LOOKS: dict[str, dict[str, Any]] = {
    SUPPORTED: {"color": GREEN, "marker": "o"},
    CONTRADICTED: {"color": RED, "marker": "D"},
    UNDECIDED: {"color": GREY, "marker": "s", "markerfacecolor": "white"},
    NOT_RUN: {"color": GREY, "marker": "", "linestyle": "none"},
}
HEIGHT = 10.75  # inches, the most: with the width, a page of A4
LINE = 58  # characters of a label's line

Row = dict[str, Any]


def draw_effects(rows: Sequence[Row], path: str | Path, title: str = "", scale: str = "standardised effect") -> None:
    """Draw rows of {"aspect", "label", "estimate", "low", "high", "verdict"} into `path` + ".png" and + ".svg".

    Aspects are headings, in the order in which they first occur. `low` and `high` are None where there is no interval,
    and so is the estimate of a claim that was not run. `scale` names the axis.
    """
    if not rows:
        raise StudyError("there are no effects to draw: name at least one claim")
    lines = list(_lines(rows))
    total = sum(height for _, height, _ in lines)
    inches = min(HEIGHT, 1.2 + 0.135 * total)
    matplotlib = _matplotlib()
    with matplotlib.rc_context(FIGURE_STYLE):
        page = matplotlib.figure.Figure(figsize=(WIDTH, inches))
        sides = {"left": 0.01, "right": 0.99, "bottom": 0.75 / inches, "top": 1 - 0.45 / inches, "wspace": 0.0}
        words, axis, numbers = page.subplots(1, 3, sharey=True, width_ratios=(3.6, 2.2, 1.6), gridspec_kw=sides)
        axis.set(xlim=_limits(rows), ylim=(total, 0), yticks=[], xlabel=scale)
        axis.axvline(0, color="black", linewidth=0.8, zorder=1)
        axis.grid(visible=True, axis="x")
        axis.spines["left"].set_visible(False)
        axis.set_zorder(1)  # arrows may reach over what is beside
        axis.patch.set_visible(False)
        words.set_axis_off()
        numbers.set_axis_off()
        numbers.set_title("  estimate (95% interval)", fontsize=8, fontweight="normal")
        _write(words, axis, numbers, lines)
        _legend(matplotlib, page, rows)
        page.suptitle(title, fontsize=10, x=0.01, y=1 - 0.1 / inches, ha="left", parse_math=False)
        save(page, path)


def _lines(rows: Sequence[Row]) -> Iterator[tuple[str, float, Row | None]]:
    """Lay out the lines of the plot: text, height in lines, and row (None for a heading)."""
    for aspect in dict.fromkeys(row["aspect"] for row in rows):
        yield aspect, 1.5, None
        for row in rows:
            if row["aspect"] == aspect:
                wrapped = textwrap.wrap(row["label"], LINE, max_lines=2, placeholder=" …")
                yield "\n".join(wrapped), 0.2 + max(1, len(wrapped)), row


def _write(words: Any, axis: Any, numbers: Any, lines: Sequence[tuple[str, float, Row | None]]) -> None:
    top = 0.0
    for n, (text, height, row) in enumerate(lines):
        at, top = top + height / 2, top + height
        if row is None:
            words.text(0, at + 0.2, text, va="center", weight="bold", parse_math=False)  # nearer to what it is about
            continue
        words.text(0, at, text, va="center", linespacing=1.05, parse_math=False)
        numbers.text(0, at, f"  {_in_figures(row)}", va="center")
        if row["verdict"] != NOT_RUN:
            _interval(axis, row, at)
        if n % 2:
            for part in (words, axis, numbers):
                part.axhspan(top - height, top, color="#F3F3F3", linewidth=0, zorder=0)


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    ends = np.concatenate([series(rows, name) for name in ("estimate", "low", "high")])
    ends = ends[np.isfinite(ends)]
    if not ends.any():
        return -1.0, 1.0
    reach = 2 * np.quantile(np.abs(ends), 0.9)
    low, high = np.clip([ends.min(), ends.max()], -reach, reach)
    margin = 0.05 * (max(high, 0) - min(low, 0))
    return min(low, 0) - margin, max(high, 0) + margin


def _interval(axis: Any, row: Row, at: float) -> None:
    """Draw a dot and its interval; an arrow where they reach beyond the axis."""
    look, (left, right) = LOOKS[row["verdict"]], axis.get_xlim()
    estimate, low, high = (series([row], name)[0] for name in ("estimate", "low", "high"))
    axis.plot(np.clip([low, high], left, right), [at, at], color=look["color"], linewidth=1.4)
    axis.plot(estimate, at, markersize=5, zorder=3, **look)
    arrow = {"color": look["color"], "markersize": 5, "clip_on": False, "zorder": 3}
    if np.fmin(low, estimate) < left:
        axis.plot(left, at, marker="<", **arrow)
    if np.fmax(high, estimate) > right:
        axis.plot(right, at, marker=">", **arrow)


def _in_figures(row: Row) -> str:
    if row["verdict"] == NOT_RUN:
        return NOT_RUN
    estimate, *ends = [f"{row[name]:+.2f}" for name in ("estimate", "low", "high") if row[name] is not None]
    return (f"{estimate} ({' to '.join(ends)})" if ends else estimate).replace("-", "\N{MINUS SIGN}")


def _legend(matplotlib: Any, page: Any, rows: Sequence[Row]) -> None:
    """Draw the legend: each verdict that occurs, and how often."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in LOOKS}
    there = [verdict for verdict, count in counts.items() if count]
    handles = [matplotlib.lines.Line2D([], [], linewidth=1.4, **LOOKS[verdict]) for verdict in there]
    labels = [f"{verdict}: {counts[verdict]}" for verdict in there]
    page.legend(handles, labels, loc="lower left", ncols=len(there))
