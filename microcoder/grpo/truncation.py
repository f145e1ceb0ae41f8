"""The truncation mask: set the advantage of some truncated responses to 0; and repeat(o, m), the test for repetition.

Equation 2 of the paper: zero when |o| = L_max and incorrect(o) and not repeat(o, m) and U(0, 1) < rho. Where we differ:

1. Truncated means stopped at the limit without an end token. A response whose last token is an end token is complete.
2. The text says "correct" where the equation says "incorrect", so the outcome is a setting: `mask_outcome`.
3. U(0, 1) is a hash of (seed, step, row): a resumed, resized or redistributed run draws the same.
4. repeat(o, m) of the paper finds one repetition of exactly m = 128 tokens: `literal`. It misses a loop whose length
   does not divide 128. `periodic` finds any loop of up to m tokens, in the same 2m tokens.
5. The paper's limits are 4K to 8K. For smaller limits m shrinks with the limit; otherwise no response could repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .mixing import fold

Mask = Literal["none", "all", "conditional"]
MaskOutcome = Literal["incorrect", "non_incorrect", "correct", "any"]
Flags = Tensor | Sequence[bool]


def draws(seed: int, step: int, rows: Sequence[int]) -> NDArray[np.float64]:
    """Return uniform draws (n,) in [0, 1); each depends only on (seed, step, row)."""
    bits = fold(seed, step, np.asarray(rows, np.int64))  # (n,)
    return np.ldexp((bits >> np.uint64(11)).astype(np.float64), -53)  # the 53 bits that a float64 holds


def truncation_mask(
    truncated: Flags,  # (n,)
    outcomes: Sequence[str],  # (n,) verdicts: accepted, wrong_answer, no_code, ...
    repeated: Flags,  # (n,)
    *,
    mask: Mask,
    rho: float,
    mask_outcome: MaskOutcome,
    seed: int,
    step: int,
    rows: Sequence[int],  # (n,) each response's number in the whole batch of the step
) -> Tensor:
    """Return (n,) True where the advantage becomes 0. The tokens still count in the loss's denominator."""
    _check(mask, rho, mask_outcome, [len(truncated), len(outcomes), len(repeated), len(rows)])
    cut = torch.as_tensor(truncated, dtype=torch.bool)  # (n,)
    if mask == "none":
        return torch.zeros_like(cut)
    if mask == "all":
        return cut.clone()
    looping = torch.as_tensor(repeated, dtype=torch.bool, device=cut.device)
    concerned = torch.tensor([_concerns(mask_outcome, o) for o in outcomes], dtype=torch.bool, device=cut.device)
    drawn = torch.from_numpy(draws(seed, step, rows) < rho).to(cut.device)
    return cut & concerned & ~looping & drawn


def _concerns(mask_outcome: MaskOutcome, outcome: str) -> bool:
    if mask_outcome == "incorrect":
        return outcome not in ("accepted", "internal_error")  # a judge fault says nothing about the answer
    if mask_outcome == "non_incorrect":
        return outcome in ("accepted", "no_code")
    return mask_outcome == "any" or outcome == "accepted"


def _check(mask: str, rho: float, mask_outcome: str, lengths: list[int]) -> None:
    for name, value, kind in (("mask", mask, Mask), ("mask_outcome", mask_outcome, MaskOutcome)):
        if value not in get_args(kind):
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(get_args(kind))}")
    if not 0 <= rho <= 1:
        raise ValueError(f"rho is {rho}; it is a probability: pass 0.2 for 20 %")
    if len(set(lengths)) != 1:
        raise ValueError(
            "truncated, outcomes, repeated and rows have {}, {}, {} and {} entries; "
            "pass one of each for every response".format(*lengths)
        )


Repetition = Literal["literal", "periodic"]


def repeat_tokens(limit: int) -> int:
    """Return m for a response limit: 128 from 4096 tokens on, else a 32nd of the limit, but at least 8."""
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
    # With period p the last token also stands p positions earlier: few periods are left to try.
    periods = np.flatnonzero(tail[-2 : -m - 2 : -1] == tail[-1]) + 1
    return any((tail[p:] == tail[:-p]).all() for p in periods)
