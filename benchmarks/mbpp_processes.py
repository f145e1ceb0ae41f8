"""Commands side by side, each with its own log; at the end of the time given, those still running are told to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from microcoder.config import usable_cores

GRACE_S = 15.0  # from the request to stop until a process is killed


@dataclass(eq=False)
class Job:
    name: str
    command: list[str]
    log: Path


def side_by_side(
    jobs: Sequence[Job], together: int, stop_after: float, ended: Callable[[Job, int, float], None]
) -> list[Job]:
    """Run the jobs in order, `together` at a time; `ended(job, exit status, seconds)` is called as each one ends.

    Returns the jobs that were stopped or never begun. All stay in this process group, so whatever kills the group kills
    them too; a request to end (SIGTERM, Ctrl-C) is handed on.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children would inherit that a shell's `&` ignores it
    threads = str(max(1, usable_cores() // together))
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"}
    deadline = time.monotonic() + stop_after
    waiting, running = deque(jobs), dict[Job, tuple[subprocess.Popen[bytes], float]]()
    try:
        while (waiting or running) and time.monotonic() < deadline:
            while waiting and len(running) < together:
                job = waiting.popleft()
                running[job] = _start(job, environment), time.monotonic()
            time.sleep(0.1)
            for job, (process, started) in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    ended(job, process.returncode, time.monotonic() - started)
        return [*running, *waiting]
    finally:
        _stop([process for process, _ in running.values()])


def _start(job: Job, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        return subprocess.Popen(
            job.command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
