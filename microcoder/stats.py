"""95% confidence intervals: Wilson's for shares, the bootstrap for means. And pass@k."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
Z = 1.959963984540054  # of the normal distribution


def wilson(count: int, of: int) -> tuple[float, float] | None:
    """Wilson's interval of a share; None without observations."""
    if not of:
        return None
    share, weight = count / of, Z * Z / of
    centre = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def bootstrap(
    values: NDArray[np.float64], resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float | None, float | None]:
    """Of the mean of `values`  # (n,), by percentiles; of fewer than two there is none.

    A resample's mean depends only on how often each distinct value was drawn, and those counts are multinomial: drawing
    the counts gives the same distribution as drawing the n values, at a cost that does not grow with n.
    """
    if len(values) < 2:
        return None, None
    distinct, counts = np.unique(values, return_counts=True)  # (d,), (d,)
    draws = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=resamples)  # (resamples, d)
    low, high = np.quantile(draws @ distinct / len(values), (0.025, 0.975))
    return float(low), float(high)


def pass_at_k(tries: int, right: int, k: int) -> float:
    """Compute 1 - C(tries - right, k) / C(tries, k) as a product, which cannot overflow.

    With fewer than k wrong tries one factor is 0, since k is then among the numbers that are multiplied over.
    """
    return 1.0 - math.prod(1.0 - k / n for n in range(tries - right + 1, tries + 1))
