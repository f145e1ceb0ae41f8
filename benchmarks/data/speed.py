"""How fast is the data pipeline, does its time stay linear, and its memory bounded? From end to end on made problems.

    python -m benchmarks.data speed --folder FOLDER [--sizes 1000,10000,100000] [--verify 1000] --json FILE

`microcoder data run` is started as a user would start it: collect, process and filter at every size, verify at one of
them; `output` is the writing of the data set and of the report, of what filter left where verify did not run. Seconds
are those of each step's done.json; `x` is the time for a problem beside that of the smallest size, so
linear is 1. Peak memory is of the whole process tree (watch.py). The problems are problems.py's,
made once, and the smaller sizes are their beginning. What was planted in them has to be found, and no more. In verify
the judge is everything but the main process: its workers, and the programs that they run. The machine must be quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.data import problems as made
from benchmarks.data.watch import OUTPUT, RUN, Usage, seconds, watched
from microcoder.data.parts import kept_parts, read_lines, read_losses

STAGES = ("process", "filter")
PLANTED = {  # for which reason what leaves
    "licence": ("unfree",), "duplicate": ("copy", "twin"), "near_duplicate": ("copy", "twin"), "contaminated": ("leak",)
}  # fmt: skip
KIND = re.compile(rb'"id": "made/\d+-\d+-(\w+)"')
SETTINGS = """
[collect]
sources = [{sources}]
[filter]
licences = {licences}
evaluation = [{{path = "{evaluation}"}}]
[difficulty]
target = {{easy = 0.3, medium = 0.4, hard = 0.3}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for problems and runs: 15 KB a problem")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--verify", type=int, default=1000, help="the size at which verify runs; 0: at none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write every figure here")
    args = parser.parse_args()
    sizes = sorted(int(size) for size in args.sizes.split(","))
    started = time.monotonic()
    sources, evaluation = made.write(args.folder / f"problems-{sizes[-1]}", sizes[-1], args.seed)
    print(f"{sizes[-1]:,} problems made in {time.monotonic() - started:.0f} s", file=sys.stderr)
    settings = args.folder / "data.toml"
    named = ", ".join(f'{{path = "{path}"}}' for path in sources)
    settings.write_text(SETTINGS.format(sources=named, licences=made.ALLOWED, evaluation=evaluation))
    rows: list[dict[str, Any]] = []
    for size in sizes:
        rows += measured(args.folder / f"run-{size}", settings, size, verify=size == args.verify)
    show(rows)
    if args.json:
        machine = {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version()}
        args.json.write_text(json.dumps({"machine": machine, "seed": args.seed, "steps": rows}, indent=1) + "\n")


def measured(out: Path, settings: Path, size: int, verify: bool) -> list[dict[str, Any]]:
    """A row for each step at this size."""
    shutil.rmtree(out, ignore_errors=True)
    words = [str(settings), f"output.folder={out}", f"collect.limit={size // made.SOURCES}"]
    runs = [watched([*RUN, *words, "--only", stage], out) for stage in STAGES]
    if verify:
        runs.append(watched([*RUN, *words], out))
    runs.append(watched([*OUTPUT, str(out)], out))
    usage = {name: use for run in runs for name, use in run.steps.items()}
    steps = seconds(out)
    left = [*steps.values()][-1]["kept"]
    steps["output"] = {"seen": left, "kept": left, "dropped": {}, "seconds": runs[-1].seconds}
    there = Counter(kind.decode() for part in kept_parts(out / "collect/1-read") for kind in planted(part))
    rows = []
    for name, done in steps.items():
        use = usage.get(name) or Usage()  # of a step that was over before anyone looked
        row = {
            "size": size, "step": name, "seen": done["seen"], "kept": done["kept"], "dropped": done["dropped"],
            "seconds": done["seconds"], "per_s": done["seen"] / max(done["seconds"], 0.01), "peak_mb": use.peak_mb,
            "main_mb": use.main_mb, "cpu_s": use.cpu_s, "own_s": use.own_s, "planted": there,
            "found": found(out / name),
        }  # fmt: skip
        rows.append(row)
        print(f"{size:,} {name}: {done['seconds']:.1f} s, {use.peak_mb:.0f} MB", file=sys.stderr)
    return rows


def planted(part: Path) -> list[bytes]:
    return [match[1] for line in read_lines(part) if (match := KIND.search(line))]


def found(step: Path) -> dict[str, int]:
    """How many drops of a step are of what was planted for it, and of what was not."""
    counts: Counter[str] = Counter()
    for part in (step / "dropped").glob("*"):
        for record, loss in read_losses(part):
            if loss.reason in PLANTED:
                kind = record.problem.id.rpartition("-")[2]
                counts[kind if kind in PLANTED[loss.reason] else "not planted"] += 1
    return dict(counts)


def show(rows: list[dict[str, Any]]) -> None:
    base = {}
    head = f"{'problems':>9} {'step':24}{'s':>8}{'problems/s':>12}{'x':>6}{'cores':>7}{'peak MB':>9}{'main MB':>9}"
    print(f"{head}  planted and found")
    for row in rows:
        each = row["seconds"] / max(1, row["seen"])
        ratio = each / base.setdefault(row["step"], each)
        there = {**row["planted"], "not planted": 0}
        said = ", ".join(f"{kind} {count} of {there[kind]}" for kind, count in sorted(row["found"].items()))
        print(
            f"{row['size']:>9,} {row['step']:24}{row['seconds']:>8.1f}{row['per_s']:>12.1f}{ratio:>6.2f}"
            f"{row['cpu_s'] / max(row['seconds'], 0.01):>7.2f}{row['peak_mb']:>9.0f}{row['main_mb']:>9.0f}  {said}"
        )
    for row in rows:
        if row["step"].startswith("verify"):
            share = 1 - row["own_s"] / row["cpu_s"]
            print(f"\nverify: the judge has {share:.1%} of {row['cpu_s']:.0f} CPU seconds")
