"""Facts about trees and graphs tied to parameters: edges, parents, lists of levels."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from functools import partial

from ..reading.facts import StatedFact
from . import domains, trees
from .places import Made, Place, Property, Values, depth_of
from .shapes import SEQUENCES, Shape

_EDGES = ("edges", "roads", "connections", "paths", "flights", "links", "adjacentPairs", "corridors", "bonds", "pipes")


def edge_lists(shapes: Mapping[str, Shape]) -> list[str]:
    """Parameters that may be lists of edges, the likeliest first."""
    found = [
        name
        for name, shape in shapes.items()
        if shape.kind in SEQUENCES and shape.item and shape.item.kind in SEQUENCES and 2 <= shape.item.shortest
        and shape.item.longest <= 4 and shape.item.shortest == shape.item.longest
        and all(part.kind == "int" for part in [*shape.item.items, *([shape.item.item] if shape.item.item else [])][:2])
    ]  # fmt: skip
    named = [name for name in found if name.rstrip("12") in _EDGES]
    return named or (found if len(found) == 1 else [])


def _count(values: Values, edges: str, tree: bool) -> int:
    n = values.get("n")
    if type(n) is int and not edges.endswith(("1", "2")):
        return n
    if tree:
        return len(values[edges]) + 1
    return 1 + max((max(edge[:2]) for edge in values[edges]), default=0)


def base_of(shapes: Mapping[str, Shape], edges: str) -> int:
    item = shapes[edges].item
    seen = [row[:2] for rows in shapes[edges].pool for row in rows] if item else []
    return 1 if seen and min(min(row) for row in seen) >= 1 else 0


def different_edges(name: str, values: Values) -> bool:
    return not domains.repeated([sorted(edge[:2]) for edge in values[name]])


def draw_edges(name: str, base: int, rng: random.Random, values: Values) -> None:
    """Put different edges in the place of those that were drawn."""
    rows, count = values[name], values.get("n")
    if rows and type(count) is int and count <= 300_000 and not different_edges(name, values):
        new = trees.graph_edges(rng, count, len(rows), base)
        values[name] = [[*pair, *rows[n][2:]] for n, pair in enumerate(new)]


def _without_loops(name: str, values: Values) -> bool:
    return all(edge[0] != edge[1] for edge in values[name])


def _is_search_tree(name: str, order: str, values: Values) -> bool:
    return domains.ordered(trees.inorder(values[name]), order)


def _graph(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A tree, a connected graph, or one without cycles: of edges, or as the parent of each node."""
    names = edge_lists(shapes)
    names = list(dict.fromkeys(s.parameter for s in spots if s.parameter in names)) or names[:1]
    kind = fact.name
    for name in names:
        base = base_of(shapes, name)

        def holds(values: Values, name: str = name, base: int = base) -> bool:
            count, edges = _count(values, name, kind == "tree"), values[name]
            if any(not base <= end < base + count for edge in edges for end in edge[:2]):
                return False
            if kind == "acyclic":
                return not trees.has_cycle(count, edges, base)
            return trees.components(count, edges, base) == 1 and (kind != "tree" or len(edges) == count - 1)

        def mend(rng: random.Random, values: Values, name: str = name, base: int = base) -> None:
            count, edges = _count(values, name, kind == "tree"), values[name]
            if count > 300_000:
                return
            if kind == "tree":
                new = trees.tree_edges(rng, count, base)
            else:
                new = trees.graph_edges(rng, count, len(edges), base, kind == "connected", kind == "acyclic")
            rows = edges or [[0, 0]]
            values[name] = [[*pair, *rows[n % len(rows)][2:]] for n, pair in enumerate(new)]

        yield Property(kind, fact.text, holds, mend, (Place(name, 1),))
    if names:
        return
    if any(shape.kind == "tree" for shape in shapes.values()):
        yield Property(kind, fact.text, lambda values: True)
    if kind == "tree":
        binary = "binary tree" in fact.text
        for parent in (one for one in ("parent", "parents", "manager", "edges") if one in shapes):
            if depth_of(shapes[parent]) == 1:

                def is_tree(values: Values, parent: str = parent) -> bool:
                    up = values[parent]
                    edges = [[one, n] for n, one in enumerate(up) if 0 <= one < len(up)]
                    if binary and max(Counter(up).values(), default=0) > 2:
                        return False
                    return len(edges) == len(up) - 1 and trees.components(len(up), edges) == 1

                def grow(rng: random.Random, values: Values, parent: str = parent) -> None:
                    count = len(values[parent])
                    up, names = trees.parents(rng, count), list(range(1, count))
                    if binary:
                        free = [0, 0] * (count > 0)
                        for node in range(1, count):
                            up[node] = free.pop(rng.randrange(max(0, len(free) - 6), len(free)))
                            free += [node, node]
                    rng.shuffle(names)
                    names.insert(0, 0)
                    new = [-1] * count
                    for node, above in enumerate(up):
                        if above >= 0:
                            new[names[node]] = names[above]
                    values[parent] = new

                yield Property("tree", fact.text, is_tree, grow, (Place(parent),))


def _no_loops(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for name in edge_lists(shapes):
        yield Property("no_loops", fact.text, partial(_without_loops, name))


def _search_tree(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for name in (name for name, shape in shapes.items() if shape.kind == "tree"):

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            tree = [one for one in values[name] if one is not None]
            low, high = min(tree, default=0), max(tree, default=0)
            new = domains.distinct(rng, len(tree), low, max(high, low + len(tree) - 1))
            if new is not None:
                values[name] = trees.search_tree(rng, values[name], new)

        def mend_repeated(rng: random.Random, values: Values, name: str = name) -> None:
            if not _is_search_tree(name, "ascending", values):
                held = sorted(one for one in values[name] if one is not None)
                values[name] = trees.search_tree(rng, values[name], held)

        # a tree with equal values has the second property only: what the tests break is left out
        yield Property("bst", fact.text, partial(_is_search_tree, name, "strictly ascending"), mend)
        yield Property("bst", fact.text, partial(_is_search_tree, name, "ascending"), mend_repeated)


def _complete(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
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


MAKERS = {
    "tree": _graph,
    "connected": _graph,
    "acyclic": _graph,
    "no_loops": _no_loops,
    "bst": _search_tree,
    "complete": _complete,
    "perfect": _complete,
}
