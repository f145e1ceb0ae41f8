"""Facts about pairs of elements tied to parameters: intervals and rectangles that do not overlap."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping
from functools import partial

from ..reading.facts import StatedFact
from ..reading.relations import names, relations, value
from .places import Made, Place, Property, Values, depth_of
from .shapes import Shape


def _no_overlap(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """Intervals [from, to, ...] of which no two have a point in common, or rectangles that only touch."""
    tables = [spot.parameter for spot in spots] or list(shapes)
    for name in dict.fromkeys(tables):
        inner = shapes[name].item
        if depth_of(shapes[name]) != 2 or inner is None or not 2 <= inner.shortest == inner.longest <= 4:
            continue
        if inner.longest == 4:
            yield Property("no_overlap", fact.text, partial(_rectangles_apart, name), partial(_cut_up, name))
        else:
            yield Property("no_overlap", fact.text, partial(_apart, name), partial(_pull_apart, name))


def _rectangle(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """Rectangles [x, y, x, y], the lower corner first."""
    for name in dict.fromkeys(spot.parameter for spot in spots):
        item = shapes[name].item
        if shapes[name].kind == "list" and item and item.kind == "int" and shapes[name].longest == 4:
            yield Property("rectangle", fact.text, partial(_upright, name), partial(_raise_up, name))


def _upright(name: str, values: Values) -> bool:
    x, y, right, top = values[name]
    return bool(x < right and y < top)


def _raise_up(name: str, rng: random.Random, values: Values) -> None:
    x, y, right, top = values[name]
    values[name] = [min(x, right), min(y, top), max(x, right), max(y, top)]


def _apart(name: str, values: Values) -> bool:
    rows = sorted(values[name])
    return all(row[0] <= row[1] for row in rows) and all(a[1] < b[0] for a, b in itertools.pairwise(rows))


def _pull_apart(name: str, rng: random.Random, values: Values) -> None:
    """Put the ends of all intervals in order, so that they follow each other; then shuffle."""
    rows, ends = values[name], sorted({end for row in values[name] for end in row[:2]})
    new = [[a, b, *rows[n][2:]] for n, (a, b) in enumerate(zip(ends[::2], ends[1::2], strict=False))]
    if rng.random() < 0.5:
        rng.shuffle(new)
    values[name] = new or rows[:1]


def _rectangles_apart(name: str, values: Values) -> bool:
    """Of rectangles [x, y, x, y] with the lower corner first."""
    rows = values[name]
    if len(rows) > 300 or any(row[0] >= row[2] or row[1] >= row[3] for row in rows):
        return False
    return not any(
        a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for a, b in itertools.combinations(rows, 2)
    )


def _cut_up(name: str, rng: random.Random, values: Values) -> None:
    """Rectangles that come from cutting one up."""
    rows = [row for row in values[name] if row[0] < row[2] and row[1] < row[3]]
    if not rows or len(rows) > 300 or _rectangles_apart(name, values):
        return
    parts = [
        [
            min(row[0] for row in rows),
            min(row[1] for row in rows),
            max(row[2] for row in rows),
            max(row[3] for row in rows),
        ]
    ]
    for _ in range(4 * len(rows)):
        at = rng.randrange(len(parts))
        side = rng.randrange(2)
        low, high = parts[at][side], parts[at][side + 2]
        if high - low > 1 and len(parts) < 2 * len(rows):
            cut = rng.randint(low + 1, high - 1)
            other = list(parts[at])
            parts[at][side + 2], other[side] = cut, cut
            parts.append(other)
    values[name] = rng.sample(parts, min(len(parts), len(values[name])))


def _no_pair(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """No two elements i and j of a list for which a chain of relations holds."""
    found = [one for one in relations(str(fact.value)) if "[" in one.left and "[" in one.right]
    tests = [f"{one.left} {one.op} {one.right}" for one in found]
    if not tests or not all(names(f"({test})") <= {*shapes, "i", "j"} for test in tests):
        return
    lists = {name for one in found for name in re.findall(r"(\w+)\[[ij]\]", one.left + one.right)}
    together = " and ".join(tests)

    def holds(values: Values) -> bool:
        count = min(len(values[name]) for name in lists)
        pairs = ({**values, "i": i, "j": j} for i in range(count) for j in range(count) if i != j)
        return count <= 200 and not any(value(together, pair) for pair in pairs)

    yield Property("no_pair", fact.text, holds)


MAKERS = {
    "rectangle": _rectangle,
    "no_overlap": _no_overlap,
    "no_pair": _no_pair,
}
