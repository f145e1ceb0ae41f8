"""The desk: candidates are taken, wait for their client's turn, go to the judge, and are answered. Nothing is lost.

1. A bounded queue. What does not fit is refused with the time after which to try again.
2. Turns. Clients with something waiting are served one after the other, however much each has handed in; a client
   may hold so many places at a time, so there is always room for another one.
3. A candidate that nobody waits for any more never runs, or is killed.
4. Draining: no new ones are taken, and what was taken is finished.

All of it happens on the event loop, but for `_ended`, which a thread of the judge calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ..judge.pool import Judge
from .asking import Refused
from .metrics import Metrics

SOON = 1  # seconds to wait before asking again: places become free all the time
Start = Callable[[], "Future[Any]"]


class Job:
    """One candidate, from being taken to its answer."""

    __slots__ = ("answer", "client", "future", "start", "taken")

    def __init__(self, client: str, start: Start, answer: asyncio.Future[Any]) -> None:
        self.client, self.start, self.answer = client, start, answer
        self.future: Future[Any] | None = None  # None: it still waits
        self.taken = time.monotonic()


class Desk:
    def __init__(self, judge: Judge, queue: int, per_client: int, metrics: Metrics) -> None:
        self.judge, self.queue, self.per_client, self.metrics = judge, queue, per_client, metrics
        self.ahead = 2 * judge.workers  # handed to the judge: one in each worker, one behind it
        self.turns: OrderedDict[str, deque[Job]] = OrderedDict()
        self.held: Counter[str] = Counter()  # by client: waiting and running
        self.running: set[Job] = set()
        self.waiting = 0
        self.when_idle: Callable[[], None] | None = None

    @property
    def draining(self) -> bool:
        return self.when_idle is not None

    def take(self, client: str, starts: Sequence[Start]) -> list[Job]:
        """All of them, or none: Refused."""
        count = len(starts)
        if self.draining:
            raise Refused(503, "this service is about to end; another may be starting in its place", 2)
        if count > self.per_client:
            raise Refused(413, f"{count} candidates at once; send at most {self.per_client}")
        if self.held[client] + count > self.per_client:
            words = f"{self.held[client]} of your candidates are here, of {self.per_client} that a client may have"
            raise Refused(429, f"{words}; wait for verdicts", SOON)
        if self.waiting + count > self.queue:
            raise Refused(429, f"{self.waiting} candidates wait, of {self.queue} that may", SOON)
        loop = asyncio.get_running_loop()
        jobs = [Job(client, start, loop.create_future()) for start in starts]
        self.turns.setdefault(client, deque()).extend(jobs)
        self.held[client] += count
        self.waiting += count
        self._feed()
        return jobs

    def drop(self, job: Job) -> None:
        """Nobody waits for it. No harm where it is answered already."""
        if job.answer.done():
            return
        job.answer.cancel()
        self.metrics.dropped += 1
        if job.future is not None:
            self.judge.drop(job.future)  # its place is free when it is dead
            return
        line = self.turns[job.client]
        line.remove(job)
        if not line:
            del self.turns[job.client]
        self.waiting -= 1
        self._leave(job)

    def drain(self, when_idle: Callable[[], None]) -> None:
        self.when_idle = when_idle
        self._perhaps_idle()

    def _feed(self) -> None:
        """Hand on as many as keep the workers busy; the rest waits here, where turns are kept."""
        loop = asyncio.get_running_loop()
        while self.turns and len(self.running) < self.ahead:
            client, line = next(iter(self.turns.items()))
            job = line.popleft()
            if line:
                self.turns.move_to_end(client)
            else:
                del self.turns[client]
            self.waiting -= 1
            self.running.add(job)
            job.future = job.start()

            def ended(_: Future[Any], job: Job = job) -> None:
                with contextlib.suppress(RuntimeError):  # the service was ended at once, and its loop is closed
                    loop.call_soon_threadsafe(self._ended, job)

            job.future.add_done_callback(ended)

    def _ended(self, job: Job) -> None:
        self.running.discard(job)
        self._feed()  # first of all, so that no worker waits
        if not job.answer.done() and job.future is not None and not job.future.cancelled():
            answer = job.future.result()
            self.metrics.answered(answer, time.monotonic() - job.taken)
            job.answer.set_result(answer)
        self._leave(job)

    def _leave(self, job: Job) -> None:
        self.held[job.client] -= 1
        if not self.held[job.client]:
            del self.held[job.client]
        self._perhaps_idle()

    def _perhaps_idle(self) -> None:
        if self.when_idle is not None and not self.held:
            self.when_idle()
