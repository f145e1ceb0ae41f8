"""Trees and graphs to draw, and the tests for them: lists of levels as LeetCode writes trees, and lists of edges.

Everything follows from the `rng` that is given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from .domains import Rng

Edge = list[int]


# --- trees as lists of levels


def levels(rng: Rng, values: Sequence[Any], deepest: int | None = None) -> list[Any]:
    """A binary tree of these values (in the order of its levels) as LeetCode writes it, in a shape of its own."""
    if not values:
        return []
    style = rng.choice(["random", "random", "random", "complete", "left", "right", "zigzag"])
    if len(values) > 200 or (deepest is not None and len(values) > deepest):
        style = rng.choice(["random", "complete"])
    out: list[Any] = [values[0]]
    used = 1
    waiting = deque([0])
    while used < len(values):
        waiting.popleft()
        both = len(values) - used
        if style == "complete" or (not waiting and both == 0):
            sides = (True, True)
        elif style in ("left", "right", "zigzag"):
            left = style == "left" or (style == "zigzag" and used % 2 == 0)
            sides = (left, not left)
        else:
            sides = rng.choice([(True, True), (True, False), (False, True), (True, True), (False, False)])
            if not waiting and not any(sides):
                sides = rng.choice([(True, True), (True, False), (False, True)])
        for side in sides:
            if side and used < len(values):
                out.append(values[used])
                waiting.append(used)
                used += 1
            else:
                out.append(None)
    while out and out[-1] is None:
        out.pop()
    return out


def level_faults(value: Any) -> str:
    """Why a list is no list of levels; "" if it is one."""
    if not isinstance(value, list):
        return "a tree is no list of levels"
    if not value:
        return ""
    if value[0] is None:
        return "a tree whose root is null"
    places, at = 1, 1
    while at < len(value):
        if places == 0:
            return "a tree with nodes that have no parent"
        places -= 1
        for one in value[at : at + 2]:
            places += one is not None
        at += 2
    return "a tree that ends with null" if value[-1] is None else ""


def inorder(value: Sequence[Any]) -> list[Any]:
    """The values of a tree from left to right."""
    if not value:
        return []
    children: list[list[int | None]] = [[None, None] for _ in value]
    waiting, at = deque([0]), 1
    while waiting and at < len(value):
        node = waiting.popleft()
        for side in (0, 1):
            if at < len(value) and value[at] is not None:
                children[node][side] = at
                waiting.append(at)
            at += 1
    out: list[Any] = []
    path: list[int] = []
    current: int | None = 0
    while path or current is not None:
        while current is not None:
            path.append(current)
            current = children[current][0]
        node = path.pop()
        out.append(value[node])
        current = children[node][1]
    return out


def search_tree(rng: Rng, shape: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """A tree of the same shape whose values, from left to right, are `values` sorted."""
    numbers: list[Any] = [None if one is None else n for n, one in enumerate(shape)]
    new = dict(zip(inorder(numbers), sorted(values), strict=True))
    return [None if one is None else new[one] for one in numbers]


def depth(value: Sequence[Any]) -> int:
    """How many levels a tree has."""
    count, level, at = 0, 1 if value else 0, 1
    while level:
        count += 1
        below = sum(one is not None for one in value[at : at + 2 * level])
        at += 2 * level
        level = below
    return count


# --- trees and graphs as edges


def parents(rng: Rng, count: int) -> list[int]:
    """A parent, of a lower number, for each node but 0, whose parent is -1: a path, a star, a bush, anything."""
    style = rng.choice(["random", "random", "path", "star", "bush", "caterpillar", "binary"])
    out = [-1]
    for node in range(1, count):
        match style:
            case "path":
                out.append(node - 1)
            case "star":
                out.append(0)
            case "bush":
                out.append(rng.randint(max(0, node - 3), node - 1))
            case "caterpillar":
                out.append(max(0, node - 1 - node % 2))
            case "binary":
                out.append((node - 1) // 2)
            case _:
                out.append(rng.randrange(node))
    return out


def tree_edges(rng: Rng, count: int, base: int = 0, directed: bool = False) -> list[Edge]:
    """The edges of a random tree of nodes base ... base + count - 1. Directed: from the root, which is `base`."""
    names = list(range(base, base + count))
    if not directed:
        rng.shuffle(names)
    else:
        rest = names[1:]
        rng.shuffle(rest)
        names[1:] = rest
    edges = [[names[parent], names[node]] for node, parent in enumerate(parents(rng, count)) if parent >= 0]
    if not directed:
        edges = [edge if rng.random() < 0.5 else edge[::-1] for edge in edges]
    if rng.random() < 0.7:
        rng.shuffle(edges)
    return edges


def graph_edges(
    rng: Rng,
    count: int,
    wanted: int,
    base: int = 0,
    connected: bool = False,
    acyclic: bool = False,
    directed: bool = False,
) -> list[Edge]:
    """`wanted` different edges (fewer if there are not as many), without loops."""
    edges = tree_edges(rng, count, base) if connected else []
    seen = {(a, b) if directed else (min(a, b), max(a, b)) for a, b in edges}
    order = list(range(count))
    rng.shuffle(order)
    if count > 1:
        for _ in range(4 * wanted + 20):
            if len(edges) >= wanted:
                break
            a, b = rng.randrange(count), rng.randrange(count)
            if a == b:
                continue
            if acyclic and order[a] > order[b]:
                a, b = b, a
            key = (a + base, b + base) if directed else (min(a, b) + base, max(a, b) + base)
            if key not in seen:
                seen.add(key)
                edges.append([a + base, b + base])
    if acyclic:
        edges = [edge if order[edge[0] - base] < order[edge[1] - base] else edge[::-1] for edge in edges]
    rng.shuffle(edges)
    return edges


def components(count: int, edges: Sequence[Sequence[int]], base: int = 0) -> int:
    """How many parts hang together in a graph."""
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    left = count
    for edge in edges:
        a, b = root(edge[0] - base), root(edge[1] - base)
        if a != b:
            parent[a] = b
            left -= 1
    return left


def has_cycle(count: int, edges: Sequence[Sequence[int]], base: int = 0) -> bool:
    """Whether directed edges make a cycle."""
    into, out = [0] * count, [[] for _ in range(count)]  # type: ignore[var-annotated]
    for edge in edges:
        out[edge[0] - base].append(edge[1] - base)
        into[edge[1] - base] += 1
    ready = [node for node in range(count) if not into[node]]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for below in out[node]:
            into[below] -= 1
            if not into[below]:
                ready.append(below)
    return done < count
