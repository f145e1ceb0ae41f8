"""Metrics as arrays: one metric over the steps, smoothed, and cut into stages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Metrics = Sequence[dict[str, Any]]
Series = NDArray[np.float64]
STAGED = {"temperature": "T", "max_response_tokens": "limit"}  # what is frozen within a stage


def series(metrics: Metrics, name: str) -> Series:
    """The values of one metric, NaN where it was not recorded."""
    values = [line.get(name) for line in metrics]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)  # (steps,)


def smooth(values: Series) -> Series:
    """The mean of what was recorded in a window around each step, a tenth of them wide, within 3 and 21."""
    half = min(max(1, len(values) // 20), 10)
    known, window = np.isfinite(values), np.ones(2 * half + 1)
    total = np.convolve(np.where(known, values, 0.0), window)[half:-half]  # (steps,)
    count = np.convolve(known.astype(float), window)[half:-half]
    return np.where(known, total / np.maximum(count, 1.0), np.nan)


def stages(metrics: Metrics) -> list[Metrics]:
    """The metrics, cut where the temperature or the response limit changes."""
    cuts = [n for n in range(1, len(metrics)) if changes(metrics[n - 1], metrics[n])]
    return [metrics[start:end] for start, end in itertools.pairwise([0, *cuts, len(metrics)])]


def changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What a stage boundary between two steps changes, in words; nothing where there is none."""
    known = [name for name in STAGED if None not in (before.get(name), after.get(name))]
    return ", ".join(f"{STAGED[name]} {after[name]:g}" for name in known if before[name] != after[name])
