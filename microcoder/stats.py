"""95% confidence intervals: Wilson's for shares, the bootstrap for means, over problems and over runs. And pass@k."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    return middle(draws @ distinct / len(values))


def crossed_means(
    groups: Sequence[NDArray[np.float64]], resamples: int = RESAMPLES, seed: int = 0
) -> list[NDArray[np.float64]]:
    """Resample the mean of each group  # (runs, problems), runs and problems both drawn with replacement.

    All groups have the same problems, and each draw takes the same ones of all; runs are drawn within a group. The
    plain bootstrap of n runs has only (n - 1) / n of their variance, much too little for two or three, so deviations
    from equal weights are stretched by the root of n / (n - 1). One run cannot say how far runs lie apart: it stays as
    it is. Return (resamples,) for each group.
    """
    random = np.random.default_rng(seed)
    problems = groups[0].shape[1]
    drawn = random.multinomial(problems, np.full(problems, 1 / problems), resamples) / problems  # (resamples, problems)
    found = []
    for group in groups:
        runs = len(group)
        shares = random.multinomial(runs, np.full(runs, 1 / runs), resamples) / runs  # (resamples, runs)
        weights = 1 / runs + (shares - 1 / runs) * math.sqrt(runs / max(1, runs - 1))
        found.append(np.einsum("np,np->n", weights @ group, drawn))
    return found


def middle(draws: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95% percentile interval of what was drawn."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def pass_at_k(tries: int, right: int, k: int) -> float:
    """Compute 1 - C(tries - right, k) / C(tries, k) as a product, which cannot overflow.

    With fewer than k wrong tries one factor is 0, since k is then among the numbers that are multiplied over.
    """
    return 1.0 - math.prod(1.0 - k / n for n in range(tries - right + 1, tries + 1))
