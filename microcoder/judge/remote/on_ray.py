"""A judge on a Ray cluster: the same verdicts, from the cores of many machines.

One actor on each node holds a `Judge` with a worker for each core that it was given (`ray_node`); `ray_nodes` knows
which nodes there are, and `ray_deal` deals the candidates out.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from ...schema import Problem, Solution, Verdict
from ..base import JudgeError, Judging, failed, solution_of
from .ray_cluster import connected
from .ray_deal import Dealer
from .ray_node import Item, Kept, said
from .ray_nodes import Candidate

LARGE = 16 << 10  # bytes of tests from which on a problem goes through the object store; below, that costs more


class RayJudge(Judging):
    """`address`: see `connected`. `workers`: cores in all, None: all there are. The others are options of `Judge`."""

    def __init__(
        self, address: str = "auto", workers: int | None = None, queue: int | None = None, **options: Any
    ) -> None:
        self._exit = ExitStack()
        self._ray = self._exit.enter_context(connected(address))
        self._numbers = itertools.count()
        self._stored = Kept()  # large problems in the object store
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._dealer = Dealer(self._ray, self._loop, workers, queue, options)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ray-judge")
        self._thread.start()
        try:
            self._run(self._dealer.open())
        except BaseException:
            self.close(cancel=True)
            raise

    @property
    def workers(self) -> int:  # type: ignore[override]
        return max(1, self._dealer.nodes.workers)

    @property
    def sandbox(self) -> str:  # type: ignore[override]
        return self._dealer.nodes.layer

    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        solution = solution_of(problem, completion, code)
        try:
            large = self._large(problem)
            rest = pickle.dumps((None if large else problem, solution))
        except Exception as error:
            if self._closed:
                raise JudgeError("this judge is closed; make a new one") from None
            future: Future[Verdict] = Future()  # a problem that cannot even be handed over, such as one with a lock
            future.set_result(failed(solution, said(error)))
            return future
        candidate = Candidate(Item(next(self._numbers), large, rest), solution)
        self._dealer.add(candidate)
        return candidate.future

    def drop(self, future: Future[Verdict]) -> None:
        future.cancel()  # the dealer is told, as of any that is cancelled

    def close(self, cancel: bool = False) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._run(self._dealer.close(cancel))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._exit.close()

    def _large(self, problem: Problem) -> Any:
        """Where a large problem lies in Ray's object store; None for others."""
        size = problem.size()
        if size < LARGE:
            return None
        return self._stored.get(problem.fingerprint(), lambda: (self._ray.put(problem), size))

    def _run(self, coroutine: Any) -> Any:
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result()
        except BaseException:  # Ctrl-C, perhaps
            running.cancel()
            raise
