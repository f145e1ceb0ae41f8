"""The desk: candidates are taken, wait for their client's turn, go to the judge, and are answered. Nothing is lost.

1. A bounded queue. What does not fit is refused with the time after which to try again.
2. Turns. Clients with something waiting are served one after the other, however much each has handed in; a client
   may hold so many places at a time, so there is always room for another one. A place is held until the answer is
   read: for a client that reads none, nothing more is run.
3. A candidate that nobody waits for any more never runs, or is killed.
4. Draining: no new ones are taken, and what was taken is finished.

All of it happens on the event loop, but for `_ended`, which a thread of the judge calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..judge.examine import Settings
from ..judge.pool import Judge
from ..schema import Problem, Solution, quoted
from .bodies import Asked, BodyReader
from .connections import Doors
from .requests import BadRequest, Most
from .room import SOON, Metrics, Room, weight


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
                self.room.take(client, len(part), busy, size)
                parts.append(part)
                size += len(part)
                if size > self.most_bytes:
                    raise self._too_large()
            request.scope["microcoder.bytes"] = size
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
        return self.desk.take(request.scope["microcoder.client"], works, request.scope["microcoder.bytes"])

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


BEAT_S = 10.0  # of silence, after which a line break says that the service is alive: JSON takes white space anywhere
PIECE = 1 << 16  # bytes
LARGE = 1 << 17  # bytes: a thread writes what may have more
Write = Callable[[Any], dict[str, Any]]


class Answers(Response):
    """A response of one line of JSON for each job, in the order they end. A client that goes away drops the rest.

    Where `write` raises BadRequest, that is the answer; or the answer is cut off, if it has begun.
    """

    def __init__(self, desk: Desk, jobs: list[Job], write: Write, media_type: str = "application/json") -> None:
        super().__init__(media_type=media_type)
        self.desk, self.jobs, self.write, self.begun = desk, jobs, write, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ended: asyncio.Queue[Job | None] = asyncio.Queue()  # None: the client is gone
        for job in self.jobs:
            job.answer.add_done_callback(lambda _, job=job: ended.put_nowait(job))  # type: ignore[misc]
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: ended.put_nowait(None))
        try:
            for _ in self.jobs:
                next_one = await self._next(ended, send)
                if next_one is None:
                    return
                await self._send(next_one, send)
                self.desk.done(next_one)
            await send({"type": "http.response.body", "body": b""})
        except BadRequest:
            if not self.begun:
                raise
        finally:
            gone.cancel()
            for job in self.jobs:
                self.desk.done(job)

    async def _next(self, ended: asyncio.Queue[Job | None], send: Send) -> Job | None:
        while True:
            try:
                return await asyncio.wait_for(ended.get(), BEAT_S)
            except TimeoutError:
                await self._begin(send)
                await send({"type": "http.response.body", "body": b"\n", "more_body": True})

    async def _send(self, job: Job, send: Send) -> None:
        answer, large = job.answer.result(), job.size + job.work.size > LARGE
        line = await asyncio.to_thread(self._line, answer) if large else self._line(answer)
        await self._begin(send)
        for start in range(0, len(line), PIECE):
            await send({"type": "http.response.body", "body": line[start : start + PIECE], "more_body": True})

    async def _begin(self, send: Send) -> None:
        if not self.begun:
            self.begun = True
            headers = [(b"content-type", str(self.media_type).encode()), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})

    def _line(self, answer: Any) -> bytes:
        return json.dumps(self.write(answer), separators=(",", ":")).encode() + b"\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Work(NamedTuple):
    """What is to be done: how it is begun, and what it holds in memory until it has its answer."""

    start: Callable[[], Future[Any]]
    size: int
    problem: Problem | None = None


class Job:
    """One candidate, from being taken until its answer is read."""

    __slots__ = ("answer", "client", "future", "here", "size", "taken", "work")

    def __init__(self, client: str, work: Work, answer: asyncio.Future[Any]) -> None:
        self.client, self.work, self.answer = client, work, answer
        self.future: Future[Any] | None = None  # None: it still waits
        self.taken = time.monotonic()
        self.here, self.size = True, 0  # whether it holds a place; and of its answer


class Desk:
    def __init__(self, judge: Judge, queue: int, per_client: int, room: Room, metrics: Metrics) -> None:
        self.judge, self.queue, self.per_client, self.room, self.metrics = judge, queue, per_client, room, metrics
        self.ahead = 2 * judge.workers  # handed to the judge: one in each worker, one behind it
        self.turns: OrderedDict[str, deque[Job]] = OrderedDict()
        self.held: Counter[str] = Counter()  # by client: waiting, running, or with an answer that is not read
        self.running: set[Job] = set()
        self.waiting = 0
        self.when_idle: Callable[[], None] | None = None

    @property
    def draining(self) -> bool:
        return self.when_idle is not None

    def take(self, client: str, works: Sequence[Work], size: int) -> list[Job]:
        """Take all jobs of a request of so many bytes, or raise BadRequest."""
        count = len(works)
        if self.draining:
            raise BadRequest(503, "this service is about to end; another may be starting in its place", 2)
        if count > min(self.per_client, self.queue):
            raise BadRequest(413, f"{count} candidates at once; send at most {min(self.per_client, self.queue)}")
        if self.held[client] + count > self.per_client:
            words = f"{self.held[client]} of your candidates are here, of {self.per_client} that a client may have"
            raise BadRequest(429, f"{words}; wait for verdicts", SOON)
        if self.waiting + count > self.queue:
            raise BadRequest(429, f"{self.waiting} candidates wait, of {self.queue} that may", SOON)
        self._hold(client, works, size)
        loop = asyncio.get_running_loop()
        jobs = [Job(client, work, loop.create_future()) for work in works]
        self.turns.setdefault(client, deque()).extend(jobs)
        self.held[client] += count
        self.waiting += count
        self._feed()
        return jobs

    def done(self, job: Job) -> None:
        """Release a job: its answer was read, or nobody waits for it. May be called again."""
        if not job.here:
            return
        if job.answer.done():
            if not job.answer.cancelled():
                self._leave(job)
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
        """Submit enough jobs to keep the workers busy; the others wait here, in turns of clients."""
        loop = asyncio.get_running_loop()
        while len(self.running) < self.ahead:
            client = next((name for name in self.turns if not self.room.crowded(name)), None)
            if client is None:
                return
            line = self.turns[client]
            job = line.popleft()
            if line:
                self.turns.move_to_end(client)
            else:
                del self.turns[client]
            self.waiting -= 1
            self.running.add(job)
            job.future = job.work.start()

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
            job.size = 2 * weight(answer)  # itself, and the line that it becomes
            self.room.answered(job.client, job.size)
            job.answer.set_result(answer)
        else:
            self._leave(job)

    def _hold(self, client: str, works: Sequence[Work], own: int) -> None:
        """Reserve room for all jobs, or raise BadRequest. `own`: what their request has."""
        with contextlib.ExitStack() as undo:
            for work in works:
                self.room.take(client, work.size, own=own)
                undo.callback(self.room.give, client, work.size)
                own += work.size
                if work.problem is not None:
                    own += self.room.hold(client, work.problem, own)
                    undo.callback(self.room.let_go, client, work.problem)
            undo.pop_all()

    def _leave(self, job: Job) -> None:
        job.here = False
        self.room.give(job.client, job.work.size)
        self.room.read(job.client, job.size)
        if job.work.problem is not None:
            self.room.let_go(job.client, job.work.problem)
        self._feed()  # it may be the client's turn again
        self.held[job.client] -= 1
        if not self.held[job.client]:
            del self.held[job.client]
        self._perhaps_idle()

    def _perhaps_idle(self) -> None:
        if self.when_idle is not None and not self.held:
            self.when_idle()
