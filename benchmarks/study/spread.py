"""Whole reports on simulated studies: what a spread that is blended with other arms' finds, and what it gets wrong.

    python -m benchmarks.study spread

A report has 32 claims in 8 studies of 7 arms, each with a spread of its own: exp(SIGMA z) of a standard normal z.
Beside its noise every seed has an effect on all arms of a study. In `null` reports all arms are alike, so that every
verdict is false; 10% of reports may have one, 5% for and 5% against. In the others three arms of each study gain 2.5 (a
standard deviation of the noise is 1 in the middle), and half of the claims say so.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from microcoder.layout import Table, aligned, percent
from microcoder.study.decisions import SUPPORTED, UNDECIDED, ClaimDecision, decide
from microcoder.study.plan import Claim, ClaimTest

STUDIES, ARMS, GAIN = 8, 7, 2.5
TRUE, EMPTY = (("0", "3"), ("1", "4")), (("3", "4"), ("5", "6"))  # arms 0 to 2 gain
CLAIMS = [
    Claim(n, "", str(study), (ClaimTest("last(reward)", "more", 0.0, *pair),))
    for n, (study, pair) in enumerate((study, pair) for study in range(STUDIES) for pair in (*TRUE, *EMPTY))
]


def main() -> int:
    args = _arguments()
    found = [row(seeds, sigma, args.reports) for seeds in args.seeds for sigma in args.sigmas]
    head = ("seeds", "spreads", "null reports with a verdict, own", "blended", "effects found, own", "blended")
    cells = [(str(each["seeds"]), f"{each['sigma']:g}", *(percent(each[name]) for name in NAMES)) for each in found]
    print(aligned(Table(f"{args.reports} reports of each kind; %", head, cells, words=1)))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


NAMES = ("null_own", "null_blended", "found_own", "found_blended")


def row(seeds: int, sigma: float, reports: int) -> dict[str, Any]:
    rng = np.random.default_rng(seeds)
    counts = dict.fromkeys(NAMES, 0.0)
    for _ in range(reports):
        for gain in (0.0, GAIN):
            noise = rng.normal(size=(STUDIES, ARMS, seeds)) * np.exp(sigma * rng.normal(size=(STUDIES, ARMS, 1)))
            numbers = noise + 3 * rng.normal(size=(STUDIES, 1, seeds)) + gain * (np.arange(ARMS) < 3)[:, None]
            for name, decisions in (("own", _decide(numbers, 0.0)), ("blended", _decide(numbers, None))):
                if gain:
                    right = [each.verdict == SUPPORTED for each in decisions if each.claim.tests[0].of in "01"]
                    counts[f"found_{name}"] += float(np.mean(right)) / reports
                else:
                    counts[f"null_{name}"] += any(each.verdict != UNDECIDED for each in decisions) / reports
    return {"seeds": seeds, "sigma": sigma, "reports": reports, **counts}


def _decide(numbers: Any, weight: float | None) -> list[ClaimDecision]:
    arms = {str(study): [str(arm) for arm in range(ARMS)] for study in range(STUDIES)}
    found, _ = decide(CLAIMS, lambda study, arm, _: dict(enumerate(numbers[int(study), int(arm)])), arms, weight)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 5, 8])
    parser.add_argument("--sigmas", type=float, nargs="+", default=[0.0, 0.3, 0.6, 1.0])
    parser.add_argument("--reports", type=int, default=300, help="of each kind")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    return parser.parse_args()
