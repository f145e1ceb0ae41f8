"""One connection to a service, kept from one request to the next."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

SILENCE_S = 60.0  # the service says something every ten seconds, be it a line break
Answer = tuple[int, Message, bytes]  # status, headers, body


class Line:
    """Of one thread; only `hang_up` is for others."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.connection = kind(parts.hostname or "", parts.port, timeout=SILENCE_S)
        self.sock: socket.socket | None = None
        self.prefix = parts.path
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def ask(
        self, method: str, path: str, body: bytes | None = None, wanted: Callable[[], bool] = lambda: True
    ) -> Answer:
        """OSError or HTTPException where there is no answer. `wanted`: False from before someone hangs up."""
        kept = self.connection.sock is not None
        try:
            return self._ask(method, path, body, wanted)
        except (OSError, HTTPException):
            if not kept:
                raise
        return self._ask(method, path, body, wanted)  # kept for too long: the other side had hung up

    def _ask(self, method: str, path: str, body: bytes | None, wanted: Callable[[], bool]) -> Answer:
        try:
            if self.connection.sock is None:
                self.connection.connect()
                self.sock = self.connection.sock
            if not wanted():  # looked at when `hang_up` can find the socket, so one of the two sees the other
                raise ConnectionAbortedError("hung up")
            self.connection.request(method, self.prefix + path, body, self.headers)
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except BaseException:
            self.connection.close()
            raise

    def hang_up(self) -> None:
        """From any thread: whoever waits for an answer gets none, and the service sees that nobody does."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


def reason_of(status: int, data: bytes) -> str:
    try:
        return f"{status}: {json.loads(data)['error']}"
    except (ValueError, TypeError, LookupError):
        return f"{status}: {data[:200]!r}"
