"""Facts of a statement tied to the parameters of a function: a test for each, and a way to make values keep it.

    found = tied(fact, shapes, columns)      # [Property], or [] where it says nothing about these parameters
    found[0].holds(values)                   # values: {"nums": [...], "k": 2}
    found[0].mend(rng, values)               # changes drawn values in place, as far as it can

A sentence often leaves open what it speaks of ("there are no repeated edges"); the parameter is then guessed from the
types, and whoever uses a property first asks whether it holds for all existing tests.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..reading.facts import StatedFact
from . import counts, domains, intervals, networks, numerals, texts
from .places import Made, Place, Property, Values, at, depth_of, leave, leaves, place
from .shapes import SEQUENCES, Shape


def tied(fact: StatedFact, shapes: Mapping[str, Shape], columns: Mapping[str, tuple[str, int]]) -> list[Property]:
    """The properties that a fact gives the parameters."""
    spots = [spot for subject in fact.subjects if (spot := place(subject, shapes, columns))]
    if not spots and fact.name == "alphabet" and re.match(r"(?:all|both|the) (?:the )?strings\b", fact.text, re.I):
        spots = [Place(name) for name, shape in shapes.items() if "str" in {part.kind for part in shape.walk()}]
    if fact.name == "sorted" and (by := place(str(fact.value).partition(" by ")[2], shapes, columns)):
        spots = [by] if by.column is not None else spots
    if not spots and not fact.told and fact.name not in ("tree", "connected", "acyclic", "bst"):
        return []
    make = MAKERS.get(fact.name)
    return list(make(fact, spots, shapes)) if make else []


# --- values


def _choices(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots:
        kinds = {part.kind for part in shapes[spot.parameter].walk()}
        if "str" in kinds and "int" not in kinds and all(type(one) is int and 0 <= one < 10 for one in fact.value):
            fact = replace(fact, value=[str(one) for one in fact.value])  # "s[i] is either 0 or 1" of a string
        quoted = all(isinstance(one, str) for one in fact.value)
        deep = depth_of(shapes[spot.parameter])
        if spot.length or not kinds & ({"str", "mixed"} if quoted else {"int", "float", "bool", "mixed"}):
            continue
        single = quoted and all(len(one) == 1 for one in fact.value)
        if (
            single
            and spot.constant is None
            and spot.column is None
            and (spot.depth > deep or (spot.depth == 0 and not deep))
        ):
            yield from texts.alphabet(
                StatedFact("alphabet", fact.subjects, "".join(fact.value), fact.text), [spot], shapes
            )
            continue
        allowed = list(fact.value)

        def holds(values: Values, spot: Place = spot, allowed: list[Any] = allowed) -> bool:
            return all(one in allowed for one in leaves(at(values, spot)))

        yield Property("choices", fact.text, holds, places=(spot,), value=allowed)


def _binary(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots:
        leaf = [part.kind for part in shapes[spot.parameter].walk()][-1]
        value: list[Any] = ["0", "1"] if leaf == "str" else [0, 1]
        if shapes[spot.parameter].kind != "int":
            deeper = Place(spot.parameter, depth_of(shapes[spot.parameter]) + (leaf == "str"))
            yield from _choices(StatedFact("choices", fact.subjects, value, fact.text), [deeper], shapes)


def _member(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots:
        inside = str(fact.value)
        grown = [name for name, shape in shapes.items() if shape.kind == "tree"]
        if inside == "tree" and inside not in shapes and len(grown) == 1:
            inside = grown[0]
        if inside not in shapes or inside == spot.parameter or spot.length:
            continue
        tree = shapes[inside].kind == "tree"

        def holds(values: Values, spot: Place = spot, inside: str = inside) -> bool:
            return all(one in values[inside] for one in at(values, spot))

        def mend(rng: random.Random, values: Values, spot: Place = spot, inside: str = inside) -> None:
            pool = [one for one in values[inside] if one is not None]
            if pool and spot.depth == 0:
                values[spot.parameter] = rng.choice(pool)
            elif pool and spot.depth == 1 and spot.column is None:
                values[spot.parameter] = [rng.choice(pool) for _ in values[spot.parameter]]

        if shapes[inside].kind in SEQUENCES or tree or (shapes[inside].kind == "str" == shapes[spot.parameter].kind):
            yield Property("member", fact.text, holds, mend)


# --- lists


def _different(spot: Place, values: Values) -> bool:
    return not domains.repeated(at(values, spot))


def _drop_repeated(name: str, numbers: Sequence[int], rng: random.Random, values: Values) -> None:
    """Leave out rows that have been there before."""
    seen: dict[str, Any] = {}
    for row in values[name]:
        seen.setdefault(repr([row[n] for n in numbers] if numbers else row), row)
    values[name] = list(seen.values())


def _same_values(name: str, other: str, values: Values) -> bool:
    return sorted(values[name]) == sorted(values[other])


_ELEMENTS = re.compile(
    r"(?<!elements of )(?<!values of )(?<!values in )\b\w+\[\w\] (?:is|are|be|will be) (?:all |pairwise )?"
    r"(?:unique|distinct|different)|\w\[\w\] != ",
    re.I,
)
_ALL = re.compile(r"all (?:of )?(?:the )?(\w+s) are (?:guaranteed to be )?(?:unique|distinct|different)\.?$", re.I)
_PAIRED = re.compile(r"^(?:(.*?)([xy])(.*)|(.*)(From|To)(.*))$", re.I)


def _pairs(shapes: Mapping[str, Shape]) -> list[list[str]]:
    """Lists that hold one coordinate each, or one end of each edge: [["xCoord", "yCoord"]]."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, shape in shapes.items():
        match = _PAIRED.match(name)
        if match and depth_of(shape) == 1:
            found.setdefault(tuple(part or "" for part in match.group(1, 3, 4, 6)), []).append(name)
    return [names for names in found.values() if len(names) == 2]


def _different_pairs(names: Sequence[str], values: Values) -> bool:
    return not domains.repeated([list(pair) for pair in zip(*(values[name] for name in names), strict=False)])


def _distinct(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    if fact.value == "edges" or (re.search(r"\bedges?\b|\broads?\b|connections", fact.text) and not spots):
        for name in networks.edge_lists(shapes):
            yield Property(
                "distinct",
                fact.text,
                partial(networks.different_edges, name),
                partial(networks.draw_edges, name, networks.base_of(shapes, name)),
            )
        return
    rows = [spot for spot in spots if spot.column is not None]
    if len(rows) > 1 and len({spot.parameter for spot in rows}) == 1:
        name, numbers = rows[0].parameter, [spot.column or 0 for spot in rows]
        yield Property(
            "distinct",
            fact.text,
            lambda v: not domains.repeated([[row[n] for n in numbers] for row in v[name]]),
            partial(_drop_repeated, name, numbers),
        )
        return
    if not spots and (whole := _ALL.match(fact.text)):  # "all the scores are unique" of the list score
        spots = [Place(name) for name in (whole[1], whole[1][:-1]) if name in shapes and shapes[name].kind == "list"]
    if not spots:
        for names in _pairs(shapes):
            yield Property("distinct", fact.text, partial(_different_pairs, names))
    if not spots and re.search(r"\bnode|tree|Node\.val|\bvalues?\b", fact.text):
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in ("tree", "links")]
    cells = [spot.parameter for spot in spots if spot.depth == 2 == depth_of(shapes[spot.parameter])]
    for name in cells if re.search(r"\w\[\w\]\[\w\] (?:is|are) (?:all )?(?:unique|distinct)", fact.text) else ():
        yield from _different_cells(fact, name, shapes[name])
    single = [spot.parameter for spot in spots if shapes[spot.parameter].kind == "int" and not spot.length]
    if len(single) > 1:
        yield Property("distinct", fact.text, lambda v: len({v[name] for name in single}) == len(single))
    for spot in spots:
        if spot.length:
            continue
        if spot.column is not None:
            yield Property("distinct", fact.text, partial(_different, spot), places=(spot,))
            continue
        deep = depth_of(shapes[spot.parameter])
        kind = shapes[spot.parameter].kind
        if deep == 0 and kind != "str":
            continue
        depth = min(spot.depth, max(0, deep - 1)) if kind != "str" else 0
        if spot.depth and depth and _ELEMENTS.search(fact.text):  # "all queries[i] are unique": no two are equal
            depth = spot.depth - 1

        def holds(values: Values, spot: Place = spot, depth: int = depth) -> bool:
            lists = at(values, Place(spot.parameter, depth))
            return not any(
                domains.repeated([x for x in one if x is not None]) for one in lists if isinstance(one, (list, str))
            )

        flat = not depth and kind in SEQUENCES  # a list that loses what is repeated is shorter, and may fit no more
        mend = partial(_drop_repeated, spot.parameter, ()) if flat else leave
        yield Property("distinct", fact.text, holds, mend, (Place(spot.parameter, depth),))


def _different_cells(fact: StatedFact, name: str, shape: Shape) -> Made:
    """A table in which no number stands twice."""
    base = min((one for one in leaves(shape.pool) if type(one) is int), default=0)

    def holds(values: Values) -> bool:
        return not domains.repeated(list(leaves(values[name])))

    def mend(rng: random.Random, values: Values) -> None:
        if not holds(values):
            count = sum(map(len, values[name]))
            numbers = iter(rng.sample(range(min(base, 1), min(base, 1) + count), count))
            values[name] = [[next(numbers) for _ in row] for row in values[name]]

    yield Property("distinct", fact.text, holds, mend)


def _sorted(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    order, _, by = fact.value.partition(" by ")
    if not spots and re.search(r"\brows?\b|\blinked list|\blist\b|\barrays?\b", fact.text):
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in (*SEQUENCES, "links")]
        if re.search(r"\brows?\b|\bcolumns?\b", fact.text):
            spots = [Place(spot.parameter, 1) for spot in spots if depth_of(shapes[spot.parameter]) == 2]
    if re.search(r"\b(?:rows?|columns?)\b", fact.text) and not by:  # of a table: neither speaks of its rows as values
        tables = [name for name, shape in shapes.items() if shape.kind in SEQUENCES and depth_of(shape) == 2]
        tables = [spot.parameter for spot in spots if spot.parameter in tables] or (tables if len(tables) == 1 else [])
        if tables:
            yield from _sorted_table(fact, tables[0], order)
            return
    for spot in spots:
        if spot.length or shapes[spot.parameter].kind not in (*SEQUENCES, "links", "str"):
            continue
        deep = depth_of(shapes[spot.parameter])
        depth = 0 if spot.column is not None else min(spot.depth, max(0, deep - 1))
        column = spot.column if spot.column is not None else 0 if by and deep == 2 and not spot.depth else None

        def key(row: Any, column: int | None = column) -> Any:
            return row[column] if column is not None and isinstance(row, list) else row

        def holds(values: Values, spot: Place = spot, depth: int = depth, key: Any = key) -> bool:
            lists = at(values, Place(spot.parameter, depth))
            return all(domains.ordered(one, order, key) for one in lists if isinstance(one, (list, str)))

        def mend(rng: random.Random, values: Values, spot: Place = spot, depth: int = depth, key: Any = key) -> None:
            for one in at(values, Place(spot.parameter, depth)):
                if isinstance(one, list):
                    one.sort(key=key, reverse="descending" in order)

        yield Property("sorted", fact.text, holds, mend, (Place(spot.parameter, depth),), order)


def _sorted_table(fact: StatedFact, name: str, order: str) -> Made:
    """A table whose rows, columns or both are sorted, as the sentence has it."""
    sides = [side for side in ("row", "column") if re.search(rf"\b{side}s?\b", fact.text)]

    def holds(values: Values) -> bool:
        rows = values[name]
        lists = [*(rows if "row" in sides else []), *(zip(*rows, strict=True) if "column" in sides else [])]
        return all(domains.ordered(one, order) for one in lists)

    def mend(rng: random.Random, values: Values) -> None:
        down, rows = "descending" in order, values[name]
        if "row" in sides:
            rows = [sorted(row, reverse=down) for row in rows]
        if "column" in sides and len(set(map(len, rows))) == 1:  # rows stay sorted
            rows = [
                list(row) for row in zip(*(sorted(one, reverse=down) for one in zip(*rows, strict=True)), strict=True)
            ]
        values[name] = rows

    yield Property("sorted", fact.text, holds, mend, value=order)


def _permutation(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    lists = [spot for spot in spots if shapes[spot.parameter].kind in (*SEQUENCES, "str")]
    others = [name for name in shapes if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", str(fact.value))]
    for spot in lists:
        name = spot.parameter
        other = next((one for one in others if one != name and shapes[one].kind == shapes[name].kind), None)
        if other:

            def mend_other(rng: random.Random, values: Values, name: str = name, other: str = other) -> None:
                new = list(values[other])
                rng.shuffle(new)
                values[name] = "".join(new) if isinstance(values[other], str) else new

            yield Property("permutation", fact.text, partial(_same_values, name, other), mend_other)
        elif (item := shapes[name].item) is not None and item.kind == "int":
            base = 1 if item.low >= 1 else 0

            def mend(rng: random.Random, values: Values, name: str = name, base: int = base) -> None:
                new = list(range(base, base + len(values[name])))
                match rng.randrange(8):
                    case 0:
                        new.reverse()
                    case 1:
                        pass
                    case 2:
                        cut = rng.randint(0, len(new))
                        new = new[cut:] + new[:cut]
                    case _:
                        rng.shuffle(new)
                values[name] = new

            def holds(values: Values, name: str = name, base: int = base) -> bool:
                return sorted(values[name]) == list(range(base, base + len(values[name])))

            yield Property("permutation", fact.text, holds, mend)


def _repeats(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A list in which so many values stand twice, and all others once."""
    for spot in spots:
        name, item = spot.parameter, shapes[spot.parameter].item
        if spot.length or depth_of(shapes[name]) != 1 or item is None or item.kind != "int":
            continue

        def holds(values: Values, name: str = name) -> bool:
            counts: Counter[int] = Counter(values[name])
            return set(counts.values()) <= {1, 2} and list(counts.values()).count(2) == fact.value

        def mend(rng: random.Random, values: Values, name: str = name, base: int = int(item.low)) -> None:
            count = len(values[name]) - fact.value
            if count < fact.value:
                return
            once = list(dict.fromkeys(values[name]))[:count]
            if len(once) < count:
                once = list(range(base, base + count))
            new = once + rng.sample(once, fact.value)
            rng.shuffle(new)
            values[name] = new

        yield Property("repeats", fact.text, holds, mend)


def _anagram(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    names = [spot.parameter for spot in spots]
    for name in names[1:]:
        new = StatedFact("permutation", fact.subjects, names[0], fact.text)
        yield from _permutation(new, [Place(name)], {one: shapes[one] for one in (names[0], name)})


MAKERS: dict[str, Callable[[StatedFact, list[Place], Mapping[str, Shape]], Made]] = {
    **numerals.MAKERS,
    **intervals.MAKERS,
    **networks.MAKERS,
    **texts.MAKERS,
    **counts.MAKERS,
    "choices": _choices,
    "distinct": _distinct,
    "sorted": _sorted,
    "permutation": _permutation,
    "anagram": _anagram,
    "member": _member,
    "binary": _binary,
    "repeats": _repeats,
}
