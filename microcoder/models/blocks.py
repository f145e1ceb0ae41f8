"""De-quantise tensors of GGUF files with torch, on a CPU or a GPU, to float32. Imports torch.

A row is a sequence of blocks. Each block has its own scale d and sometimes an offset m, all little-endian:

    Q8_0   d: f16                q: 32 * i8                       value = d * q
    Q4_0   d: f16                q: 32 * u4                       value = d * (q - 8)
    Q4_1   d: f16   m: f16       q: 32 * u4                       value = d * q + m
    Q5_0   d: f16                h: 32 * u1   q: 32 * u4          value = d * (q + 16 h - 16)
    Q5_1   d: f16   m: f16       h: 32 * u1   q: 32 * u4          value = d * (q + 16 h) + m

The u4 of such a block: byte n of 16 holds value n in its low half and value n + 16 in its high half. Bit n of h belongs
to value n.

The K formats have blocks of 256 values, in parts with a scale s and an offset o of their own:

    Q4_K   d, m: f16   s, o: 8 * u6 each   q: 256 * u4                  value = d * s * q - m * o
    Q5_K   d, m: f16   s, o: 8 * u6 each   h: 256 * u1   q: 256 * u4    value = d * s * (q + 16 h) - m * o
    Q6_K   q: 256 * u4   h: 256 * u2   s: 16 * i8   d: f16              value = d * s * (q + 16 h - 32)

Q4_K and Q5_K have 8 parts of 32 values: 32 bytes hold part 2n in their low halves and part 2n + 1 in their high ones.
Bit n of byte i of h belongs to value i of part n. Q6_K has 16 parts of 16 values.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .gguf import Format

Float = torch.float32


def dequantise(rows: Tensor, form: Format) -> Tensor:
    """Return the values of rows of bytes: (rows, bytes) uint8 -> (rows, values) float32."""
    plain = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    if form.name in plain:
        return rows.view(plain[form.name]).to(Float)
    blocks = rows.reshape(-1, form.size)  # (blocks, bytes)
    return _DECODERS[form.name](blocks).reshape(len(rows), -1)


def _half(blocks: Tensor, at: int) -> Tensor:
    return blocks[:, at : at + 2].view(torch.float16).to(Float)  # (blocks, 1)


def _nibbles(q: Tensor) -> Tensor:
    return torch.cat([q & 15, q >> 4], -1)


def _bits(h: Tensor) -> Tensor:
    """The bits of each byte, lowest first, as 0 or 16: (..., bytes) -> (..., bytes * 8)."""
    return (((h[..., None] >> torch.arange(8, device=h.device, dtype=torch.uint8)) & 1) << 4).flatten(-2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * blocks[:, 2:].view(torch.int8)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).to(Float) - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]) + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    q = _nibbles(blocks[:, 6:]) | _bits(blocks[:, 2:6])
    return _half(blocks, 0) * (q.to(Float) - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    q = _nibbles(blocks[:, 8:]) | _bits(blocks[:, 4:8])
    return _half(blocks, 0) * q + _half(blocks, 2)


def _parts(blocks: Tensor, q: Tensor) -> Tensor:
    """d * s * q - m * o of Q4_K and Q5_K; q: (blocks, 8, 32)."""
    low, middle, high = blocks[:, 4:16].split(4, 1)  # 6 bits of s and o for parts 0 to 3; the rest is in pieces
    s = torch.cat([low & 63, (high & 15) | (low >> 6 << 4)], 1)  # (blocks, 8)
    o = torch.cat([middle & 63, (high >> 4) | (middle >> 6 << 4)], 1)
    return (_half(blocks, 0) * s)[..., None] * q - (_half(blocks, 2) * o)[..., None]


def _q4_k(blocks: Tensor) -> Tensor:
    q = _nibbles(blocks[:, 16:].view(-1, 4, 32))  # (blocks, 4, 64)
    return _parts(blocks, q.view(-1, 8, 32))


def _q5_k(blocks: Tensor) -> Tensor:
    part = torch.arange(8, device=blocks.device, dtype=torch.uint8)[:, None]
    h = ((blocks[:, None, 16:48] >> part) & 1) << 4  # (blocks, 8, 32)
    q = _nibbles(blocks[:, 48:].view(-1, 4, 32)).view(-1, 8, 32)
    return _parts(blocks, q | h)


def _q6_k(blocks: Tensor) -> Tensor:
    q = _nibbles(blocks[:, :128].view(-1, 2, 64)).view(-1, 2, 4, 32)
    shift = torch.arange(0, 8, 2, device=blocks.device, dtype=torch.uint8)[:, None]
    h = ((blocks[:, 128:192].view(-1, 2, 1, 32) >> shift) & 3) << 4  # (blocks, 2, 4, 32)
    s = _half(blocks, 208) * blocks[:, 192:208].view(torch.int8)  # (blocks, 16)
    return s[..., None] * ((q | h).view(-1, 16, 16).to(Float) - 32)


_DECODERS = {
    "Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q4_K": _q4_k, "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}  # fmt: skip
