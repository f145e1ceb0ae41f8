"""Judge: a pool of worker processes with one queue. Thread-safe; usable from asyncio."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

from ..schema import POLICIES, Problem, SchemaError, Solution, Verdict, language_named
from .base import JudgeError, Judging, failed, solution_of
from .boxes import BoxError, Limits, started
from .examine import Settings
from .execution import Program, Ran
from .worker import Request, receive, send

LAYERS = ("auto", "full", "landlock", "rlimits")
OWN_CPU_SECONDS = 20.0  # what a worker may use between two signs of life; comparing 16 MB takes about one
SILENT_SECONDS = 300.0  # a worker that neither works nor gives a sign for so long is replaced
KNOWN_PROBLEMS, KNOWN_BYTES = 1000, 64 << 20  # what a worker keeps for the next solution
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_START = "import sys; sys.path.insert(0, {root!r}); from microcoder.judge.worker import main; main({fd}, {pid})"


class Submission(NamedTuple):
    problem: Problem
    solution: Solution
    settings: Settings | None


_Item = tuple["Future[Any]", Submission | Program]  # what is asked, and where the Verdict or the Ran goes


class GivenUp(Exception):
    """A candidate failed for good and is not tried again; the message says why."""


class TooMuchWork(GivenUp):
    """The result of a candidate takes the judge too long to read."""


class Judge(Judging):
    """Run programs against the tests of problems, in a sandbox on this machine, and return verdicts.

    Args:
        workers: Programs judged at a time; None for one per usable core.
        policy: How outputs are compared: `"exact"`, `"robust"` or `"paper"` (a problem may override it).
        stop_at_first_failure: Stop a program at its first failed test (right for a 0/1 reward).
        reuse: Run a program's tests in one process: faster, but state can leak from test to test.
        time_limit_s: CPU seconds per test, for problems that name none.
        time_factor: Multiplies every time limit, also those that problems name.
        memory_mb: Memory per test, for problems that name none.
        output_mb: Output per test.
        sandbox: `"auto"` (full, else landlock), or a layer by name; `"rlimits"` hides and forbids nothing.
        queue: How many programs may wait before `submit` blocks; None for four per worker.
        also: A second policy, for the same executions: `Verdict.also` is the verdict under it.
    """

    def __init__(
        self,
        workers: int | None = None,
        policy: str = "robust",
        stop_at_first_failure: bool = True,
        reuse: bool = False,
        time_limit_s: float = 6.0,
        time_factor: float = 1.0,
        memory_mb: int = 1024,
        output_mb: int = 16,
        sandbox: str = "auto",
        queue: int | None = None,
        also: str = "",
    ) -> None:
        for name in (policy, also or policy):
            if name not in POLICIES:
                raise JudgeError(f"policy is {name!r}; it must be one of {', '.join(POLICIES)}")
        if sandbox not in LAYERS:
            raise JudgeError(f"sandbox is {sandbox!r}; it must be one of {', '.join(LAYERS)}")
        self.workers = workers or usable_cores()
        settings = Settings(
            policy, stop_at_first_failure, reuse, time_limit_s, time_factor, memory_mb, output_mb, sandbox, also
        )
        self._process = os.getpid()
        self._waiting: Any = _bounded(queue or 4 * self.workers)
        self._closed = self._cancelled = False
        self._busy: dict[Future[Any], _Worker] = {}
        self._dropped: set[Future[Any]] = set()  # before a worker had them
        self._lock = threading.Lock()
        self._settings = settings
        # A worker lives as long as the thread that started it. The first finds out which sandbox works here.
        layer: Future[str] = Future()
        self._threads = [
            threading.Thread(target=self._serve, args=(layer if n == 0 else None,), daemon=True, name=f"judge-{n}")
            for n in range(self.workers)
        ]
        self._threads[0].start()
        try:
            self.sandbox = layer.result()
        except BoxError as error:
            raise JudgeError(
                f"no sandbox can be used here ({error}). `microcoder doctor` says what is missing and what to do; "
                'sandbox="rlimits" judges without one, for programs that you trust'
            ) from None
        self._settings = replace(settings, layer=self.sandbox)
        for thread in self._threads[1:]:
            thread.start()

    def submit(
        self,
        problem: Problem,
        completion: str | Solution | None = None,
        *,
        code: str | None = None,
        settings: Settings | None = None,
    ) -> Future[Verdict]:
        """Queue one program (see Judging.submit). `settings` are for this candidate only; the sandbox cannot differ."""
        return self._queue(Submission(problem, solution_of(problem, completion, code), settings))

    def run(self, code: str, language: str = "python", stdin: str = "", limits: Limits | None = None) -> Future[Ran]:
        """Run one program once, judged against nothing: what it wrote, how it ended, what it used (see running.py)."""
        try:
            return self._queue(Program(code, language_named(language), stdin, limits))
        except SchemaError as error:
            raise JudgeError(str(error)) from None

    def _queue(self, work: Submission | Program) -> Future[Any]:
        future: Future[Any] = Future()
        if os.getpid() != self._process:  # its threads are not here: nothing would ever be judged
            raise JudgeError(f"this judge belongs to process {self._process}; make one in the forked process")
        with self._lock:
            if self._closed:
                raise JudgeError("this judge is closed; make a new one")
        self._waiting.put((future, work))
        if self._closed:  # closed while this call waited for room
            future.cancel()
        return future

    def drop(self, future: Future[Any]) -> None:
        if not future.cancel():
            with self._lock:
                worker = self._busy.pop(future, None)
                if worker is not None:
                    worker.abandon()
                else:  # its worker is being started, or it has ended
                    self._dropped.add(future)
            if worker is None:
                future.add_done_callback(self._dropped.discard)

    def close(self, cancel: bool = False) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if cancel:
            self._drop_waiting()
            with self._lock:
                self._cancelled = True
                for worker in self._busy.values():
                    worker.abandon()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        while True:
            try:
                item = self._waiting.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                item[0].cancel()

    def _serve(self, layer: Future[str] | None) -> None:
        """Serve one worker process in a thread: send it a candidate, wait, pass on the verdict."""
        try:
            worker: _Worker | None = _Worker(self._settings)
        except BoxError as error:
            if layer is not None:
                layer.set_exception(error)
                return
            worker = None  # tried again with the first candidate
        if layer is not None and worker is not None:
            layer.set_result(worker.layer)
        try:
            while True:
                item: _Item | None = self._waiting.get()
                if item is None:
                    return
                future, work = item
                if not future.set_running_or_notify_cancel():
                    continue
                answer, worker = self._ask(worker, future, work)
                future.set_result(answer)
        finally:
            if worker is not None:
                worker.close()

    def _ask(
        self, worker: _Worker | None, future: Future[Any], work: Submission | Program
    ) -> tuple[Verdict | Ran, _Worker | None]:
        """A worker that dies is replaced and its work done once more; after that it is the judge's fault."""
        reason = ""
        for _ in range(2):
            try:
                worker = worker or started(lambda: _Worker(self._settings))
                with self._occupied(worker, future):
                    return worker.ask(work), worker
            except GivenUp as error:
                if worker is not None:
                    worker.close()
                if isinstance(error, TooMuchWork):
                    return _too_much(work, str(error), self.sandbox), None
                reason = str(error)
                break
            except (EOFError, OSError, BoxError) as error:
                reason = f"{type(error).__name__} {error}".strip()
                if worker is not None:
                    worker.close()
                worker = None
            except Exception as error:  # a problem that cannot even be handed over, such as one whose id is a list
                reason = f"{type(error).__name__} {error}".strip()
                if worker is not None:
                    worker.close()
                break
        if isinstance(work, Program):
            return Ran("internal_error", message=f"the judge failed on this program: {reason}"), None
        return failed(work.solution, reason, self.sandbox), None

    @contextlib.contextmanager
    def _occupied(self, worker: _Worker, future: Future[Any]) -> Iterator[None]:
        """While a worker is busy, `drop` and `close(cancel=True)` can interrupt it."""
        with self._lock:
            if self._cancelled:
                raise BoxError("the judge was closed")
            if future in self._dropped:
                raise GivenUp("it was dropped")
            self._busy[future] = worker
        try:
            yield
        finally:
            with self._lock:
                dropped = self._busy.pop(future, None) is None
            if dropped:  # perhaps just after the answer: the worker is of no more use in either case
                raise GivenUp("it was dropped")


class _Worker:
    """A worker process and the socket to it."""

    def __init__(self, settings: Settings) -> None:
        self.sock, theirs = socket.socketpair()
        _SOCKETS.add(self.sock)
        start = _START.format(root=_ROOT, fd=theirs.fileno(), pid=os.getpid())
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-X", "utf8", "-c", start],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal goes to the pool, which closes in order
        )
        theirs.close()
        try:
            send(self.sock, settings)
            while (answer := receive(self.sock)) is None:
                pass
        except (EOFError, OSError):
            self.close()
            raise BoxError("the worker process did not start") from None
        except BaseException:
            self.close()
            raise
        if isinstance(answer, BoxError):
            self.close()
            raise answer
        self.layer: str = answer
        self.known: set[str] = set()  # the problems that the worker has
        self.known_bytes = 0
        self.poll = select.poll()
        self.poll.register(self.sock, select.POLLIN)

    def ask(self, work: Submission | Program) -> Verdict | Ran:
        """Return the worker's answer. Raise TooMuchWork if the worker, not the candidate, uses too much CPU time."""
        send(self.sock, work if isinstance(work, Program) else self.request(*work))
        answer: Verdict | Ran | None = None
        while answer is None:
            before = last = self.cpu()
            silent = 0.0
            while not self.poll.poll(5000):
                used = self.cpu()
                silent, last = (silent + 5 if used == last else 0.0), used
                if used - before > OWN_CPU_SECONDS:
                    self.process.kill()
                    raise TooMuchWork(f"looking at what it gave took over {OWN_CPU_SECONDS:.0f} s of CPU")
                if silent > SILENT_SECONDS:
                    self.process.kill()
                    raise BoxError(f"the worker gave no sign of life for {SILENT_SECONDS:.0f} s")
            answer = receive(self.sock)  # None is a sign of life
        return answer

    def request(self, problem: Problem, solution: Solution, settings: Settings | None) -> Request:
        key, size = problem.fingerprint(), problem.size()
        if key in self.known:
            return Request(key, None, False, solution, settings)
        forget = self.known_bytes + size > KNOWN_BYTES or len(self.known) >= KNOWN_PROBLEMS
        if forget:
            self.known, self.known_bytes = set(), 0
        self.known.add(key)
        self.known_bytes += size
        return Request(key, problem, forget, solution, settings)

    def cpu(self) -> float:
        """CPU seconds of the worker process; it sleeps while a candidate runs, so this is its own work."""
        try:
            return time.clock_gettime((~self.process.pid << 3) | 2)
        except OSError:
            return 0.0

    def abandon(self) -> None:
        """Make whoever waits for this worker's answer stop waiting."""
        self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()  # the worker sees this, ends its box and zygotes, and leaves
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_SOCKETS: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _hang_up() -> None:
    """In a forked process: close its copies of the sockets. A worker ends when the last copy is closed."""
    for sock in list(_SOCKETS):
        sock.close()


os.register_at_fork(after_in_child=_hang_up)


def _too_much(work: Submission | Program, reason: str, sandbox: str) -> Verdict | Ran:
    if isinstance(work, Program):
        return Ran("output_limit", message=reason)
    return Verdict("output_limit", work.solution.problem_id, work.solution.id, message=reason, sandbox=sandbox)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _bounded(size: int) -> queue.Queue[_Item | None]:
    return queue.Queue(maxsize=size)
