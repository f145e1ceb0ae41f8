"""Does `microcoder advise` name the cause? Runs of nano made to fail in six ways, and healthy ones, on a CPU.

    python -m benchmarks.training advise --out DIR                  # every run, then the table
    python -m benchmarks.training advise --out DIR --seeds 2 3      # others
    python -m benchmarks.training advise --out DIR --kinds too_hot  # some of them

Each is `microcoder train demo` made smaller (COMMON), with one thing wrong. A run counts as right if its first finding
is the cause that was planted, or if a healthy one has no finding. Finished runs are kept, and one that was begun goes
on, so it can be stopped and typed again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from microcoder import Judge, Problem
from microcoder.config import usable_cores
from microcoder.data.difficulty.measure import pass_rates
from microcoder.data.record import Record
from microcoder.files import write_problems
from microcoder.starter import problems

COMMON = [
    "data.train_size=300",
    "data.test_size=40",
    "train.train_batch_size=8",
    "train.steps=12",
    "train.eval_every=4",
    "train.eval_tries=2",
    "train.save_every=12",
    "judge.workers=1",
]
FAILING = {  # the cause: what is wrong
    "too_cold": ["grpo.temperature=0.2"],
    "too_hot": ["grpo.temperature=1.8"],
    "limit_too_short": ["train.max_response_tokens=48"],
    "weak_judge": ["data.train={weak_judge}"],
    "all_easy": ["data.train={all_easy}"],
    "rate_too_high": ["train.lr=5e-3"],
}
HEALTHY = {
    "demo": [],
    "grpo_plus": ["grpo.preset=grpo_plus"],
    "mild": ["grpo.temperature=0.6"],
    "harder": ["data.difficulty=[3,5]"],
    "brief": ["train.steps=5", "train.eval_every=0"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kinds", nargs="+", choices=[*FAILING, *HEALTHY], default=[*FAILING, *HEALTHY])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--together", type=int, default=1, help="runs at a time")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    files = {"weak_judge": args.out / "weak.jsonl", "all_easy": args.out / "easy.jsonl"}
    for kind, make in (("weak_judge", weak), ("all_easy", easy)):
        if kind in args.kinds and not files[kind].exists():
            write_problems(files[kind], make())
    jobs = [(kind, seed) for seed in args.seeds for kind in args.kinds]
    environment = {"OMP_NUM_THREADS": str(max(1, usable_cores() // args.together)), **os.environ}
    with ThreadPoolExecutor(args.together) as pool:
        rows = list(pool.map(lambda job: row(*job, args.out / "runs", files, environment), jobs))
    names = ("run", "expected", "named", "at step", "and", "right")
    print(" | ".join(names))
    for each in rows:
        print(" | ".join(str(each[name]) for name in names))
    print(f"{sum(each['right'] for each in rows)} of {len(rows)} right")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


def row(kind: str, seed: int, folder: Path, files: dict[str, Path], environment: dict[str, str]) -> dict:
    """Train, unless that was done before, and ask what is wrong."""
    path = folder / f"{kind}-{seed}"
    if not (path / "summary.json").exists():
        settings = [setting.format(**files) for setting in (FAILING | HEALTHY)[kind]]
        settings += [f"train.seed={seed}", f"train.folder={folder}", f"train.name={path.name}"]
        resume = ["--resume"] if (path / "config.toml").exists() else []
        microcoder("train", "demo", *COMMON, *settings, *resume, environment=environment)
        print(f"{path.name} is done", file=sys.stderr, flush=True)
    found = json.loads(microcoder("advise", str(path), "--json", environment=environment))["findings"]
    expected = kind if kind in FAILING else ""
    first = found[0] if found else {"code": "", "step": "", "symptoms": []}
    return {
        "run": path.name,
        "expected": expected,
        "named": first["code"],
        "at step": first["step"],
        "and": ", ".join(one["code"] for one in [*first["symptoms"], *found[1:]]),
        "right": first["code"] == expected,
    }


def microcoder(*words: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "microcoder.cli", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def weak() -> Iterator[Problem]:
    """Problems that keep one of their six tests, the one with the shortest input: it is often empty."""
    for problem in problems("train", 300):
        yield dataclasses.replace(problem, tests=[min(problem.tests, key=lambda test: len(test.input))])


def easy() -> Iterator[Problem]:
    """Problems that nano solves eight times out of eight before any training."""
    some = {problem.id: problem for problem in problems("train", 300, depths=(1, 2))}
    with Judge(workers=1, queue=1 << 16) as judge:
        for rate in pass_rates(map(Record, some.values()), "nano", 8, judge=judge, limit=160):
            if rate.successes == 8:
                yield some[rate.id]
