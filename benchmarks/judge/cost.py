"""What a verdict costs beside the program itself: opening a box, running a test, and the parts of both.

    python -m benchmarks.judge cost --rounds 5 --json FILE

Wall and CPU milliseconds, medians of rounds, one worker's work in this process. The parts are made in a process of
their own that has a zygote's root: a fork alone, then with each namespace added, then the mounts of a box.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from microcoder.judge.boxes import Box, Limits, Zygote
from microcoder.judge.sandbox import kernel, program, root, template

LIMITS = Limits(5.0, 1 << 30, 1 << 24)
PROGRAM = "n = int(input())\nprint(n * n)\n"
FLAGS = {
    "fork": 0,
    "fork, pid": kernel.CLONE_NEWPID,
    "fork, pid, mount": kernel.CLONE_NEWPID | kernel.CLONE_NEWNS,
    "fork, pid, mount, IPC": kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC,
    "fork, pid, mount, IPC, network": kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWNET,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--boxes", type=int, default=50, help="boxes in a round")
    parser.add_argument("--tests", type=int, default=10, help="tests in a box")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--parts", action="store_true", help=argparse.SUPPRESS)  # the process that makes the parts
    options = parser.parse_args()
    if options.parts:
        print(json.dumps(parts(options.boxes)))
        return
    rows: dict[str, list[tuple[float, float]]] = {}
    for layer in ("full", "landlock"):
        try:
            zygote = Zygote(layer)
        except Exception as error:
            print(f"{layer}: {error}", file=sys.stderr)
            continue
        for _ in range(options.rounds):
            for name, cost in boxes(zygote, options.boxes, options.tests).items():
                rows.setdefault(f"{layer}: {name}", []).append(cost)
        zygote.close()
    for _ in range(options.rounds):
        words = [sys.executable, "-m", "benchmarks.judge", "cost", "--parts"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            print(f"parts: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            break
        for name, cost in json.loads(done.stdout).items():
            rows.setdefault(f"part: {name}", []).append(tuple(cost))
    report: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version()},
        "kernel": platform.release(),
        "ms": {},
    }
    print(f"{'':<44}{'wall ms':>9}{'CPU ms':>9}")
    for name, costs in rows.items():
        wall, cpu = (statistics.median(column) * 1000 for column in zip(*costs, strict=True))
        report["ms"][name] = {"wall": round(wall, 3), "cpu": round(cpu, 3)}
        print(f"{name:<44}{wall:>9.2f}{cpu:>9.2f}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def boxes(zygote: Zygote, count: int, tests: int) -> dict[str, tuple[float, float]]:
    """Seconds (wall, CPU of this process and the zygote's family) for a box, and for a test in it."""
    opened = closed = ran = (0.0, 0.0)
    for _ in range(count):
        before = clocks(zygote)
        box = Box(zygote, PROGRAM, "stdin", LIMITS)
        ready = clocks(zygote)
        cpu = 0.0
        for _ in range(tests):
            outcome = box.run(b"4\n")
            assert outcome.output == b"16\n", outcome
            cpu += outcome.cpu_s
        done = clocks(zygote)
        box.close()
        after = clocks(zygote)
        opened, ran, closed = plus(opened, before, ready), plus(ran, ready, done, cpu), plus(closed, done, after)
    return {
        "open a box": (opened[0] / count, opened[1] / count),
        "run a test": (ran[0] / count / tests, ran[1] / count / tests),
        "close a box": (closed[0] / count, closed[1] / count),
    }


def clocks(zygote: Zygote) -> tuple[float, float]:
    """Wall, and CPU of the two processes that go on; what a box used is not seen until it is closed."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), own.ru_utime + own.ru_stime + time.clock_gettime((~zygote.process.pid << 3) | 2)


def plus(
    total: tuple[float, float], start: tuple[float, float], end: tuple[float, float], more: float = 0.0
) -> tuple[float, float]:
    return total[0] + end[0] - start[0], total[1] + end[1] - start[1] + more


def parts(count: int) -> dict[str, tuple[float, float]]:
    """In a zygote's root: what each namespace adds to a fork, and each of the steps inside."""
    root.enter_user_namespace()
    root.build()
    program.prepare(template.make())
    found = {name: timed(count, flags, lambda: None) for name, flags in FLAGS.items()}
    everything = FLAGS["fork, pid, mount, IPC, network"]
    found["all of it, and its mounts"] = timed(count, everything, lambda: root.enter_box() and None)
    return found


def timed(count: int, flags: int, work: Callable[[], None]) -> tuple[float, float]:
    """Seconds for a child that does `work` and ends, until it has been reaped."""
    start, before = time.perf_counter(), cpu()
    for _ in range(count):
        pid = kernel.bare_clone(flags)
        if pid == 0:
            try:
                work()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    return (time.perf_counter() - start) / count, (cpu() - before) / count


def cpu() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)
