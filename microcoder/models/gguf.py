"""Reads a GGUF file: its metadata, and its tensors as float32.

Only what the model we fetch needs: version 3, little-endian, and the block formats F32, F16, Q8_0 and Q4_1.
A quantised row is a sequence of blocks of 32 values, and each block carries its own scale:

    Q8_0    d: f16            q: 32 * i8           value = d * q
    Q4_1    d: f16  m: f16    q: 32 * u4           value = d * q + m

Byte n of a Q4_1 block's 16 holds value n in its low half and value n + 16 in its high half.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 32  # values in a quantised block
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
ITEMS: dict[int, tuple[int, Any]] = {  # tensor type: (values in an item, its layout)
    F32: (1, "<f4"),
    F16: (1, "<f2"),
    Q4_1: (BLOCK, [("d", "<f2"), ("m", "<f2"), ("q", "u1", BLOCK // 2)]),
    Q8_0: (BLOCK, [("d", "<f2"), ("q", "i1", BLOCK)]),
}


def read(data: bytes) -> tuple[dict[str, Any], Iterator[tuple[str, NDArray[np.float32]]]]:
    """(metadata, (name, values) of each tensor one by one, in row-major order as numpy and torch have it)."""
    cursor = _Cursor(data)
    magic, version, tensors, keys = cursor.take("4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"not a GGUF file of version 3: it begins with {data[:8]!r}")
    metadata = {}
    for _ in range(keys):
        key = cursor.string()
        metadata[key] = cursor.value(*cursor.take("I"))
    infos = []
    for _ in range(tensors):
        name, (rank,) = cursor.string(), cursor.take("I")
        *shape, kind, offset = cursor.take(f"{rank}QIQ")
        infos.append((name, shape[::-1], kind, offset))  # GGUF names the innermost dimension first
    alignment = metadata.get("general.alignment", 32)
    start = -(-cursor.at // alignment) * alignment
    return metadata, ((name, _values(data, start + at, shape, kind, name)) for name, shape, kind, at in infos)


class _Cursor:
    """A position in the file that moves on as values are taken."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def string(self) -> str:
        (length,) = self.take("Q")
        (text,) = self.take(f"{length}s")
        return str(text, "utf-8")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, length = self.take("IQ")
            if kind in SCALARS:
                return list(self.take(f"{length}{SCALARS[kind]}"))
            return [self.value(kind) for _ in range(length)]
        return self.take(SCALARS[kind])[0]


def _values(data: bytes, start: int, shape: list[int], kind: int, name: str) -> NDArray[np.float32]:
    if kind not in ITEMS:
        raise ValueError(f"tensor {name} is of GGUF type {kind}; only F32 (0), F16 (1), Q4_1 (3) and Q8_0 (8) are read")
    per_item, layout = ITEMS[kind]
    items = np.frombuffer(data, np.dtype(layout), count=math.prod(shape) // per_item, offset=start)  # (items,)
    if kind in (F32, F16):
        return items.astype(np.float32).reshape(shape)
    d = items["d"].astype(np.float32)[:, None]  # (items, 1)
    if kind == Q8_0:
        return (d * items["q"]).reshape(shape)
    q = np.concatenate([items["q"] & 15, items["q"] >> 4], axis=1)  # (items, 32)
    return (d * q + items["m"].astype(np.float32)[:, None]).reshape(shape)
