"""What the routes share: the judge, the desk, the shelf, and how a request is read."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import Request

from ..judge.examine import Settings
from ..judge.pool import Judge
from ..schema import Problem, Solution
from .asking import Refused, parsed
from .desk import Desk, Job, Start
from .metrics import Metrics
from .shelf import Shelf

PATIENCE_S = 20.0  # that a request of SandboxFusion's waits for room: its clients do not know 429


class Service:
    def __init__(
        self, judge: Judge, own: Settings, queue: int, per_client: int, most_bytes: int, most: tuple[int, int]
    ) -> None:
        self.judge, self.own, self.most_bytes, self.most = judge, own, most_bytes, most
        self.metrics = Metrics()
        self.desk = Desk(judge, queue, per_client, self.metrics)
        self.shelf = Shelf(2 * most_bytes)

    async def body(self, request: Request) -> bytes:
        parts, size = [], 0
        if int(request.headers.get("content-length", "0")) <= self.most_bytes:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > self.most_bytes:
                    break
            else:
                return b"".join(parts)
        raise Refused(413, f"at most {self.most_bytes >> 20} MB are taken in a request (--max-mb)")

    async def asked(self, request: Request) -> dict[str, Any]:
        return parsed(await self.body(request))

    def judging(self, problem: Problem, solution: Solution, settings: Settings) -> Start:
        seconds = (problem.time_limit_s or settings.time_limit_s) * settings.time_factor
        memory = problem.memory_mb or settings.memory_mb
        if seconds > self.most[0] or memory > self.most[1]:
            raise Refused(
                422,
                f"problem {problem.id!r} asks for {seconds:g} s and {memory:g} MB a test; at most "
                f"{self.most[0]} s and {self.most[1]} MB are given here (--max-seconds, --max-memory-mb)",
            )
        return lambda: self.judge.submit(problem, solution, settings=settings)

    def take(self, request: Request, *starts: Start) -> list[Job]:
        return self.desk.take(request.scope["microcoder.client"], starts)

    async def take_patiently(self, request: Request, start: Start) -> list[Job]:
        """Wait for room, where there is none."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.take(request, start)
            except Refused as refusal:
                if refusal.status == 429 and time.monotonic() < end:
                    await asyncio.sleep(0.05)
                    continue
                raise Refused(504, refusal.reason, refusal.retry_after) from None
