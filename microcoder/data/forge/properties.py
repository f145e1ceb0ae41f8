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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import domains
from .constraints import Fact
from .shapes import SEQUENCES, Shape

Values = dict[str, Any]
_EDGES = ("edges", "roads", "connections", "paths", "flights", "links", "adjacentPairs", "corridors", "bonds", "pipes")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subject stands: a parameter, how many subscripts deep, or a column of its rows."""

    parameter: str
    depth: int = 0
    column: int | None = None
    length: bool = False
    constant: int | None = None  # a subscript that is a number: s[0]


def _leave(rng: random.Random, values: Values) -> None:
    """Change nothing."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the arguments of one call."""

    name: str
    text: str
    holds: Callable[[Values], bool]
    mend: Callable[[random.Random, Values], None] = _leave
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


def tied(fact: Fact, shapes: Mapping[str, Shape], columns: Mapping[str, tuple[str, int]]) -> list[Property]:
    """The properties that a fact gives the parameters."""
    spots = [spot for subject in fact.subjects if (spot := place(subject, shapes, columns))]
    if not spots and not fact.told and fact.name not in ("tree", "connected", "acyclic", "bst"):
        return []
    make = _MAKERS.get(fact.name)
    return list(make(fact, spots, shapes)) if make else []


_Made = Iterator[Property]


def _different(spot: Place, values: Values) -> bool:
    return not domains.repeated(at(values, spot))


def _different_edges(name: str, values: Values) -> bool:
    return not domains.repeated([sorted(edge[:2]) for edge in values[name]])


def _draw_edges(name: str, base: int, rng: random.Random, values: Values) -> None:
    """Put different edges in the place of those that were drawn."""
    rows, count = values[name], values.get("n")
    if rows and type(count) is int and count <= 300_000 and not _different_edges(name, values):
        new = domains.graph_edges(rng, count, len(rows), base)
        values[name] = [[*pair, *rows[n][2:]] for n, pair in enumerate(new)]


def _drop_repeated(name: str, numbers: Sequence[int], rng: random.Random, values: Values) -> None:
    """Leave out rows that have been there before."""
    seen: dict[str, Any] = {}
    for row in values[name]:
        seen.setdefault(repr([row[n] for n in numbers] if numbers else row), row)
    values[name] = list(seen.values())


def _same_values(name: str, other: str, values: Values) -> bool:
    return sorted(values[name]) == sorted(values[other])


def _without_loops(name: str, values: Values) -> bool:
    return all(edge[0] != edge[1] for edge in values[name])


def _is_search_tree(name: str, values: Values) -> bool:
    return domains.ordered(domains.inorder(values[name]), "strictly ascending")


def _of_rest(spot: Place, step: int, rest: int, values: Values) -> bool:
    return all(one % step == rest for one in at(values, spot))


def _among(spot: Place, allowed: set[int], values: Values) -> bool:
    return all(one in allowed for one in at(values, spot))


def _balanced(name: str, values: Values) -> bool:
    return domains.balanced(values[name])


def _reads_backwards(name: str, values: Values) -> bool:
    return bool(values[name] == values[name][::-1])


def _all_match(name: str, pattern: re.Pattern[str], values: Values) -> bool:
    return all(map(pattern.fullmatch, leaves(values[name])))


def _alphabet(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    allowed = set(fact.value)
    for spot in spots:
        if spot.length or "str" not in {part.kind for part in shapes[spot.parameter].walk()}:
            continue

        def holds(values: Values, spot: Place = spot) -> bool:
            return all(allowed.issuperset(one) for one in leaves(at(values, spot)) if isinstance(one, str))

        yield Property("alphabet", fact.text, holds, places=(spot,), value=fact.value)


def _choices(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for spot in spots:
        kinds = {part.kind for part in shapes[spot.parameter].walk()}
        texts = all(isinstance(one, str) for one in fact.value)
        deep = _depth(shapes[spot.parameter])
        if spot.length or not kinds & ({"str", "mixed"} if texts else {"int", "float", "bool", "mixed"}):
            continue
        single = texts and all(len(one) == 1 for one in fact.value)
        if (
            single
            and spot.constant is None
            and spot.column is None
            and (spot.depth > deep or (spot.depth == 0 and not deep))
        ):
            yield from _alphabet(Fact("alphabet", fact.subjects, "".join(fact.value), fact.text), [spot], shapes)
            continue
        allowed = list(fact.value)

        def holds(values: Values, spot: Place = spot, allowed: list[Any] = allowed) -> bool:
            return all(one in allowed for one in leaves(at(values, spot)))

        yield Property("choices", fact.text, holds, places=(spot,), value=allowed)


def _depth(shape: Shape) -> int:
    """How many subscripts lead to a value that is no list."""
    if shape.kind in (*SEQUENCES, "tree", "links"):
        return 1 + (_depth(shape.item) if shape.item else max(map(_depth, shape.items), default=0))
    return 0


def _distinct(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    if fact.value == "edges" or (re.search(r"\bedges?\b|\broads?\b|connections", fact.text) and not spots):
        for name in _edge_lists(shapes):
            yield Property(
                "distinct", fact.text, partial(_different_edges, name), partial(_draw_edges, name, _base(shapes, name))
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
    if not spots and re.search(r"\bnode|tree|Node\.val|\bvalues?\b", fact.text):
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in ("tree", "links")]
    for spot in spots:
        if spot.length:
            continue
        if spot.column is not None:
            yield Property("distinct", fact.text, partial(_different, spot), places=(spot,))
            continue
        deep = _depth(shapes[spot.parameter])
        kind = shapes[spot.parameter].kind
        if deep == 0 and kind != "str":
            continue
        depth = min(spot.depth, max(0, deep - 1)) if kind != "str" else 0

        def holds(values: Values, spot: Place = spot, depth: int = depth) -> bool:
            lists = at(values, Place(spot.parameter, depth))
            return not any(
                domains.repeated([x for x in one if x is not None]) for one in lists if isinstance(one, (list, str))
            )

        flat = not depth and kind in SEQUENCES  # a list that loses what is repeated is shorter, and may fit no more
        mend = partial(_drop_repeated, spot.parameter, ()) if flat else _leave
        yield Property("distinct", fact.text, holds, mend, (Place(spot.parameter, depth),))


def _sorted(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    order, _, by = fact.value.partition(" by ")
    if not spots and re.search(r"\brows?\b|\blinked list|\blist\b|\barrays?\b", fact.text):
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in (*SEQUENCES, "links")]
        if re.search(r"\brows?\b|\bcolumns?\b", fact.text):
            spots = [Place(spot.parameter, 1) for spot in spots if _depth(shapes[spot.parameter]) == 2]
    for spot in spots:
        if spot.length or shapes[spot.parameter].kind not in (*SEQUENCES, "links", "str"):
            continue
        deep = _depth(shapes[spot.parameter])
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


def _permutation(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
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


def _anagram(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    names = [spot.parameter for spot in spots]
    for name in names[1:]:
        new = Fact("permutation", fact.subjects, names[0], fact.text)
        yield from _permutation(new, [Place(name)], {one: shapes[one] for one in (names[0], name)})


# --- graphs


def _edge_lists(shapes: Mapping[str, Shape]) -> list[str]:
    """Parameters that may be lists of edges, the likeliest first."""
    found = [
        name
        for name, shape in shapes.items()
        if shape.kind in SEQUENCES and shape.item and shape.item.kind in SEQUENCES and 2 <= shape.item.shortest
        and shape.item.longest <= 4 and shape.item.shortest == shape.item.longest
        and all(part.kind == "int" for part in [*shape.item.items, *([shape.item.item] if shape.item.item else [])][:2])
    ]  # fmt: skip
    named = [name for name in found if name in _EDGES]
    return named[:1] or (found if len(found) == 1 else [])


def _count(values: Values, edges: str, tree: bool) -> int:
    n = values.get("n")
    if type(n) is int:
        return n
    if tree:
        return len(values[edges]) + 1
    return 1 + max((max(edge[:2]) for edge in values[edges]), default=0)


def _base(shapes: Mapping[str, Shape], edges: str) -> int:
    item = shapes[edges].item
    seen = [row[:2] for rows in shapes[edges].pool for row in rows] if item else []
    return 1 if seen and min(min(row) for row in seen) >= 1 else 0


def _graph(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    """A tree, a connected graph, or one without cycles: of edges, or as the parent of each node."""
    name = next((s.parameter for s in spots if s.parameter in _edge_lists(shapes)), None)
    name = name or next(iter(_edge_lists(shapes)), None)
    kind = fact.name
    if name is not None:
        base = _base(shapes, name)

        def holds(values: Values) -> bool:
            count, edges = _count(values, name, kind == "tree"), values[name]
            if any(not base <= end < base + count for edge in edges for end in edge[:2]):
                return False
            if kind == "acyclic":
                return not domains.has_cycle(count, edges, base)
            return domains.components(count, edges, base) == 1 and (kind != "tree" or len(edges) == count - 1)

        def mend(rng: random.Random, values: Values) -> None:
            count, edges = _count(values, name, kind == "tree"), values[name]
            if count > 300_000:
                return
            if kind == "tree":
                new = domains.tree_edges(rng, count, base)
            else:
                new = domains.graph_edges(rng, count, len(edges), base, kind == "connected", kind == "acyclic")
            rows = edges or [[0, 0]]
            values[name] = [[*pair, *rows[n % len(rows)][2:]] for n, pair in enumerate(new)]

        yield Property(kind, fact.text, holds, mend, (Place(name, 1),))
        return
    if any(shape.kind == "tree" for shape in shapes.values()):
        yield Property(kind, fact.text, lambda values: True)
    if kind == "tree":
        for parent in (one for one in ("parent", "parents", "manager", "edges") if one in shapes):
            if _depth(shapes[parent]) == 1:

                def is_tree(values: Values, parent: str = parent) -> bool:
                    up = values[parent]
                    edges = [[one, n] for n, one in enumerate(up) if 0 <= one < len(up)]
                    return len(edges) == len(up) - 1 and domains.components(len(up), edges) == 1

                def grow(rng: random.Random, values: Values, parent: str = parent) -> None:
                    count = len(values[parent])
                    up, names = domains.parents(rng, count), list(range(1, count))
                    rng.shuffle(names)
                    names.insert(0, 0)
                    new = [-1] * count
                    for node, above in enumerate(up):
                        if above >= 0:
                            new[names[node]] = names[above]
                    values[parent] = new

                yield Property("tree", fact.text, is_tree, grow, (Place(parent),))


def _no_loops(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for name in _edge_lists(shapes):
        yield Property("no_loops", fact.text, partial(_without_loops, name))


def _search_tree(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for name in (name for name, shape in shapes.items() if shape.kind == "tree"):

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            tree = [one for one in values[name] if one is not None]
            low, high = min(tree, default=0), max(tree, default=0)
            new = domains.distinct(rng, len(tree), low, max(high, low + len(tree) - 1))
            if new is not None:
                values[name] = domains.search_tree(rng, values[name], new)

        yield Property("bst", fact.text, partial(_is_search_tree, name), mend)


def _complete(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    whole = fact.name == "perfect"
    for name in (name for name, shape in shapes.items() if shape.kind == "tree"):

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            tree = [one for one in values[name] if one is not None]
            if whole:
                tree = tree[: 2 ** (len(tree) + 1).bit_length() // 2 - 1]
            values[name] = tree

        def holds(values: Values, name: str = name) -> bool:
            tree = values[name]
            return None not in tree and (not whole or not (len(tree) & (len(tree) + 1)))

        yield Property(fact.name, fact.text, holds, mend)


# --- numbers and strings


def _even(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    odd = fact.value == "odd"
    for spot in spots:
        if spot.length or shapes[spot.parameter].kind == "int":
            yield Property(
                "even",
                fact.text,
                partial(_of_rest, spot, 2, int(odd)),
                places=(spot,),
                value=int(odd),
            )


def _power(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    powers = {fact.value**n for n in range(64)}
    for spot in spots:
        yield Property(
            "power",
            fact.text,
            partial(_among, spot, powers),
            places=(spot,),
            value=fact.value,
        )


def _no_leading_zero(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    if not spots:
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in ("str", "links") or
                 (shape.kind == "list" and shape.item and shape.item.kind in ("int", "str"))]  # fmt: skip

    def right(value: Any) -> bool:
        return len(value) <= 1 or value[0] not in ("0", 0)

    for spot in spots:
        shape = shapes[spot.parameter]
        strings = shape.kind == "list" and shape.item is not None and shape.item.kind == "str"
        if shape.kind not in ("str", "list", "links"):
            continue

        def holds(values: Values, spot: Place = spot, strings: bool = strings) -> bool:
            value = values[spot.parameter]
            return all(map(right, value)) if strings else right(value)

        def mend(rng: random.Random, values: Values, spot: Place = spot, strings: bool = strings) -> None:
            value, digit = values[spot.parameter], rng.randint(1, 9)
            if strings:
                values[spot.parameter] = [one if right(one) else str(digit) + one[1:] for one in value]
            elif not right(value):
                values[spot.parameter] = str(digit) + value[1:] if isinstance(value, str) else [digit, *value[1:]]

        yield Property("no_leading_zero", fact.text, holds, mend)


def _spaces(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    names = {spot.parameter for spot in spots if shapes[spot.parameter].kind == "str"}
    names = names or {name for name, shape in shapes.items() if shape.kind == "str" and " " in shape.chars}
    single = fact.name == "single_space"
    for name in sorted(names):

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            value = values[name]
            new = " ".join(value.split()) if single else value.strip(" ")
            values[name] = new or next((char for char in value if char != " "), "a")

        def holds(values: Values, name: str = name) -> bool:
            return "  " not in values[name] if single else values[name] == values[name].strip(" ")

        yield Property(fact.name, fact.text, holds, mend)


def _brackets(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for spot in spots:
        name, shape = spot.parameter, shapes[spot.parameter]
        if shape.kind != "str":
            continue
        kinds = "".join(pair for pair in ("()", "[]", "{}") if pair[0] in shape.chars) or "()"
        only = shape.chars <= set("()[]{}")

        def mend(rng: random.Random, values: Values, name: str = name, kinds: str = kinds, only: bool = only) -> None:
            if only:
                values[name] = domains.brackets(rng, max(2, len(values[name])), kinds)

        yield Property("brackets", fact.text, partial(_balanced, name), mend)


def _palindrome(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for spot in spots:
        name = spot.parameter
        if shapes[name].kind == "str" and not spot.depth:

            def mend(rng: random.Random, values: Values, name: str = name) -> None:
                half = values[name][: (len(values[name]) + 1) // 2]
                values[name] = half + values[name][: len(values[name]) // 2][::-1]

            yield Property("palindrome", fact.text, partial(_reads_backwards, name), mend)


def _member(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for spot in spots:
        inside = str(fact.value)
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

        if shapes[inside].kind in SEQUENCES or tree:
            yield Property("member", fact.text, holds, mend)


def _multiple(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    of = str(fact.value)
    for spot in spots:
        if not (of.isdigit() or (of in shapes and shapes[of].kind == "int")):
            continue

        def holds(values: Values, spot: Place = spot) -> bool:
            by = int(of) if of.isdigit() else values[of]
            return by != 0 and all(one % by == 0 for one in at(values, spot))

        yield Property("multiple", fact.text, holds, places=(spot,), value=int(of) if of.isdigit() else of)


def _time(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    clock = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")
    for spot in spots:
        texts = [part for part in shapes[spot.parameter].walk() if part.kind == "str"]
        if texts and all(clock.fullmatch(one) for one in texts[0].pool):

            def mend(rng: random.Random, values: Values, name: str = spot.parameter) -> None:
                values[name] = _replaced(values[name], lambda _: f"{rng.randrange(24):02}:{rng.randrange(60):02}")

            yield Property("time", fact.text, partial(_all_match, spot.parameter, clock), mend)


def _replaced(value: Any, new: Callable[[str], str]) -> Any:
    return [_replaced(one, new) for one in value] if isinstance(value, list) else new(value)


def _binary(fact: Fact, spots: list[Place], shapes: Mapping[str, Shape]) -> _Made:
    for spot in spots:
        leaf = [part.kind for part in shapes[spot.parameter].walk()][-1]
        value: list[Any] = ["0", "1"] if leaf == "str" else [0, 1]
        if shapes[spot.parameter].kind != "int":
            deeper = Place(spot.parameter, _depth(shapes[spot.parameter]) + (leaf == "str"))
            yield from _choices(Fact("choices", fact.subjects, value, fact.text), [deeper], shapes)


_MAKERS: dict[str, Callable[[Fact, list[Place], Mapping[str, Shape]], _Made]] = {
    "alphabet": _alphabet,
    "choices": _choices,
    "distinct": _distinct,
    "sorted": _sorted,
    "permutation": _permutation,
    "anagram": _anagram,
    "tree": _graph,
    "connected": _graph,
    "acyclic": _graph,
    "no_loops": _no_loops,
    "bst": _search_tree,
    "complete": _complete,
    "perfect": _complete,
    "even": _even,
    "power": _power,
    "no_leading_zero": _no_leading_zero,
    "no_outer_space": _spaces,
    "single_space": _spaces,
    "brackets": _brackets,
    "palindrome": _palindrome,
    "member": _member,
    "multiple": _multiple,
    "time": _time,
    "binary": _binary,
}
