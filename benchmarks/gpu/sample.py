"""Programs that untrained models write, with the verdict of all tests: what the test forge is measured on.

    python -m benchmarks.gpu sample --model qwen0.5b=FOLDER --model qwen1.5b=FOLDER --data DATA --out DIR --budget 400

DATA is what `prepare` wrote, with `mbpp.jsonl` beside it. For each model, as folders of `microcoder eval`:

    NAME.test-T0.6-n16, NAME.test-T1-n16     LeetCode's newer problems, judged with all of their tests
    NAME.mbpp-T0.8-n8, NAME.humaneval-T0.8-n8
    NAME.train-T1-n4                         the training problems: wrong programs for their forged tests to reject

A folder that is finished is not made again, so the same command goes on with what is left, or with another model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from microcoder.study.launch import Command, side_by_side, tail

JOBS = (("test", 16, 0.6), ("test", 16, 1.0), ("mbpp", 8, 0.8), ("train", 4, 1.0), ("humaneval", 8, 0.8))
FILES = {"test": "test.jsonl.gz", "train": "train.jsonl.gz", "mbpp": "mbpp.jsonl", "humaneval": "humaneval.jsonl.gz"}
SUITES = ("mbpp", "humaneval")  # known by name; the others are problem files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA", help="what prepare wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="then it ends by itself")
    parser.add_argument("--together", type=int, default=3, help="evaluations at a time")
    parser.add_argument("--judge-workers", type=int, default=4, help="of each evaluation")
    parser.add_argument("--toy", action="store_true", help="three problems, 24 tokens: to see that all of it works")
    args = parser.parse_args()
    jobs = [job for words in args.model for job in _jobs(*words.split("=", 1), args)]
    failed: list[str] = []

    def ended(job: Command, status: int, seconds: float) -> None:
        print(
            f"{job.name}: {f'FAILED with {status}: {tail(job.log)}' if status else 'done'}, {seconds:.0f} s", flush=True
        )
        if status:
            failed.append(job.name)

    left = side_by_side(jobs, args.together, args.budget, ended)
    print("not finished: " + ", ".join(job.name for job in left) if left else "all is done", flush=True)
    return 1 if failed else 0


def _jobs(name: str, folder: str, args: argparse.Namespace) -> list[Command]:
    out = []
    for suite, tries, temperature in JOBS:
        what = f"{name}.{suite}-T{temperature:g}-n{tries}"
        target, file = args.out / what, args.data / FILES[suite]
        if (target / "scores.json").exists():
            continue
        words = ["eval", folder, "-n", str(1 if args.toy else tries), "--temperature", f"{temperature:g}"]
        words += ["--suite", suite, "--data", str(file)] if suite in SUITES else ["--suite", str(file)]
        words += ["--first", "3", "--limit", "24"] if args.toy else ["--limit", "1024"]
        words += [
            "-o",
            str(target),
            "judge.time_limit_s=2",
            f"judge.workers={args.judge_workers}",
            "rollout.memory=0.2",
        ]
        log = args.out / "logs" / f"{what}.log"
        out.append(Command(what, [sys.executable, "-m", "microcoder.cli", *words], log))
    return out
