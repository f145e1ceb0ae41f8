"""The default validator of ICPC-style problem packages, which its flags configure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .match import Match, differ, shorten

KNOWN = (
    "case_sensitive",
    "space_change_sensitive",
    "float_tolerance E",
    "float_absolute_tolerance E",
    "float_relative_tolerance E",
)
# Unlike elsewhere leading zeros are allowed: this validator asks only whether a token reads as a float.
_FLOAT = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_PIECES = re.compile(rb"\s+|\S+")
_TOKEN_END = re.compile(rb"(?<=\S)\s")
_BLOCK = 1 << 16


@dataclass(slots=True)
class Flags:
    case_sensitive: bool = False
    space_change_sensitive: bool = False
    absolute: float | None = None
    relative: float | None = None


def parse_flags(text: str) -> Flags:
    flags, words = Flags(), iter(text.split())
    for word in words:
        if word in ("case_sensitive", "space_change_sensitive"):
            setattr(flags, word, True)
        elif word in ("float_tolerance", "float_absolute_tolerance", "float_relative_tolerance"):
            tolerance = _tolerance(word, next(words, None))
            if word != "float_relative_tolerance":
                flags.absolute = tolerance
            if word != "float_absolute_tolerance":
                flags.relative = tolerance
        else:
            raise ValueError(f"validator_flags: {word!r} is not a flag; known are {', '.join(KNOWN)}")
    return flags


def validate(got: bytes, expected: bytes, flags_text: str) -> Match:
    flags = parse_flags(flags_text)
    if got == expected:
        return Match("icpc", "")
    split = _PIECES.findall if flags.space_change_sensitive else bytes.split
    start = _alike(got, expected)
    for a, b in itertools.zip_longest(_pieces(got, start, split), _pieces(expected, start, split)):
        if a is None:
            return differ(f"the output ends where {shorten(b)} is expected")
        if b is None:
            return differ(f"extra output: {shorten(a)}")
        if a != b and not _same(a, b, flags):
            return differ(f"got {shorten(a)}, expected {shorten(b)}")
    return Match("icpc", "")


def _alike(got: bytes, expected: bytes) -> int:
    """Return a position up to which both texts are equal and where a token ends in both."""
    low, high = 0, min(len(got), len(expected))
    while low < high:  # slices are compared faster than anything else
        middle = (low + high + 1) // 2
        low, high = (middle, high) if got[low:middle] == expected[low:middle] else (low, middle - 1)
    space = max(got.rfind(one, 0, low) for one in (b" ", b"\n", b"\t", b"\r", b"\v", b"\f"))
    return len(got[: space + 1].rstrip())


def _pieces(text: bytes, start: int, split: Callable[[bytes], list[bytes]]) -> Iterator[bytes]:
    """Yield the tokens from `start` on, lazily: outputs can be 16 MB."""
    while start < len(text):
        cut = _TOKEN_END.search(text, start + _BLOCK)
        end = cut.start() if cut else len(text)
        yield from split(text[start:end])
        start = end


def _same(got: bytes, expected: bytes, flags: Flags) -> bool:
    if (flags.absolute is not None or flags.relative is not None) and _FLOAT.fullmatch(expected):
        want = float(expected)
        if math.isfinite(want):
            if not _FLOAT.fullmatch(got):
                return False
            gap = abs(float(got) - want)
            return (flags.absolute is not None and gap <= flags.absolute) or (
                flags.relative is not None and gap <= flags.relative * abs(want)
            )
    return not flags.case_sensitive and got.lower() == expected.lower()


def _tolerance(flag: str, text: str | None) -> float:
    try:
        tolerance = float(text or "")
    except ValueError:
        tolerance = math.nan
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"validator_flags: {flag} needs a number such as 1e-6, not {text!r}")
    return tolerance
