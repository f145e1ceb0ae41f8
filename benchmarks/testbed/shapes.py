"""Does T(D) find the temperature with the largest signal? Nine shapes of accuracy over T, for which it is known.

    python -m benchmarks.testbed shapes

Text becomes nonsense above some temperature (three of them), and problems are mixed, hard or easy. Nothing is sampled
from a model: right responses are drawn by their probabilities, 8 a problem.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microcoder.grpo import TemperatureProbe, choose_temperature

Floats = NDArray[np.float64]
GRID = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8])
SAMPLES = 8
BREAKS = {"robust": 1.9, "usual": 1.4, "frail": 0.9}  # the temperature at which text becomes nonsense
PROBLEMS = {"mixed": (0.3, 0.4), "hard": (0.05, 0.25), "easy": (0.6, 0.3)}  # shares of easy and of medium ones


def shape(rng: np.random.Generator, count: int, breaks: str, kind: str) -> Floats:
    """Probabilities (temperatures, problems). Odds sharpen as 1 / T, and text breaks down above some temperature."""
    easy, medium = PROBLEMS[kind]
    draw = rng.random(count)
    some, few = rng.beta(2, 5, count), rng.beta(0.6, 20, count)
    prior = np.clip(np.where(draw < easy, 0.93, np.where(draw < easy + medium, some, few)), 1e-4, 1 - 1e-4)
    odds = (prior / (1 - prior)) ** (1 / GRID[:, None])
    whole = 1 / (1 + np.exp((GRID[:, None] - BREAKS[breaks]) / 0.12))
    found: Floats = odds / (1 + odds) * whole
    return found


def best_of(rng: np.random.Generator, breaks: str, kind: str) -> int:
    """The place on the grid with the largest signal, over many problems."""
    p = shape(rng, 20_000, breaks, kind)
    return int((p * (1 - p) * (1 - p[p.mean(1).argmax()])).mean(1).argmax())


def steps_off(rng: np.random.Generator, breaks: str, kind: str, problems: int, draws: int) -> Floats:
    """How many steps of the grid each choice lies from the best temperature: (draws,)."""
    best, found = best_of(rng, breaks, kind), []
    for _ in range(draws):
        right = rng.binomial(SAMPLES, shape(rng, problems, breaks, kind))
        diversity = np.linspace(0.4, 0.9, len(GRID))
        probes = [
            TemperatureProbe(float(t), float(d), tuple(row), (SAMPLES,) * problems)
            for t, d, row in zip(GRID, diversity, right.tolist(), strict=True)
        ]
        chosen = choose_temperature(probes).temperature
        found.append(abs(int(np.flatnonzero(chosen == GRID)[0]) - best))
    return np.array(found, float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="choices for each shape")
    parser.add_argument("--problems", type=int, nargs="+", default=[64, 16])
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows = []
    print(f"{'problems':>8} {'text':8} {'kind':6} {'best T':>6} {'within a step':>14}")
    for count in args.problems:
        for breaks in BREAKS:
            for kind in PROBLEMS:
                rng = np.random.default_rng([len(breaks), len(kind)])
                best = float(GRID[best_of(rng, breaks, kind)])
                share = float((steps_off(rng, breaks, kind, count, args.draws) <= 1).mean())
                rows.append({"problems": count, "text": breaks, "kind": kind, "best": best, "within": share})
                print(f"{count:8} {breaks:8} {kind:6} {best:6.1f} {share:14.1%}")
        shares = [row["within"] for row in rows if row["problems"] == count]
        print(f"{count:8} all: {np.mean(shares):.1%}, the worst {min(shares):.1%}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
