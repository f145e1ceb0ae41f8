"""Policies `exact` (LiveCodeBench's rule) and `evalplus`, for results that must compare with published ones.

Text: strip the whole, split at newlines, strip each line; as many lines; each equal as text, or both made of tokens
that Decimal reads, with equal lists of Decimals. Values: `==`, after a tuple at the top (only there) became a list,
since JSON expects no tuple; where an assertion does, it is left alone.
Of a problem's own rules (tolerance, lines, unordered) it knows none.
We differ in one way: a numpy array or an object that has no plain value is a wrong answer wherever it stands. Theirs
fails on most arrays too (their truth value is an error), but asks an object's own `__eq__`.

`evalplus`: `==`, so that a tuple is no list. Where that fails, numbers may be off by the problem's tolerance and 1e-7
of the expected one, if both values are of one type; a float, or a flat list of floats, has a tolerance of 1e-6 at
least.
We differ from EvalPlus in two ways: numbers are looked for in dicts and beside texts too, where numpy's allclose gives
up; and that a float was expected in one test changes nothing in the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from .match import Match, differ, shorten
from .structures import walk

_BLOCK = 1 << 16
FLOATS, RELATIVE = 1e-6, 1e-7  # EvalPlus's tolerances of floats


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


def evalplus_value(got: Any, expected: Any, tolerance: float) -> Match:
    found = walk(got, expected, frozenset({"equal"}), 0.0)
    if not tolerance and _is_floats(expected):
        tolerance = FLOATS
    if found.strategy or not tolerance or type(got) is not type(expected) or not _near(got, expected, tolerance):
        return found
    return Match("numbers", "")


def _is_floats(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return bool(items) and all(isinstance(item, float) for item in items)


def _near(got: Any, expected: Any, tolerance: float) -> bool:
    """Whether all numbers are near to the expected ones, and everything else is equal."""
    stack = [(got, expected)]
    while stack:
        g, e = stack.pop()
        if isinstance(g, (list, tuple)) and isinstance(e, (list, tuple)):
            if len(g) != len(e):
                return False
            stack += zip(g, e, strict=True)
        elif isinstance(g, dict) and isinstance(e, dict):
            if g.keys() != e.keys():
                return False
            stack += ((g[name], e[name]) for name in e)
        elif not walk(g, e, frozenset({"equal"}), 0.0).strategy and not _near_number(g, e, tolerance):
            return False
    return True


def _near_number(got: Any, expected: Any, tolerance: float) -> bool:
    if not isinstance(got, (int, float, complex)) or not isinstance(expected, (int, float, complex)):
        return False
    try:
        gap = abs(got - expected)
        return math.isfinite(gap) and gap <= tolerance + RELATIVE * abs(expected)
    except OverflowError:
        return False


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
