"""The shape of a parameter's values: types at every depth, and the hull of what the existing tests have there.

    shape = observed([[1, 2], [3]], "List[int]")      # list of int; lengths 1 to 2, numbers 1 to 3
    shape.fault([1, "a"])                             # "no whole number: 'a'"
    written((1, 2), shape)                            # Python source: a list of JSON as the tuple of the tests

Values are kept as JSON has them: tuples and sets are lists (sets sorted), dicts with other keys than strings are lists
of pairs. TreeNode (`tree`) and ListNode (`links`) are LeetCode's lists of levels and of values.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .trees import level_faults

SEQUENCES = ("list", "tuple", "set")
_POOL = 60  # different values that are kept of a place


@dataclass(slots=True)
class Shape:
    """What stands at one place."""

    kind: str  # int float bool str none list tuple set dict tree links mixed
    item: Shape | None = None  # of lists, sets, trees, links; of a dict its values
    items: tuple[Shape, ...] = ()  # of rows whose places differ: one for each
    key: Shape | None = None  # of a dict
    optional: bool = False  # None is allowed too
    low: float = math.inf  # of numbers, as seen
    high: float = -math.inf
    shortest: int = 10**9  # lengths, as seen
    longest: int = -1
    chars: set[str] = field(default_factory=set)
    pool: list[Any] = field(default_factory=list)

    def fault(self, value: Any, where: str = "") -> str:
        """Why a value is not of this shape; "" if it is."""
        if value is None:
            return "" if self.optional or self.kind in ("none", "mixed") else f"{where} is null"
        match self.kind:
            case "int":
                return "" if type(value) is int else f"{where} is no whole number: {value!r:.40}"
            case "float":
                ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
                return "" if ok else f"{where} is no number: {value!r:.40}"
            case "bool":
                return "" if isinstance(value, bool) else f"{where} is neither true nor false: {value!r:.40}"
            case "str":
                return "" if isinstance(value, str) else f"{where} is no text: {value!r:.40}"
            case "tree":
                wrong = level_faults(value) or self._items([one for one in value if one is not None], where)
                return f"{where}: {wrong}" if wrong else ""
            case "links" | "list" | "tuple" | "set":
                return self._items(value, where)
            case "dict":
                if not isinstance(value, dict if self._textual() else list):
                    return f"{where} is no dict"
                pairs = value.items() if isinstance(value, dict) else value
                if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
                    return f"{where} is no dict"
                wrong = "".join(self.item.fault(one, where) for _, one in pairs) if self.item else ""
                return wrong or ("".join(self.key.fault(one, where) for one, _ in pairs) if self.key else "")
        return ""

    def _items(self, value: Any, where: str) -> str:
        if not isinstance(value, list):
            return f"{where} is no list: {value!r:.40}"
        if self.items:
            if len(value) != len(self.items):
                return f"{where} has {len(value)} values, not {len(self.items)}"
            return next(filter(None, (s.fault(v, where) for s, v in zip(self.items, value, strict=True))), "")
        if self.item is None:
            return "" if not value else f"{where} was always empty"
        if self.item.kind == "int":  # the common case, and the long lists
            return "" if all(type(one) is int for one in value) else f"{where} has a value that is no whole number"
        return next(filter(None, (self.item.fault(one, where) for one in value)), "")

    def _textual(self) -> bool:
        return self.key is None or self.key.kind == "str"

    def walk(self) -> Iterator[Shape]:
        yield self
        for part in (*self.items, self.item, self.key):
            if part is not None:
                yield from part.walk()


def kind_of(value: Any) -> str:
    if value is None:
        return "none"
    for kind in (bool, int, float, str, list, tuple, dict):
        if isinstance(value, kind):
            return kind.__name__
    return "set" if isinstance(value, (set, frozenset)) else "other"


def observed(values: Sequence[Any], annotation: str = "") -> Shape:
    """The shape of all these values of Python, of which the annotation is believed where they agree."""
    said = _declared(annotation)
    if said in ("tree", "links"):
        inner = [one for value in values if isinstance(value, list) for one in value if one is not None]
        shape = _measured(Shape(said, item=observed(inner)), [v for v in values if isinstance(v, list)])
        return shape
    kinds = {kind_of(value) for value in values}
    optional = "none" in kinds and len(kinds) > 1
    kinds -= {"none"} if optional else set()
    values = [value for value in values if value is not None] if optional else values
    if kinds <= {"int", "float"} and kinds:
        kind = "float" if "float" in kinds or said == "float" else "int"
    elif kinds <= set(SEQUENCES) and kinds:
        kind = kind_of(values[0]) if len(kinds) > 1 else kinds.pop()
    elif len(kinds) == 1:
        kind = kinds.pop()
    else:
        kind = "mixed" if kinds else said or "none"
    if kind == "other":
        kind = "mixed"
    shape = Shape(kind, optional=optional)
    if kind in SEQUENCES:
        shape.items = _columns(values, kind, annotation)
        if not shape.items:
            within = annotation.partition("[")[2].removesuffix("]") if "[" in annotation else ""
            shape.item = observed([one for value in values for one in _listed(value)], within)
            if not any(values) and not within:
                shape.item = None
    elif kind == "dict":
        shape.key = observed([key for value in values for key in value])
        shape.item = observed([one for value in values for one in value.values()])
    return _measured(shape, values)


def _columns(values: Sequence[Any], kind: str, annotation: str) -> tuple[Shape, ...]:
    """The shapes of the places of a row, where their types differ: (name, age)."""
    lengths = {len(value) for value in values}
    if kind == "set" or len(lengths) != 1 or lengths == {0} or len(values) < 2:
        return ()
    columns = [[value[n] for value in values] for n in range(lengths.pop())]
    kinds = [{kind_of(one) for one in column} for column in columns]
    if len(columns) > 12 or all(one == kinds[0] for one in kinds) or any(len(one) > 1 for one in kinds):
        return ()
    return tuple(observed(column) for column in columns)


def _listed(value: Any) -> list[Any]:
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)


def _measured(shape: Shape, values: Iterable[Any]) -> Shape:
    for value in values:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            shape.low, shape.high = min(shape.low, value), max(shape.high, value)
        if isinstance(value, (str, list, tuple, dict, set, frozenset)):
            shape.shortest, shape.longest = min(shape.shortest, len(value)), max(shape.longest, len(value))
        if isinstance(value, str):
            shape.chars |= set(value)
        if len(shape.pool) < _POOL:
            plain = plain_of(value)
            if plain not in shape.pool:
                shape.pool.append(plain)
    return shape


def _declared(annotation: str) -> str:
    plain = annotation.replace("Optional[", "").replace("typing.", "").strip("'\" ]")
    if plain in ("TreeNode", "ListNode"):
        return {"TreeNode": "tree", "ListNode": "links"}[plain]
    head = plain.partition("[")[0].lower()
    return head if head in ("int", "float", "bool", "str", "list", "tuple", "set", "dict") else ""


def plain_of(value: Any) -> Any:
    """A value of Python as JSON has it here."""
    if isinstance(value, (list, tuple)):
        return [plain_of(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return [plain_of(one) for one in sorted(value, key=repr)]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: plain_of(one) for key, one in value.items()}
        return [[plain_of(key), plain_of(one)] for key, one in value.items()]
    return value


def typed(value: Any, shape: Shape | None) -> Any:
    """The value of Python again: tuples, sets and dicts where the tests have them."""
    if shape is None or value is None:
        return value
    if shape.kind == "dict" and isinstance(value, (list, dict)):
        pairs = value.items() if isinstance(value, dict) else value
        return {_hashable(typed(key, shape.key)): typed(one, shape.item) for key, one in pairs}
    if isinstance(value, list):
        parts = shape.items or [shape.item] * len(value)
        out = [typed(one, part) for one, part in zip(value, parts, strict=False)]
        if shape.kind == "set":
            return set(map(_hashable, out))
        return tuple(out) if shape.kind == "tuple" else out
    return value


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def written(value: Any, shape: Shape | None) -> str:
    """The value as Python source, ready to stand in a call."""
    if shape is not None and shape.kind in ("tree", "links"):
        return f"{'tree_node' if shape.kind == 'tree' else 'list_node'}({value!r})"
    return repr(typed(value, shape))


class NotPlain(ValueError):
    """An argument that is no plain value."""


def literal(node: ast.expr) -> Any:
    """The value of an argument in a test program; the list in `tree_node([...])`. NotPlain for anything else."""
    match node:
        case ast.Call(func=ast.Name(id="tree_node" | "list_node"), args=[inner], keywords=[]):
            return literal(inner)
        case ast.Call(func=ast.Name(id="set" | "tuple" | "list" | "dict" as name), args=args, keywords=[]) if (
            len(args) <= 1
        ):
            kinds = {"set": set, "tuple": tuple, "list": list, "dict": dict}
            return kinds[name](*(literal(one) for one in args))
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        raise NotPlain(f"an argument is no plain value: {ast.unparse(node)[:60]}") from None
    if any(kind_of(one) == "other" or (isinstance(one, float) and not math.isfinite(one)) for one in _leaves(value)):
        raise NotPlain(f"an argument cannot be carried by JSON: {ast.unparse(node)[:60]}")
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(key)
            yield from _leaves(one)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _leaves(one)
    else:
        yield value
