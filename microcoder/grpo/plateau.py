"""The plateau of D: the value that a falling series settles on, extrapolated from what has been seen of it.

D falls in healthy runs too, fast at first and then slower. So D(t) = P + fall * exp(-t / tau) is fitted and P is the
plateau. tau is tried on a grid, P and fall follow by linear least squares. The longest tau is the length of the
series: what is still to come can then be no more than 0.6 of the fall that was fitted, however straight the line.

The mean of the last third stands in for P where there is no fall to extrapolate: a series of fewer than 6 values, one
that rises, and one in which the fit explains less than half of the variance (adjusted R2): flat within its noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST = 6
EXPLAINED = 0.5
# Where D scatters by 0.01 from step to step, 20 steps tell the plateau to within 0.005 (flat) or 0.02 (still falling).
TOLERANCE = 0.02


def plateau(series: Sequence[float]) -> float:
    """The value in [0, 1] that the series settles on. NaN (a step without a D) is passed over."""
    values = np.asarray(series, float)
    values = values[np.isfinite(values)]  # (n,)
    if not len(values):
        raise ValueError("there is no value of D to find a plateau of; D needs at least 2 responses to each problem")
    level = _decay(values) if len(values) >= FEWEST else None
    if level is None:
        level = float(values[-max(1, len(values) // 3) :].mean())
    return min(max(level, 0.0), 1.0)


def steady(series: Sequence[float], target: float) -> bool:
    """Whether the series settles on the target D* or above, give or take TOLERANCE.

    It may have fallen far: from a high temperature D has far to fall. What fails is a D that settles below D*.
    """
    return plateau(series) >= target - TOLERANCE


def _decay(values: NDArray[np.float64]) -> float | None:
    """P of the exponential decay that fits best, or None where there is no decay to be seen."""
    n = len(values)
    taus = np.geomspace(1, n - 1, 48)
    basis = np.exp(-np.arange(n) / taus[:, None])  # (taus, n)
    centred = basis - basis.mean(1, keepdims=True)
    offsets = values - values.mean()  # (n,)
    falls = centred @ offsets / (centred**2).sum(1)  # (taus,)
    errors = ((offsets - falls[:, None] * centred) ** 2).sum(1)
    best = int(errors.argmin())
    left, scatter = errors[best] / (n - 3), offsets @ offsets / (n - 1)  # 3 parameters were fitted, and 1
    if falls[best] <= 0 or left >= (1 - EXPLAINED) * scatter:
        return None
    return float(values.mean() - falls[best] * basis[best].mean())
