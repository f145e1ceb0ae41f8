"""How often `microcoder eval compare` of groups of seeds is wrong: simulated evaluations of one algorithm, or of two.

    python -m benchmarks.evaluation seeds --rounds 200 --together 4

228 problems with 8 samples each, about 8% right, as LeetCode's newer problems are for a 0.5B model. A seed shifts all
problems by a normal amount (its logit), and each problem by another one. A side of one is the untrained model, which
has no seed. The gain is a shift by 0.5 of all problems, 2.9 points.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

from microcoder.evaluation.score import compare, sign_flip_p

PROBLEMS, SAMPLES = 228, 8
GROUPS = ((1, 3), (3, 3), (2, 2))  # evaluations on each side
SHIFTS = (0.0, 0.2, 0.4)  # standard deviation of a seed's shift
OWN, GAIN = 0.5, 0.5  # of a problem under a seed; of the better side
HEAD = (
    "groups",
    "seeds apart",
    "false at 5%",
    "at 1%",
    "covered",
    "by problems alone at 5%",
    "gain found at 5%",
    "at 1%",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--together", type=int, default=1, help="processes")
    args = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    cases = list(product(GROUPS, SHIFTS))
    with ProcessPoolExecutor(args.together) as pool:
        for row in pool.map(measured, cases, [args.rounds] * len(cases)):
            print(f"| {' | '.join(row)} |", flush=True)


def measured(case: tuple[tuple[int, int], float], rounds: int) -> tuple[str, ...]:
    (before, after), shift = case
    random = np.random.default_rng(7)
    ps, alone, found, covered, apart = [], [], [], [], []
    for _ in range(rounds):
        logits = random.normal(-4, 2.2, PROBLEMS)
        untrained = [evaluation(random, logits, 0.0 if before == 1 else shift) for _ in range(before)]
        alike = [evaluation(random, logits, shift) for _ in range(after)]
        better = [evaluation(random, logits + GAIN, shift) for _ in range(after)]
        result = compare(untrained, alike)
        ps.append(result["p"])
        covered.append(result["low"] <= 0 <= result["high"])
        apart.append(np.std(result["after_each"], ddof=1))
        means = [
            np.mean([[np.mean(tries) for tries in each.values()] for each in side], 0) for side in (untrained, alike)
        ]
        alone.append(sign_flip_p(means[1] - means[0]))
        found.append(compare(untrained, better)["p"])

    def below(values: list[float], level: float) -> str:
        return f"{100 * np.mean(np.array(values) < level):.1f}%"

    return (
        f"{before} and {after}",
        f"{100 * np.mean(apart):.1f} points",
        below(ps, 0.05),
        below(ps, 0.01),
        f"{100 * np.mean(covered):.1f}%",
        below(alone, 0.05),
        below(found, 0.05),
        below(found, 0.01),
    )


def evaluation(random: np.random.Generator, logits: np.ndarray, shift: float) -> dict[str, list[int]]:
    """Draw {problem: 0 or 1 for each sample} of a model with a new seed."""
    chances = 1 / (1 + np.exp(-logits - random.normal(0, shift) - random.normal(0, OWN, PROBLEMS)))
    right = random.binomial(SAMPLES, chances)
    return {str(n): [1] * count + [0] * (SAMPLES - count) for n, count in enumerate(right.tolist())}


if __name__ == "__main__":
    main()
