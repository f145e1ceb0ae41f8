"""How often the rule of `microcoder study` finds what is not there, and how often it finds what is.

    python -m benchmarks.study rates --seeds 16 [--together N]

`study_rates.toml` is run with many seeds. A draw takes a few of them for an arm `real-0`, and

    null      as many other seeds of the same settings, for an arm `real-1`: there is nothing to be found between them
    planted   the same seeds with their rewards dealt out at random, for an arm `shuffled-0`: it learns nothing

The seeds that are left make further arms of both kinds, as many as there are groups of that size: the study's other
arms, whose spread is blended in.

Every test of the paper's claims, with its statistic, expectation and size, is put to `real-0` against `real-1`; those
whose statistic is a gain of accuracy or reward also, as `more`, to `real-0` against `shuffled-0`. So a verdict is

    null, more or less by b > 0   false if supported; contradicted is right: the effect is 0, and so less than b
    null, more or less than 0     false if supported or contradicted
    null, same within b           false if contradicted; supported is right
    planted                       found if supported

A rate is a share of draws: when a test is decided alone, and when all tests of the draw are decided together, as in a
report. Alone, a false verdict may come up in 5% of draws, or in 10% where both verdicts are false. A trend over arms is
put as a difference of two. Draws share runs: more draws make the rate of these runs exact, and only more seeds bring it
nearer to that of all possible runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study.draws import rates
from microcoder.layout import Table, aligned, percent
from microcoder.study.results import gather_scale

STUDY = Path(__file__).with_name("study_rates.toml")


def main() -> int:
    args = _arguments()
    if not args.no_runs:
        words = ["study", "run", str(STUDY), *args.set, "--scale", args.scale, "--seeds", str(args.seeds)]
        words += ["--out", str(args.out), *(["--together", str(args.together)] if args.together else [])]
        if status := subprocess.run([sys.executable, "-m", "microcoder.cli", *words], check=False).returncode:
            return status
    study = gather_scale(args.out / args.scale).studies[STUDY.stem]
    found = [rates(study, size, args.draws, 0.0 if args.own_spread else None) for size in args.groups]
    print("\n\n".join(map(in_words, found)))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def in_words(result: dict[str, Any]) -> str:
    parts = [
        f"{result['draws']:,} draws of {result['size']} seeds, out of {result['seeds']}; shares of draws, %",
        _table("Nothing is there: false verdicts", result["null"]),
        _table("Something is there: found", result["planted"]),
        f"any false verdict among all of the first, decided together: {percent(result['any_false'])}% of draws",
        f"false among all findings, decided with the second: {percent(result['false_among_findings'])}% on average",
    ]
    if result["not_recorded"]:
        parts.append(f"not recorded by these runs: {', '.join(result['not_recorded'])}")
    return "\n\n".join(parts)


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    cells = [
        (row["statistic"], row["expect"], f"{row['by']:g}", percent(row["alone"]), percent(row["together"]))
        for row in rows
    ]
    shares = [float(np.mean([row[name] for row in rows])) for name in ("alone", "together")]
    cells.append(("mean", "", "", *map(percent, shares)))
    return aligned(Table(title, ("statistic", "expect", "by", "alone", "together"), cells, words=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", nargs="*", metavar="section.key=value", help="settings of all runs")
    parser.add_argument("--seeds", type=int, default=40, help="of each arm")
    parser.add_argument("--groups", type=int, nargs="+", default=[5, 3], help="seeds in a draw")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--scale", default="nano")
    parser.add_argument("--out", type=Path, default=Path("study-rates"))
    parser.add_argument("--together", type=int, help="runs side by side; else one for each core")
    parser.add_argument("--own-spread", action="store_true", help="do not ask other arms how far seeds lie apart")
    parser.add_argument("--no-runs", action="store_true", help="count what is there")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    return parser.parse_args()
