"""Log-probabilities of the sampled tokens, and the entropy they were sampled with, at the sampling temperature.

1. The paper's ratio is taken at temperature T(D) in both policies, so the logits are divided by it here.
2. All arithmetic is float32 (float64 for float64 logits), yet no float32 copy of the logits ever exists: with 8K tokens
   and 150k words it would take 5 GB a response, twice over in the backward pass. Rows are worked through in chunks, and
   the backward pass makes the softmax again from the logits instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 512  # tokens; at 150k words a chunk takes 0.3 GB in float32


def token_logprobs(logits: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """(n, t) log-probability of each of `ids` (n, t) under softmax(`logits` (n, t, words) / temperature)."""
    _check(logits, temperature)
    if ids.shape != logits.shape[:2]:
        raise ValueError(
            f"ids are of shape {tuple(ids.shape)} and logits of shape {tuple(logits.shape)}; pass one id for each "
            "position, shifted so that logits[i, j] predict ids[i, j]: logits[:, :-1] with ids[:, 1:]"
        )
    return _TokenLogprobs.apply(logits, ids, temperature)


@torch.no_grad()
def token_entropy(logits: Tensor, temperature: float) -> Tensor:
    """(n, t) entropy in nats of softmax(`logits` (n, t, words) / temperature). A figure to log: it has no gradient."""
    _check(logits, temperature)
    entropy = torch.empty(logits.shape[:2], dtype=_wide(logits), device=logits.device)  # (n, t)
    for part in _parts(logits):
        entropy[part] = torch.special.entr(_scaled(logits[part], temperature).softmax(-1)).sum(-1)
    return entropy


class _TokenLogprobs(torch.autograd.Function):
    """z[id] - logsumexp(z) with z = logits / temperature; its derivative in z is one-hot(id) - softmax(z)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor, temperature: float) -> Tensor:
        total = torch.empty(ids.shape, dtype=_wide(logits), device=logits.device)  # (n, t)
        for part in _parts(logits):
            total[part] = _scaled(logits[part], temperature).logsumexp(-1)
        ctx.save_for_backward(logits, ids, total)
        ctx.temperature = temperature
        return _scaled(logits.gather(-1, ids[..., None])[..., 0], temperature) - total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        logits, ids, total = ctx.saved_tensors
        grad_logits = torch.empty_like(logits)  # (n, t, words)
        grad = grad / ctx.temperature  # (n, t)
        for part in _parts(logits):
            softmax = (_scaled(logits[part], ctx.temperature) - total[part][:, None]).exp_()  # (chunk, words)
            chunk = softmax.mul_(-grad[part][:, None])
            grad_logits[part] = chunk.scatter_add_(-1, ids[part][:, None], grad[part][:, None])
        return grad_logits, None, None


def _parts(logits: Tensor) -> Iterator[tuple[int, slice]]:
    """Views of at most CHUNK positions of one row: unlike a flattened copy they cost nothing for logits[:, :-1]."""
    for row in range(logits.shape[0]):
        for start in range(0, logits.shape[1], CHUNK):
            yield row, slice(start, start + CHUNK)


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    return logits.to(_wide(logits)) / temperature


def _wide(logits: Tensor) -> torch.dtype:
    return torch.promote_types(logits.dtype, torch.float32)


def _check(logits: Tensor, temperature: float) -> None:
    if logits.dim() != 3:
        raise ValueError(f"logits are of shape {tuple(logits.shape)}; they must be (rows, tokens, words)")
    if not temperature > 0:
        raise ValueError(f"the temperature is {temperature}; it must be above 0: pass the one that was sampled with")
