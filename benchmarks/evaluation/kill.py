"""A bench that is killed and run again ends as if it had never been stopped.

    python -m benchmarks.evaluation kill --problems 60 --kills 10

The same bench twice: once in one go; once killed (SIGKILL, with everything it started) again and again, each time after
a random number of further samples and a random moment more, and then run to its end. Samples, verdicts and scores must
be the same, and every sample must be there once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from microcoder.files import write_problems
from microcoder.starter import problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--problems", type=int, default=60, help="of the starter's test split")
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args)
    for name, value in found.items():
        print(f"{name:32} {value}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if found["samples equal"] and found["verdicts equal"] and found["scores equal"] else 1


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    suite = folder / "problems.jsonl"
    write_problems(suite, problems("test", args.problems, seed=0))
    command = [sys.executable, "-m", "microcoder.cli", "bench", args.model, "--suite", str(suite)]
    command += ["-n", str(args.tries), "--temperature", "0.8", "--limit", "96,160", "rollout.batch=32"]
    whole, killed = folder / "whole", folder / "killed"
    started = time.monotonic()
    subprocess.run([*command, "-o", whole], check=True, capture_output=True)
    seconds = time.monotonic() - started
    draw, total, kills = random.Random(args.seed), args.problems * args.tries, 0
    for left in range(args.kills, 0, -1):
        before = samples_in(killed)
        more = draw.randint(0, 2 * (total - before) // (left + 1))
        kills += kill_when([*command, "-o", str(killed)], killed, before + more, draw.uniform(0, 0.5))
        print(f"killed at {samples_in(killed)} samples of {total}", flush=True)
    subprocess.run([*command, "-o", killed], check=True, capture_output=True)
    one, other = (read(path) for path in (whole, killed))
    return {
        "samples": len(one["samples"]),
        "seconds without a kill": round(seconds, 1),
        "kills that found it running": kills,
        "lines of samples": other["lines"],
        "samples equal": one["samples"] == other["samples"],
        "verdicts equal": one["verdicts"] == other["verdicts"],
        "scores equal": one["scores"] == other["scores"],
        "each sample once": other["lines"] == len(other["samples"]),
    }


def kill_when(command: list[str], folder: Path, count: int, seconds: float) -> bool:
    """Kill it some time after it has so many samples; False if it came to its end before."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (folder / "samples.jsonl").exists() or samples_in(folder) < count:
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    time.sleep(seconds)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def samples_in(folder: Path) -> int:
    file = folder / "samples.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def read(folder: Path) -> dict[str, Any]:
    """What must be equal: samples by id, verdicts without their times, scores."""
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    verdicts = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    return {
        "lines": len(lines),
        "samples": {f"{line['problem_id']}#{line['number']}": line for line in lines},
        "verdicts": {line["id"]: (line["verdict"], line["also"], line["strategy"]) for line in verdicts},
        "scores": json.loads((folder / "scores.json").read_text())["scores"],
    }
