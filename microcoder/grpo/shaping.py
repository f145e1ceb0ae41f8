"""DAPO's soft overlong punishment: a reward that falls as a response comes close to the limit.

Not part of MicroCoder-GRPO, which masks instead; here for the `dapo` preset to be compared with.
"""

from __future__ import annotations

from torch import Tensor


def overlong_penalty(lengths: Tensor, limit: int, buffer: int) -> Tensor:
    """(n,) 0 up to limit - buffer tokens, from there in a straight line down to -1 at the limit, -1 beyond."""
    if not 1 <= buffer <= limit:
        raise ValueError(
            f"the buffer is {buffer} tokens and the limit {limit}; the buffer is the last part of the limit: "
            f"pass 1 to {limit}, such as {max(1, limit // 5)}"
        )
    return ((limit - buffer - lengths) / buffer).clamp(-1, 0)
