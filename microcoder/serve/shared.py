"""What the routes share: the judge, the desk, the shelf, and how a request is read."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request

from ..judge.examine import Settings
from ..judge.pool import Judge
from ..schema import Problem, Solution, quoted
from .bodies import Asked, BodyReader
from .connections import Doors
from .desk import Desk, Job, Work
from .requests import BadRequest, Most
from .room import Metrics, Room, weight


class Shelf:
    """Losing a problem is no fault: whoever names one that is not here is told to send it again."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.problems: OrderedDict[str, tuple[Problem, int]] = OrderedDict()

    def get(self, key: str) -> Problem:
        found = self.problems.get(key)
        if found is None:
            words = f"problem {key[:80]!r} is not here (any more): PUT it to /v1/problems/, then ask again"
            raise BadRequest(404, words)
        self.problems.move_to_end(key)
        return found[0]

    def put(self, key: str, right: str, problem: Problem) -> None:
        """`right`: the key of the bytes that came."""
        if key != right:
            raise BadRequest(422, f"the key of these bytes is their SHA-256, {right}, not {key[:80]!r}")
        if key in self.problems:
            self.problems.move_to_end(key)
            return
        size = weight(problem)
        self.problems[key] = problem, size
        self.bytes += size
        while self.bytes > self.most_bytes and len(self.problems) > 1:
            _, (_, size) = self.problems.popitem(last=False)
            self.bytes -= size


PATIENCE_S = 20.0  # that a request of SandboxFusion's waits for room: its clients do not know 429


class Service:
    def __init__(
        self, judge: Judge, own: Settings, queue: int, per_client: int, room_bytes: int, connections: int,
        most_bytes: int, most: Most,
    ) -> None:  # fmt: skip
        self.judge, self.own, self.most_bytes, self.most = judge, own, most_bytes, most
        self.metrics = Metrics()
        self.room = Room(room_bytes)
        self.desk = Desk(judge, queue, per_client, self.room, self.metrics)
        self.shelf = Shelf(2 * most_bytes)
        self.reader = BodyReader(own, most, most_bytes)
        self.doors = Doors(connections, judge.workers, most_bytes)

    @contextlib.asynccontextmanager
    async def asked(
        self, request: Request, question: Callable[[bytes, Settings, Most], Any], busy: int = 429
    ) -> AsyncIterator[Any]:
        """What the request's body asks. Within, its bytes count as the client's; after that only what was taken.

        `busy`: the status where there is no room for it.
        """
        client, size = request.scope["microcoder.client"], 0
        parts: list[bytes] = []
        if int(request.headers.get("content-length", "0")) > self.most_bytes:
            raise self._too_large()
        try:
            async for part in request.stream():
                self.room.take(client, len(part), busy)
                parts.append(part)
                size += len(part)
                if size > self.most_bytes:
                    raise self._too_large()
            yield await self.reader.read(question, b"".join(parts))
        finally:
            self.room.give(client, size)

    def judging(self, asked: Asked, settings: Settings) -> Work:
        about, solution = asked
        problem = self.shelf.get(about) if isinstance(about, str) else about
        solution.problem_id = problem.id
        self._check(problem, settings)
        return Work(self._start(problem, solution, settings), weight(solution), problem)

    def submitted(self, problem: Problem, solution: Solution, settings: Settings) -> Work:
        """The tests come back with the answer, so they count for it."""
        return Work(self._start(problem, solution, settings), weight(solution) + weight(problem))

    def take(self, request: Request, *works: Work) -> list[Job]:
        return self.desk.take(request.scope["microcoder.client"], works)

    async def take_patiently(self, request: Request, work: Work) -> list[Job]:
        """Wait for room, where there is none."""
        end, pause = time.monotonic() + PATIENCE_S, 0.05
        while True:
            try:
                return self.take(request, work)
            except BadRequest as refusal:
                if refusal.status == 429 and time.monotonic() < end:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 0.5)
                    continue
                raise BadRequest(504, refusal.reason, refusal.retry_after) from None

    def _start(self, problem: Problem, solution: Solution, settings: Settings) -> Callable[[], Any]:
        return lambda: self.judge.submit(problem, solution, settings=settings)

    def _check(self, problem: Problem, settings: Settings) -> None:
        seconds = (problem.time_limit_s or settings.time_limit_s) * settings.time_factor
        memory = problem.memory_mb or settings.memory_mb
        if seconds > self.most.seconds or memory > self.most.memory_mb:
            raise BadRequest(
                422,
                f"problem {quoted(problem.id)} asks for {seconds:g} s and {memory:g} MB a test; at most "
                f"{self.most.seconds} s and {self.most.memory_mb} MB are given here (--max-seconds, --max-memory-mb)",
            )
        if settings.output_mb > max(self.most.output_mb, self.own.output_mb):
            words = f"settings.output_mb is {settings.output_mb}; at most {self.most.output_mb} are kept here"
            raise BadRequest(422, f"{words} (--max-output-mb)")

    def _too_large(self) -> BadRequest:
        return BadRequest(413, f"at most {self.most_bytes >> 20} MB are taken in a request (--max-mb)")
