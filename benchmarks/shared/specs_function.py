"""The benchmark's problems that ask for a function or for a method of `class Solution`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from benchmarks.shared.spec import Spec


def _several(make: Callable[[random.Random, bool], list[Any]]) -> Callable[[random.Random, int], list[str]]:
    return lambda rng, count: [json.dumps(make(rng, i == count - 1)) for i in range(count)]


# pairs: how many pairs add up to the target. Last test: equal values.
def _pairs(rng: random.Random, last: bool) -> list[Any]:
    values = rng.sample(range(100000), 1200)
    return [values + [values[0]] * 3 + [values[1]] if last else values, values[0] + values[1]]


_PAIRS = """
class Solution:
    def countPairs(self, values: List[int], target: int) -> int:
        seen, total = {{}}, {start}
        for value in values:
            total += {gain}
            seen[value] = seen.get(value, 0) + 1
        return total
"""


# runs: the longest stretch of one letter. Last test: it ends the text.
def _runs(rng: random.Random, last: bool) -> list[Any]:
    text = "".join(rng.choice("abc") for _ in range(4000)) + "xy"
    return [text + "z" * 40 if last else text]


_RUNS = """
def longest_run(text):
    best = run = {first}
    for i in range(1, len(text)):
        if text[i] == text[i - 1]:
            run += 1
        else:
            best = max(best, run)
            run = 1
    return {answer}
"""


# edits: edit distance. Last test: an empty word.
def _edits(rng: random.Random, last: bool) -> list[Any]:
    words = ["".join(rng.choice("abcd") for _ in range(rng.randint(35, 60))) for _ in range(2)]
    return [words[0], ""] if last else words


_EDITS = """
class Solution:
    def minDistance(self, a: str, b: str) -> int:
        {guard}
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            above, row[0] = row[0], i
            for j, y in enumerate(b, 1):
                above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + {cost})
        return row[-1]
"""


# turn: a matrix turned clockwise. Last test: not square.
def _turn(rng: random.Random, last: bool) -> list[Any]:
    n = rng.randint(25, 40)
    return [[[rng.randint(-999, 999) for _ in range(n + 3 * last)] for _ in range(n)]]


_TURN = """
class Solution:
    def turned(self, matrix: List[List[int]]) -> List[List[int]]:
        rows = len(matrix)
        return [[matrix[{pick}][c] for r in range(rows)] for c in range({columns})]
"""
_TURN_ZIP = """
class Solution:
    def turned(self, matrix: List[List[int]]) -> List[List[int]]:
        return list(zip(*matrix[::-1]))
"""


# pack: 0/1 knapsack. Last test: an item that weighs nothing.
def _pack(rng: random.Random, last: bool) -> list[Any]:
    n = 25
    weights = [rng.randint(5, 60) for _ in range(n)]
    if last:
        weights[0] = 0
    return [[rng.randint(1, 500) for _ in range(n)], weights, rng.randint(150, 250)]


_PACK = """
def pack(values, weights, room):
    best = [0] * (room + 1)
    for value, weight in zip(values, weights):
        {skip}
        for space in range(room, weight - 1, {step}):
            best[space] = max(best[space], best[space - weight] + value)
    return best[room]
"""
_PACK_NUMPY = """
import numpy as np

def pack(values, weights, room):
    best = np.zeros(room + 1, dtype=np.int64)
    for value, weight in zip(values, weights):
        taken = best[: room + 1 - weight] + value
        best[weight:] = np.maximum(best[weight:], taken)
    return best[room]
"""


# divisors: the number of divisors of 1..n, a long list. Last test: n = 1.
def _divisors(rng: random.Random, last: bool) -> list[Any]:
    return [1 if last else rng.randint(800, 1500)]


_DIVISORS = """
def divisor_counts(n):
    counts = [{first}] * (n + 1)
    for d in range({start}, n + 1):
        for multiple in range(d, n + 1, d):
            counts[multiple] += 1
    return counts[1:]{fault}
"""

SPECS = [
    Spec(
        "pairs",
        "function",
        "How many pairs add up to the target?",
        _several(_pairs),
        entry_point="Solution.countPairs",
        right=[_PAIRS.format(start=0, gain="seen.get(target - value, 0)")],
        early=[_PAIRS.format(start=1, gain="seen.get(target - value, 0)")],
        late=[_PAIRS.format(start=0, gain="1 if target - value in seen else 0")],
    ),
    Spec(
        "runs",
        "function",
        "The length of the longest stretch of one letter.",
        _several(_runs),
        entry_point="longest_run",
        right=[_RUNS.format(first=1, answer="max(best, run)")],
        early=[_RUNS.format(first=1, answer="max(best, run) + 1")],
        late=[_RUNS.format(first=1, answer="best")],
    ),
    Spec(
        "edits",
        "function",
        "The edit distance of two words.",
        _several(_edits),
        entry_point="Solution.minDistance",
        right=[_EDITS.format(guard="", cost="(x != y)")],
        early=[_EDITS.format(guard="", cost="2 * (x != y)")],
        late=[_EDITS.format(guard="if not b: return 0", cost="(x != y)")],
    ),
    Spec(
        "turn",
        "function",
        "The matrix turned clockwise.",
        _several(_turn),
        entry_point="Solution.turned",
        late_kind="wrong_answer",
        right=[_TURN.format(pick="rows - 1 - r", columns="len(matrix[0])")],
        early=[_TURN.format(pick="r", columns="len(matrix[0])")],
        late=[_TURN.format(pick="rows - 1 - r", columns="rows")],
        also_right=[_TURN_ZIP],
    ),
    Spec(
        "pack",
        "function",
        "The best value that fits into the room.",
        _several(_pack),
        entry_point="pack",
        right=[_PACK.format(skip="", step="-1")],
        early=[_PACK.format(skip="weight += 1", step="-1")],
        late=[_PACK.format(skip="if not weight: continue", step="-1")],
        also_right=[_PACK_NUMPY],
    ),
    Spec(
        "divisors",
        "function",
        "The number of divisors of each of 1..n.",
        _several(_divisors),
        entry_point="divisor_counts",
        right=[_DIVISORS.format(first=0, start=1, fault="")],
        early=[_DIVISORS.format(first=0, start=2, fault="")],
        late=[_DIVISORS.format(first=0, start=1, fault=" if n > 1 else []")],
    ),
]
