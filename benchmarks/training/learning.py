"""Does it learn, and only from true rewards? The demo, its control and every preset, one run each.

    python -m benchmarks.training learning                        # the demo, shuffled rewards, then the other presets
    python -m benchmarks.training learning --arms demo shuffled   # some of them
    python -m benchmarks.training learning --cores 2 --together 8 # eight at a time, each on two cores of its own

Every arm is `microcoder train demo` with one setting changed, from the command line, with real judging. `gain` is in
points of test accuracy; `unseen` is the accuracy on depths that nano's pretraining never saw; `overhead` is the share
of a step that is neither generation nor judging nor the update.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ARMS = {
    "demo": [],
    "shuffled": ["grpo.control=shuffled_rewards"],
    "grpo": ["grpo.preset=grpo"],
    "grpo_plus": ["grpo.preset=grpo_plus"],
    "dapo": ["grpo.preset=dapo"],
    "dr_grpo": ["grpo.preset=dr_grpo"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", nargs="*", default=[], metavar="section.key=value", help="settings for every arm")
    parser.add_argument("--together", type=int, default=1, help="runs at a time")
    parser.add_argument("--cores", type=int, default=2, help="cores of each run")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    jobs = [(arm, seed) for arm in args.arms for seed in args.seeds]
    cores = sorted(os.sched_getaffinity(0))
    places: Queue[list[int]] = Queue()
    for n in range(args.together):
        places.put(cores[n * args.cores : (n + 1) * args.cores] or cores)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.together) as pool:
        rows = list(pool.map(lambda job: run(*job, folder, args.set, places), jobs))
    names = ("arm", "seed", "before", "after", "gain", "unseen before", "unseen after", "steps", "seconds", "overhead")
    print(" | ".join(names))
    for row in rows:
        print(" | ".join(f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in names))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


def run(arm: str, seed: int, folder: str, settings: list[str], places: Queue[list[int]]) -> dict:
    cores = places.get()
    name = f"{arm}-{seed}"
    command = [sys.executable, "-m", "microcoder.cli", "train", "demo", f"train.folder={folder}", f"train.name={name}"]
    command += [f"train.seed={seed}", *ARMS[arm], *settings]
    environment = {**os.environ, "OMP_NUM_THREADS": str(len(cores))}
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    places.put(cores)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")
    path = Path(folder) / name
    summary = json.loads((path / "summary.json").read_text())
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["step"]]
    before, after = summary["before"], summary["after"]
    row = {
        "arm": arm,
        "seed": seed,
        "before": before["accuracy"],
        "after": after["accuracy"],
        "gain": summary["gain_points"],
        "after low": after["accuracy_low"],
        "after high": after["accuracy_high"],
        "pass at k before": before["pass_at_k"],
        "unseen before": before["unseen_accuracy"],
        "unseen after": after["unseen_accuracy"],
        "by depth before": before["by_difficulty"],
        "by depth after": after["by_difficulty"],
        "steps": summary["steps"],
        "seconds": summary["train_seconds"],
        "overhead": statistics.fmean(line["other_s"] / line["step_s"] for line in steps),
        "evaluations": {line["step"]: line["test_accuracy"] for line in lines if "test_accuracy" in line},
    }
    print(f"{name}: {row['before']:.3f} -> {row['after']:.3f} in {row['seconds']:.0f} s", file=sys.stderr, flush=True)
    return row
