"""Answers as they become known, and a client that goes away while it waits for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .desk import Desk, Job

BEAT_S = 10.0  # of silence, after which a line break says that the service is alive: JSON takes white space anywhere
Write = Callable[[Any], dict[str, Any]]


class Answers(Response):
    """A response of one line of JSON for each job, in the order they end. A client that goes away drops the rest."""

    def __init__(self, desk: Desk, jobs: list[Job], write: Write, media_type: str = "application/json") -> None:
        super().__init__(media_type=media_type)
        self.desk, self.jobs, self.write = desk, jobs, write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ended: asyncio.Queue[asyncio.Future[Any]] = asyncio.Queue()
        for job in self.jobs:
            job.answer.add_done_callback(ended.put_nowait)
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(ended.put_nowait)
        try:
            headers = [(b"content-type", str(self.media_type).encode()), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for _ in self.jobs:
                if await self._next(ended, send) is gone:
                    return
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            for job in self.jobs:
                self.desk.drop(job)

    async def _next(self, ended: asyncio.Queue[asyncio.Future[Any]], send: Send) -> asyncio.Future[Any]:
        """What ended next; an answer is sent."""
        while True:
            try:
                found = await asyncio.wait_for(ended.get(), BEAT_S)
            except TimeoutError:
                await send({"type": "http.response.body", "body": b"\n", "more_body": True})
                continue
            if (answer := found.result()) is not None:
                line = json.dumps(self.write(answer), separators=(",", ":")).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
            return found


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
