"""n-grams as numbers, and MinHash: a set of any size as a few numbers that tell how alike two sets are.

Two sketches agree in a slot with the probability that is the Jaccard similarity of the two sets. 16 bits of each
minimum are kept (chance makes strangers agree in one slot of 65,536), so 120 slots take 240 bytes. The hashes are the
same in every process and on every machine, unlike Python's own.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ROUND = 2048  # items hashed at a time: a huge text needs no more memory than a large one
_STEP = np.uint64(0x9E3779B97F4A7C15)
_RANDOM = np.random.default_rng(0)
_FACTORS = _RANDOM.integers(0, 2**63, 128, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS = _RANDOM.integers(0, 2**63, 128, dtype=np.uint64)


def number(text: str) -> int:
    """64 bits that stand for a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def grams(tokens: Sequence[str], n: int) -> Array:
    """The distinct n-grams as 64-bit numbers, sorted; of fewer than n tokens the whole is the only gram."""
    if not tokens:
        return np.empty(0, np.uint64)
    known = {token: zlib.crc32(token.encode("utf-8", "surrogatepass")) for token in set(tokens)}
    values = np.array([known[token] for token in tokens], np.uint64)  # (tokens,)
    total = np.zeros(max(1, len(values) - n + 1), np.uint64)
    for k in range(min(n, len(values))):
        total = (total ^ values[k : k + len(total)]) * _STEP
        total ^= total >> np.uint64(29)
    return np.unique(total)


def sketch(items: Array, slots: int) -> Array:
    """(slots,) numbers of 16 bits; all zero for an empty set."""
    return leaders(items, slots)[0]


def leaders(items: Array, slots: int) -> tuple[Array, Array]:
    """The sketch, and for each of its slots which item was the least there."""
    best = np.full(slots, np.iinfo(np.uint64).max, np.uint64)
    where = np.zeros(slots, np.int64)
    for start in range(0, len(items), _ROUND):
        mixed = items[start : start + _ROUND, None] * _FACTORS[:slots] + _SHIFTS[:slots]  # (items, slots)
        mixed = (mixed ^ mixed >> np.uint64(31)) * _STEP
        least = mixed.argmin(axis=0)
        value = mixed[least, np.arange(slots)]
        where = np.where(value < best, start + least, where)
        best = np.minimum(value, best)
    return ((best >> np.uint64(7)) * (len(items) > 0)).astype(np.uint16), where
