"""A decode step's own operations in plain torch, and the tensors they work on. `kernels.py` has the same, faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .sampler import Sampling, draw


@dataclass(frozen=True)
class Pools:
    """Keys and values, a list over layers each: of prompts, shared by their samples, and of each slot's own tokens.

    Of each layer, the shared ones and the own ones after them lie in one piece of memory.
    """

    shared_keys: list[torch.Tensor]  # (prompts, kv_heads, longest prompt, head_dim)
    shared_values: list[torch.Tensor]
    own_keys: list[torch.Tensor]  # (slots, kv_heads, limit, head_dim)
    own_values: list[torch.Tensor]

    @classmethod
    def make(
        cls, layers: int, heads: int, width: int, shared: tuple[int, int], own: tuple[int, int], **options: Any
    ) -> Pools:
        """Empty ones. shared: (prompts, longest prompt), own: (slots, limit)"""
        sizes = [count * heads * places * width for count, places in (shared, own)]
        found = []
        for _ in range(2):
            parts = [torch.zeros(sum(sizes), **options).split(sizes) for _ in range(layers)]
            found.append([part.view(shared[0], heads, shared[1], width) for part, _ in parts])
            found.append([part.view(own[0], heads, own[1], width) for _, part in parts])
        return cls(found[0], found[2], found[1], found[3])


@dataclass(frozen=True)
class Rows:
    """The state of each row of the batch, as views (n,) of one int64 tensor, so that rows move in one copy."""

    state: torch.Tensor  # (8, n)

    token = property(lambda self: self.state[0])  # the one to be read next
    position = property(lambda self: self.state[1])  # its place in the whole text
    prefix = property(lambda self: self.state[2])  # where the prompt's keys lie
    prefix_length = property(lambda self: self.state[3])
    slot = property(lambda self: self.state[4])  # where its own keys lie
    length = property(lambda self: self.state[5])  # tokens written so far
    done = property(lambda self: self.state[6])  # 1: finished or free
    seed = property(lambda self: self.state[7])


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _: None, pools: Pools, layer: int, rows: Rows, scale: float
) -> torch.Tensor:
    """Store the newest key and value of each row, and attend to them, to the row's own before and to its prompt's.

    q (n, heads, 1, head_dim), k and v (n, kv_heads, 1, head_dim) -> (n, 1, heads, head_dim)
    """
    live = (rows.done == 0).nonzero()[:, 0]
    pools.own_keys[layer][rows.slot[live], :, rows.length[live]] = k[live, :, 0]
    pools.own_values[layer][rows.slot[live], :, rows.length[live]] = v[live, :, 0]
    keys = torch.cat([pools.shared_keys[layer][rows.prefix], pools.own_keys[layer][rows.slot]], 2)
    values = torch.cat([pools.shared_values[layer][rows.prefix], pools.own_values[layer][rows.slot]], 2)
    shared = torch.arange(pools.shared_keys[layer].shape[2], device=q.device) < rows.prefix_length[:, None]
    own = torch.arange(pools.own_keys[layer].shape[2], device=q.device) <= rows.length[:, None]
    group = q.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
    scores = (q @ keys.transpose(2, 3)).float() * scale  # (n, heads, 1, places)
    weights = scores.masked_fill(~torch.cat([shared, own], 1)[:, None, None], float("-inf")).softmax(-1)
    return (weights.to(values.dtype) @ values).transpose(1, 2)


def pick(
    logits: torch.Tensor, allowed: Any, rows: Rows, ends: torch.Tensor, written: torch.Tensor,
    logprobs: torch.Tensor, temperature: torch.Tensor, limit: torch.Tensor, generator: torch.Generator,
) -> None:  # fmt: skip
    """Draw each row's next token and move the row on by one. logits (n, vocabulary)"""
    whole = Sampling(float(temperature), 1)
    chosen, value = draw(logits if allowed is None else allowed, whole, generator)
    if allowed is not None:
        heat = whole.temperature or 1.0
        value = torch.log_softmax(logits / heat, -1).gather(1, chosen[:, None])[:, 0]
    live = (rows.done == 0).nonzero()[:, 0]
    written[rows.slot[live], rows.length[live]] = chosen[live].to(written.dtype)
    logprobs[rows.slot[live], rows.length[live]] = value[live]
    rows.token[live] = chosen[live]
    rows.position[live] += 1
    rows.length[live] += 1
    rows.done[live] = (torch.isin(chosen[live], ends) | (rows.length[live] >= limit)).long()


class StepCache:
    """What a decode step gives transformers as its cache: it takes what is new, and attends itself."""

    angles: tuple[torch.Tensor, torch.Tensor] | None = None

    def __init__(self, ops: Any, pools: Pools, rows: Rows) -> None:
        self.ops, self.pools, self.rows = ops, pools, rows

    def rotate(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *_: Any) -> Any:
        """Left to `attend`."""
        self.angles = cos.expand(len(q), -1, -1), sin.expand(len(q), -1, -1)
        return q, k

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any) -> tuple[Any, None]:
        self.newest = keys, values, layer
        return self, None

    def attend(self, query: torch.Tensor, scale: float) -> Any:
        keys, values, layer = self.newest
        return self.ops.attend(query, keys, values, self.angles, self.pools, layer, self.rows, scale)


class PromptCache:
    """While prompts are read, attention is the ordinary one, and the keys are kept."""

    def __init__(self, pools: Pools, places: torch.Tensor) -> None:
        self.pools, self.places = pools, places

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count = keys.shape[2]
        self.pools.shared_keys[layer][self.places, :, :count] = keys
        self.pools.shared_values[layer][self.places, :, :count] = values
        return keys, values
