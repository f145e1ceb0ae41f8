"""Lines or elements in any order, where the problem declares it: multisets, exact in linear time.

The expected side is counted and the other side only looked up in it: a program under test fills no table with values
whose hashes it chose. Where floats need tolerance, each element is paired with the first that is close, for at most
200 elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from .keys import key
from .numbers import canonical, is_approximate
from .structures import walk

_FEW = 200
_SPELLED = 2_000_000  # bytes of lines that are brought into one spelling
_MUCH = 50_000_000  # bytes to look at, if every line is compared with every other
T = TypeVar("T")


class _LineRule(Protocol):
    def stream(self, got: bytes, expected: bytes) -> Any: ...


def same_lines(got: bytes, expected: bytes, tokens: _LineRule) -> bool:
    """The same lines in any order: each equal token by token, blank lines left out."""
    g, e = _lines(got), _lines(expected)
    if len(g) != len(e):
        return False
    counts = Counter(g), Counter(e)
    g, e = (list((counts[i] - counts[1 - i]).elements()) for i in (0, 1))  # lines without a partner to the letter
    if any(sum(map(len, lines)) > _SPELLED for lines in (g, e)):
        return False
    if _same_bag(*([(_line_key(line), 1) for line in lines] for lines in (g, e))):
        return True
    if len(e) > _FEW or len(e) * len(expected) > _MUCH or not any(map(is_approximate, expected.split())):
        return False
    return _pair_off(g, e, lambda a, b: bool(tokens.stream(a, b).strategy))


def same_elements(got: Any, expected: Any, allowed: frozenset[str], tolerance: float, from_json: bool) -> bool:
    """The same elements in any order at the top level; below it the usual rules apply."""
    collections = (list, tuple, set, frozenset)
    if not isinstance(got, collections) or not isinstance(expected, collections) or len(got) != len(expected):
        return False
    kinds = set(map(type, got)) | set(map(type, expected))
    if kinds in ({int}, {str}):
        return sorted(got) == sorted(expected)  # the usual case, quickly
    if _same_bag(*(((key(item, from_json=from_json), 1) for item in side) for side in (got, expected))):
        return True
    if len(expected) > _FEW or not _has_float(expected):
        return False
    return _pair_off(list(got), list(expected), lambda a, b: bool(walk(a, b, allowed, tolerance).strategy))


def same_counts(got: list[bytes], expected: list[bytes]) -> bool:
    """The same tokens or lines, byte for byte, in any order. (Counter's own == is a loop in Python.)"""
    return len(got) == len(expected) and dict.__eq__(Counter(got), Counter(expected))


def _lines(text: bytes) -> list[bytes]:
    while b"\n\n" in text:  # 16 MB of blank lines must not become 16 million elements
        text = text.replace(b"\n\n", b"\n")
    return [line for line in text.split(b"\n") if line and not line.isspace()]


def _line_key(line: bytes) -> tuple[object, ...]:
    return tuple(canonical(token) or token for token in line.split())


def _same_bag(got: Iterable[tuple[T, int]], expected: Iterable[tuple[T, int]]) -> bool:
    """Whether two collections of the same length hold the same things; each comes with how often it is there."""
    left: dict[T, int] = {}
    for item, times in expected:
        left[item] = left.get(item, 0) + times
    for item, times in got:
        if left.get(item, 0) < times:
            return False
        left[item] -= times
    return True


def _pair_off(got: list[T], expected: list[T], same: Callable[[T, T], bool]) -> bool:
    for item in got:
        index = next((i for i, other in enumerate(expected) if same(item, other)), None)
        if index is None:
            return False
        del expected[index]
    return True


def _has_float(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (float, complex)):
            return True
        if isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack += item
    return False
