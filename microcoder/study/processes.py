"""Commands side by side, each with its own log; at the end of the time given, those still running are told to stop.

A command is told to stop once, whatever ends this process: it gets Ctrl-C (SIGINT) where we get Ctrl-C or SIGTERM, and
where we are killed, the system kills it. So the same commands can be started again at once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..judge.sandbox import kernel

GRACE_S = 15.0  # from the request to stop until a process is killed


@dataclass(eq=False)
class Command:
    name: str
    command: list[str]
    log: Path


def side_by_side(
    jobs: Iterable[Command],
    together: int,
    stop_after: float,
    ended: Callable[[Command, int, float], Sequence[Command] | None],
    ready: Callable[[Command], bool] = lambda _: True,
) -> list[Command]:
    """Run the commands in order, `together` at a time; one that is not ready lets others go first. As each one ends,
    `ended(job, exit status, seconds)` is called, and what it returns is run after the others.

    Returns the jobs that were stopped or never begun. Each has one thread, unless OMP_NUM_THREADS says otherwise: what
    a run finds does not hang on how many run beside it, and threads that wait for each other on busy cores are slow.
    """
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONUNBUFFERED": "1"}
    deadline = time.monotonic() + stop_after
    waiting, running = list(jobs), dict[Command, tuple[subprocess.Popen[bytes], float]]()
    with _signals():
        try:
            while (waiting or running) and time.monotonic() < deadline:
                while len(running) < together and (job := next(filter(ready, waiting), None)):
                    waiting.remove(job)
                    running[job] = _start(job, environment), time.monotonic()
                if not running:
                    break  # nothing will ever make the others ready
                time.sleep(0.1)
                for job, (process, started) in list(running.items()):
                    if process.poll() is not None:
                        del running[job]
                        waiting.extend(ended(job, process.returncode, time.monotonic() - started) or ())
            return [*running, *waiting]
        finally:
            _stop([process for process, _ in running.values()])


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Stop in order at SIGTERM and SIGINT, which processes that a shell started with `&` would ignore."""
    handlers = {signal.SIGTERM: lambda *_: sys.exit(143), signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(job: Command, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        return subprocess.Popen(
            job.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a terminal's Ctrl-C comes to us alone: two of them would cut its ending short
            preexec_fn=functools.partial(kernel.die_with_parent, os.getpid()),
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
