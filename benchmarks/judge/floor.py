"""The CPU floor: what the programs themselves must spend, whoever judges them.

Each program is compiled once in a plain forked process and each test runs in a fork of that, up to where a judge must
stop: all tests of a right program, the first failing test of a wrong one, the time limit of a loop. Only CPU time
between the first and the last instruction of the program counts (no fork, no start of Python, no comparison), and the
modules that the programs import are loaded beforehand. Divided by the cores, it is a wall time that no judge can beat
without skipping tests. The same run confirms that every candidate's true verdict is what the workload says.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import struct
import sys
import tempfile
import time
from dataclasses import dataclass

from benchmarks.shared import workload
from benchmarks.shared.workload import Candidate
from microcoder.schema import Problem

_COST = struct.Struct("d")


@dataclass
class Floor:
    cpu_s: float
    verdict: str
    tests: int  # how many a judge has to run


def measure(candidate: Candidate) -> Floor:
    """CPU seconds and verdict of one candidate."""
    problem, limit = candidate.problem, candidate.problem.time_limit_s or 2.0
    started = time.process_time()
    try:
        source = workload.PRELUDE + candidate.code if problem.kind == "function" else candidate.code
        code = compile(source, "<program>", "exec")
    except SyntaxError:
        return Floor(time.process_time() - started, "compile_error", 0)
    total = time.process_time() - started
    for number, test in enumerate(problem.tests, 1):
        cost, status, printed = _run(problem, code, test.input, limit)
        total += cost
        if cost >= limit:
            return Floor(total, "time_limit", number)
        if status:
            return Floor(total, "runtime_error", number)
        if not same(problem, printed, test.output):
            return Floor(total, "wrong_answer", number)
    return Floor(total, "accepted", len(problem.tests))


def _run(problem: Problem, code: object, text: str, limit: float) -> tuple[float, int, str]:
    """CPU seconds, exit status and output of one test in a forked process."""
    shared = mmap.mmap(-1, _COST.size)
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
        stdin.write(text.encode())
        stdin.seek(0)
        pid = os.fork()
        if pid == 0:
            _child(problem, code, text, stdin.fileno(), stdout.fileno(), shared)
        usage, status = _reap(pid, limit)
        stdout.seek(0)
        printed = stdout.read().decode(errors="replace")
    (cost,) = _COST.unpack(shared[:])
    return cost or min(limit, usage), status, printed


def _reap(pid: int, limit: float) -> tuple[float, int]:
    """CPU seconds and status of the child, killed from here at `limit` CPU seconds. (No RLIMIT_CPU: with one set, Linux
    counts a process's CPU clock in scheduler ticks, far too coarse for tests of a millisecond.)"""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    while not poll.poll(100):
        if _used(pid) >= limit:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime, status


def _used(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(problem: Problem, code: object, text: str, stdin: int, stdout: int, shared: mmap.mmap) -> None:
    status = 1
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            setattr(sys, name, open(number, mode))
        arguments = json.loads(text) if problem.kind == "function" else []
        started = time.process_time()
        try:
            scope = {"__name__": "__main__"}
            exec(code, scope)  # type: ignore[arg-type]
            if problem.kind == "function":
                value = workload.entry(scope, problem.entry_point)(*arguments)
                print(json.dumps(value, default=lambda number: number.item()))
            sys.stdout.flush()
            status = 0
        finally:
            shared[:] = _COST.pack(time.process_time() - started)
    finally:
        os._exit(status)


def same(problem: Problem, got: str, want: str) -> bool:
    """The problems' own rule: equal values; for text, equal words, any case, floats within 1e-6."""
    if problem.kind == "function":
        return bool(got.strip()) and json.loads(got) == json.loads(want)
    if got.rstrip() == want.rstrip():
        return True
    ours, theirs = got.lower().split(), want.lower().split()
    return len(ours) == len(theirs) and all(_word(a, b) for a, b in zip(ours, theirs, strict=True))


def _word(got: str, want: str) -> bool:
    if got == want:
        return True
    try:
        return "." in want and abs(float(got) - float(want)) <= 1e-6 * max(1.0, abs(float(want)))
    except ValueError:
        return False


def measure_all(candidates: list[Candidate]) -> dict[str, Floor]:
    import numpy  # noqa: F401  (some programs use it; a judge has it loaded as well)

    floors = {}
    for candidate in candidates:
        floors[candidate.id] = found = measure(candidate)
        if found.verdict != candidate.truth:
            raise SystemExit(
                f"{candidate.id} ({candidate.problem.id}, {candidate.group}) should be {candidate.truth} but a plain "
                f"run gave {found.verdict}: the workload is at fault, so nothing was timed"
            )
    return floors
