"""How responses are dealt out to passes: those of like length together, without their padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def alike(
    mask: torch.Tensor, keep: int, live: torch.Tensor | None, rows: int
) -> Iterator[tuple[torch.Tensor, int, int]]:
    """(which rows, first column, column after the last) of passes over rows of like length, without their padding.

    mask   (n, prompt + keep), prompts padded on the left, responses on the right
    live   numbers of the rows that count; None: all
    """
    prompt = mask.size(1) - keep
    before, after = mask[:, :prompt].sum(1), mask[:, prompt:].sum(1)  # (n,)
    live = torch.arange(len(mask), device=mask.device) if live is None else live.to(mask.device)
    order = live[(after[live] * 100_000 + before[live]).argsort(stable=True)]
    for pick in order.split(rows) if len(order) else ():
        yield pick, prompt - int(before[pick].max()), prompt + max(int(after[pick].max()), 1)


def dealt(
    window: list[dict[str, Any]], micro: int, only_live: bool, most: Callable[[int], int]
) -> list[dict[str, Any]]:
    """An update's passes anew: the same gradient, sooner.

    Responses of like length come together and the padding is cut. With `only_live`, those with advantage 0 are left
    out; what needs fewer passes leaves the first ones empty, as many on every device, so that they stay in step.
    """
    rows = [name for name, value in window[0].items() if isinstance(value, torch.Tensor) and value.dim() > 0]
    joined = {name: torch.cat([part[name] for part in window]) for name in rows}
    order = (joined["completion_mask"].sum(1) * 100_000 + joined["prompt_mask"].sum(1)).argsort(stable=True)
    if only_live:
        live = joined["advantages"][order] != 0
        order = torch.cat([order[live], order[~live]])
        needed = most(max(1, -(-int(live.sum()) // micro)))
        order = order[: max(int(live.sum()), needed)]  # every pass that is made has a row
    else:
        needed = len(window)
    empty = {name: value[:0] for name, value in joined.items()}
    return [empty] * (len(window) - needed) + [_part(joined, pick) for pick in order.tensor_split(needed)]


def _part(joined: dict[str, torch.Tensor], pick: torch.Tensor) -> dict[str, torch.Tensor]:
    part = {name: value[pick] for name, value in joined.items()}
    start = part["prompt_mask"].size(1) - int(part["prompt_mask"].sum(1).max())
    end = max(int(part["completion_mask"].sum(1).max()), 1)
    for name, value in part.items():
        if value.dim() == 2:
            part[name] = value[:, start:] if name.startswith("prompt") else value[:, :end]
    return part
