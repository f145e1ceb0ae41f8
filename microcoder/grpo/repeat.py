"""repeat(o, m): whether a response that was cut off had fallen into a loop.

1. The paper looks for one repetition of exactly m = 128 tokens: `literal`. A loop whose length does not divide 128
   escapes it; `periodic` finds any loop of up to m tokens, in the same 2m tokens.
2. The paper's limits are 4K to 8K. For smaller ones m shrinks with the limit, else no response could repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

Repetition = Literal["literal", "periodic"]


def repeat_tokens(limit: int) -> int:
    """m for a response limit: 128 from 4096 tokens on, else a 32nd of the limit, but at least 8."""
    return 128 if limit >= 4096 else max(8, limit // 32)


def ends_in_repetition(tokens: Sequence[int], m: int, kind: Repetition = "literal") -> bool:
    """Whether the last 2m tokens repeat: with period m (`literal`), or with any period from 1 to m (`periodic`)."""
    if kind not in ("literal", "periodic"):
        raise ValueError(f"the kind of repetition is {kind!r}; it must be 'literal' or 'periodic'")
    if m < 1:
        raise ValueError(f"m is {m}; a repetition needs at least 1 token: pass repeat_tokens(limit)")
    if len(tokens) < 2 * m:
        return False
    tail = np.asarray(tokens[-2 * m :])  # (2m,)
    if kind == "literal":
        return bool((tail[m:] == tail[:m]).all())
    # A loop of p tokens has its last token p before the end too: few periods are left to look at.
    periods = np.flatnonzero(tail[-2 : -m - 2 : -1] == tail[-1]) + 1
    return any((tail[p:] == tail[:-p]).all() for p in periods)
