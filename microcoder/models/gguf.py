"""Read a GGUF file: its metadata, and where each tensor is and how it is stored. Needs the standard library only.

The file is a header (metadata, then the tensors' names, shapes, formats and places) and the bytes of the tensors. A
large model may be split into files that end in -00001-of-00003.gguf; the first is the one to name.

A GGUF file is converted once into a folder of the cache that transformers loads (`convert.py`). The folder's name
depends on the file's path, size and time of change, so a file that was replaced is converted again.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .source import ModelError, Progress, cache, make_once

CONVERTER = 1  # add one when `convert` writes something else
PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
AGAIN = "download it again, and compare its size with the published one"


class Format(NamedTuple):
    """A tensor format. A row is a sequence of blocks of the same size."""

    name: str
    values: int  # in a block
    size: int  # of a block, in bytes
    error: float  # the most that it changes a tensor of weights, relative to its norm


FORMATS = {  # by the number that stands for the format in a file
    0: Format("F32", 1, 4, 0.0),
    1: Format("F16", 1, 2, 0.001),
    30: Format("BF16", 1, 2, 0.003),
    8: Format("Q8_0", 32, 34, 0.02),
    14: Format("Q6_K", 256, 210, 0.05),
    7: Format("Q5_1", 32, 24, 0.1),
    13: Format("Q5_K", 256, 176, 0.1),
    6: Format("Q5_0", 32, 22, 0.1),
    3: Format("Q4_1", 32, 20, 0.2),
    12: Format("Q4_K", 256, 144, 0.2),
    2: Format("Q4_0", 32, 18, 0.2),
}
OTHERS = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


@dataclass(frozen=True)
class GgufTensor:
    """A tensor as a file holds it."""

    shape: tuple[int, ...]  # row-major, as in torch
    format: Format
    file: mmap.mmap
    start: int  # of its bytes in the file

    @property
    def size(self) -> int:
        return math.prod(self.shape) // self.format.values * self.format.size


class Gguf(NamedTuple):
    """A GGUF file that was read."""

    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]


def fetch(path: Path, progress: Progress) -> Path:
    """Return the folder of the converted file; convert it if that was not done yet."""
    folder = converted(path)
    if not folder.is_dir():
        from .convert import convert  # loads torch

        make_once(folder, lambda part: convert(path, part, progress), progress)
    return folder


def converted(path: Path) -> Path:
    """Return the folder of the cache that is or will be made of this file."""
    found = [(str(part), part.stat().st_size, part.stat().st_mtime_ns) for part in parts(path)]
    key = hashlib.sha256(repr((CONVERTER, found)).encode()).hexdigest()[:16]
    return cache() / "gguf" / f"{path.stem}-{key}"


def parts(path: Path) -> list[Path]:
    """Return the files of a model: this one, or all parts if it is the first of several."""
    if not (match := PART.fullmatch(path.name)):
        return [path]
    stem, number, count = match[1], int(match[2]), int(match[3])
    found = [path.with_name(f"{stem}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]
    if number != 1:
        raise ModelError(f"{path} is part {number} of {count}; name the first: {found[0]}")
    if missing := [part.name for part in found if not part.is_file()]:
        raise ModelError(f"{path} is part 1 of {count}; bring the others into {path.parent}: {', '.join(missing)}")
    return found


def read(path: Path) -> Gguf:
    """Read the header of a GGUF file, and check that the file holds every tensor in a format that is supported."""
    metadata: dict[str, Any] = {}
    tensors: dict[str, GgufTensor] = {}
    files = parts(path)
    for part in files:
        found = _read(part)
        metadata = {**found.metadata, **metadata}  # the first part's come first
        tensors |= found.tensors
    count = metadata.get("split.count", 1)
    if count > 1 and count != len(files):
        raise ModelError(f"{path} is one of {count} parts; give them their names again: NAME-00001-of-{count:05}.gguf")
    return Gguf(metadata, tensors)


def _read(path: Path) -> Gguf:
    try:
        file = path.open("rb")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    with file:
        start = file.read(8)
        if start[:4] != b"GGUF" or len(start) < 8:
            raise ModelError(
                f"{path} is no GGUF file: it begins with {start!r}; name a .gguf file, or the folder that the weights "
                f"are in: {path.parent}"
            )
        little, big = struct.unpack("<I", start[4:])[0], struct.unpack(">I", start[4:])[0]
        if little not in (2, 3):
            kind = "big-endian" if big in (2, 3) else f"of version {little}"
            raise ModelError(f"{path} is {kind}; only little-endian GGUF files of version 2 and 3 are supported")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # torch warns of a buffer that cannot be written
    try:
        cursor = _Cursor(data, 8)
        tensors, keys = cursor.take("QQ")
        metadata = {}
        for _ in range(keys):
            key = cursor.string()
            metadata[key] = cursor.value(*cursor.take("I"))
        infos = [(cursor.string(), cursor.take(f"{cursor.take('I')[0]}QIQ")) for _ in range(tensors)]
    except (struct.error, KeyError, UnicodeDecodeError, MemoryError, RecursionError):
        raise ModelError(f"the header of {path} is cut off or damaged; {AGAIN}") from None
    alignment = max(8, metadata.get("general.alignment", 32))
    body = -(-cursor.at // alignment) * alignment
    stored = {}
    for name, (*shape, kind, offset) in infos:
        form = FORMATS.get(kind)
        if not form:
            raise ModelError(
                f"the tensor {name} of {path} is stored as {OTHERS.get(kind, f'format {kind}')}; supported are "
                f"{', '.join(f.name for f in FORMATS.values())}: take a file such as Q4_K_M, Q8_0 or F16"
            )
        tensor = GgufTensor(tuple(shape[::-1]), form, data, body + offset)  # GGUF names the innermost dimension first
        if tensor.start + tensor.size > len(data):
            missing = tensor.start + tensor.size - len(data)
            raise ModelError(f"{path} is cut off: {missing:,} bytes of the tensor {name} are missing; {AGAIN}")
        if offset % 8 or not shape or shape[0] % form.values:
            raise ModelError(f"the tensor {name} of {path} has a wrong place or shape; {AGAIN}")
        stored[name] = tensor
    return Gguf(metadata, stored)


class _Cursor:
    """A position in the file that advances as values are read."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data, self.at = data, at

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
