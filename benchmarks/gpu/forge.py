"""Forged tests for the problems that `prepare` wrote, in several processes: each of them keeps about two cores busy.

    python -m benchmarks.gpu forge --problems problems.parquet --adversaries SAMPLES --data DATA --together 14

Takes the problems with their references, as `prepare` leaves them in DATA/pipeline, and programs of models to search
with. DATA then holds `train-forged.jsonl.gz` and `validation-forged.jsonl.gz`: the problems of `train.jsonl.gz` and
`validation.jsonl.gz` with forged tests. A training problem whose reference needs more than `--most-cpu` seconds for all
of its tests is left out: a few such problems cost the judge as much as all others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import microcoder as mc
from microcoder.files import json_line, write_problems
from microcoder.study.launch import Command, side_by_side

PART = """
import json, sys, microcoder as mc
problems, stronger, workers, *adversaries = sys.argv[1:]
summary = mc.forge(problems, stronger, "judge.time_limit_s=3", workers, adversaries=adversaries)
open(stronger.replace(".parquet", ".json"), "w").write(json.dumps(summary.to_dict()))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=Path, required=True, metavar="FILE", help="problems with references")
    parser.add_argument("--adversaries", type=Path, nargs="*", default=[], help="programs of models")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="then it ends by itself")
    parser.add_argument("--together", type=int, default=1, help="processes at a time")
    parser.add_argument("--judge-workers", type=int, default=2, help="of each process")
    parser.add_argument(
        "--most-cpu", type=float, default=0.3, metavar="SECONDS", help="of a training problem's reference"
    )
    args = parser.parse_args()
    problems, folder = mc.load_problems(args.problems), args.data / "forging"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for n in range(args.together):
        part, stronger = folder / f"part-{n}.parquet", folder / f"stronger-{n}.parquet"
        write_problems(part, problems[n :: args.together])
        words = [sys.executable, "-c", PART, str(part), str(stronger), f"judge.workers={args.judge_workers}"]
        jobs.append(Command(f"forge {n}", [*words, *map(str, args.adversaries)], folder / f"{n}.log"))
    left = side_by_side(jobs, args.together, args.budget, lambda job, status, seconds: print(job.name, status, seconds))
    for job in left:
        print(f"{job.name}: not finished: its problems keep their examples", flush=True)
    done = [mc.load_problems(path) for path in folder.glob("stronger-*.parquet")]
    forged = {problem.id: problem for problem in problems} | {found.id: found for part in done for found in part}
    bare = {"solutions": [], "lineage": [], "difficulty_score": None, "extra": {}}
    for name in ("train", "validation"):
        wanted = mc.load_problems(args.data / f"{name}.jsonl.gz")
        if name == "train":
            took = seconds([forged[problem.id] for problem in wanted], args.together * args.judge_workers)
            wanted = [problem for problem in wanted if took[problem.id] <= args.most_cpu]
            print(f"train: {len(wanted)} problems; {len(took) - len(wanted)} left out, over {args.most_cpu} s of CPU")
        rows = (json_line(replace(forged[problem.id], **bare).to_dict()) for problem in wanted)
        (args.data / f"{name}-forged.jsonl.gz").write_bytes(gzip.compress(b"".join(rows), 3, mtime=0))
    summaries = [json.loads(path.read_text()) for path in sorted(folder.glob("stronger-*.json"))]
    (args.data / "forged.json").write_text(json.dumps(summaries, indent=1) + "\n")
    for side in ("before", "after") if summaries else ():
        print(side, {key: sum(summary[side][key] for summary in summaries) for key in summaries[0][side]})
    return 0


def seconds(problems: Sequence[mc.Problem], workers: int) -> dict[str, float]:
    """CPU seconds of each problem's first reference for all of its tests; 0 where there is none."""
    with mc.Judge(workers, stop_at_first_failure=False) as judge:
        asked = {
            problem.id: judge.submit(problem, code=problem.solutions[0]["code"])
            for problem in problems
            if problem.solutions
        }
        return {problem.id: asked[problem.id].result().cpu_s if problem.id in asked else 0.0 for problem in problems}
