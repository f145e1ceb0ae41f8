"""Policy `robust` for values: equality, list for tuple, numpy arrays, JSON's dict keys, floats within tolerance.

Equality is Python's: a Decimal is exact, two OrderedDicts have an order, a view of keys is a set.

`walk` keeps its own stack, so nesting cannot exhaust Python's, and compares flat lists in one step. It never calls
`==` on a container that could hold nan, an Array or an Opaque: Python's identity shortcut would call nan equal to
itself, and an Array is a list.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import KeysView
from itertools import chain
from pathlib import PosixPath, PurePosixPath
from typing import Any

from ..sandbox.values import Array, Member, Named
from .keys import DATES, json_spelling, key
from .match import Match, ascii_only, differ, show, weakest
from .numbers import NUMBERS, close, equal

ROBUST = frozenset({"equal", "sequence", "array", "numbers"})
_PLAIN = frozenset({int, bool, str, bytes, type(None)})
_SIMPLE = _PLAIN | {float}
_EQUAL = _PLAIN | {*DATES, PosixPath, PurePosixPath, Member}
_SETS = (set, frozenset, KeysView)
_SEQUENCES = (list, tuple, deque, range)
_CONTAINERS = (*_SEQUENCES, dict, *_SETS)


def walk(
    got: Any,
    expected: Any,
    allowed: frozenset[str],
    tolerance: float,
    *,
    strict_bool: bool = False,
) -> Match:
    """Compare two values with the strategies in `allowed`; the match names the most lenient one that was needed."""
    return _Walk(allowed, tolerance, strict_bool).compare(got, expected)


class _Different(Exception):
    pass


class _Walk:
    def __init__(self, allowed: frozenset[str], tolerance: float, strict_bool: bool) -> None:
        self.allowed, self.tolerance, self.strict_bool = allowed, tolerance, strict_bool
        self.needed = {"equal"}
        self.stack: list[tuple[Any, Any, Any]] = []  # got, expected, and the path as (parent's path, key)

    def compare(self, got: Any, expected: Any) -> Match:
        path: Any = None
        self.stack = [(got, expected, None)]
        try:
            while self.stack:
                got, expected, path = self.stack.pop()
                if isinstance(got, KeysView) and isinstance(expected, (list, tuple)):
                    got = tuple(got)
                if isinstance(expected, _SEQUENCES) and isinstance(got, _SEQUENCES):
                    self._sequence(got, expected, path)
                elif isinstance(expected, dict) and isinstance(got, dict):
                    self._dict(got, expected, path)
                elif isinstance(expected, _SETS) and isinstance(got, _SETS):
                    self._set(got, expected, path)
                else:
                    self._leaf(got, expected, path)
        except _Different as error:
            return differ(str(error))
        return Match(weakest(self.needed), "")

    def _need(self, strategy: str, path: Any, message: str) -> None:
        if strategy not in self.allowed:
            raise _Different(_at(path) + message)
        self.needed.add(strategy)

    def _sequence(self, got: Any, expected: Any, path: Any) -> None:
        kinds = [tuple if isinstance(side, Named) else type(side) for side in (got, expected)]
        if kinds[0] is not kinds[1]:
            strategy = "array" if Array in kinds else "sequence"
            self._need(strategy, path, f"got a {kinds[0].__name__}, expected a {kinds[1].__name__}")
        if len(got) != len(expected):
            raise _Different(_at(path) + f"got {len(got)} elements, expected {len(expected)}: {show(got)}")
        if self._plainly_equal(got, expected):
            return
        nested = []
        for index, (g, e) in enumerate(zip(got, expected, strict=True)):
            kind = type(g)
            if kind is type(e) and kind in _SIMPLE and g == e:
                continue
            if isinstance(e, _CONTAINERS):
                nested.append((g, e, (path, index)))
            else:
                self._leaf(g, e, (path, index))
        self.stack += reversed(nested)

    def _plainly_equal(self, got: Any, expected: Any) -> bool:
        """Compare flat lists, or lists of flat lists, with `==` where that is right."""
        kinds = set(map(type, got))
        if kinds == {list} and set(map(type, expected)) == {list}:
            kinds = set(map(type, chain.from_iterable(got)))
            if self.strict_bool:
                return False
        if not kinds <= _PLAIN:
            return False
        if self.strict_bool and (bool in kinds or bool in set(map(type, expected))):
            return False
        return bool(got == expected if type(got) is type(expected) else list(got) == list(expected))

    def _dict(self, got: dict[Any, Any], expected: dict[Any, Any], path: Any) -> None:
        if isinstance(got, Counter) and isinstance(expected, Counter):  # what is not there is there 0 times
            got, expected = ({k: n for k, n in side.items() if n != 0} for side in (got, expected))
        if isinstance(got, OrderedDict) and isinstance(expected, OrderedDict):
            if [key(name) for name in got] != [key(name) for name in expected] and len(got) == len(expected):
                raise _Different(_at(path) + f"the keys have another order: {show(got)}")
        if len(got) != len(expected):
            raise _Different(_at(path) + f"got {len(got)} keys, expected {len(expected)}: {show(got)}")
        spelled: dict[str, Any] | None = None
        for name, value in expected.items():
            if name in got and name == name:
                item = got[name]
            else:
                if spelled is None:
                    spelled = self._spelled(got, name, path)
                if name not in spelled:
                    raise _Different(_at(path) + f"key {show(name)} is missing")
                item = spelled[name]
            self.stack.append((item, value, (path, name)))

    def _spelled(self, got: dict[Any, Any], name: Any, path: Any) -> dict[str, Any]:
        """The dict as JSON would spell its keys, unless two of them would become one."""
        self._need("json_keys", path, f"key {show(name)} is missing")
        names = [json_spelling(k) for k in got]
        if None in names or len(set(names)) < len(names):
            raise _Different(_at(path) + f"key {show(name)} is missing")
        return {str(k): v for k, v in zip(names, got.values(), strict=True)}

    def _set(self, got: Any, expected: Any, path: Any) -> None:
        if len(got) != len(expected) or {key(item) for item in got} != {key(item) for item in expected}:
            raise _Different(_at(path) + f"got {show(got)}, expected {show(expected)}")

    def _leaf(self, got: Any, expected: Any, path: Any) -> None:
        if isinstance(expected, NUMBERS) and isinstance(got, NUMBERS):
            if self.strict_bool and isinstance(got, bool) != isinstance(expected, bool):
                pass
            elif equal(got, expected):
                return
            elif isinstance(expected, (float, complex)) and not isinstance(got, bool):
                if "numbers" in self.allowed and close(got, expected, self.tolerance):
                    self.needed.add("numbers")
                    return
        elif type(got) is type(expected) and type(expected) in _EQUAL and got == expected:
            return
        raise _Different(_at(path) + f"got {show(got)}, expected {show(expected)}")


def _at(path: Any) -> str:
    parts: list[str] = []
    while path is not None and len(parts) < 6:
        path, name = path
        parts.append(f"[{name}]" if isinstance(name, int) and -(10**9) < name < 10**9 else f"[{show(name)[:30]}]")
    return ascii_only(f"at {'...' if path else ''}{''.join(reversed(parts))}: ") if parts else ""
