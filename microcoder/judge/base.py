"""The interface of every judge, local or remote. A judge supplies `submit`, `drop` and `close`."""

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
    """Base class of judges: run programs against the tests of problems and return verdicts."""

    workers: int  # candidates judged at a time
    sandbox: str  # the walls around them: "full", "landlock" or "rlimits"

    @abstractmethod
    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        """Queue one program and return a future of its verdict. Block while the queue is full."""

    @abstractmethod
    def drop(self, future: Future[Verdict]) -> None:
        """Cancel one: a queued program never runs, a running one is killed. Does not block."""

    @abstractmethod
    def close(self, cancel: bool = False) -> None:
        """Finish what is queued (or drop it, with `cancel`) and end every worker process."""

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
        """Judge many programs; yield each verdict as it is ready. Input is read no faster than it is judged.

        Args:
            pairs: A problem and a `Solution(problem.id, code=...)`, or `Solution(problem.id, completion=...)` for
                what a model wrote, whose last fenced block is the program.

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
    """Return an `internal_error` verdict: the judge is at fault, and there is no reward."""
    message = f"the judge failed on this candidate: {reason}"
    return Verdict("internal_error", solution.problem_id, solution.id, message=message, sandbox=sandbox)


def solution_of(problem: Problem, completion: str | Solution | None, code: str | None) -> Solution:
    """Return the arguments of `submit` as a Solution."""
    if isinstance(completion, Solution):
        return completion
    if (completion is None) == (code is None):
        raise JudgeError("give either a completion or code=..., one of the two")
    return Solution(problem.id, code=code, completion=completion)
