"""Accuracy and diversity D over the temperature, a line for each model: the paper's figure 3, left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..runs.disk import writing
from ..runs.plot import BLUE, GREEN, GREY, ORANGE, RED, STYLE, _finish, _matplotlib
from ..runs.series import series
from .records import BenchError

LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (RED, "D"), ("#CC79A7", "v"), ("#56B4E9", "P"), (GREY, "X"))
DASHES = ("-", "--", ":")  # once the colours are used up
LINE = 105  # characters of a legend's line

Row = dict[str, Any]


def plot_temperatures(rows: Sequence[Row], path: str | Path, title: str) -> None:
    """Draw rows of {"model", "temperature", "accuracy", "low", "high", "diversity"} into `path`, a .png or an .svg."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise BenchError(f"a figure cannot be written as {path.name}; name a file that ends in .png or .svg")
    if not rows:
        raise BenchError("there is nothing to plot: no temperature has been benched yet; name some and run the bench")
    models = list(dict.fromkeys(row["model"] for row in rows))
    by_model = [sorted((row for row in rows if row["model"] == m), key=lambda row: row["temperature"]) for m in models]
    matplotlib = _matplotlib()
    with matplotlib.rc_context({**STYLE, "axes.titlepad": 6}):
        figure = matplotlib.figure.Figure(figsize=(7.6, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True)
        lines = [_line(left, mine, "accuracy", n) for n, mine in enumerate(by_model)]
        for n, mine in enumerate(by_model):
            _line(right, mine, "diversity", n)
        left.set_ylim(0, max(0.1, left.get_ylim()[1]))
        right.set_ylim(0, 1.02)
        grid = sorted({row["temperature"] for row in rows})
        left.set_xlim(grid[0] - 0.1, grid[-1] + 0.1)
        if len(grid) <= 10:
            left.set_xticks(grid, [f"{temperature:g}" for temperature in grid])
        for axis, name, words in ((left, "accuracy", "Accuracy"), (right, "diversity", "Diversity D")):
            axis.set_xlabel("temperature T")
            axis.set_title(words)
            if np.isnan(series(rows, name)).all():
                _finish(axis, words)  # says that nothing was recorded
        # names are as long as paths: under the panels they cover nothing
        columns = max(1, min(4, LINE // (max(map(len, models)) + 8)))
        legend = figure.legend(lines, models, loc="outside lower left", ncols=columns)
        for words in legend.get_texts():
            words.set_parse_math(False)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix.lower() == ".svg" else {})


def _line(axis: Any, rows: Sequence[Row], name: str, n: int) -> Any:
    """The n-th model's, with its interval as a band where it is known."""
    color, marker = LOOKS[n % len(LOOKS)]
    grid = series(rows, "temperature")
    if name == "accuracy":
        axis.fill_between(grid, series(rows, "low"), series(rows, "high"), color=color, alpha=0.15, linewidth=0)
    style = {"color": color, "marker": marker, "linestyle": DASHES[n // len(LOOKS) % len(DASHES)], "linewidth": 1.8}
    (line,) = axis.plot(grid, series(rows, name), clip_on=False, zorder=3, **style)
    return line
