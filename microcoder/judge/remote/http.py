"""A judge behind HTTP: `microcoder serve` on another machine.

One request for each candidate, over connections that are kept, so dropping a candidate is hanging up on it. A problem
is named by its key, and sent when the service says that it is not there: so a service that was restarted, has forgotten
the problem, or is one of several, is no special case. Judging twice does no harm, so whatever fails is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from ...schema import JUDGED, Problem, Solution, Verdict
from ..base import JudgeError, Judging, failed, solution_of
from ..examine import Settings

SETTINGS = (  # of `Judge`, for one candidate: its verdict is the one that a judge here with these would give
    "policy", "also", "stop_at_first_failure", "reuse", "time_limit_s", "time_factor", "memory_mb", "output_mb",
)  # fmt: skip


def packed(problem: Problem) -> bytes:
    """Encode a problem as ASCII JSON, so that invalid Unicode (a lone surrogate) arrives unchanged."""
    record = {name: value for name, value in problem.to_dict().items() if name in JUDGED}  # the rest stays at home
    return json.dumps(record, separators=(",", ":")).encode()


def key_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


SILENCE_S = 60.0  # the service says something every ten seconds, be it a line break
Answer = tuple[int, Message, bytes]  # status, headers, body


class KeptConnection:
    """An HTTP connection that one thread keeps; other threads may only call `hang_up`."""

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
        """Send a request and return the answer; OSError or HTTPException without one. `wanted`: False once dropped."""
        kept = self.connection.sock is not None
        try:
            return self._ask(method, path, body, wanted)
        except (OSError, HTTPException) as error:
            if not kept or isinstance(error, TimeoutError):
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


TOKEN = "MICROCODER_TOKEN"
UNKNOWN, BUSY, AGAIN = 404, 429, (408, 500, 502, 503, 504)
KEYS = 4096  # of problems that are remembered


class RemoteJudge(Judging):
    """The judge at `url`. The options are those of `Judge`; the sandbox is the service's own.

    workers     of the service's, as many as this client keeps busy; None: all
    token       where the service wants one; MICROCODER_TOKEN of the environment where not given
    patience_s  how long a service may be away before its candidates are given up as internal_error
    """

    def __init__(
        self,
        url: str,
        workers: int | None = None,
        queue: int | None = None,
        sandbox: str = "auto",
        token: str | None = None,
        patience_s: float = 120.0,
        **settings: Any,
    ) -> None:
        if unknown := settings.keys() - set(SETTINGS):
            raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
        self.url, self.patience_s = url.rstrip("/"), patience_s
        self.settings = {name: getattr(Settings(), name) for name in SETTINGS} | settings
        self._token = (os.environ.get(TOKEN, "") if token is None else token).strip()  # a file ends with a line break
        self._process = os.getpid()
        info = self._info()
        self.workers, self.sandbox, self.max_bytes = workers or info["workers"], info["sandbox"], info["max_bytes"]
        if sandbox not in ("auto", self.sandbox):
            raise JudgeError(f"the service at {url} has the {self.sandbox} sandbox; leave judge.sandbox at auto")
        lanes = 4 * self.workers  # so many are under way at a time: the service never waits for us
        self._pool = ThreadPoolExecutor(lanes, "remote-judge")
        self._room = threading.BoundedSemaphore(lanes + (queue or lanes))
        self._own = threading.local()  # a connection for each thread
        self._calls: dict[Future[Verdict], _Request] = {}
        self._keys: dict[str, str] = {}
        self._sending = threading.Lock()  # problems go one at a time: the next candidate finds this one's there
        self._ending = threading.Event()

    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        call = self._request(problem, completion, code)
        self._room.acquire()
        try:
            future = self._begin(call)
        except BaseException:
            self._room.release()
            raise
        future.add_done_callback(lambda _: self._room.release())
        return future

    async def acheck(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Verdict:
        """Judge one program from a coroutine. Waiting takes no thread; a cancelled call drops the candidate."""
        future = self._begin(self._request(problem, completion, code))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.drop(future)
            raise

    def drop(self, future: Future[Verdict]) -> None:
        call = self._calls.get(future)
        if not future.cancel() and call is not None:
            call.drop()

    def close(self, cancel: bool = False) -> None:
        if cancel:
            self._ending.set()
            for future in list(self._calls):
                self.drop(future)
        self._pool.shutdown(cancel_futures=cancel)

    def _request(self, problem: Problem, completion: str | Solution | None, code: str | None) -> _Request:
        if os.getpid() != self._process:  # its threads are not here: nothing would ever be asked
            raise JudgeError(f"this judge belongs to process {self._process}; make one in the forked process")
        return _Request(problem, solution_of(problem, completion, code))

    def _begin(self, call: _Request) -> Future[Verdict]:
        try:
            future = self._pool.submit(self._judge, call)
        except RuntimeError:
            raise JudgeError("this judge is closed; make a new one") from None
        self._calls[future] = call
        future.add_done_callback(lambda done: self._calls.pop(done, None))
        return future

    def _judge(self, call: _Request) -> Verdict:
        solution = call.solution
        try:
            key = self._key(call.problem)
            code = {"code": solution.code, "completion": solution.completion, "language": solution.language}
            asked = {"problem": key, **code, "settings": self.settings}
            verdict = Verdict.from_dict(json.loads(self._answer(call, key, asked)))
            verdict.problem_id, verdict.id = solution.problem_id, solution.id
            return verdict
        except Exception as error:  # a future never raises for what a program, a problem or a service does
            reason = str(error) if isinstance(error, JudgeError) else f"{type(error).__name__}: {error}"
            return failed(solution, f"{self.url}: {reason}", self.sandbox)

    def _answer(self, call: _Request, key: str, asked: dict[str, Any]) -> bytes:
        """Ask the service until it answers; raise JudgeError with the reason if it does not."""
        call.line = line = self._line()
        body = json.dumps(asked).encode()
        lost, seconds, sent = 0.0, 0.0, False  # lost: when it was heard last, if it is away
        while not call.dropped:
            seconds, after, well, silent = min(2 * seconds + 0.1, 5.0), "", False, 0.0
            try:
                status, headers, data = line.ask("POST", "/v1/judge", body, lambda: not call.dropped)
                if status == 200 and data.rstrip().endswith(b"}"):
                    return data
                reason, after = reason_of(status, data), headers.get("Retry-After", "")
                if status == UNKNOWN:
                    problem = packed(call.problem)
                    whole = json.dumps({**asked, "problem": json.loads(problem)}).encode() if sent else b""
                    if 0 < len(whole) <= self.max_bytes:  # it went to another service, or is forgotten already
                        body = whole
                    else:
                        self._send(line, key, problem)
                        sent, after = True, "" if sent else "0"
                elif status not in (200, BUSY, *AGAIN):
                    raise JudgeError(reason)
                well = status in (UNKNOWN, BUSY)
            except (OSError, HTTPException) as error:
                reason = f"{type(error).__name__}: {error}"
                silent = SILENCE_S if isinstance(error, TimeoutError) else 0.0
            lost = 0.0 if well else lost or time.monotonic() - silent
            if lost and time.monotonic() - lost > self.patience_s:
                raise JudgeError(f"no answer for {self.patience_s:g} s ({reason})")
            self._ending.wait(min(float(after), 30.0) if after.isdigit() else seconds)
        raise JudgeError("it was dropped")

    def _send(self, line: KeptConnection, key: str, data: bytes) -> None:
        with self._sending:
            if line.ask("GET", f"/v1/problems/{key}")[0] == 200:  # another thread has sent it
                return
            if len(data) > self.max_bytes:
                raise JudgeError(f"the problem has {len(data) >> 20} MB; its --max-mb is {self.max_bytes >> 20}")
            status, _, said = line.ask("PUT", f"/v1/problems/{key}", data)
        if status not in (200, BUSY, *AGAIN):
            raise JudgeError(reason_of(status, said))

    def _key(self, problem: Problem) -> str:
        mark = problem.fingerprint()
        key = self._keys.get(mark)
        if key is None:
            if len(self._keys) >= KEYS:
                self._keys.clear()
            key = self._keys[mark] = key_of(packed(problem))
        return key

    def _line(self) -> KeptConnection:
        if not hasattr(self._own, "line"):
            self._own.line = KeptConnection(self.url, self._token)
        line: KeptConnection = self._own.line
        return line

    def _info(self) -> dict[str, Any]:
        try:
            status, data = self._get("/v1/info")
        except OSError as error:
            raise JudgeError(
                f"nothing answers at {self.url} ({error}); start a judge there with `microcoder serve`, or judge on "
                "this machine with judge.on=here"
            ) from None
        except (HTTPException, ValueError) as error:  # no HTTP; or an address or a token that cannot be used
            raise JudgeError(
                f"no judge can be asked at {self.url} ({type(error).__name__}: {error}); judge.on is the address of a "
                "`microcoder serve`, such as http://HOST:8422"
            ) from None
        try:
            info = json.loads(data)
        except ValueError:
            info = {}
        if status == 401:
            raise JudgeError(f"the service at {self.url} wants its token: put what it printed into {TOKEN}")
        if status != 200 or not isinstance(info, dict) or info.get("service") != "microcoder":
            raise JudgeError(f"what answers at {self.url} is no `microcoder serve` ({status}): {data[:200]!r}")
        return info

    def _get(self, path: str) -> tuple[int, bytes]:
        """Get something, waiting while the service is busy."""
        end = time.monotonic() + self.patience_s
        while True:
            line = KeptConnection(self.url, self._token)
            try:
                status, _, data = line.ask("GET", path)
            finally:
                line.hang_up()
            if status != BUSY or time.monotonic() > end:
                return status, data
            time.sleep(1)


class _Request:
    """A candidate that was sent and has no verdict yet."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.problem, self.solution = problem, solution
        self.dropped, self.line = False, None

    line: KeptConnection | None

    def drop(self) -> None:
        self.dropped = True
        if self.line is not None:
            self.line.hang_up()
