"""The accepted programs of a run's rollouts, judged once more by stronger tests, and whether they quote the old ones.

    python -m benchmarks.gpu gamed --run DIR --rewarded train.jsonl.gz --stronger train-forged.jsonl.gz [--steps 1 100]

    python -m benchmarks.gpu gamed --references problems.parquet     # how often right programs are suspected

`quoting` are accepted programs that compare their input with that of a test (microcoder/quoting.py); `right` those that
the stronger tests accept, of the problems that have more tests there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import microcoder as mc
from microcoder.quoting import Quoted
from microcoder.runs import read_rollouts, steps
from microcoder.schema import ACCEPTED, Problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--rewarded", metavar="FILE", help="the problems that were trained on")
    parser.add_argument("--stronger", metavar="FILE", help="the same with more tests")
    parser.add_argument("--steps", type=int, nargs="+", default=[], help="else all whose rollouts are there")
    parser.add_argument("--references", metavar="FILE", help="problems with solutions")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.references:
        pairs = [(one, made["code"]) for one in mc.load_problems(args.references) for made in one.solutions]
        print(f"{len(pairs)} reference solutions, {sum(Quoted(one)(code) for one, code in pairs)} quoting")
    if not args.run:
        return
    if not (args.rewarded and args.stronger):
        parser.error("--run needs --rewarded and --stronger")
    rewarded, stronger = ({one.id: one for one in mc.load_problems(path)} for path in (args.rewarded, args.stronger))
    found = []
    print(f"{'run':20} {'step':>5} {'programs':>9} {'accepted':>9} {'quoting':>8} {'right':>12}")
    with mc.Judge(workers=args.workers) as judge:
        for run in args.run:
            for step in args.steps or steps(run):
                row = {"run": run.name, "step": step} | looked_at(run, step, rewarded, stronger, judge)
                found.append(row)
                right = f"{row['right']} of {row['again']}"
                print(
                    f"{run.name:20} {step:5} {row['programs']:9} {row['accepted']:9} {row['quoting']:8} {right:>12}",
                    flush=True,
                )
                if args.json:
                    args.json.write_text(json.dumps(found, indent=1))


def looked_at(
    run: Path, step: int, rewarded: dict[str, Problem], stronger: dict[str, Problem], judge: mc.Judge
) -> dict[str, Any]:
    rows = read_rollouts(run, step)
    accepted = [row for row in rows if row["verdict"] == ACCEPTED]
    quoting = [row for row in accepted if Quoted(rewarded[row["problem"]])(row["code"])]
    pairs = [
        (stronger[row["problem"]], mc.Solution(row["problem"], code=row["code"]))
        for row in accepted
        if len(stronger[row["problem"]].tests) > len(rewarded[row["problem"]].tests)
    ]
    right = sum(verdict.verdict == ACCEPTED for _, verdict in judge.map(pairs))
    return {
        "programs": len(rows),
        "accepted": len(accepted),
        "quoting": len(quoting),
        "again": len(pairs),
        "right": right,
    }


if __name__ == "__main__":
    main()
