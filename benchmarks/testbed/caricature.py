"""The question of `temperature`, asked of a caricature of the testbed that trains in milliseconds.

    python -m benchmarks.testbed caricature --json FILE                                 # a minute or two of one core

A policy has a logit for each style, one for the right value of a traced line over the four wrong ones, one for the
right token over all that would break the form, and logits of guesses, drawn for each problem. All are divided by the
temperature. GRPO trains the first two by Adam (the groups of a step: 8 problems of 2 to 4 lines, 8 responses each);
accuracy is then exact, at the temperature of evaluations. So the best fixed temperature is known for many policies and
many seeds: 3 shares of traces x 3 rates of slips x 3 factors of all logits (0.6: not sure enough; 1.5: too sure).

The rule sees what it would see: counts of right responses to 64 problems, 8 each, at each temperature of its grid. D is
left out: every temperature is diverse enough.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microcoder.grpo import TemperatureProbe, choose_temperature
from microcoder.training.plan import GRID

Array = NDArray[np.float64]
LINES = (2, 3, 4)
TRACES, SLIPS, SHARP = (0.05, 0.15, 0.4), (0.002, 0.02, 0.06), (0.6, 1.0, 1.5)
LOOPS, BROKEN, TOKENS, GUESS = 0.05, 1e-4, 400, 0.7  # shares of loops and of tokens that break the form; vocabulary
PROBLEMS, SAMPLES, LOOP_TOKENS = 8, 8, 60
DIRECT, TRACE = 0, 1  # styles; the third is a loop


@dataclass
class Policy:
    style: Array  # (3,) logits
    line: float  # logit of the right value of a line over each of the four wrong ones
    form: float  # logit of the right token over each that breaks the form
    guess: float  # spread of the logits of guesses

    @classmethod
    def of(cls, trace: float, slip: float, sharp: float) -> Policy:
        style = np.log([1 - trace - LOOPS, trace, LOOPS])
        line, form = np.log(4 * (1 - slip) / slip), np.log(TOKENS * (1 - BROKEN) / BROKEN)
        return cls(sharp * style, sharp * line, sharp * form, sharp * GUESS)

    def at(self, temperature: float) -> tuple[Array, float, float]:
        """Probabilities of styles, of a right line, and of a token that does not break the form."""
        line = 1 / (1 + 4 * np.exp(-self.line / temperature))
        return softmax(self.style / temperature), line, 1 / (1 + TOKENS * np.exp(-self.form / temperature))

    def right(self, temperature: float, lines: Array, luck: Array) -> Array:
        """The probability of a right response to each problem; the first of five guesses is the right one."""
        style, line, form = self.at(temperature)
        guess = softmax(luck * self.guess / temperature)[:, 0]
        return style[DIRECT] * guess * form**12 + style[TRACE] * line**lines * form ** (12 * lines + 12)


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def draw(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    return rng.choice(LINES, count), rng.standard_normal((count, 5))


def train(policy: Policy, temperature: float, steps: int, lr: float, rng: np.random.Generator) -> Policy:
    """GRPO without clipping: one update a step, on the responses that were just drawn."""
    values, first, second = np.array([*policy.style, policy.line]), np.zeros(4), np.zeros(4)
    for step in range(1, steps + 1):
        style, line, form = policy.at(temperature)
        lines, luck = draw(rng, PROBLEMS)
        guess = softmax(luck * policy.guess / temperature)[:, 0]
        shape = (PROBLEMS, SAMPLES)
        styles = rng.choice(3, shape, p=style)
        written = np.where(styles == TRACE, lines[:, None], 0)
        sound = rng.binomial(written, line)
        tokens = np.select([styles == DIRECT, styles == TRACE], [12, 12 * lines[:, None] + 12], LOOP_TOKENS)
        formed = rng.random(shape) < form**tokens
        lucky = rng.random(shape) < guess[:, None]
        rewards = formed & np.where(styles == DIRECT, lucky, (styles == TRACE) & (sound == written))
        advantages = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, keepdims=True) + 1e-6)
        of_styles = [(advantages * ((styles == n) - style[n])).mean() for n in range(3)]
        gradient = np.array([*of_styles, (advantages * (sound - written * line)).mean()]) / temperature
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        values = values + lr * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        policy = replace(policy, style=values[:3], line=values[3])
    return policy


def choose(policy: Policy, problems: int, rng: np.random.Generator) -> float:
    lines, luck = draw(rng, problems)
    counts = [rng.binomial(SAMPLES, policy.right(t, lines, luck)).tolist() for t in GRID]
    judged = (SAMPLES,) * problems
    probes = [TemperatureProbe(t, 1.0, row, judged) for t, row in zip(GRID, counts, strict=True)]
    return choose_temperature(probes).temperature


def measure(args: argparse.Namespace, trace: float, slip: float, sharp: float) -> dict[str, object]:
    policy = Policy.of(trace, slip, sharp)
    test = draw(np.random.default_rng(99), 2000)

    def accuracy(of: Policy) -> float:
        return float(of.right(args.eval_temperature, *test).mean())

    scores = {}
    for t in GRID:
        runs = [train(policy, t, args.steps, args.lr, np.random.default_rng(seed)) for seed in range(args.seeds)]
        scores[t] = statistics.fmean(map(accuracy, runs))
    best = max(scores, key=lambda t: scores[t])
    chosen = [choose(policy, args.problems, np.random.default_rng(1000 + n)) for n in range(args.draws)]
    off = [round(5 * (t - best)) for t in chosen]
    return {
        "trace": trace, "slip": slip, "sharp": sharp, "before": accuracy(policy), "best": best,
        "chosen": statistics.median_low(chosen), "near": statistics.fmean(abs(n) <= 1 for n in off),
        "points": {"best": scores[best], "chosen": statistics.fmean(scores[t] for t in chosen), "1.0": scores[1.0]},
        "accuracy": {f"{t:g}": value for t, value in scores.items()},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--eval-temperature", type=float, default=0.6)
    parser.add_argument("--seeds", type=int, default=12, help="runs of each temperature (12)")
    parser.add_argument("--problems", type=int, default=64, help="what each choice samples at a temperature (64)")
    parser.add_argument("--draws", type=int, default=30, help="choices of the rule for each policy (30)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows = []
    print("traces  slips  sharp  before   best T  chosen  within a step   accuracy: best, T(D), 1.0")
    for sharp, trace, slip in itertools.product(SHARP, TRACES, SLIPS):
        rows.append(measure(args, trace, slip, sharp))
        show(rows[-1])
    for sharp in SHARP:
        summary(f"sharp {sharp:g}", [row for row in rows if row["sharp"] == sharp])
    summary("all", rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def show(row: dict) -> None:
    points = ", ".join(f"{value:.1%}" for value in row["points"].values())
    print(
        f"{row['trace']:6.0%} {row['slip']:6.1%} {row['sharp']:6g} {row['before']:7.1%} {row['best']:8g} "
        f"{row['chosen']:7g} {row['near']:14.0%}   {points}",
        flush=True,
    )


def summary(name: str, rows: list[dict]) -> None:
    means = {key: statistics.fmean(row["points"][key] for row in rows) for key in rows[0]["points"]}
    near = statistics.fmean(row["near"] for row in rows)
    print(f"{name:10} within a step {near:.0%}; " + ", ".join(f"{key} {value:.1%}" for key, value in means.items()))


if __name__ == "__main__":
    sys.exit(main())
