"""Connections, before anybody has shown a token: how many, how large a head, how slow a peer may be.

1. So many at a time, in all and for an address. Where there are more, the one that has been without a request longest
   makes room; where all have one, the new one is turned away. Descriptors are left over for the judge.
2. A request's head comes within HEAD_S and has at most HEAD bytes. A body keeps coming, and is more than its wrapping.
3. An answer is read: a connection whose reader stands still for STILL_S is cut.

uvicorn's parser has no such limits. One look at all connections a second stands for a timer on each.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import resource
import signal
import socket
import time
from collections import Counter
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .room import SOON

TCP = {
    "TCP_KEEPIDLE": 30,  # a client whose machine is gone is noticed
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
}


class Draining(uvicorn.Server):
    """A server that after a signal takes nothing more, finishes its work, then ends."""

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
        for one in list(self.config.app.state.service.doors.connections):  # type: ignore[union-attr]
            one.end()


def serve(app: FastAPI, listener: socket.socket) -> int:
    """Serve until a signal; return the exit status. Addresses may hold a token, so none is logged."""
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


HEAD, HEADERS, HEAD_S = 1 << 16, 200, 10.0
BODY = (b"content-length", b"transfer-encoding")
PIPELINE = 8  # requests that may come before the answer to the first
STALL_S, PACE = 30.0, 1 << 14  # a body may take so long, and a second more for each so many bytes
STILL_S, STRIDE = 60.0, 1 << 16  # in so long a reader takes so many bytes, or all
LOOK_S = 1.0
RESERVE, FOR_WORKER = 64, 8  # descriptors that are not for connections


class Doors:
    """All connections of the service."""

    def __init__(self, most: int, workers: int, most_bytes: int) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = most if soft == resource.RLIM_INFINITY else soft - RESERVE - FOR_WORKER * workers
        self.most = max(8, min(most, room))
        self.per_address = max(4, self.most // 2)
        self.most_bytes = most_bytes  # of a body; beyond that not even a refused one is read on
        self.refused = 0
        self.addresses: Counter[str] = Counter()
        self.connections: dict[Connection, None] = {}  # in the order in which they came
        self._looking: asyncio.TimerHandle | None = None

    def enter(self, one: Connection) -> bool:
        """Admit a connection if there is room, if need be by closing an idle one."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        if self.addresses[one.address] >= self.per_address and not self._make_room(one.address):
            return False
        if len(self.connections) >= self.most and not self._make_room():
            return False
        self.connections[one] = None
        self.addresses[one.address] += 1
        return True

    def leave(self, one: Connection) -> None:
        if one in self.connections:
            del self.connections[one]
            self.addresses[one.address] -= 1
            if not self.addresses[one.address]:
                del self.addresses[one.address]

    def _make_room(self, address: str | None = None) -> bool:
        idle = (one for one in self.connections if one.idle and address in (None, one.address))
        longest = min(idle, key=lambda one: one.since, default=None)
        if longest is None:
            self.refused += 1
            return False
        self.leave(longest)
        longest.transport.abort()
        return True

    def _look(self) -> None:
        now = time.monotonic()
        for one in list(self.connections):
            one.look(now)
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look) if self.connections else None


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's, with limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.doors: Doors = self.config.app.state.service.doors  # type: ignore[union-attr]
        self.since = time.monotonic()  # when it came, the request began, or the last answer ended
        self.head: int | None = None  # bytes of the head that is coming; None: none is
        self.body_at: float | None = None  # when a body began to come
        self.headers_bytes = self.wrapping = self.body = self.ignored = 0
        self.began = False  # a message, with the piece that is being read
        self.unsent, self.unsent_since = 0, 0.0
        self.why: tuple[int, str] | None = None
        self.under_way: list[Any] = []  # requests that have come and are not answered: uvicorn knows the newest alone

    @property
    def idle(self) -> bool:
        """No whole head has come since the last answer."""
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = _address(self.client[0] if self.client else "?")
        if not self.doors.enter(self):
            self._refuse(429, "there are too many connections; try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        self.doors.leave(self)
        self._drop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        head, body, self.began = self.head, self.body, False
        super().data_received(data)
        if self.began:
            return  # what of the piece belongs to the message is not known, and it is not much
        if self.head is not None:
            self.head += len(data)
            if self.head > HEAD:
                self._refuse(431, f"the head of a request may have {HEAD >> 10} KiB")
        elif self.body_at is not None and head is None:
            self.wrapping += len(data) - (self.body - body)
            if self.wrapping > HEAD + self.body // 4:
                self._refuse(400, "the body has more wrapping than bytes: send larger chunks, and no trailers")

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self.why or (400, "this is not HTTP as it is spoken here")))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if len(self.pipeline) >= PIPELINE:
            self._stop(400, f"at most {PIPELINE} requests may wait for an answer on a connection")
        self.since, self.head, self.body_at, self.began = time.monotonic(), 0, None, True
        self.headers_bytes = self.wrapping = self.body = self.ignored = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if len(self.headers) >= HEADERS:
            self._stop(431, f"a request may have {HEADERS} headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.head, self.body_at = None, time.monotonic()
        if self.parser.should_upgrade() and any(
            name in BODY for name, _ in self.headers
        ):  # which the parser passes over
            self._stop(400, "there is no upgrade to another protocol here: send HTTP/1.1 without an Upgrade header")
        super().on_headers_complete()
        self.under_way = [one for one in self.under_way if not one.response_complete] + [self.cycle]

    def on_body(self, body: bytes) -> None:
        self.body += len(body)
        if self.cycle.response_complete:
            self.ignored += len(body)
            if self.ignored > self.doors.most_bytes:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.body_at = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self.unsent_since = time.monotonic()
        super().resume_writing()

    def look(self, now: float) -> None:
        """Check once a second whether the client keeps to the limits."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or self.unsent - unsent >= STRIDE:
            self.unsent, self.unsent_since = unsent, now
        self.unsent = max(self.unsent, unsent)
        if unsent and now - self.unsent_since > STILL_S:
            self.transport.abort()
        elif self.transport.is_closing():
            pass
        elif self.head is not None or self.cycle is None:
            if now - self.since > HEAD_S:
                self._refuse(408, f"the head of a request must come within {HEAD_S:g} s")
        elif self.body_at is not None and not self.flow.read_paused:
            if now - self.body_at > STALL_S + self.body / PACE:
                self._refuse(408, f"the body came too slowly: {self.body} bytes in {now - self.body_at:.0f} s")

    def end(self) -> None:
        """The service ends: do not wait for the rest of a body."""
        if self.body_at is not None:
            self._refuse(503, "this service is about to end; another may be starting in its place")

    def _count(self, size: int) -> None:
        self.headers_bytes += size
        if self.headers_bytes > HEAD:
            self._stop(431, f"the head of a request may have {HEAD >> 10} KiB")

    def _stop(self, status: int, words: str) -> None:
        """From within the parser, which then asks for `send_400_response`."""
        self.why = (status, words)
        raise ValueError(words)

    def _refuse(self, status: int, words: str) -> None:
        """Send an error, unless an answer has begun, and close the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps({"error": words}).encode()
            head = f"HTTP/1.1 {status} BadRequest\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            head += f"retry-after: {SOON}\r\n" * (status == 429)
            self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self._drop()
        self.transport.close()

    def _drop(self) -> None:
        """Nobody reads the answers any more: those who work on them are told, and write nothing."""
        for one in self.under_way:
            one.disconnected = True
            one.message_event.set()


def _address(host: str) -> str:
    """Return what counts as one client address: for IPv6 a /64 network, as customers are given one."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return host
