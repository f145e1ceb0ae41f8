"""Bodies are read: small ones at once, large ones by a process of their own, as that can take seconds and gigabytes.

A second is what JSON of 10 MB can take, and nobody else would be answered meanwhile. What comes back is flat: texts,
and no more of them than there may be candidates and tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ..judge.examine import Settings
from ..judge.remote.http import key_of
from ..judge.worker import receive, send
from ..schema import Problem, Solution
from . import fusion
from .requests import CANDIDATE, BadRequest, Most, candidate_of, known_keys, parsed, problem_of, settings_of

SMALL = 1 << 17  # bytes, which are read in a few milliseconds whatever they hold
READ_S = 60.0  # that a large body may take
BASE, TIMES = 1 << 30, 16  # bytes of memory that the process may have, and so many times the largest body
FULL = 1 << 19  # KiB: with more than that, the process is begun afresh
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_START = "import sys; sys.path.insert(0, {root!r}); from microcoder.serve.bodies import main; main({fd})"

Asked = tuple[Problem | str, Solution]  # the problem or its key


def one(body: bytes, own: Settings, most: Most) -> tuple[Asked, Settings]:
    """POST /v1/judge"""
    record = known_keys(parsed(body), (*CANDIDATE, "settings"), "a candidate")
    settings = settings_of(record.pop("settings", None), own)
    return candidate_of(record, most), settings


def many(body: bytes, own: Settings, most: Most) -> tuple[list[Asked], Settings]:
    """POST /v1/judge/many"""
    record = known_keys(parsed(body), ("candidates", "settings"), "the body")
    candidates = record.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        raise BadRequest(422, '"candidates" must be a list of at least one')
    settings = settings_of(record.get("settings"), own)
    found = []
    for number, record in enumerate(candidates):
        try:
            found.append(candidate_of(record, most, str(number)))
        except BadRequest as error:
            raise BadRequest(error.status, f"candidates[{number}]: {error.reason}") from None
    if len({solution.id for _, solution in found}) < len(found):
        raise BadRequest(422, "two candidates have the same id, so their verdicts could not be told apart")
    return found, settings


def problem(body: bytes, own: Settings, most: Most) -> tuple[str, Problem]:
    """PUT /v1/problems/KEY: the right key, and the problem."""
    return key_of(body), problem_of(parsed(body), most)


def run_code(body: bytes, own: Settings, most: Most) -> Any:
    """POST /run_code; the words why it cannot be run here, where it cannot."""
    try:
        return fusion.program(parsed(body), own, most)
    except fusion.Unsupported as error:
        return str(error)


def submit(body: bytes, own: Settings, most: Most) -> Any:
    """POST /submit"""
    return fusion.submitted(parsed(body), own, most)


class No(NamedTuple):
    """BadRequest, in a shape that travels."""

    status: int
    reason: str
    retry_after: int | None = None


class BodyReader:
    def __init__(self, own: Settings, most: Most, most_bytes: int) -> None:
        self.own, self.most, self.most_bytes = own, most, most_bytes
        self._thread = ThreadPoolExecutor(1, "reader")
        self._process: subprocess.Popen[bytes] | None = None

    async def read(self, question: Callable[[bytes, Settings, Most], Any], body: bytes) -> Any:
        """Parse a body; raise BadRequest if it cannot be used."""
        if len(body) <= SMALL:
            return question(body, self.own, self.most)
        answer = await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, question, body)
        if isinstance(answer, No):
            raise BadRequest(*answer)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        self._end()

    def _ask(self, question: Any, body: bytes) -> Any:
        try:
            if self._process is None or self._process.poll() is not None:  # it was killed meanwhile
                self._end()
                self._begin()
            send(self._sock, (question, body))
            answer, full = receive(self._sock)
        except (EOFError, OSError):
            answer, full = No(413, f"to read it took more memory than there is for it here, or {READ_S:g} s"), True
        if full:
            self._end()
        return answer

    def _begin(self) -> None:
        self._sock, theirs = socket.socketpair()
        with theirs:
            start = _START.format(root=_ROOT, fd=theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-P", "-X", "utf8", "-c", start],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # it ends when the socket does
            )
        self._sock.settimeout(READ_S)
        send(self._sock, (self.own, self.most, BASE + TIMES * self.most_bytes))

    def _end(self) -> None:
        if self._process is not None:
            self._sock.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def main(fd: int) -> None:
    """Parse bodies in a process of its own, one after the other, until the socket is closed."""
    sock = socket.socket(fileno=fd)
    own, most, memory = receive(sock)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with contextlib.suppress(EOFError, OSError, MemoryError):  # whoever waits for an answer sees that it has ended
        while True:
            try:
                question, body = receive(sock)
                answer = question(body, own, most)
                full = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > FULL
                send(sock, (answer, full))
            except BadRequest as refusal:
                send(sock, (No(refusal.status, refusal.reason, refusal.retry_after), False))
            del question, body
