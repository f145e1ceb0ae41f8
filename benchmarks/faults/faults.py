"""Does the data pipeline find what is wrong with problems? Faults of many kinds, planted one at a time in real ones.

    python -m benchmarks.faults mbpp.jsonl humaneval.jsonl.gz leetcode.jsonl.gz code_contests.json.gz codeforces.json.gz

For every kind, n problems get the fault and n do not: the same ones untouched or, where that would make them
duplicates, others. All go through the steps of `microcoder data run`, as far as the stage that has to find the fault; a
faulty problem and its control never meet in one run, unless the fault is to be a duplicate. A fault is found when the
problem is dropped for one of the right reasons, or repaired: what was changed is as in the control. A control that this
happens to is a false alarm. A pair that leaves for one and the same other reason says nothing (the problem has a fault
of its own): it is set aside, counted, and replaced.

Half of the problems (`--half dev`) are there to improve the pipeline with, the others to report. The files are the data
sets' own; none of them is part of this repository.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.faults import formats, programs, repair, rows, statement, strength, tests, twins
from benchmarks.faults.bench import Bench
from benchmarks.faults.draw import HALVES, read
from benchmarks.faults.run import Kind, Runs
from microcoder.stats import wilson

PARTS = (
    rows, repair, statement, tests, formats, twins, programs,
    strength,
)  # fmt: skip
KINDS: list[Kind] = [kind for part in PARTS for kind in part.KINDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="data sets of known layouts")
    parser.add_argument("--kinds", nargs="*", default=[], choices=[kind.name for kind in KINDS], metavar="KIND")
    parser.add_argument("--n", type=int, default=60, help="faults of each kind, and as many controls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--half", choices=HALVES, default="dev")
    parser.add_argument("--forge", action="store_true", help="with the test forge; only kinds that verification finds")
    parser.add_argument("--misses", action="store_true", help="show what was not found, and false alarms")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    pools = read(args.files, args.half)
    print(f"{args.half} half: " + ", ".join(f"{len(pool)} of {name}" for name, pool in pools.items()))
    print(f"\n{'kind':26} {'n':>3} {'found':>5}  {'recall':19} {'false':>5}  {'precision':19} aside     s  right is")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(pools, Runs(Path(folder), args.forge), args.n, args.seed, args.half)
        for kind in KINDS:
            if (not args.kinds or kind.name in args.kinds) and (not args.forge or kind.upto == "verify"):
                rows.append(bench.measure(kind))
                show(rows[-1], args.misses)
    total = {name: sum(row[name] for row in rows) for name in ("n", "found", "false", "aside", "s")}
    show({"kind": "all", "right": "", "missed": [], "alarms": [], **total}, False)
    if args.json:
        Path(args.json).write_text(json.dumps({"half": args.half, "seed": args.seed, "kinds": rows}, indent=1))


def show(row: dict[str, Any], misses: bool) -> None:
    def share(hits: int, count: int) -> str:
        low, high = wilson(hits, count) or (0.0, 1.0)
        return f"{hits / count if count else 0:.3f} [{low:.3f}-{high:.3f}]"

    recall, precision = share(row["found"], row["n"]), share(row["found"], row["found"] + row["false"])
    print(
        f"{row['kind']:26} {row['n']:3} {row['found']:5}  {recall:19} {row['false']:5}  {precision:19} "
        f"{row['aside']:5} {row['s']:5.0f}  {row['right']}",
        flush=True,
    )
    if misses:
        for what in ("missed", "alarms"):
            for line in row[what]:
                print(f"    {what} {line}")
