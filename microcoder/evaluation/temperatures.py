"""Robustness to temperature: accuracy and diversity D of checkpoints over a grid, as in the paper's figure 3, left.

Each checkpoint and temperature is a separate evaluation in its own folder, so it can be stopped, resumed and read like
any other. A model is loaded once for all its temperatures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..runs.disk import write_whole, writing
from ..runs.plot import BLUE, GREEN, GREY, ORANGE, RED, STYLE, _finish, _matplotlib, series
from .catalog import Note
from .folder import ResultFolder, slug
from .harness import Exam, Watch, run, unwatched
from .suite import EvaluationError

LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (RED, "D"), ("#CC79A7", "v"), ("#56B4E9", "P"), (GREY, "X"))
DASHES = ("-", "--", ":")  # line styles: the next one begins when all colours are used
LINE = 105  # characters in a line of the legend

Row = dict[str, Any]


def sweep(
    models: Sequence[str],
    grid: Sequence[float],
    out: Path,
    exam: Exam,
    note: Note = lambda _: None,
    watch: Watch = unwatched,
    fresh: bool = False,
) -> str:
    """Run the missing evaluations under the largest limit, draw the figure, and return the table."""
    from .local import LocalModel

    suite = exam.suite
    folders = {name: slug(name) for name in models}
    if len(set(folders.values())) < len(models):
        raise EvaluationError(f"two of the models have one name: {', '.join(models)}; name each checkpoint once")
    rows = []
    for name in models:
        common = {**exam.of(name, note).common, "limits": exam.common["limits"][-1:]}
        model = LocalModel(name, exam.config.rollout, note, common["chat"])
        for temperature in grid:
            asked = model.ask({**common, "temperature": temperature})
            make = partial(model.samples, asked, suite.problems)
            where, title = out / folders[name] / f"t{temperature:g}", f"{name}, T {temperature:g}"
            total = len(suite.problems) * asked.tries
            with ResultFolder(where, asked, fresh) as folder, watch(total, title) as watcher:
                rows.append(_row(name, temperature, run(suite, folder, make, exam.judge, watcher)))
        write_whole(out / "temperatures.json", json.dumps(rows, indent=1).encode() + b"\n")
        plot_temperatures(rows, out / "temperatures.png", suite.name)
    table = _table(rows)
    write_whole(out / "temperatures.md", table.encode())
    return table


def _row(name: str, temperature: float, result: dict[str, Any]) -> dict[str, Any]:
    (found,) = result["scores"].values()
    policy = found["robust"]
    return {
        "model": name,
        "temperature": temperature,
        **{key: policy[key] for key in ("accuracy", "low", "high")},
        "diversity": found["diversity"],
        "length": found["length"],
        "truncated_share": found["truncated_share"],
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| model | T | accuracy (95%) | D | tokens | truncated |", "|---|---|---|---|---|---|"]
    for row in rows:
        low, high = (100 * (row[name] or 0.0) for name in ("low", "high"))
        interval = f" ({low:.1f} to {high:.1f})" if low < high else ""
        accuracy = "-" if row["accuracy"] is None else f"{100 * row['accuracy']:.1f}%{interval}"
        diversity = "-" if row["diversity"] is None else f"{row['diversity']:.3f}"
        lines.append(
            f"| {row['model']} | {row['temperature']:g} | {accuracy} | "
            f"{diversity} | {row['length']:.0f} | {100 * row['truncated_share']:.1f}% |"
        )
    return "\n".join(lines) + "\n"


def plot_temperatures(rows: Sequence[Row], path: str | Path, title: str) -> None:
    """Draw rows of {"model", "temperature", "accuracy", "low", "high", "diversity"} into `path`, a .png or an .svg."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise EvaluationError(f"a figure cannot be written as {path.name}; name a file that ends in .png or .svg")
    if not rows:
        raise EvaluationError("there is nothing to plot: no temperature has been evaluated yet; name some")
    models = list(dict.fromkeys(row["model"] for row in rows))
    by_model = [sorted((row for row in rows if row["model"] == m), key=lambda row: row["temperature"]) for m in models]
    matplotlib = _matplotlib()
    with matplotlib.rc_context({**STYLE, "axes.titlepad": 6}):
        figure = matplotlib.figure.Figure(figsize=(7.6, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True)
        lines = [_draw_line(left, mine, "accuracy", n) for n, mine in enumerate(by_model)]
        for n, mine in enumerate(by_model):
            _draw_line(right, mine, "diversity", n)
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
                _finish(axis, words)  # writes "nothing recorded" into an empty panel
        # names are as long as paths: under the panels they cover nothing
        columns = max(1, min(4, LINE // (max(map(len, models)) + 8)))
        legend = figure.legend(lines, models, loc="outside lower left", ncols=columns)
        for words in legend.get_texts():
            words.set_parse_math(False)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", parse_math=False)
        with writing(path):
            figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix.lower() == ".svg" else {})


def _draw_line(axis: Any, rows: Sequence[Row], name: str, n: int) -> Any:
    """Draw the line of the n-th model, with its interval as a band if known."""
    color, marker = LOOKS[n % len(LOOKS)]
    grid = series(rows, "temperature")
    if name == "accuracy":
        axis.fill_between(grid, series(rows, "low"), series(rows, "high"), color=color, alpha=0.15, linewidth=0)
    style = {"color": color, "marker": marker, "linestyle": DASHES[n // len(LOOKS) % len(DASHES)], "linewidth": 1.8}
    (line,) = axis.plot(grid, series(rows, name), clip_on=False, zorder=3, **style)
    return line
