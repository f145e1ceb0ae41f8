"""The benchmark's problems that read standard input. A body defines solve(lines), which returns the output's lines."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.shared.spec import Spec


def _join(*rows: list[int] | list[str]) -> str:
    return "\n".join(" ".join(str(v) for v in row) for row in rows) + "\n"


def _several(make: Callable[[random.Random, bool], str]) -> Callable[[random.Random, int], list[str]]:
    return lambda rng, count: [make(rng, i == count - 1) for i in range(count)]


# window: the largest sum of k neighbours. Last test: all values negative.
def _window(rng: random.Random, last: bool) -> str:
    n, k = 700, rng.randint(20, 60)
    low, high = (-90, -1) if last else (-20, 90)
    return _join([n, k], [rng.randint(low, high) for _ in range(n)])


_WINDOW = """
def solve(lines):
    n, k = map(int, lines[0].split())
    values = list(map(int, lines[1].split()))
    best = {start}
    for i in range(n - k + 1):
        total = sum(values[i:i + {width}])
        if total > best:
            best = total
    return [str(best)]
"""


# primes: how many primes lie in [l, r]. Last test: l = 1.
def _primes(rng: random.Random, last: bool) -> str:
    top = rng.randint(5000, 8000)
    pairs = [sorted([rng.randint(2, top), rng.randint(2, top)]) for _ in range(40)]
    if last:
        pairs[0] = [1, top]
    return _join([len(pairs)], *pairs)


_PRIMES = """
def solve(lines):
    queries = [tuple(map(int, line.split())) for line in lines[1:1 + int(lines[0])]]
    top = max(r for _, r in queries)
    sieve = [True] * (top + 1)
    sieve[0] = False
    {one}
    for p in range(2, int(top ** 0.5) + 1):
        if sieve[p]:
            for multiple in range(p * p, top + 1, p):
                sieve[multiple] = False
    upto = [0]
    for flag in sieve:
        upto.append(upto[-1] + flag)
    return [str(upto[r + {shift}] - upto[l]) for l, r in queries]
"""


# maze: steps from corner to corner. Last test: there is no way.
def _maze(rng: random.Random, last: bool) -> str:
    n = 30
    grid = [["#" if rng.random() < 0.2 else "." for _ in range(n)] for _ in range(n)]
    for i in range(n):  # one border row and column stay free, so that there is a way
        grid[0][i] = grid[i][n - 1] = "."
    if last:
        for i in range(n):
            grid[n // 2][i] = "#"
    return _join([n], *[["".join(row)] for row in grid])


_MAZE = """
from collections import deque

def solve(lines):
    n = int(lines[0])
    grid = [lines[1 + i].strip() for i in range(n)]
    seen = [[-1] * n for _ in range(n)]
    seen[0][0] = {first}
    queue = deque([(0, 0)])
    while queue:
        r, c = queue.popleft()
        for a, b in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if 0 <= a < n and 0 <= b < n and grid[a][b] == "." and seen[a][b] < 0:
                seen[a][b] = seen[r][c] + 1
                queue.append((a, b))
    return [str({answer})]
"""


# words: words by falling count, then by name. Last test: there are ties.
def _words(rng: random.Random, last: bool) -> str:
    names = ["".join(rng.choice("abcdefgh") for _ in range(6)) for _ in range(40)]
    names = sorted(set(names), reverse=True)
    text = [name for i, name in enumerate(names) for _ in range(5 if last else 3 * i + 1)]
    if not last:
        rng.shuffle(text)
    return _join([len(text)], text)


_WORDS = """
def solve(lines):
    count = {{}}
    for word in lines[1].split():
        count[word] = count.get(word, 0) + 1
    ranked = sorted(count.items(), key=lambda item: {key})
    return [f"{{word}} {{number}}" for word, number in ranked]
"""


# spread: mean and standard deviation, 1e-6 allowed. Last test: large values close together.
def _spread(rng: random.Random, last: bool) -> str:
    n, base = 1200, 1e8 if last else 0.0
    return _join([n], [f"{base + rng.random() * 50:.3f}" for _ in range(n)])


_SPREAD = """
def solve(lines):
    values = [float(v) for v in lines[1].split()]
    mean = sum(values) / len(values)
    variance = {variance}
    return [{form}]
"""
_SPREAD_GOOD = "sum((v - mean) ** 2 for v in values) / len(values)"
_SPREAD_NAIVE = "max(0.0, sum(v * v for v in values) / len(values) - mean * mean)"
_SPREAD_REPR = 'f"{mean} {variance ** 0.5}"'
_SPREAD_NUMPY = """
import numpy as np

def solve(lines):
    values = np.array(lines[1].split(), dtype=float)
    return [f"{values.mean()} {values.std()}"]
"""


# table: many rows of numbers, so heavy output. Last test: modulus 1.
def _table(rng: random.Random, last: bool) -> str:
    rows = rng.choice([20, 20, 20, 20, 100, 300, 900])  # up to 2 MB, on some tests
    return f"{rows} {rng.randint(200, 400)} {rng.randint(0, 99)} {1 if last else rng.randint(50000, 99999)}\n"


_TABLE = """
def solve(lines):
    rows, columns, shift, modulus = map(int, lines[0].split())
    out = []
    for i in range(rows):
        step = i * 7919 + 1
        out.append(" ".join([str((step * j + shift) % modulus{fault}) for j in range(columns)]))
    return out
"""


# merge: the union of closed intervals. Last test: intervals that touch.
def _merge(rng: random.Random, last: bool) -> str:
    rows = [[start := 4 * rng.randint(0, 4000), start + 4 * rng.randint(0, 8) + 1] for _ in range(500)]
    if last:
        rows = [[4 * i, 4 * i + 4] for i in range(300)] + rows
    return _join([len(rows)], *rows)


_MERGE = """
def solve(lines):
    spans = sorted(tuple(map(int, line.split())) for line in lines[1:1 + int(lines[0])])
    merged = []
    for start, end in spans:
        if merged and start {touch} merged[-1][1]:
            merged[-1][1] = {reach}
        else:
            merged.append([start, end])
    return [str(len(merged))] + [f"{{a}} {{b}}" for a, b in merged]
"""


# depth: height of a tree, by recursion. Last test: a path of 1,600 nodes.
def _depth(rng: random.Random, last: bool) -> str:
    n = 1600
    parents = [i if last else rng.randint(max(1, i // 2), i) for i in range(1, n)]
    return _join([n], parents)


_DEPTH = """
import sys
sys.setrecursionlimit(10000)

def solve(lines):
    n = int(lines[0])
    children = [[] for _ in range(n + 1)]
    for child, parent in enumerate(map(int, lines[1].split()), 2):
        children[parent].append(child)

    def height(node):
        below = 0
        for child in children[node]:
            below = max(below, height(child))
        return below + {add}

    return [str(height(1))]
"""
_DEPTH_LEVELS = """
def solve(lines):
    children = {}
    for child, parent in enumerate(map(int, lines[1].split()), 2):
        children.setdefault(parent, []).append(child)
    level, height = [1], 0
    while level and height < 1000:
        level = [child for node in level for child in children.get(node, [])]
        height += 1
    return [str(height)]
"""


# jobs: a priority queue. Last test: a take from the empty queue, which answers "none".
def _jobs(rng: random.Random, last: bool) -> str:
    rows, held = [], 0
    for _ in range(800):
        if held > 3 and rng.random() < 0.45:
            rows.append("take")
            held -= 1
        else:
            rows.append(f"add {rng.randint(1, 10**9)}")
            held += 1
    return "\n".join([*rows, *(["take"] * (held + 1) if last else [])]) + "\n"


_JOBS = """
import heapq

def solve(lines):
    heap, out = [], []
    for line in lines:
        if line.startswith("add"):
            heapq.heappush(heap, {sign}int(line.split()[1]))
        elif line.strip() == "take":
            {guard}
                out.append(str({sign}heapq.heappop(heap)))
            else:
                out.append("none")
    return out
"""


# brackets: YES or NO for each string, in any case of letters. Last test: closed before opened.
def _brackets(rng: random.Random, last: bool) -> str:
    rows = []
    for _ in range(30):
        text, held = [], 0
        for _ in range(120):
            step = 1 if held == 0 or rng.random() < 0.5 else -1
            held += step
            text.append("(" if step > 0 else ")")
        rows.append("".join(text) + ")" * (held if rng.random() < 0.5 else max(0, held - 1)))
    if last:
        rows[-1] = ")(" * 20
    return _join([len(rows)], *[[row] for row in rows])


_BRACKETS = """
def solve(lines):
    out = []
    for text in lines[1:1 + int(lines[0])]:
        depth, good = 0, True
        for mark in text.strip():
            depth += 1 if mark == "(" else -1
            {check}
        out.append("{yes}" if good and depth {end} else "{no}")
    return out
"""
_BELOW = "good = good and depth >= 0"

SPECS = [
    Spec(
        "window",
        "stdin",
        "The largest sum of k neighbouring values.",
        _several(_window),
        right=[_WINDOW.format(start="-10**18", width="k")],
        early=[_WINDOW.format(start="-10**18", width="k - 1")],
        late=[_WINDOW.format(start="0", width="k")],
    ),
    Spec(
        "primes",
        "stdin",
        "For each query, how many primes lie between l and r.",
        _several(_primes),
        right=[_PRIMES.format(one="sieve[1] = False", shift=1)],
        early=[_PRIMES.format(one="sieve[1] = False", shift=0)],
        late=[_PRIMES.format(one="pass", shift=1)],
    ),
    Spec(
        "maze",
        "stdin",
        "Fewest steps from the top left to the bottom right corner, or -1.",
        _several(_maze),
        right=[_MAZE.format(first=0, answer="seen[n - 1][n - 1]")],
        early=[_MAZE.format(first=1, answer="seen[n - 1][n - 1]")],
        late=[_MAZE.format(first=0, answer="max(0, seen[n - 1][n - 1])")],
    ),
    Spec(
        "words",
        "stdin",
        "Words by falling count, equal counts by name.",
        _several(_words),
        right=[_WORDS.format(key="(-item[1], item[0])")],
        early=[_WORDS.format(key="(item[1], item[0])")],
        late=[_WORDS.format(key="-item[1]")],
    ),
    Spec(
        "spread",
        "stdin",
        "Mean and standard deviation; an error of 1e-6 is accepted.",
        _several(_spread),
        right=[_SPREAD.format(variance=_SPREAD_GOOD, form=_SPREAD_REPR)],
        early=[_SPREAD.format(variance=_SPREAD_GOOD.replace("len(values)", "(len(values) - 1)"), form=_SPREAD_REPR)],
        late=[_SPREAD.format(variance=_SPREAD_NAIVE, form=_SPREAD_REPR)],
        also_right=[
            _SPREAD.format(variance=_SPREAD_GOOD, form='f"{mean:.9f} {variance ** 0.5:.9f}"'),
            _SPREAD_NUMPY,
        ],
    ),
    Spec(
        "table",
        "stdin",
        "Row i, column j holds ((7919 i + 1) j + shift) mod modulus.",
        _several(_table),
        heavy=True,
        right=[_TABLE.format(fault="")],
        early=[_TABLE.format(fault=" + 1")],
        late=[_TABLE.format(fault=" + (modulus == 1)")],
    ),
    Spec(
        "merge",
        "stdin",
        "The union of closed intervals, in order.",
        _several(_merge),
        right=[_MERGE.format(touch="<=", reach="max(end, merged[-1][1])")],
        early=[_MERGE.format(touch="<=", reach="end")],
        late=[_MERGE.format(touch="<", reach="max(end, merged[-1][1])")],
    ),
    Spec(
        "depth",
        "stdin",
        "The height of a rooted tree.",
        _several(_depth),
        right=[_DEPTH.format(add=1)],
        early=[_DEPTH.format(add=2)],
        late=[_DEPTH_LEVELS],
    ),
    Spec(
        "jobs",
        "stdin",
        'Take the smallest job each time, or say "none".',
        _several(_jobs),
        late_kind="runtime_error",
        right=[_JOBS.format(sign="", guard="if heap:")],
        early=[_JOBS.format(sign="-", guard="if heap:")],
        late=[_JOBS.format(sign="", guard="if True:")],
    ),
    Spec(
        "brackets",
        "stdin",
        "Is each string balanced? YES or NO, in any case of letters.",
        _several(_brackets),
        right=[_BRACKETS.format(check=_BELOW, yes="YES", no="NO", end="== 0")],
        early=[_BRACKETS.format(check=_BELOW, yes="YES", no="NO", end=">= 0")],
        late=[_BRACKETS.format(check="pass", yes="YES", no="NO", end="== 0")],
        also_right=[_BRACKETS.format(check=_BELOW, yes="Yes", no="No", end="== 0")],
    ),
]
