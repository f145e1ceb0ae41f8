"""Properties of arguments, and the places where they hold.

A place is a parameter, an element some subscripts deep (`words[i]`), or a column of rows (`edges[i][0]`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .shapes import SEQUENCES, Shape

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subject stands: a parameter, how many subscripts deep, or a column of its rows."""

    parameter: str
    depth: int = 0
    column: int | None = None
    length: bool = False
    constant: int | None = None  # a subscript that is a number: s[0]


def leave(rng: random.Random, values: Values) -> None:
    """Change nothing."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the arguments of one call."""

    name: str
    text: str
    holds: Callable[[Values], bool]
    mend: Callable[[random.Random, Values], None] = leave
    places: tuple[Place, ...] = ()
    value: Any = None


def place(subject: str, shapes: Mapping[str, Shape], columns: Mapping[str, tuple[str, int]]) -> Place | None:
    """Where a subject such as `words[i].length`, `ai` or `Node.val` stands."""
    if subject.endswith(".val"):
        nodes = [name for name, shape in shapes.items() if shape.kind in ("tree", "links")]
        return Place(nodes[0], 1) if nodes else None
    length = subject.endswith((".length", ".size"))
    base = subject.rpartition(".")[0] if length else subject
    name, _, rest = base.partition("[")
    subscripts = re.findall(r"([^\[\]]+)\]", rest)
    if name not in shapes and name not in columns and subscripts:  # images[i] of the parameter image
        name = next((one for one in (name.removesuffix("s"), f"{name}s") if one in shapes), name)
    if name in shapes:
        numbers = [n for n, one in enumerate(subscripts) if one.strip().isdigit()]
        if numbers and numbers[0] == len(subscripts) - 1:
            return Place(name, len(subscripts) - 1, None, length, int(subscripts[-1]))
        return Place(name, len(subscripts), None, length)
    if name in columns and not subscripts:
        return Place(columns[name][0], 1, columns[name][1], length)
    return None


def at(values: Values, spot: Place) -> list[Any]:
    """All values that stand at a place."""
    found = [values[spot.parameter]]
    for _ in range(spot.depth):
        found = [one for value in found if isinstance(value, (list, str)) for one in value if one is not None]
    if spot.column is not None or spot.constant is not None:
        n = spot.column if spot.column is not None else spot.constant or 0
        found = [value[n] for value in found if isinstance(value, (list, str)) and len(value) > n]
    return [len(value) for value in found] if spot.length else found


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif value is not None:
        yield value


def depth_of(shape: Shape) -> int:
    """How many subscripts lead to a value that is no list."""
    if shape.kind in (*SEQUENCES, "tree", "links"):
        return 1 + (depth_of(shape.item) if shape.item else max(map(depth_of, shape.items), default=0))
    return 0


Made = Iterator[Property]
