"""Advantages within a group: how much better a response did than the others to the same problem.

A = (r - mean r) / (std r + 1e-6), with the sample deviation (n - 1), over the responses of one problem. Where we differ
from the paper:

1. 1e-6 is added to the deviation, and a group whose rewards are all equal gets exactly 0.
2. A response without a reward (a judge fault) leaves its group: it counts in neither mean nor deviation and gets 0.
3. `std=False` leaves the division out, as Dr.GRPO does.
4. DAPO's soft overlong punishment (`overlong_penalty`) is here for the `dapo` preset only: MicroCoder-GRPO masks.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-6


def group_advantages(rewards: Tensor, group: int, *, std: bool = True, valid: Tensor | None = None) -> Tensor:
    """Return the advantages (n,) of the rewards (n,); each `group` consecutive rewards belong to one problem.

    `valid` (n,) is False where there is no reward; the value in `rewards` is then ignored.
    """
    known = _known(rewards, group, valid)  # (groups, group)
    values = rewards.reshape(-1, group).masked_fill(~known, 0)  # (groups, group)
    count = known.sum(1, keepdim=True)  # (groups, 1)
    mean = values.sum(1, keepdim=True) / count.clamp(min=1)
    advantages = (values - mean).masked_fill(~known, 0)
    if std:
        variance = advantages.square().sum(1, keepdim=True) / (count - 1).clamp(min=1)
        advantages = advantages / (variance.sqrt() + EPSILON)
    # Equal rewards may differ from their rounded mean, and that difference would be divided by 1e-6.
    return advantages.masked_fill(~has_signal(rewards, group, valid)[:, None], 0).reshape(-1)


def has_signal(rewards: Tensor, group: int, valid: Tensor | None = None) -> Tensor:
    """Tell which groups (groups,) have signal, that is, different rewards: those that dynamic sampling keeps."""
    known = _known(rewards, group, valid)  # (groups, group)
    values = rewards.reshape(-1, group)
    highest = values.masked_fill(~known, -torch.inf).amax(1)
    lowest = values.masked_fill(~known, torch.inf).amin(1)
    return highest > lowest


def _known(rewards: Tensor, group: int, valid: Tensor | None) -> Tensor:
    """Return (groups, group) True where a reward is known. Raise ValueError for rewards that cannot be grouped."""
    if rewards.dim() != 1 or not rewards.is_floating_point():
        raise ValueError(
            f"rewards are {rewards.dtype} of shape {tuple(rewards.shape)}; they must be floats in one dimension: "
            "pass rewards.flatten().float()"
        )
    if group < 1 or len(rewards) % group:
        raise ValueError(
            f"{len(rewards)} rewards cannot be divided into groups of {group}; pass every response of each problem, "
            "one problem after the other, and mark those without a reward in `valid`"
        )
    if valid is None:
        valid = torch.ones_like(rewards, dtype=torch.bool)
    elif valid.shape != rewards.shape or valid.dtype != torch.bool:
        raise ValueError(
            f"valid is {valid.dtype} of shape {tuple(valid.shape)}; it must be one bool for each of the "
            f"{len(rewards)} rewards"
        )
    unusable = (valid & ~rewards.isfinite()).nonzero().flatten().tolist()
    if unusable:
        raise ValueError(
            f"the reward of row {unusable[0]} is {rewards[unusable[0]].item()}, which no mean can hold; "
            "set valid to False there if it has no reward"
        )
    return valid.reshape(-1, group)


def overlong_penalty(lengths: Tensor, limit: int, buffer: int) -> Tensor:
    """Return DAPO's soft overlong punishment (n,): 0 up to limit - buffer tokens, then linear to -1 at the limit."""
    if not 1 <= buffer <= limit:
        raise ValueError(
            f"the buffer is {buffer} tokens and the limit {limit}; the buffer is the last part of the limit: "
            f"pass 1 to {limit}, such as {max(1, limit // 5)}"
        )
    return ((limit - buffer - lengths) / buffer).clamp(-1, 0)
