"""The process: it listens, and it ends in order. The first signal drains it, the second ends it at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from .connections import Connection

TCP = {
    "TCP_KEEPIDLE": 30,  # a client whose machine is gone is noticed
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
}


class Draining(uvicorn.Server):
    """Signals mean: take nothing more, finish what was taken, then leave."""

    loop: asyncio.AbstractEventLoop | None = None
    ended_by = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        first, self.ended_by = not self.ended_by, sig
        if first and self.loop is not None:
            self.loop.call_soon_threadsafe(self.config.app.state.service.desk.drain, self.leave)  # type: ignore[union-attr]
        else:
            self.should_exit = self.force_exit = True

    def leave(self) -> None:
        self.should_exit = True


def serve(app: FastAPI, listener: socket.socket) -> int:
    """Answer until a signal; the exit status. Addresses may hold a token, so none is logged."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # what it accepts inherits these
    for name, value in TCP.items():
        with contextlib.suppress(AttributeError, OSError):  # a system without this one
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    server = Draining(
        uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="error",  # not a line for each client that does not speak HTTP
            access_log=False,
            server_header=False,
            proxy_headers=False,  # an address is what the limits go by: it must not be the client's to choose
            timeout_keep_alive=75,
            timeout_graceful_shutdown=10,
        )
    )
    try:
        server.run([listener])
    finally:
        app.state.service.reader.close()
    return 130 if server.ended_by == signal.SIGINT else 0
