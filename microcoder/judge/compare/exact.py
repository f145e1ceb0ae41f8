"""Policy `exact`: LiveCodeBench's rule, for results that must compare with published ones.

Text: strip the whole, split at newlines, strip each line; as many lines; each equal as text, or both made of tokens
that Decimal reads, with equal lists of Decimals. Values: `==`, after a tuple at the top (only there) became a list,
since JSON expects no tuple; where an assertion does, it is left alone.
Of a problem's own rules (tolerance, lines, unordered) it knows none.
We differ in one way: a numpy array or an object that has no plain value is a wrong answer wherever it stands. Theirs
fails on most arrays too (their truth value is an error), but asks an object's own `__eq__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from .match import Match, differ, shorten
from .structures import walk

_BLOCK = 1 << 16


def exact_text(got: bytes, expected: bytes) -> Match:
    if got == expected:
        return Match("bytes", "")
    g, e = _stripped(got), _stripped(expected)
    counts = g.count("\n") + 1, e.count("\n") + 1
    if counts[0] != counts[1]:
        return differ(f"{counts[0]} lines, expected {counts[1]}")
    strategy = "exact_lines"
    if g != e:
        for number, (a, b) in enumerate(zip(_lines(g), _lines(e), strict=True), start=1):
            if a != b and (a := a.strip()) != (b := b.strip()):
                if not _same_decimals(a, b):
                    return differ(f"line {number}: got {_shorten(a)}, expected {_shorten(b)}")
                strategy = "exact_decimals"
    return Match(strategy, "")


def exact_value(got: Any, expected: Any) -> Match:
    if type(got) is tuple and type(expected) is not tuple:
        found = walk(list(got), expected, frozenset({"equal"}), 0.0)
        return Match("sequence", "") if found.strategy else found
    return walk(got, expected, frozenset({"equal"}), 0.0)


def _stripped(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").strip()


def _lines(text: str) -> Iterator[str]:
    """The lines, split block by block: 16 MB of them at once take more than a gigabyte."""
    start = 0
    while (end := text.find("\n", start + _BLOCK)) >= 0:
        yield from text[start:end].split("\n")
        start = end + 1
    yield from text[start:].split("\n")


def _same_decimals(got: str, expected: str) -> bool:
    try:
        return [Decimal(token) for token in got.split()] == [Decimal(token) for token in expected.split()]
    except (ArithmeticError, ValueError):  # not a number, or a signalling nan in the comparison
        return False


def _shorten(text: str) -> str:
    return shorten(text.encode("utf-8", "surrogateescape"))
