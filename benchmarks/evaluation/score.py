"""Scoring a file of completions: how much of the time is the candidates' own.

    python -m benchmarks.evaluation score --completions 10000
    python -m benchmarks.evaluation score --completions 2000 --no-loops

The judge's benchmark workload (5% endless loops, limit 2 s), every program a different one, as a file of
completions that `microcoder bench` scores under both policies. The share is the CPU time that the programs themselves
used, over the wall time of the whole command and the cores it could use: start-up, reading, comparing, writing and
scores are all in the wall time. Every verdict is compared with the true one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.shared.workload import TIME_LIMIT_S, candidates
from microcoder.config import usable_cores
from microcoder.files import write_problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--completions", type=int, default=10_000)
    parser.add_argument("--no-loops", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="section.key=value", help="such as judge.reuse=true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args)
    for name, value in found.items():
        print(f"{name:24} {value}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if found["wrong verdicts"] else 0


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    made = candidates(args.completions, args.seed, loops=not args.no_loops)
    write_problems(folder / "problems.jsonl", {candidate.problem.id: candidate.problem for candidate in made}.values())
    truth: dict[str, str] = {}
    seen: dict[str, int] = {}
    with open(folder / "completions.jsonl", "w", encoding="utf-8") as file:
        for n, candidate in enumerate(made):
            ident = candidate.problem.id
            truth[f"{ident}#{seen.get(ident, 0)}"] = candidate.truth
            seen[ident] = seen.get(ident, 0) + 1
            text = f"Here it is.\n```python\n{candidate.code}\n# try {n}\n```\n"
            file.write(json.dumps({"problem_id": ident, "completion": text}) + "\n")
    command = [sys.executable, "-m", "microcoder.cli", "bench", "--completions", str(folder / "completions.jsonl")]
    command += ["--suite", str(folder / "problems.jsonl"), "-o", str(folder / "out"), *args.set]
    started = time.monotonic()
    subprocess.run([*command, f"judge.time_limit_s={TIME_LIMIT_S}"], check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - started
    took = json.loads((folder / "out" / "scores.json").read_text())["took"]
    verdicts = [json.loads(line) for line in (folder / "out" / "verdicts.jsonl").read_text().splitlines()]
    wrong = [line for line in verdicts if line["verdict"] != truth[line["id"]]]
    cores = usable_cores()
    return {
        "completions": len(made),
        "endless loops": "no" if args.no_loops else "5%",
        "cores": cores,
        "wall s": round(wall, 1),
        "completions/s": round(len(made) / wall, 1),
        "programs' CPU s": round(took["programs_cpu_s"], 1),
        "share of candidates' CPU": f"{took['programs_cpu_s'] / wall / cores:.1%}",
        "wrong verdicts": len(wrong),
    }
