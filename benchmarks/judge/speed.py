"""How fast and how right the judge is, beside its peers and the CPU floor, all in one run with two workers each.

    python -m benchmarks.judge speed --peer livecodebench=PATH --peer deepcoder=PATH --peer verl=PATH \\
        --peer-python PYTHON

Without a path a plain model of the peer runs instead, and says so. `--peer skyrl=PATH` (SkyRL's skyrl-gym) and
`--peer code_eval=PATH` (Hugging Face's evaluate, whose metric lm-evaluation-harness uses) run only with theirs.
microcoder-reward is the judge as other trainers call it, through CodeReward. Two workloads: with endless loops (5%) and
without. Pools are started, and modules imported, before the clock starts; that time is the column `start`. `--busy 8`
puts eight processes that only count beside every arm, on each core: on a training node the judge is never alone.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.judge import arms, floor
from benchmarks.shared import workload
from benchmarks.shared.workload import Candidate
from microcoder.judge.sandbox import kernel

Arm = arms.Ours | arms.Rewarded | arms.Peer


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a peer's checkout")
    parser.add_argument("--peer-python", default=sys.executable, help="Python with numpy, tqdm, pandas, pydantic")
    parser.add_argument("--peer-candidates", type=int, help="an evenly spread part for the peers but livecodebench")
    parser.add_argument("--only", help="arms to run, separated by commas (default: all)")
    parser.add_argument("--workload", choices=["with", "without", "both"], default="both", help="endless loops")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; arms take turns; the median counts")
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument(
        "--busy", type=int, default=0, metavar="N", help="N busy processes on each core beside all arms"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write every figure here")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    chosen: list[Arm] = [
        arms.Ours(),
        arms.Ours(reuse=True),
        arms.Rewarded(),
        *arms.peers(options.peer, options.peer_python),
    ]
    if options.only:
        wanted, known = options.only.split(","), [arm.name for arm in chosen]
        if unknown := set(wanted) - set(known):
            raise SystemExit(f"--only {unknown.pop()}: no such arm; known are {', '.join(known)}")
        chosen = [arm for arm in chosen if arm.name in wanted]
    full = workload.candidates(options.candidates, options.seed)
    print(f"{len(full)} candidates, seed {options.seed}; measuring the CPU floor", file=sys.stderr)
    floors = floor.measure_all(full)
    report: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version()},
        "candidates": options.candidates, "seed": options.seed, "repeat": options.repeat, "workers": arms.WORKERS,
        "busy": options.busy,
        "workloads": {},
    }  # fmt: skip
    for loops in [k for k in ("with", "without") if options.workload in (k, "both")]:
        candidates = [c for c in full if loops == "with" or c.group not in workload.LOOPS]
        rows = compare(chosen, candidates, floors, options)
        report["workloads"][loops] = rows
        show(f"{loops} endless loops: {len(candidates)} programs", rows)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def compare(
    chosen: list[Arm], candidates: list[Candidate], floors: dict[str, floor.Floor], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """A row for the floor and one for each arm."""
    runs: dict[str, list[arms.Outcome]] = {}
    for turn in range(options.repeat):
        for arm in chosen:
            print(f"round {turn + 1}: {arm.label}", file=sys.stderr)
            with busy(options.busy):
                before = stolen_s()
                runs.setdefault(arm.label, []).append(arm.run(part(arm, candidates, options.peer_candidates)))
                if (lost := stolen_s() - before) > 1:
                    print(f"{arm.label}: a host took {lost:.0f} s of CPU time from this machine", file=sys.stderr)
    rows = [floor_row(candidates, floors)]
    for arm in chosen:
        mine = part(arm, candidates, options.peer_candidates)
        rows.append(row(arm.label, mine, runs[arm.label], floor_row(mine, floors)["wall_s"]))
    base = [r["programs_per_s"] for r in rows if r["arm"].endswith("livecodebench")]
    for r in rows:
        r["to_livecodebench"] = r["programs_per_s"] / base[0] if base else None
    return rows


def stolen_s() -> float:
    """CPU seconds for which the host of this virtual machine has done other things, since its start."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def busy(a_core: int) -> Iterator[None]:
    """Keep every core busy with so many processes that only count."""
    words = [sys.executable, "-c", "while True: pass"]
    dying = functools.partial(kernel.die_with_parent, os.getpid())  # they must not outlive a benchmark that is killed
    started = [subprocess.Popen(words, preexec_fn=dying) for _ in range(a_core * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def part(arm: Arm, candidates: list[Candidate], count: int | None) -> list[Candidate]:
    if (
        not count
        or isinstance(arm, arms.Ours | arms.Rewarded)
        or arm.name.startswith("livecodebench")
        or count >= len(candidates)
    ):
        return candidates
    return [candidates[i * len(candidates) // count] for i in range(count)]


def floor_row(candidates: list[Candidate], floors: dict[str, floor.Floor]) -> dict[str, Any]:
    cpu = sum(floors[c.id].cpu_s for c in candidates)
    wall = cpu / arms.WORKERS
    tests = sum(floors[c.id].tests for c in candidates)
    return {
        "arm": "CPU floor", "programs": len(candidates), "programs_per_s": len(candidates) / wall, "wall_s": wall,
        "to_floor": 1.0, "cpu_s": cpu, "tests": tests, "wrong": [], "wrong_kind": [],
    }  # fmt: skip


def row(label: str, candidates: list[Candidate], outcomes: list[arms.Outcome], floor_s: float) -> dict[str, Any]:
    wall = statistics.median(o.wall_s for o in outcomes)
    wrong, kinds = {}, {}
    for c in candidates:
        for outcome in outcomes:
            said = outcome.accepted.get(c.id)  # None: the arm lost it, which is wrong too
            place = {"id": c.id, "problem": c.problem.id, "group": c.group, "truth": c.truth}
            words = "nothing" if said is None else "accepted" if said else "not accepted"
            words = outcome.messages.get(c.id, words)
            if said is not (c.truth == "accepted"):
                wrong[c.id] = {**place, "said": words}
            elif outcome.verdicts and outcome.verdicts[c.id] != c.truth:
                kinds[c.id] = {**place, "said": words}
    return {
        "arm": label, "programs": len(candidates), "programs_per_s": len(candidates) / wall, "wall_s": wall,
        "walls_s": [round(o.wall_s, 3) for o in outcomes], "start_s": statistics.median(o.start_s for o in outcomes),
        "to_floor": wall / floor_s, "wrong": list(wrong.values()), "wrong_kind": list(kinds.values()),
    }  # fmt: skip


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}")
    print(f"{'arm':<24}{'programs/s':>11}{'wall s':>9}{'x LCB':>8}{'x floor':>9}{'start s':>9}  wrong verdicts")
    for r in rows:
        times = f"{r['to_livecodebench']:.2f}" if r["to_livecodebench"] else "-"
        start = f"{r['start_s']:.2f}" if "start_s" in r else "-"
        kinds = f", {len(r['wrong_kind'])} of another kind" if r["wrong_kind"] else ""
        label = r["arm"] if r["programs"] == rows[0]["programs"] else f"{r['arm']} ({r['programs']})"
        print(
            f"{label:<24}{r['programs_per_s']:>11.1f}{r['wall_s']:>9.1f}{times:>8}{r['to_floor']:>9.2f}{start:>9}"
            f"  {len(r['wrong'])}{kinds}"
        )
    for r in rows:
        for w in [*r["wrong"], *r["wrong_kind"]]:
            print(f"  {r['arm']}: {w['id']} {w['problem']}, {w['group']}: {w['truth']}, it said {w['said']}")
