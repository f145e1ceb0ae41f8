"""metrics.jsonl as columns. A broken line is counted and passed over."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from .following import Follower
from .thin import Array

NAMES, NAME = 400, 100  # columns at most, and characters of a name: a file of nonsense must not fill the memory


class Columns(Follower):
    """The numbers of every line so far; `series` gives a column."""

    def begin(self) -> None:
        self.steps = array("d")
        self.columns: dict[str, array[float]] = {}
        self.broken = 0

    def series(self, name: str) -> tuple[Array, Array]:
        """(steps, values), NaN where the metric was not recorded."""
        with self.lock:
            steps = np.array(self.steps)
            values = np.full(len(steps), np.nan)
            column = self.columns.get(name)
            if column is not None:
                values[: len(column)] = column
        return steps, values

    def line(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            step = float(record.pop("step"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            self.broken += 1
            return
        n = len(self.steps)
        self.steps.append(step)
        for name, value in _flat(record):
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= NAMES or len(name) > NAME:
                    continue
                column = self.columns[name] = array("d")
            if len(column) < n:
                column.extend([float("nan")] * (n - len(column)))
            if len(column) == n:  # else the line names it twice
                column.append(value)


def _flat(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """verdicts: {accepted: 3} becomes verdicts.accepted."""
    for name, value in record.items():
        if isinstance(value, dict) and prefix.count(".") < 2:
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and abs(value) < 1e300:
            yield f"{prefix}{name}", float(value)
