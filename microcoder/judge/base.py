"""Judging: what every judge offers, wherever its workers are. A judge supplies `submit`, `drop` and `close`."""

from __future__ import annotations

import asyncio
import queue
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Self

from ..schema import Problem, Solution, Verdict


class JudgeError(Exception):
    """The judge cannot work here or any more; the message says what to do."""


class Judging(ABC):
    """Runs programs against problems' tests and says what happened."""

    workers: int  # candidates judged at a time
    sandbox: str  # the walls around them: "full", "landlock" or "rlimits"

    @abstractmethod
    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        """Queue one; blocks while the queue is full. The future never raises for what a program does."""

    @abstractmethod
    def drop(self, future: Future[Verdict]) -> None:
        """Nobody waits for this verdict any more: what is queued never runs, what runs is killed. Does not block."""

    @abstractmethod
    def close(self, cancel: bool = False) -> None:
        """Finish what is queued (or drop it, with `cancel`) and end every worker. Nothing is left behind."""

    def check(self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None) -> Verdict:
        """Judge one completion (the code in its last fenced block), one program (`code=`) or one Solution."""
        return self.submit(problem, completion, code=code).result()

    async def acheck(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Verdict:
        """`check` for coroutines: neither a full queue nor a slow program blocks the event loop."""
        loop = asyncio.get_running_loop()
        future = await loop.run_in_executor(None, lambda: self.submit(problem, completion, code=code))
        return await asyncio.wrap_future(future)

    def map(self, pairs: Iterable[tuple[Problem, Solution]]) -> Iterator[tuple[Solution, Verdict]]:
        """Judge a stream. Results come as they are ready; the input is read no faster than it is judged.

        Args:
            pairs: Of a problem and a `Solution(problem.id, code=...)`, or `Solution(problem.id, completion=...)` for
                what a model wrote, of which the last fenced block counts.

        Yields:
            The solution and its verdict.
        """
        done: queue.SimpleQueue[tuple[Solution, Future[Verdict]]] = queue.SimpleQueue()
        running: set[Future[Verdict]] = set()

        def next_done() -> tuple[Solution, Verdict]:
            solution, future = done.get()
            running.discard(future)
            return solution, future.result()

        try:
            for problem, solution in pairs:
                future = self.submit(problem, solution)
                running.add(future)
                future.add_done_callback(lambda f, s=solution: done.put((s, f)))  # type: ignore[misc]
                while len(running) > 8 * self.workers or not done.empty():
                    yield next_done()
            while running:
                yield next_done()
        finally:
            for future in running:
                future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close(cancel=kind is not None)


def failed(solution: Solution, reason: str, sandbox: str = "") -> Verdict:
    """What a judge says where it is itself at fault. It is never a reward."""
    message = f"the judge failed on this candidate: {reason}"
    return Verdict("internal_error", solution.problem_id, solution.id, message=message, sandbox=sandbox)


def solution_of(problem: Problem, completion: str | Solution | None, code: str | None) -> Solution:
    """What `submit` was given, as one record."""
    if isinstance(completion, Solution):
        return completion
    if (completion is None) == (code is None):
        raise JudgeError("give either a completion or code=..., one of the two")
    return Solution(problem.id, code=code, completion=completion)
