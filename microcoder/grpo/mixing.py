"""A hash of integers that is the same on every machine, made with the mixer of splitmix64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def fold(*parts: int | NDArray[Any]) -> Words:
    """Hash a sequence of integers to 64 bits; arrays among them are broadcast, as in arithmetic."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        words = np.array([part % 2**64], np.uint64) if isinstance(part, int) else part.astype(np.uint64)
        state = _mix(state ^ words)
    return state


def _mix(words: Words) -> Words:
    """Mix the bits: a change of any bit changes about half of them. One-to-one; wraps around at 64 bits."""
    words = words + np.uint64(0x9E3779B97F4A7C15)  # the only copy; the rest is in place
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
