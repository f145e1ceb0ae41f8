"""Graphs and trees whose edges are the rows of a block: checked and drawn."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .limits import Path, Spot
from .shape import Retry


@dataclass(slots=True)
class Edges:
    """Two columns of a block that are the ends of edges."""

    path: Path  # of the block's rows
    ends: tuple[Spot, Spot]
    tree: bool = False
    connected: bool = False
    simple: bool = False  # neither loops nor two edges between the same ends
    rising: bool = False


def edge_fault(edges: Edges, left: list[int], right: list[int]) -> str:
    """What is wrong with the edges; the number of vertices is told by a tree's edges, or by the largest name."""
    pairs = list(zip(left, right, strict=False))
    if (edges.simple or edges.tree) and (
        any(a == b for a, b in pairs) or len({(min(p), max(p)) for p in pairs}) < len(pairs)
    ):
        return "the graph is not simple"
    if edges.tree or edges.connected:
        root: dict[int, int] = {}

        def find(v: int) -> int:
            root.setdefault(v, v)
            while root[v] != v:
                root[v] = root[root[v]]
                v = root[v]
            return v

        merged = 0
        for a, b in pairs:
            a, b = find(a), find(b)
            if a != b:
                root[a] = b
                merged += 1
        if pairs and (merged != len(root) - 1 or (edges.tree and merged != len(pairs))):
            return "the graph is not a tree" if edges.tree else "the graph is not connected"
        if pairs and (max(root) - min(root) + 1 != len(root)):
            return "a vertex has no edge"
    return ""


def drawn_edges(
    edges: Edges, number: int, first: int, vertices: int, rising: bool, rng: random.Random
) -> list[dict[str, int]]:
    """So many edges between vertices that are numbered from `first`. `rising`: the smaller end stands first."""
    if edges.tree:
        if vertices < number + 1:
            raise Retry
        vertices = number + 1
    pairs: list[tuple[int, int]] = []
    if edges.tree or edges.connected:
        if number < vertices - 1:
            raise Retry
        kind = rng.choice(("path", "star", "random", "random", "deep", "binary"))
        for v in range(1, vertices):
            parent = {"path": v - 1, "star": 0, "binary": (v - 1) // 2}.get(kind)
            if parent is None:
                parent = rng.randint(max(0, v - 3), v - 1) if kind == "deep" else rng.randrange(v)
            pairs.append((parent, v))
    seen = {(min(p), max(p)) for p in pairs}
    tries = 0
    while len(pairs) < number:
        tries += 1
        a, b = rng.randrange(vertices), rng.randrange(vertices)
        if edges.simple and (a == b or (min(a, b), max(a, b)) in seen):
            if tries > 50 * number + 100:
                raise Retry
            continue
        seen.add((min(a, b), max(a, b)))
        pairs.append((a, b))
    used = {v for pair in pairs for v in pair}
    named = rng.sample(range(vertices), len(used)) if rng.random() < 0.7 else used
    names = dict(zip(used, named, strict=True))
    if rng.random() < 0.7:
        rng.shuffle(pairs)
    found = []
    for a, b in pairs:
        u, v = names[a] + first, names[b] + first
        if (rising and u > v) or (not rising and rng.random() < 0.3):
            u, v = v, u
        found.append({edges.ends[0].field.name: u, edges.ends[1].field.name: v})
    return found
