"""Robustness to temperature: accuracy and D of a list of checkpoints over a grid, as in the paper's figure 3, left.

Each checkpoint and temperature is a bench of its own in a folder of its own, so that all of it can be stopped, gone on
with and read like any other. A model is loaded once for all of its temperatures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from ..runs.disk import write_whole
from .asking import slug
from .folder import Folder
from .local import LocalModel
from .records import BenchError, Suite
from .running import run
from .temperature_plot import plot_temperatures


def sweep(
    models: Sequence[str],
    grid: Sequence[float],
    out: Path,
    suite: Suite,
    common: dict[str, Any],
    load: Callable[[str], LocalModel],
    judge: dict[str, Any],
    watch: Callable[[str], AbstractContextManager[Any]],
) -> str:
    """Run what is missing, draw the figure, and return the table. `common`: what is asked of each, but for T."""
    folders = {name: slug(name) for name in models}
    if len(set(folders.values())) < len(models):
        raise BenchError(f"two of the models have one name: {', '.join(models)}; name each checkpoint once")
    rows = []
    for name in models:
        model = load(name)
        for temperature in grid:
            asked = model.ask({**common, "temperature": temperature})
            make = partial(model.samples, asked, suite.problems)
            where, title = out / folders[name] / f"t{temperature:g}", f"{name}, T {temperature:g}"
            with Folder(where, asked) as folder, watch(title) as told:
                rows.append(_row(name, temperature, run(suite, folder, make, judge, told)))
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
        interval = f" ({100 * row['low']:.1f} to {100 * row['high']:.1f})" if row["low"] is not None else ""
        lines.append(
            f"| {row['model']} | {row['temperature']:g} | {100 * row['accuracy']:.1f}%{interval} | "
            f"{row['diversity']:.3f} | {row['length']:.0f} | {100 * row['truncated_share']:.1f}% |"
        )
    return "\n".join(lines) + "\n"
