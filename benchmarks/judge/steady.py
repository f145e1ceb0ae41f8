"""Whether the judge stays steady: over 20,000 verdicts, on a loaded host, and while its processes are killed.

    python -m benchmarks.judge steady [--verdicts N] [--part soak,loaded,killed] [--peer livecodebench=PATH]

soak     memory, processes, descriptors, temporary files and mounts after every batch of verdicts, when all is quiet
loaded   the same candidates judged idle and with eight busy processes a core; LiveCodeBench (or its model) beside it
killed   SIGKILL to random workers and zygotes while verdicts are made: none may be lost, none wrong
Exits with 1 when any of it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

from benchmarks.judge import arms
from benchmarks.shared import processes, tiny
from benchmarks.shared.workload import Candidate
from microcoder import Judge

PARTS = ("soak", "loaded", "killed")
# How much a figure may grow between the early and the late samples and still be called flat: (part, absolute).
ROOM = {"main_mb": (0.03, 2.0), "others_mb": (0.05, 4.0), "temp_files": (0.0, 2.0)}


def judged(
    judge: Judge, candidates: Iterable[Candidate], after: Callable[[int], None] | None = None
) -> list[dict[str, str]]:
    """Judge them all, calling `after` with the count after each; what was lost or is not the truth comes back."""
    known = {c.id: c for c in candidates}
    wrong, seen = [], set()
    for solution, verdict in judge.map((c.problem, c.solution) for c in known.values()):
        c = known[solution.id]
        seen.add(c.id)
        if after is not None:
            after(len(seen))
        if verdict.verdict != c.truth:
            wrong.append({"id": c.id, "group": c.group, "truth": c.truth, "said": verdict.verdict,
                          "message": verdict.message})  # fmt: skip
    lost = [{"id": i, "group": known[i].group, "truth": known[i].truth, "said": "nothing"} for i in known.keys() - seen]
    return wrong + lost


def soak(verdicts: int, seed: int, batch: int) -> dict[str, Any]:
    rows: list[dict[str, float]] = []
    wrong: list[dict[str, str]] = []
    print(f"\nsoak: {verdicts} verdicts in one process")
    with Judge(workers=arms.WORKERS) as judge:
        for first in range(0, verdicts, batch):
            started = time.perf_counter()
            count = min(batch, verdicts - first)
            wrong += judged(judge, tiny.stream(count, seed, first))
            rate = count / (time.perf_counter() - started)
            time.sleep(0.1)  # the last box is being taken down
            rows.append({"verdicts": first + count, "per_s": rate, **processes.sample()})
            if first == 0:
                print(" ".join(f"{name:>10}" for name in rows[0]))
            print(" ".join(f"{value:>10.1f}" for value in rows[-1].values()), flush=True)
    after = processes.sample()
    flat = {name: steady(name, [r[name] for r in rows]) for name in after}
    left = after["processes"] - 1
    print(f"flat: {flat}; wrong verdicts: {len(wrong)}; processes left after closing: {left:.0f}")
    ok = all(flat.values()) and not wrong and not left
    return {"samples": rows, "flat": flat, "wrong": wrong, "left": left, "ok": ok}


def steady(name: str, values: list[float]) -> bool:
    """Late samples against early ones, the first tenth left out as warm-up."""
    values = values[max(1, len(values) // 10) :] or values
    quarter = max(1, len(values) // 4)
    early, late = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
    part, absolute = ROOM.get(name, (0.0, 0.0))
    return late <= early * (1 + part) + absolute


def running() -> int:
    """Processes that want a core right now, besides this one."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1


def loaded(count: int, peer: arms.Peer, peer_count: int) -> dict[str, Any]:
    candidates = tiny.heavy(count)
    burners = [c for c in candidates if c.group == "burn 0.6 s"][:peer_count]
    busy = 8 * (os.cpu_count() or 1)
    result: dict[str, Any] = {"busy_processes": busy, "candidates": len(candidates), "peer": peer.label,
                              "peer_candidates": len(burners)}  # fmt: skip
    print(f"\nloaded: {len(candidates)} candidates idle, then beside {busy} busy processes")
    for state in ("idle", "loaded"):
        number = busy if state == "loaded" else 0
        # A session each: Linux shares cores between sessions first, so a crowd in one session would be hardly felt.
        spin = [sys.executable, "-c", "while True: pass"]
        crowd = [subprocess.Popen(spin, start_new_session=True) for _ in range(number)]
        try:
            time.sleep(0.5)
            others = running()  # an "idle" host that is not idle would make the comparison worthless
            started = time.perf_counter()
            with Judge(workers=arms.WORKERS) as judge:
                wrong = judged(judge, candidates)
            wall = time.perf_counter() - started
            accepted = peer.run(burners).accepted if burners else {}
        finally:
            for process in crowd:
                process.kill()
                process.wait()
        false = sum(not ok for ok in accepted.values())
        result[state] = {"wall_s": wall, "wrong": wrong, "peer_false": false, "running": others}
        print(f"{state:>8} ({others} running): microcoder {len(wrong)} wrong of {len(candidates)} in {wall:.1f} s; "
              f"{peer.label} {false} false rejections of {len(burners)}", flush=True)  # fmt: skip
        for w in wrong:
            print(f"          {w}")
    result["ok"] = not result["idle"]["wrong"] and not result["loaded"]["wrong"]
    return result


def killed(verdicts: int, seed: int, every: float) -> dict[str, Any]:
    """SIGKILL to a worker or zygote picked at random, at random times, whatever it is doing, starting included."""
    rng, hits = random.Random(seed), Counter[str]()
    known = {c.id: c for c in tiny.stream(verdicts, seed, first=10**6)}
    over = threading.Event()

    def kill() -> None:
        while not over.wait(rng.expovariate(1 / every)):
            alive = sorted(processes.trusted(), key=lambda p: p.pid)
            try:
                victim = rng.choice(alive)
                kind = "worker" if victim.ppid() == os.getpid() else "zygote"
                victim.kill()
                hits[kind] += 1
            except (psutil.Error, IndexError):
                pass  # it ended by itself just now

    print(f"\nkilled: {verdicts} verdicts, a worker or zygote killed every {every} s on average")
    with Judge(workers=arms.WORKERS) as judge:
        begun = time.perf_counter()
        killer = threading.Thread(target=kill)
        killer.start()
        wrong = judged(judge, known.values())
        wall = time.perf_counter() - begun
        over.set()
        killer.join()
    time.sleep(0.2)
    left = processes.sample()["processes"] - 1
    said = dict(Counter(w["said"] for w in wrong))
    print(f"{hits.total()} kills {dict(hits)} in {wall:.1f} s; lost or wrong: {len(wrong)} {said}; left: {left:.0f}")
    for w in wrong[:20]:
        print(f"    {w}")
    return {"kills": dict(hits), "wall_s": wall, "wrong": wrong, "left": left, "ok": not wrong and not left}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default=",".join(PARTS), help="parts to run, separated by commas (default: all)")
    parser.add_argument("--verdicts", type=int, default=20000, help="of the soak")
    parser.add_argument("--batch", type=int, default=1000, help="verdicts between two samples")
    parser.add_argument("--candidates", type=int, default=64, help="of the loaded part")
    parser.add_argument("--kill-verdicts", type=int, default=5000)
    parser.add_argument("--kill-every", type=float, default=1.0, help="seconds between two kills, on average")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="livecodebench's checkout")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--peer-candidates", type=int, default=8, help="programs the peer judges in the loaded part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args()
    parts = options.part.split(",")
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"--part {unknown.pop()}: no such part; known are {', '.join(PARTS)}")
    peer = next(p for p in arms.peers(options.peer, options.peer_python) if p.name == "livecodebench")
    report: dict[str, Any] = {}
    if "soak" in parts:
        report["soak"] = soak(options.verdicts, options.seed, options.batch)
    if "loaded" in parts:
        report["loaded"] = loaded(options.candidates, peer, options.peer_candidates)
    if "killed" in parts:
        report["killed"] = killed(options.kill_verdicts, options.seed, options.kill_every)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    failed = [name for name, part in report.items() if not part["ok"]]
    print(f"\nnot steady: {', '.join(failed)}" if failed else "\nsteady")
    raise SystemExit(1 if failed else 0)
