"""Does the limit bite? What has to hold before a mask of truncated responses can be compared with none.

    microcoder eval MODEL --suite train.jsonl.gz --style reason --temperature 1 -n 8 --limit 600,1200 -o DIR
    python -m benchmarks.gpu gates DIR                           # lengths, and gates 1 and 2 at each limit but the last
    python -m benchmarks.gpu gates DIR --run runs/a              # and gate 3, of a training with the mask

1. At least 15% of the responses are truncated at the limit.
2. Of these, continued to the largest limit, at least half as many are right as of those of the same problems that
   ended by themselves: advantages are taken within a group. Over all problems long responses are wrong more often for
   another reason, since hard problems have long responses and wrong ones.
3. At least 3% of a training's responses are masked and would have had an advantage: their group has signal.

The samples at a smaller limit are the same ones, cut. The 60th percentile of their lengths is where the limit belongs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from microcoder.evaluation.folder import Scores, read_scores
from microcoder.evaluation.suite import EvaluationError
from microcoder.runs import read_rollouts, steps

TRUNCATED, CONTINUED, MASKED = 0.15, 0.5, 0.03
PERCENTILES = (25, 50, 60, 75, 90)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="an evaluation with two limits or more")
    parser.add_argument("--run", type=Path, metavar="RUN")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    try:
        scores = read_scores(args.folder)
    except EvaluationError as error:
        parser.error(str(error))
    *limits, largest = scores.limits
    if not limits:
        print(f"{args.folder} has one limit; evaluate with two: --limit {largest // 2},{largest}")
        return 2
    found: dict[str, Any] = {"lengths": lengths(scores.at(limit=largest)), "limits": {}}
    print(f"tokens up to {largest}: " + ", ".join(f"{n}% below {value}" for n, value in found["lengths"].items()))
    print(f"{'':17} {'right, all problems':>20} {'right, within problems':>23}")
    print(
        f"{'limit':>6} {'truncated':>10}{' continued      ended':>21}{' continued      ended':>24} {'ratio':>6}  gates"
    )
    for limit in limits:
        row = found["limits"][limit] = gates(scores.at(limit=limit).samples, scores.at(limit=largest).samples)
        print(
            f"{limit:6} {row['truncated']:10.1%} {row['continued']:9.1%} {row['ended']:10.1%} "
            f"{row['continued_within']:12.1%} {row['ended_within']:10.1%} {row['ratio']:6.2f}  "
            f"{'1 holds' if row['truncated'] >= TRUNCATED else '1 fails'}, "
            f"{'2 holds' if row['ratio'] >= CONTINUED else '2 fails'}"
        )
    if args.run:
        found["masked"] = masked(args.run)
        word = "holds" if found["masked"] >= MASKED else "fails"
        print(f"{found['masked']:.1%} of the responses of {args.run} are masked in groups with signal: 3 {word}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def lengths(scores: Scores) -> dict[int, int]:
    """{percentile: tokens}"""
    tokens = sorted(row["tokens"] for row in scores.samples)
    return {n: tokens[min(len(tokens) - 1, n * len(tokens) // 100)] for n in PERCENTILES}


def gates(short: Sequence[dict[str, Any]], long: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What is truncated at a limit, and how much of it is right when it goes on; both have the same samples.

    Within problems: means over those with responses of both kinds, each weighted as a difference of two means would be.
    """
    right = {(row["problem_id"], row["number"]): row["verdict"] == "accepted" for row in long}
    groups: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))  # problem: cut, ended
    for row in short:
        groups[row["problem_id"]][not row["truncated"]].append(right[row["problem_id"], row["number"]])
    cut, ended = ([one for group in groups.values() for one in group[side]] for side in (0, 1))
    both = [group for group in groups.values() if all(group)]
    weights = [len(a) * len(b) / (len(a) + len(b)) for a, b in both]
    within = [
        sum(weight * mean(group[side]) for weight, group in zip(weights, both, strict=True)) / max(sum(weights), 1e-9)
        for side in (0, 1)
    ]
    return {
        "truncated": len(cut) / len(short),
        "continued": mean(cut),
        "ended": mean(ended),
        "continued_within": within[0],
        "ended_within": within[1],
        "ratio": within[0] / within[1] if within[1] else float(within[0] > 0),
    }


def masked(run: Path) -> float:
    """The share of a run's kept responses that the mask took out of a group with signal."""
    rows = taken = 0
    for step in steps(run):
        groups = defaultdict(list)
        for row in read_rollouts(run, step):
            groups[row["problem"]].append(row)
        for group in groups.values():
            rows += len(group)
            rewards = {row["reward"] for row in group if row["reward"] is not None}
            taken += sum(bool(row["masked"]) for row in group) if len(rewards) > 1 else 0
    return taken / max(rows, 1)


def mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    sys.exit(main())
