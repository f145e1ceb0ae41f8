"""What runs on each node of a Ray cluster: one actor with a judge of as many workers as it was given cores."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from ... import __version__
from ...schema import Problem, Verdict
from .. import Judge

DEPTH = 4  # candidates for each worker that a node has: one that runs, and enough to go on with while answers travel
LINGER_S = 0.05  # how long a verdict may wait for company; a call costs about as much as 1 ms of both sides' CPU
KEPT_BYTES = 256 << 20  # of large problems, for the next candidate


class Item(NamedTuple):
    """A candidate on its way. A large problem lies in Ray's object store, where every node fetches it once."""

    ident: int
    large: Any  # an ObjectRef, or None
    rest: bytes  # (problem unless it is large, solution), pickled


Answer = tuple[int, Verdict | str | None]  # of a number: a verdict, why there is none, or None for what was dropped


class NodeJudge:
    """The actor on a node, with its judge. Ray calls its methods from several threads."""

    def __init__(self, workers: int, options: dict[str, Any]) -> None:
        self.enough, self.workers, self.options = DEPTH * workers // 2, workers, options
        self.done: queue.SimpleQueue[tuple[int, Future[Verdict]]] = queue.SimpleQueue()
        self.unanswered: dict[int, Future[Verdict]] = {}
        self.dropped: set[int] = set()
        self.known = Kept()

    def open(self) -> tuple[str, str]:
        """(our version, the sandbox's layer); apart from `__init__`, so that a JudgeError arrives as one."""
        self.judge = Judge(workers=self.workers, queue=2 * DEPTH * self.workers, **self.options)
        return __version__, self.judge.sandbox

    def take(self, items: Sequence[Item]) -> None:
        for item in items:
            try:
                problem, solution = pickle.loads(item.rest)
                future = self.judge.submit(problem or self._fetched(item.large), solution)
            except Exception as error:
                future = Future()
                future.set_exception(error)
            self.unanswered[item.ident] = future
            if item.ident in self.dropped:  # a thread may be told to drop it before another has taken it
                self.drop(item.ident)
            future.add_done_callback(lambda f, i=item.ident: self.done.put((i, f)))  # type: ignore[misc]

    def exchange(self, items: Sequence[Item]) -> list[Answer]:
        """Take new candidates and return finished verdicts, several in one call where possible.

        Half of what a node can have is given at once, so that the other half keeps it busy meanwhile.
        """
        self.take(items)
        found, until = [self._next(None)], time.monotonic() + LINGER_S
        while self.unanswered and len(found) < self.enough:
            try:
                found.append(self._next(max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
        return found

    def drop(self, ident: int) -> None:
        self.dropped.add(ident)
        future = self.unanswered.get(ident)
        if future is not None and not future.done():
            self.judge.drop(future)

    def close(self, cancel: bool) -> None:
        self.judge.close(cancel)

    def _next(self, timeout: float | None) -> Answer:
        ident, future = self.done.get(timeout=timeout)
        del self.unanswered[ident]
        self.dropped.discard(ident)
        if future.cancelled():
            return ident, None
        error = future.exception()
        return ident, said(error) if error else future.result()

    def _fetched(self, large: Any) -> Problem:
        def fetch() -> tuple[Problem, int]:
            import ray

            problem: Problem = ray.get(large)
            return problem, problem.size()

        found: Problem = self.known.get(large.binary(), fetch)
        return found


class Kept:
    """Values by key, up to so many bytes; those that were not asked for longest go first. Thread-safe."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self.values: dict[Any, tuple[Any, int]] = {}  # (value, size), the latest last
        self.most, self.size = most, 0
        self.lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[Any, int]]) -> Any:
        with self.lock:
            if key in self.values:
                self.values[key] = self.values.pop(key)
            else:
                self.values[key] = make()
                self.size += self.values[key][1]
                while self.size > self.most and len(self.values) > 1:
                    self.size -= self.values.pop(next(iter(self.values)))[1]
            return self.values[key][0]


def said(error: BaseException) -> str:
    return f"{type(error).__name__} {error}".strip()
