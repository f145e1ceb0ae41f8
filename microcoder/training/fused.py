"""Norms, rotation, gate and head of an update in one kernel each, forward and backward, in Triton.

Between the matrix products of a layer, transformers makes some fifty passes over memory under autocast, which take as
long as the products. Here each function reads what it needs once, computes in float32 and rounds once, to the type
that the next product wants, as the sampler's kernels do (`sampling/kernels.py`).

`fuse(model)` changes what a model does under autocast on a GPU; anywhere else it does what it did.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from transformers.activations import ACT2FN

from ..sampling.kernels import rms_norm

ROWS = 32  # of a norm, whose gradients of the weight one program adds up


def fuse(model: Any) -> None:
    """Fuse what is known in a model of the kind of Llama: RMS norms, rotation, silu(gate) * up."""
    for module in model.modules():
        children = dict(module.named_children())
        if hasattr(module, "variance_epsilon") and hasattr(module, "weight"):
            _under_autocast(module, _norm(module))
        elif {"gate_proj", "up_proj", "down_proj"} <= children.keys() and _silu(children.get("act_fn")):
            _under_autocast(module, _mlp(module))
        elif {"q_proj", "k_proj", "v_proj"} <= children.keys():
            place = sys.modules[type(module).__module__]
            before = getattr(place, "apply_rotary_pos_emb", None)
            if before is not None and not hasattr(before, "fused"):
                place.apply_rotary_pos_emb = _rotation(before)  # type: ignore[attr-defined]


def active(x: Tensor) -> bool:
    return x.is_cuda and torch.is_autocast_enabled("cuda")


def _silu(function: Any) -> bool:
    return isinstance(function, nn.SiLU | type(ACT2FN["silu"]))


def _under_autocast(module: Any, fused: Any) -> None:
    before = module.forward
    module.forward = lambda x: fused(x) if active(x) else before(x)


def _norm(module: Any) -> Any:
    return lambda x: norm(x, module.weight, module.variance_epsilon, torch.get_autocast_dtype("cuda"))


def _mlp(module: Any) -> Any:
    return lambda x: module.down_proj(gated(module.gate_proj(x), module.up_proj(x)))


def _rotation(before: Any) -> Any:
    def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        width = q.shape[-1]
        if not active(q) or args or options or len(q) > 1 or len(cos) > 1 or width & (width - 1):
            found: tuple[Tensor, Tensor] = before(q, k, cos, sin, *args, **options)
            return found
        return rotate(q, cos, sin), rotate(k, cos, sin)

    rotated.fused = True  # type: ignore[attr-defined]
    return rotated


# --- the functions


def norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    """x / rms(x) * weight over the last dimension, in `dtype`."""
    found: Tensor = _Norm.apply(x, weight, eps, dtype)
    return found


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up"""
    found: Tensor = _Gated.apply(gate, up)
    return found


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions. x (1, heads, t, head_dim), cos and sin (1, t, head_dim)"""
    found: Tensor = _Rotate.apply(x, cos, sin)
    return found


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        ctx.save_for_backward(rows, weight)
        ctx.eps, ctx.shape = eps, x.shape
        return rms_norm(rows, weight, eps, dtype).view(x.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        rows, weight = ctx.saved_tensors
        count, width = rows.shape
        slopes = grad.reshape(rows.shape).contiguous()
        to_rows = torch.empty_like(rows)
        parts = torch.empty(triton.cdiv(count, ROWS), width, device=rows.device)
        _norm_backward[(len(parts),)](
            rows, weight, slopes, to_rows, parts, count, width, ctx.eps,
            ROWS=ROWS, BLOCK=triton.next_power_of_2(width), num_warps=1 if width <= 256 else 4 if width <= 2048 else 8,
        )  # fmt: skip
        to_weight = parts.sum(0).to(weight.dtype) if ctx.needs_input_grad[1] else None
        return to_rows.view(ctx.shape), to_weight, None, None


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        gate, up = gate.contiguous(), up.contiguous()
        out = torch.empty_like(gate)
        _gated_forward[(triton.cdiv(gate.numel(), 2048),)](gate, up, out, gate.numel(), BLOCK=2048, num_warps=8)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        to_gate, to_up = torch.empty_like(gate), torch.empty_like(up)
        _gated_backward[(triton.cdiv(gate.numel(), 2048),)](
            gate, up, grad.contiguous(), to_gate, to_up, gate.numel(), BLOCK=2048, num_warps=8
        )
        return to_gate, to_up


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turned(grad, cos, sin, -1.0), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, way: float) -> Tensor:
    one, heads, t, width = x.shape
    if one != 1 or cos.shape != (1, t, width) or x.stride(3) != 1:
        raise ValueError(f"rotation takes (1, heads, t, head_dim) and angles (1, t, head_dim), not {tuple(x.shape)}")
    cos, sin = cos.contiguous(), sin.contiguous()
    out = torch.empty(1, t, heads, width, dtype=x.dtype, device=x.device).transpose(1, 2)
    _rotated[(t,)](
        x, out, cos, sin, x.stride(1), x.stride(2), out.stride(1), out.stride(2), heads, way,
        HEADS=triton.next_power_of_2(heads), HALF=width // 2, num_warps=4 if heads * width > 2048 else 1,
    )  # fmt: skip
    return out


def scores(logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities (n,) of `targets` (n,) under softmax(logits (n, words) / temperature), and the log-sum-exps."""
    count, words = logits.shape
    found, sums = torch.empty(2, count, device=logits.device)
    _scores[(count,)](logits, targets, found, sums, words, 1 / temperature, LANES=4096, num_warps=8)
    return found, sums


def slopes(
    logits: Tensor, targets: Tensor, sums: Tensor, grad: Tensor, temperature: float, dtype: torch.dtype
) -> Tensor:
    """The gradient (n, words) that `scores` sends back to the logits."""
    out = torch.empty(logits.shape, dtype=dtype, device=logits.device)
    _slopes[(len(logits), triton.cdiv(logits.shape[1], 4096))](
        logits, targets, sums, grad, out, logits.shape[1], 1 / temperature, LANES=4096, num_warps=8
    )
    return out


# --- the kernels


@triton.jit
def _scores(logits, targets, found, sums, words, scale, LANES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    highest = tl.full((LANES,), -1.0e30, tl.float32)
    total = tl.zeros((LANES,), tl.float32)
    for start in range(0, words, LANES):
        at = start + lane
        x = tl.load(logits + row * words + at, at < words, other=-1.0e30) * scale
        now = tl.maximum(highest, x)
        total = total * tl.exp(highest - now) + tl.where(at < words, tl.exp(x - now), 0.0)
        highest = now
    top = tl.max(highest)
    mass = tl.log(tl.sum(total * tl.exp(highest - top))) + top
    target = tl.load(targets + row)
    tl.store(found + row, tl.load(logits + row * words + target) * scale - mass)
    tl.store(sums + row, mass)


@triton.jit
def _slopes(logits, targets, sums, grad, out, words, scale, LANES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = at < words
    x = tl.load(logits + row * words + at, inside, other=0.0) * scale
    share = tl.exp(x - tl.load(sums + row))
    there = tl.where(at == tl.load(targets + row), 1.0, 0.0)
    tl.store(out + row * words + at, (there - share) * tl.load(grad + row) * scale, inside)


@triton.jit(do_not_specialize=["count"])
def _norm_backward(
    x, weight, slopes, to_x, to_weight, count, width, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0).to(tl.int64) * ROWS
    at = tl.arange(0, BLOCK)
    inside = at < width
    w = tl.load(weight + at, inside, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(first, tl.minimum(first + ROWS, count)):
        value = tl.load(x + row * width + at, inside, other=0.0).to(tl.float32)
        slope = tl.load(slopes + row * width + at, inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value) / width + eps)
        normed = value * scale
        total += slope * normed
        slope = slope * w
        tl.store(to_x + row * width + at, (slope - normed * (tl.sum(slope * normed) / width)) * scale, inside)
    tl.store(to_weight + tl.program_id(0).to(tl.int64) * width + at, total, inside)


@triton.jit
def _gated_forward(gate, up, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    a = tl.load(gate + at, inside, other=0.0).to(tl.float32)
    b = tl.load(up + at, inside, other=0.0).to(tl.float32)
    tl.store(out + at, a / (1.0 + tl.exp(-a)) * b, inside)


@triton.jit
def _gated_backward(gate, up, slopes, to_gate, to_up, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    a = tl.load(gate + at, inside, other=0.0).to(tl.float32)
    b = tl.load(up + at, inside, other=0.0).to(tl.float32)
    slope = tl.load(slopes + at, inside, other=0.0).to(tl.float32)
    share = 1.0 / (1.0 + tl.exp(-a))
    tl.store(to_up + at, slope * a * share, inside)
    tl.store(to_gate + at, slope * b * share * (1.0 + a * (1.0 - share)), inside)


@triton.jit(do_not_specialize=["heads"])
def _rotated(
    x, out, cos, sin, x_h, x_t, out_h, out_t, heads, way, HEADS: tl.constexpr, HALF: tl.constexpr
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64)
    head, at = tl.arange(0, HEADS)[:, None], tl.arange(0, HALF)[None, :]
    inside = (head < heads) & (at < HALF)
    angles = place * (2 * HALF) + at
    c1, c2 = tl.load(cos + angles).to(tl.float32), tl.load(cos + HALF + angles).to(tl.float32)
    s1, s2 = tl.load(sin + angles).to(tl.float32) * way, tl.load(sin + HALF + angles).to(tl.float32) * way
    a = tl.load(x + place * x_t + head * x_h + at, inside, other=0.0).to(tl.float32)
    b = tl.load(x + place * x_t + head * x_h + HALF + at, inside, other=0.0).to(tl.float32)
    tl.store(out + place * out_t + head * out_h + at, a * c1 - b * s1, inside)
    tl.store(out + place * out_t + head * out_h + HALF + at, b * c2 + a * s2, inside)
