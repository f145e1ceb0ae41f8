"""Answers as they become known, and a client that goes away while it waits for them.

An answer goes out in pieces, each when the one before has left: what a client does not read stays with its job.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .desk import Desk, Job

BEAT_S = 10.0  # of silence, after which a line break says that the service is alive: JSON takes white space anywhere
PIECE = 1 << 16  # bytes
LARGE = 1 << 17  # bytes: a thread writes what may have more
Write = Callable[[Any], dict[str, Any]]


class Answers(Response):
    """A response of one line of JSON for each job, in the order they end. A client that goes away drops the rest."""

    def __init__(self, desk: Desk, jobs: list[Job], write: Write, media_type: str = "application/json") -> None:
        super().__init__(media_type=media_type)
        self.desk, self.jobs, self.write = desk, jobs, write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ended: asyncio.Queue[Job | None] = asyncio.Queue()  # None: the client is gone
        for job in self.jobs:
            job.answer.add_done_callback(lambda _, job=job: ended.put_nowait(job))  # type: ignore[misc]
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: ended.put_nowait(None))
        try:
            headers = [(b"content-type", str(self.media_type).encode()), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for _ in self.jobs:
                next_one = await self._next(ended, send)
                if next_one is None:
                    return
                await self._send(next_one, send)
                self.desk.done(next_one)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            for job in self.jobs:
                self.desk.done(job)

    async def _next(self, ended: asyncio.Queue[Job | None], send: Send) -> Job | None:
        while True:
            try:
                return await asyncio.wait_for(ended.get(), BEAT_S)
            except TimeoutError:
                await send({"type": "http.response.body", "body": b"\n", "more_body": True})

    async def _send(self, job: Job, send: Send) -> None:
        answer, large = job.answer.result(), job.size + job.work.size > LARGE
        line = await asyncio.to_thread(self._line, answer) if large else self._line(answer)
        for start in range(0, len(line), PIECE):
            await send({"type": "http.response.body", "body": line[start : start + PIECE], "more_body": True})

    def _line(self, answer: Any) -> bytes:
        return json.dumps(self.write(answer), separators=(",", ":")).encode() + b"\n"


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
