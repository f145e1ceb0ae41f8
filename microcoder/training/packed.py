"""Responses in one row without padding, each prompt once: what the update computes.

    share_prompts(model, temperature)
    for numbers in fill(rows, budget):                       # rows: (prompt, response) as token ids
        packed = pack([rows[n] for n in numbers], device)
        logprobs = packed.unpacked(model(**inputs(packed)))  # (responses, longest)

    [prompt 1][prompt 2] ... [response 1][response 2] ...    where 1 and 2 may have the same prompt, which is there once

1. The last token of a prompt stands before each of its responses, not at the end of the prompt: it predicts the first
   token of a response, and so every piece predicts itself. The last token of a response predicts nothing and is left
   out. A response takes as many places as it has tokens.
2. A token attends to what precedes it in its own piece, and in a response to the whole prompt. On a GPU these are two
   calls of flash attention, merged by their log-sum-exps. That is exact, forward and backward: a part's gradient needs
   the merged output and log-sum-exp alone. Elsewhere it is one call with a mask for each prompt.
3. Positions go on in each response where the prompt ended.
4. Logits are made in pieces and are not kept. On a GPU their factors are bfloat16 and they themselves float32, as in
   sampling: rounded to bfloat16 they would be off by hundredths, and a product of float32 factors takes ten times as
   long.

`share_prompts(model)` makes a model do so where it is called with `packed`; else it does what it did, so the same model
samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import groupby, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..grpo import token_logprobs

SHARED = "shared_prompts"
FAMILIES = ("llama", "qwen2", "qwen3")
PIECE = 2048  # tokens whose logits are there at once
Row = tuple[Sequence[int], Sequence[int]]  # prompt, response


def fill(rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Deal the numbers of rows out to passes of at most `budget` tokens; a longer row has a pass of its own.

    Rows that lie together and have the same prompt stay together as far as the budget allows.
    """
    out: list[list[int]] = []
    left, before = 0, None
    for n, (prompt, response) in enumerate(rows):
        needed = len(response) + (0 if prompt is before or prompt == before else len(prompt))
        if needed > left or not out:
            out.append([])
            left, needed = budget, len(prompt) + len(response)
        out[-1].append(n)
        left, before = left - needed, prompt
    return out


@dataclass(frozen=True)
class Pieces:
    """Where the pieces of a row begin, and the end of the last one, as flash attention wants it."""

    starts: Tensor  # (pieces + 1,) int32
    longest: int

    @staticmethod
    def of(lengths: Sequence[int], device: Any) -> Pieces:
        ends = torch.tensor(lengths, dtype=torch.int32).cumsum(0, dtype=torch.int32)
        return Pieces(pad(ends, (1, 0)).to(device), max(lengths, default=0))


@dataclass(frozen=True)
class Packed:
    """Responses in one row."""

    ids: Tensor  # (1, tokens)
    positions: Tensor  # (1, tokens)
    labels: Tensor  # (1, tokens) the token that each one predicts; -100 in prompts
    prompts: int  # tokens of all prompts, which come first
    own: Pieces  # prompts and responses
    asking: Pieces  # all responses to a prompt, counted from the end of the prompts
    asked: Pieces  # prompts
    lengths: list[int]  # tokens of each response

    def unpacked(self, values: Tensor) -> Tensor:
        """Values (tokens of all responses,) as (responses, longest), with 0 behind the shorter ones."""
        mask = self.mask
        return values.new_zeros(mask.shape).masked_scatter(mask, values)

    @property
    def targets(self) -> Tensor:
        """(tokens of all responses,)"""
        return self.labels[0, self.prompts :]

    @cached_property
    def masks(self) -> list[tuple[slice, slice, Tensor]]:
        """For each prompt: where it is, where its responses are, and whom each of these tokens attends to."""
        out = []
        lengths = torch.tensor(self.lengths)
        edges = [part.starts.tolist() for part in (self.asked, self.asking)]
        ends = lengths.cumsum(0)
        for (first, last), (begin, end) in zip(*(pairwise(each) for each in edges), strict=True):
            here = lengths[(ends > begin) & (ends <= end)]
            pieces = torch.arange(len(here)).repeat_interleave(here)
            number = torch.cat([torch.full((last - first,), -1), pieces]).to(self.ids.device)
            allowed = ((number[None] < 0) | (number[:, None] == number[None])).tril()
            out.append((slice(first, last), slice(self.prompts + begin, self.prompts + end), allowed))
        return out

    @property
    def mask(self) -> Tensor:
        """(responses, longest) True at tokens."""
        lengths = torch.tensor(self.lengths, device=self.ids.device)
        return torch.arange(max(self.lengths), device=self.ids.device)[None] < lengths[:, None]


def pack(rows: Sequence[Row], device: Any) -> Packed:
    """Pack rows; neighbours with the same prompt share it."""
    groups = [(list(prompt), [list(one) for _, one in many]) for prompt, many in groupby(rows, key=lambda row: row[0])]
    ids: list[int] = []
    positions: list[int] = []
    for prompt, _ in groups:
        ids += prompt[:-1]
        positions += range(len(prompt) - 1)
    prompts = len(ids)
    labels = [-100] * prompts
    for prompt, responses in groups:
        for response in responses:
            ids += [prompt[-1], *response[:-1]]
            positions += range(len(prompt) - 1, len(prompt) - 1 + len(response))
            labels += response
    before = [len(prompt) - 1 for prompt, _ in groups]
    lengths = [len(response) for _, responses in groups for response in responses]
    asking = [sum(map(len, responses)) for _, responses in groups]
    return Packed(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        torch.tensor([labels], device=device),
        prompts=prompts,
        own=Pieces.of([*before, *lengths], device),
        asking=Pieces.of(asking, device),
        asked=Pieces.of(before, device),
        lengths=lengths,
    )


def inputs(packed: Packed) -> dict[str, Any]:
    """What the model is called with."""
    none = torch.ones(1, 1, 1, 1, device=packed.ids.device)  # a mask of four dimensions is passed on as it is
    return {
        "input_ids": packed.ids,
        "position_ids": packed.positions,
        "attention_mask": none,
        "use_cache": False,
        "packed": packed,
    }


# --- from the states to log-probabilities


def logprobs(states: Tensor, head: Any, targets: Tensor, temperature: float) -> Tensor:
    """The log-probability (n,) of each of `targets` (n,) after `states` (n, hidden)."""
    if states.is_cuda and type(head) is torch.nn.Linear and head.bias is None:
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else states.dtype
        with torch.autocast("cuda", enabled=False):
            return _Head.apply(states, head.weight, targets, temperature, dtype)
    return token_logprobs(head(states)[None], targets[None], temperature)[0]


class _Head(torch.autograd.Function):
    """Factors in `dtype`, logits in float32, a piece at a time, and once more on the way back."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, temperature: float, dtype: torch.dtype
    ) -> Tensor:
        from .fused import scores

        factor = weight.to(dtype).t()
        parts = [scores(_product(states[n].to(dtype), factor), targets[n], temperature) for n in _pieces(len(states))]
        found, sums = map(torch.cat, zip(*parts, strict=True))
        ctx.save_for_backward(states, weight, targets, sums)
        ctx.temperature, ctx.dtype = temperature, dtype
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None, None]:
        from .fused import slopes

        states, weight, targets, sums = ctx.saved_tensors
        factor = weight.to(ctx.dtype)
        to_states = torch.empty_like(states)
        to_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for n in _pieces(len(states)):
            here = states[n].to(ctx.dtype)
            logits = _product(here, factor.t())
            part = slopes(logits, targets[n], sums[n], grad[n], ctx.temperature, ctx.dtype)
            to_states[n] = part @ factor
            if to_weight is not None:
                to_weight += _product(part.t(), here)
        return to_states, None if to_weight is None else to_weight.to(weight.dtype), None, None, None


def _pieces(count: int) -> list[slice]:
    return [slice(first, first + PIECE) for first in range(0, count, PIECE)]


def _product(a: Tensor, b: Tensor) -> Tensor:
    """In float32, whatever the factors are."""
    if a.is_cuda and a.dtype != torch.float32:
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


# --- attention


def unpackable(config: Any) -> str:
    """Why the update of a model cannot be packed; empty if it can."""
    if config.model_type not in FAMILIES:
        return f"packed passes know models of the kinds {', '.join(FAMILIES)}, not {config.model_type}"
    kinds = set(getattr(config, "layer_types", None) or []) - {"full_attention"}
    return f"packed passes know no layers of the kind {', '.join(sorted(kinds))}" if kinds else ""


def share_prompts(model: Any, temperature: float = 1.0) -> None:
    """Let a model of transformers attend by `attention` and, where it is called with `packed`, return the
    log-probabilities (tokens of all responses,) at a temperature."""
    AttentionInterface.register(SHARED, attention)
    AttentionMaskInterface.register(SHARED, sdpa_mask)
    model.set_attn_implementation(SHARED)
    before = model.forward

    def forward(*args: Any, packed: Packed | None = None, **options: Any) -> Any:
        if packed is None:
            return before(*args, **options)
        states = model.base_model(*args, packed=packed, **options).last_hidden_state[0, packed.prompts :]
        return logprobs(states, model.get_output_embeddings(), packed.targets, temperature)

    model.forward = wraps(before)(forward)  # generation looks at the arguments that it takes
    if torch.cuda.is_available():
        from .fused import fuse

        fuse(model)


def attention(
    module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, packed: Packed | None = None, **options: Any
) -> tuple[Tensor, None]:
    """As transformers asks for it: (1, heads, tokens, d) in, (1, tokens, heads, d) out."""
    if packed is None:
        found: tuple[Tensor, None] = ALL_ATTENTION_FUNCTIONS["sdpa"](module, q, k, v, mask, **options)
        return found
    scale = options.get("scaling") or q.size(-1) ** -0.5
    if not v.is_cuda or v.dtype == torch.float32:  # flash attention wants a GPU and two bytes a number
        return _masked(q.to(v.dtype), k.to(v.dtype), v, scale, packed).transpose(1, 2), None
    rows = [x[0].transpose(0, 1).to(v.dtype) for x in (q, k, v)]  # rotation leaves queries and keys in float32
    return _Merged.apply(*rows, scale, packed)[None], None


def _masked(q: Tensor, k: Tensor, v: Tensor, scale: float, packed: Packed) -> Tensor:
    """Attention by a mask for each prompt."""
    out = torch.empty_like(q)
    times = q.size(1) // k.size(1)
    for prompt, responses, allowed in packed.masks:
        one, two, three = (torch.cat([x[:, :, prompt], x[:, :, responses]], 2) for x in (q, k, v))
        two, three = two.repeat_interleave(times, 1), three.repeat_interleave(times, 1)
        found = scaled_dot_product_attention(one, two, three, attn_mask=allowed, scale=scale)
        size = prompt.stop - prompt.start
        out[:, :, prompt], out[:, :, responses] = found[:, :, :size], found[:, :, size:]
    return out


class _Merged(torch.autograd.Function):
    """Attention of all pieces to themselves, merged with that of responses to their prompts. q: (tokens, heads, d)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, packed: Packed) -> Tensor:
        n = packed.prompts
        out, lse, *states = _flash(q, k, v, packed.own, packed.own, True, scale)
        if n:
            other, other_lse, *more = _flash(q[n:], k[:n], v[:n], packed.asking, packed.asked, False, scale)
            total = torch.logaddexp(lse[:, n:], other_lse)  # (heads, tokens of responses)
            own, rest = ((part - total).exp().T[..., None] for part in (lse[:, n:], other_lse))
            out[n:] = (out[n:] * own + other * rest).to(out.dtype)
            lse = torch.cat([lse[:, :n], total], 1)
            states += more
        ctx.save_for_backward(q, k, v, out, lse, *states)
        ctx.scale, ctx.packed = scale, packed
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, k, v, out, lse, *states = ctx.saved_tensors
        packed, n, grad = ctx.packed, ctx.packed.prompts, grad.contiguous()
        dq, dk, dv = _flash_back(grad, q, k, v, out, lse, packed.own, packed.own, True, states[:2], ctx.scale)
        if n:
            more = _flash_back(
                grad[n:], q[n:], k[:n], v[:n], out[n:], lse[:, n:].contiguous(), packed.asking, packed.asked, False,
                states[2:], ctx.scale,
            )  # fmt: skip
            for whole, part in zip((dq[n:], dk[:n], dv[:n]), more, strict=True):
                whole += part
        return dq, dk, dv, None, None


def _flash(q: Tensor, k: Tensor, v: Tensor, asking: Pieces, asked: Pieces, causal: bool, scale: float) -> Any:
    """Output (tokens, heads, d), log-sum-exp (heads, tokens), and two states that the backward pass wants."""
    return torch.ops.aten._flash_attention_forward(
        q, k, v, asking.starts, asked.starts, asking.longest, asked.longest, 0.0, causal, False, scale=scale
    )[:4]


def _flash_back(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, asking: Pieces, asked: Pieces,
    causal: bool, states: Sequence[Tensor], scale: float,
) -> Any:  # fmt: skip
    return torch.ops.aten._flash_attention_backward(
        grad, q, k, v, out, lse, asking.starts, asked.starts, asking.longest, asked.longest, 0.0, causal, *states,
        scale=scale,
    )  # fmt: skip
