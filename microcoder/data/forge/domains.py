"""Values to draw: numbers, strings, lists, trees, graphs, permutations, brackets, times; and the tests for each.

Small values that tie, repeat, ascend or alternate tell more programs apart than large random ones, so every list is
drawn in a style of its own. Everything follows from the `rng` that is given.
"""

from __future__ import annotations

import itertools
import random
import string
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

Rng = random.Random
Edge = list[int]


# --- numbers


def integer(rng: Rng, low: int, high: int, size: float) -> int:
    """A number: mostly small or at an end, more often anywhere for larger sizes."""
    if low >= high:
        return low
    near = min(max(0, low), high)
    pick = rng.random()
    if pick < 0.5 - 0.3 * size:
        return min(high, near + rng.randint(0, 5))
    if pick < 0.65 - 0.3 * size:
        return rng.choice([low, min(high, low + 1), near, max(low, near - 1)])
    if pick < 0.75:
        return rng.randint(low, high) if size > 0.5 else rng.randint(max(low, near - 20), min(high, near + 20))
    if pick < 0.82:
        return rng.choice([high, high - 1, low])
    span = rng.uniform(0, 1)  # any order of magnitude
    if low < 0 and rng.random() < 0.4:
        return max(low, near - int(max(1, near - low) ** span))
    return min(high, near + int(max(1, high - near) ** span))


def window(rng: Rng, low: int, high: int, size: float) -> tuple[int, int]:
    """A part of a range: a few values at an end or around 0, a middling part, or all of it."""
    pick = rng.random()
    if high - low <= 2 or pick < 0.15 + 0.35 * size:
        return low, high
    width = rng.choice([1, 1, 2, 3, 4, 6, 9, 20, 100])
    anchor = min(max(0, low), high)
    if pick > 0.93:
        return max(low, high - width), high
    if pick > 0.88:
        return low, min(high, low + width)
    if low < 0 and pick > 0.55:
        half = max(1, width // 2)
        return max(low, anchor - half), min(high, anchor + half)
    return anchor, min(high, anchor + width)


def integers(rng: Rng, count: int, low: int, high: int, size: float = 0.3) -> list[int]:
    """A list of numbers in one of many styles."""
    if count <= 0:
        return []
    a, b = window(rng, low, high, size)
    style = rng.choice(
        ["random"] * 6
        + ["equal", "two", "ascending", "descending", "alternating", "runs", "outlier", "peak", "range", "halves"]
    )
    if style == "equal":
        return [rng.randint(a, b)] * count
    if style == "two":
        pair = [rng.randint(a, b), rng.randint(a, b)]
        return [rng.choice(pair) for _ in range(count)]
    if style == "alternating":
        pair = [rng.randint(a, b), rng.randint(a, b)]
        return [pair[n % 2] for n in range(count)]
    if style == "range":
        start = rng.randint(a, b)
        return [low + (start - low + n) % (high - low + 1) for n in range(count)]
    values = [rng.randint(a, b) for _ in range(count)]
    match style:
        case "ascending":
            values.sort()
        case "descending":
            values.sort(reverse=True)
        case "runs":
            at = 0
            while at < count:
                length = rng.randint(1, max(2, count // 3))
                values[at : at + length] = [values[at]] * len(values[at : at + length])
                at += length
        case "outlier":
            values[rng.randrange(count)] = rng.choice([low, high])
        case "peak":
            values.sort()
            values = values[::2] + values[1::2][::-1]
        case "halves":
            half = values[: (count + 1) // 2]
            values = (half + (half[::-1] if rng.random() < 0.5 else half))[:count]
    return values


def distinct(rng: Rng, count: int, low: int, high: int, size: float = 0.3) -> list[int] | None:
    """Different numbers in random order; None if there are not as many."""
    if high - low + 1 < count:
        return None
    a, b = window(rng, low, high, size)
    if b - a + 1 < count:
        a = min(a, high - count + 1)
        b = min(high, a + count + rng.choice([-1, 0, 1, count // 2, count * 3]))
        b = max(b, a + count - 1)
    values = rng.sample(range(a, b + 1), count)
    match rng.randrange(6):
        case 0:
            values.sort()
        case 1:
            values.sort(reverse=True)
    return values


def decimals(rng: Rng, count: int, low: float, high: float, places: int = 2) -> list[float]:
    """Decimal fractions with few places."""
    style = rng.random()
    if style < 0.15:
        return [round(rng.uniform(low, high), places)] * count
    pool = [round(rng.uniform(low, high), places) for _ in range(3)] if style < 0.4 else None
    return [rng.choice(pool) if pool else round(rng.uniform(low, high), places) for _ in range(count)]


# --- strings


def letters(rng: Rng, alphabet: str) -> str:
    """A part of an alphabet: often two or three letters."""
    if len(alphabet) <= 2 or rng.random() < 0.2:
        return alphabet
    count = min(len(alphabet), rng.choice([1, 2, 2, 2, 3, 3, 4, 6]))
    if rng.random() < 0.5:
        start = rng.choice([0, 0, 0, len(alphabet) - count, rng.randrange(len(alphabet) - count + 1)])
        return alphabet[start : start + count]
    return "".join(rng.sample(alphabet, count))


def text(rng: Rng, count: int, alphabet: str, size: float = 0.3) -> str:
    """A string in one of many styles."""
    if count <= 0 or not alphabet:
        return ""
    part = letters(rng, alphabet)
    plain = "".join(rng.choices(part, k=count))
    match rng.randrange(14):
        case 0:
            return rng.choice(part) * count
        case 1:
            return "".join(itertools.islice(itertools.cycle(part[:2]), count))
        case 2:
            return "".join(sorted(plain))
        case 3:
            return "".join(sorted(plain, reverse=True))
        case 4:
            half = plain[: (count + 1) // 2]
            return half + half[: count // 2][::-1]
        case 5:
            block = plain[: rng.randint(1, max(1, count // 2))]
            return (block * (count // len(block) + 1))[:count]
        case 6:
            return "".join(char * rng.randint(1, 3) for char in plain)[:count]
        case 7:
            whole = rng.choice(part) * count
            at = rng.randrange(count)
            return whole[:at] + rng.choice(alphabet) + whole[at + 1 :]
        case 8:
            return "".join(rng.choices(alphabet, k=count))
    return plain


def brackets(rng: Rng, count: int, kinds: str = "()") -> str:
    """A balanced string of brackets, of the even number of characters below `count + 1`."""
    pairs = [kinds[n : n + 2] for n in range(0, len(kinds) - 1, 2)] or ["()"]
    out: list[str] = []
    waiting: list[str] = []
    left = count // 2
    deep = rng.choice([0.3, 0.5, 0.8])
    while left or waiting:
        if left and (not waiting or rng.random() < deep):
            pair = rng.choice(pairs)
            out.append(pair[0])
            waiting.append(pair[1])
            left -= 1
        else:
            out.append(waiting.pop())
    return "".join(out)


def balanced(value: str) -> bool:
    """Whether brackets, if nothing else is looked at, open and close in order."""
    waiting = []
    closing = {"(": ")", "[": "]", "{": "}", "<": ">"}
    for char in value:
        if char in closing:
            waiting.append(closing[char])
        elif char in closing.values() and (not waiting or waiting.pop() != char):
            return False
    return not waiting


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


# --- order


def ordered(values: Sequence[Any], order: str, key: Callable[[Any], Any] | None = None) -> bool:
    """Whether a list is "ascending", "strictly ascending", "descending" or "strictly descending"."""
    keys = [key(one) for one in values] if key else list(values)
    if "descending" in order:
        keys.reverse()
    if "strictly" in order:
        return all(a < b for a, b in itertools.pairwise(keys))
    return all(a <= b for a, b in itertools.pairwise(keys))


def repeated(values: Sequence[Any]) -> bool:
    """Whether a value stands in a list twice."""
    keys = [_key(one) for one in values]
    return len(set(keys)) < len(keys)


def _key(value: Any) -> Any:
    return tuple(map(_key, value)) if isinstance(value, list) else (value, isinstance(value, bool))


PRINTABLE = "".join(sorted(set(string.printable) - set("\t\n\r\x0b\x0c")))
