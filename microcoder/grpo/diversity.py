"""Diversity D of a group of responses: 1 - their mean pairwise similarity. 0: all alike; 1: nothing shared.

The similarity of two responses is the multiset Jaccard index of their token 4-grams: shared / all, each gram counted as
often as it occurs. Where we differ from the paper:

1. The paper does not give its formula. Its D is 0.3 at temperature 0, ours is 0, so its values cannot be used here.
2. A response of fewer than 4 tokens is one gram: two equal short responses are alike.

Grams are compared by a hash of some 60 bits: two different ones among the 64K of a group collide once in 10^9 groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .mixing import Words, fold


def diversity(responses: Sequence[Sequence[int]], group: int, n: int = 4) -> float:
    """Return the mean D of groups of `group` consecutive responses; NaN if no group has two responses."""
    if group < 1 or len(responses) % group:
        raise ValueError(
            f"{len(responses)} responses cannot be divided into groups of {group}; pass every response of each "
            "problem, one problem after the other"
        )
    values = [group_diversity(responses[start : start + group], n) for start in range(0, len(responses), group)]
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def group_diversity(responses: Sequence[Sequence[int]], n: int = 4) -> float:
    """Return D of one group of responses, each a sequence of token ids; NaN for fewer than two."""
    if n < 1:
        raise ValueError(f"n is {n}; a gram has at least 1 token: the usual n is 4")
    if len(responses) < 2:
        return math.nan
    counts, sizes = _shared_counts([_grams(response, n) for response in responses])
    similarities = []
    for row in range(len(responses) - 1):
        shared = np.minimum(counts[row], counts[row + 1 :]).sum(1)  # (the responses after it,)
        similarities.append(shared / (sizes[row] + sizes[row + 1 :] - shared))
    return 1.0 - float(np.concatenate(similarities).mean())


def _grams(response: Sequence[int], n: int) -> Words:
    """Hash each n consecutive tokens; a shorter response is one gram."""
    tokens = np.asarray(response, np.int64)
    n = min(n, len(tokens))
    count = len(tokens) - n + 1
    return fold(*(tokens[start : start + count] for start in range(n)))


def _shared_counts(grams: list[Words]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Count grams: (responses, grams) occurrences of grams that two or more responses share; (responses,) all grams.

    The hash is shifted up by some bits, and the response's number put into the low bits. One sort of plain numbers then
    brings equal grams together, ordered by response.
    """
    sizes = np.array([len(part) for part in grams])  # (responses,)
    bits = np.uint64((len(grams) - 1).bit_length())
    keys = np.concatenate([(part << bits) | np.uint64(row) for row, part in enumerate(grams)])
    keys.sort()
    first = np.flatnonzero(_changes(keys))  # where a run of one gram in one response begins
    occurrences = np.diff(first, append=len(keys))
    gram, response = np.divmod(keys[first], np.uint64(1) << bits)
    number = np.cumsum(_changes(gram)) - 1
    runs = np.bincount(number)  # (grams,) in how many responses
    kept = runs[number] > 1
    column = (np.cumsum(runs > 1) - 1)[number[kept]]
    counts = np.zeros((len(grams), np.count_nonzero(runs > 1)), np.int32)
    counts[response[kept].astype(np.int64), column] = occurrences[kept]
    return counts, sizes


def _changes(values: Words) -> NDArray[np.bool_]:
    """Return True at the first value and where a value differs from the one before."""
    return np.concatenate(([True], values[1:] != values[:-1]))
