"""Ten thousand points as a thousand, with every peak kept: the least and the greatest of each bucket.

For a smoothed curve the buckets' means are given too: the mean of a bucket's two extremes would be no mean of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
POINTS = 1500  # of a curve: more than a screen has columns


def thin(x: Array, y: Array, points: int = POINTS) -> dict[str, Any]:
    """{"x", "y"} of what was recorded; beyond `points` of it, thinned, and {"mean_x", "mean_y"} of the buckets."""
    known = np.isfinite(y)
    x, y = x[known], y[known]  # (n,)
    if len(y) <= points:
        return {"x": _short(x), "y": _short(y)}
    buckets = points // 2
    edges = np.linspace(0, len(y), buckets + 1).astype(int)  # (buckets + 1,) never empty, as n > 2 * buckets
    counts = np.diff(edges)
    width = int(counts.max())
    at = np.minimum(edges[:-1, None] + np.arange(width), edges[1:, None] - 1)  # (buckets, width); a last one repeats
    rows = y[at]
    places = np.sort(np.stack([edges[:-1] + rows.argmin(1), edges[:-1] + rows.argmax(1)], 1), axis=1)  # (buckets, 2)
    keep = np.unique(np.concatenate([[0], np.minimum(places, len(y) - 1).ravel(), [len(y) - 1]]))
    return {
        "x": _short(x[keep]),
        "y": _short(y[keep]),
        "mean_x": _short(np.add.reduceat(x, edges[:-1]) / counts),
        "mean_y": _short(np.add.reduceat(y, edges[:-1]) / counts),
    }


def _short(values: Array) -> list[float]:
    """Six digits are more than a chart can show; whole numbers without a point."""
    return [int(v) if v == int(v) and abs(v) < 1e15 else float(f"{v:.6g}") for v in values.tolist()]
