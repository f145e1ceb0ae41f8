"""What the diversity D of a step costs: 512 responses in groups of 8, from 1K to 8K tokens, of 150,000 words.

    python -m benchmarks.training diversity [--json FILE]

Two kinds of text: `random`, where responses share nothing (as many different grams as there can be), and `alike`, where
each group is one text with a word in fifty replaced. Responses are lists of ints, as engines hold them. The plain way,
a Counter for each response and one pair after the other, runs at the smallest size and must give the same D. Each
figure is the best of three runs (the plain way: one); linear cost means the same time per token at 8K as at 1K.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from microcoder.grpo import diversity

RESPONSES, GROUP, WORDS, GRAM = 512, 8, 150_000, 4
LENGTHS = (1024, 2048, 4096, 8192)
Responses = list[list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    figures: list[dict[str, Any]] = []
    print(f"{'text':8} {'tokens':>6} {'way':8} {'seconds':>8} {'ns/token':>9} {'D':>7}")
    for text in (random, alike):
        for length in LENGTHS:
            responses = text(length)
            figures.append(measured("numpy", diversity, responses, runs=3) | {"text": text.__name__})
            show(figures[-1])
            if length == LENGTHS[0]:
                figures.append(measured("Counter", plain, responses, runs=1) | {"text": text.__name__})
                show(figures[-1])
                fast, slow = figures[-2:]
                assert math.isclose(fast["D"], slow["D"], abs_tol=1e-12), "the two ways disagree"
    for name in ("random", "alike"):
        first, *_, last = (f["ns_per_token"] for f in figures if (f["text"], f["way"]) == (name, "numpy"))
        print(f"{name}: time per token at {LENGTHS[-1]} is {last / first:.2f} of that at {LENGTHS[0]}")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))


def random(length: int) -> Responses:
    return np.random.default_rng(0).integers(0, WORDS, (RESPONSES, length)).tolist()


def alike(length: int) -> Responses:
    rng = np.random.default_rng(0)
    base = rng.integers(0, WORDS, (RESPONSES // GROUP, length)).repeat(GROUP, axis=0)
    return np.where(rng.random(base.shape) < 0.02, rng.integers(0, WORDS, base.shape), base).tolist()


def plain(responses: Responses, group: int) -> float:
    """The definition, word for word."""
    values = []
    for start in range(0, len(responses), group):
        grams = [Counter(zip(*(r[i:] for i in range(GRAM)), strict=False)) for r in responses[start : start + group]]
        similarities = [(a & b).total() / (a | b).total() for a, b in combinations(grams, 2)]
        values.append(1 - sum(similarities) / len(similarities))
    return sum(values) / len(values)


def measured(way: str, run: Callable[[Responses, int], float], responses: Responses, runs: int) -> dict[str, Any]:
    seconds, value = math.inf, math.nan
    for _ in range(runs):
        start = time.perf_counter()
        value = run(responses, GROUP)
        seconds = min(seconds, time.perf_counter() - start)
    length = len(responses[0])
    per_token = seconds / (len(responses) * length) * 1e9
    return {"tokens": length, "way": way, "seconds": seconds, "ns_per_token": per_token, "D": value}


def show(figure: dict[str, Any]) -> None:
    row = "{text:8} {tokens:>6} {way:8} {seconds:>8.3f} {ns_per_token:>9.1f} {D:>7.4f}"
    print(row.format(**figure), flush=True)
