"""A decode step's own operations in plain torch, and the tensors they work on. `kernels.py` has the same, faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

PAGE = 64  # tokens in a page: a power of two, and a multiple of the block that the kernel reads at once
# Tokens. Texts that may be longer differ much in length. Attention begins with the first rows, so the longest come
# first: none is begun when all others are near their end.
LONG = 2048


@dataclass(frozen=True)
class Pools:
    """Keys and values in pages, a list over layers each, and the table of which pages hold which text.

    A row of the table lists a prompt's pages, which its samples share, and after them a response's own.
    """

    keys: list[torch.Tensor]  # (pages, kv_heads, PAGE, head_dim)
    values: list[torch.Tensor]
    table: torch.Tensor  # (slots, most pages of a text), int32

    @classmethod
    def of(cls, memory: torch.Tensor, table: torch.Tensor) -> Pools:
        """memory: (pages, layers, 2, kv_heads, PAGE, head_dim), so that the first pages lie together"""
        keys, values = ([part[:, n] for n in range(memory.shape[1])] for part in memory.unbind(2))
        return cls(keys, values, table)


@dataclass(frozen=True)
class Rows:
    """The state of each row of the batch, as views (n,) of one int64 tensor, so that rows move in one copy."""

    state: torch.Tensor  # (7, n)

    token = property(lambda self: self.state[0])  # the one to be read next
    position = property(lambda self: self.state[1])  # its place in the whole text
    prefix_length = property(lambda self: self.state[2])  # tokens in the prompt's pages
    slot = property(lambda self: self.state[3])  # its row of the table and of the tokens written
    length = property(lambda self: self.state[4])  # tokens written so far
    done = property(lambda self: self.state[5])  # 1: finished or free
    seed = property(lambda self: self.state[6])


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _: None, pools: Pools, layer: int, rows: Rows, scale: float
) -> torch.Tensor:
    """Store the newest key and value of each row, and attend to them, to the row's own before and to its prompt's.

    q (n, heads, 1, head_dim), k and v (n, kv_heads, 1, head_dim) -> (n, 1, heads, head_dim)
    """
    keys, values = pools.keys[layer], pools.values[layer]
    first = (rows.prefix_length + PAGE - 1) // PAGE * PAGE  # its own tokens begin on a page of their own
    newest = first + rows.length
    live = (rows.done == 0).nonzero()[:, 0]
    page = pools.table[rows.slot[live], newest[live] // PAGE].long()
    keys[page, :, newest[live] % PAGE] = k[live, :, 0]
    values[page, :, newest[live] % PAGE] = v[live, :, 0]
    table = pools.table[rows.slot].long()  # (n, columns)
    group = q.shape[1] // k.shape[1]
    past_keys, past_values = (  # (n, heads, places, head_dim)
        pool[table].transpose(1, 2).flatten(2, 3).repeat_interleave(group, 1) for pool in (keys, values)
    )
    place = torch.arange(table.shape[1] * PAGE, device=q.device)
    there = (place < rows.prefix_length[:, None]) | ((place >= first[:, None]) & (place <= newest[:, None]))
    scores = (q @ past_keys.transpose(2, 3)).float() * scale  # (n, heads, 1, places)
    weights = scores.masked_fill(~there[:, None, None], float("-inf")).softmax(-1)
    return (weights.to(past_values.dtype) @ past_values).transpose(1, 2)


def pick(
    logits: torch.Tensor, allowed: Any, rows: Rows, ends: torch.Tensor, written: torch.Tensor,
    logprobs: torch.Tensor, temperature: torch.Tensor, limit: torch.Tensor, generator: torch.Generator,
) -> None:  # fmt: skip
    """Draw each row's next token and move the row on by one. logits (n, vocabulary)

    The noise depends on the row's seed and position only. `allowed`: the logits with what must not be drawn at -inf.
    """
    scores, heat = logits if allowed is None else allowed, float(temperature)
    live = (rows.done == 0).nonzero()[:, 0]
    if heat > 0:
        noise = torch.zeros_like(logits)
        for n in live.tolist():
            generator.manual_seed((int(rows.seed[n]) + int(rows.position[n]) * 7046029254386353131) % 2**63)
            noise[n].exponential_(generator=generator)
        scores = scores / heat - noise.log()  # the largest of them is a draw from the softmax
    chosen = scores.argmax(-1)
    value = torch.log_softmax(logits / (heat or 1.0), -1).gather(1, chosen[:, None])[:, 0]
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
    """While texts are read, attention is the ordinary one, and the keys are kept."""

    def __init__(self, pools: Pools, source: torch.Tensor, to: torch.Tensor, longest: int) -> None:
        """`source`: n * longest + place of each token to be kept; `to`: page * PAGE + offset (both (m,))"""
        self.pools = pools
        self.row, self.place, self.page, self.offset = source // longest, source % longest, to // PAGE, to % PAGE

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.pools.keys[layer][self.page, :, self.offset] = keys[self.row, :, self.place]
        self.pools.values[layer][self.page, :, self.offset] = values[self.row, :, self.place]
        return keys, values
