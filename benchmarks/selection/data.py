"""The training sets: one pool of starter problems through `microcoder data run`, once with each arm's settings.

The problems come without their solutions: with them `process` would show the header of the reference in the prompt,
a form that nano has never seen and mostly fails at. The pipeline's folder is the same for all arms, so that everything
up to the calibration is done once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from microcoder import Judge, Problem
from microcoder.data.difficulty.measure import pass_rates
from microcoder.data.parts import kept_parts, read_records
from microcoder.data.record import Record
from microcoder.files import read_problems, write_problems
from microcoder.runs.disk import write_whole
from microcoder.starter import problems

ARMS = {  # nothing is easy for nano (success above 0.8), so the medium band is the easiest that there is
    "hard": "difficulty.target={hard=1.0}",
    "all": "difficulty.target={}",
    "easier": "difficulty.target={medium=1.0}",
}
SETTINGS = """\
[[collect.sources]]
path = "{out}/pool.jsonl"

[[filter.evaluation]]
path = "{out}/test.jsonl"

[difficulty]
calibrate = "nano"
calibrate_on = {measured}
attempts = 4
attempt_tokens = 160
size = {size}

[output]
folder = "{out}/data"
"""


def make(args: Namespace) -> None:
    """Write test.jsonl, and for each arm sets/<arm>.parquet and what is known of it."""
    out: Path = args.out
    (out / "sets").mkdir(parents=True, exist_ok=True)
    pool = problems("train", args.pool, args.seed)
    write_problems(out / "pool.jsonl", [replace(problem, solutions=[]) for problem in pool])
    write_problems(out / "test.jsonl", problems("test", args.test, args.seed))
    settings = out / "data.toml"
    settings.write_text(SETTINGS.format(out=out, measured=args.measured, size=args.size))
    depths = {problem.id: f"{problem.difficulty_score:g}" for problem in pool}
    for arm, chosen in ARMS.items():
        subprocess.run([sys.executable, "-m", "microcoder.cli", "data", "run", settings, chosen], check=True)
        kept = [record for part in kept_parts(out / "data/filter/6-select") for record in read_records(part)]
        shutil.copy(out / "data/dataset/problems.parquet", out / f"sets/{arm}.parquet")
        known = {
            "settings": chosen,
            "problems": len(kept),
            "depths": dict(sorted(Counter(depths[record.problem.id] for record in kept).items())),
            "success expected": fmean(record.notes["success"] for record in kept),
            "success measured": measured(out / f"sets/{arm}.parquet"),
        }
        write_whole(out / f"sets/{arm}.json", json.dumps(known, indent=1).encode() + b"\n")
        print(arm, known, flush=True)


def measured(path: Path) -> float:
    """nano's pass rate on problems of a set, sampled as in training."""
    some = [Record(problem) for problem in read_problems(path) if isinstance(problem, Problem)][::4]
    with Judge(workers=1, queue=1 << 20) as judge:
        rates = list(pass_rates(some, "nano", 4, judge=judge, limit=160))
    return sum(rate.successes for rate in rates) / sum(rate.attempts for rate in rates)
