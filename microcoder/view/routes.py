"""The answers over HTTP: GET only, JSON under /api, the pages under /static.

An answer carries an ETag, and one that its asker still holds is not sent again: most polls end with a few stats.

1. The Host header must name this machine: a page of another site whose name was made to point here is turned away.
2. With a token, it must be given: once as ?token=, which a cookie then stands for, or as `Authorization: Bearer`.
3. Every answer carries a content security policy: nothing is loaded from elsewhere, no script but ours runs.
4. So many connections at a time: where there are more, the one that has been without a request longest is cut.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import socket
import time
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import uvicorn
from fastapi import FastAPI, Query, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..runs.disk import opened, plain
from ..web import LOOPBACK, hostname
from .find import KINDS
from .library import Library, Missing
from .questions import Questions

STATIC = Path(__file__).resolve().parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
Step = Annotated[int, Query(ge=0, le=10**9)]
Kind = Annotated[str, Query(pattern=f"^({'|'.join(KINDS)})$")]
FILE = 1 << 25  # bytes of a picture
CONNECTIONS, HEAD_S = 256, 10.0  # at a time; seconds that the head of a request may take
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FIGURES = {".png": "image/png", ".svg": "image/svg+xml"}


def app(root: Path, token: str | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The server of the folder `root`; with a token, whoever gives it may ask by any name of this machine."""
    answers = Questions(Library(root))
    hosts = None if token else tuple(dict.fromkeys((host, *LOOPBACK)))
    server = FastAPI(
        title="microcoder view",
        openapi_url=None,
        middleware=[Middleware(PageGuard, hosts=hosts, token=token)],
        exception_handlers={Missing: _missing},
    )
    _pages(server, answers)
    _questions(server, answers)
    return server


def serve(server: FastAPI, listener: socket.socket) -> None:
    """Answer until Ctrl-C."""
    uvicorn.Server(settings(server)).run([listener])


def settings(server: FastAPI) -> uvicorn.Config:
    """How the pages are served. Addresses may hold a token, so none is logged."""
    return uvicorn.Config(
        server,
        http=PageConnection,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
    )


class PageConnection(H11Protocol):
    """A connection that is cut where the head of a request takes too long, or where there are too many without one.

    h11 bounds how large a head may be.
    """

    since = 0.0  # when it came, or its last answer ended
    _waiting: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """No whole head has come since the last answer."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = time.monotonic()
        self._wait()
        others = [one for one in self.connections if isinstance(one, PageConnection) and one is not self]
        if len(others) >= CONNECTIONS:
            idle = [one for one in others if one.idle]
            min(idle, key=lambda one: one.since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.idle and self._waiting is None:
            self._wait()
        super().data_received(data)
        if not self.idle:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        super().on_response_complete()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def plotly_script() -> Path:
    """The script that the plotly package brings along."""
    return (Path(str(files("plotly"))) / "package_data" / "plotly.min.js").resolve()


def _pages(server: FastAPI, answers: Questions) -> None:
    pages = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    pages["plotly.js"] = plotly_script()  # ModuleNotFoundError here, and not when a page asks for it

    @server.get("/")
    def page(request: Request) -> Response:
        return _file(request, pages["index.html"], TYPES)

    @server.get("/static/{name}")
    def static(request: Request, name: str) -> Response:
        if name not in pages:
            raise Missing(f"there is no {name!r}")
        return _file(request, pages[name], TYPES)

    @server.get("/figure")
    def figure(request: Request, of: str, path: str) -> Response:
        """A picture that a report shows."""
        found = answers.library.get(of, "bench", "study").file(path)
        if found.suffix not in FIGURES:
            raise Missing(f"{path!r} is not a picture of {of}")
        return _file(request, found, FIGURES)


def _questions(server: FastAPI, answers: Questions) -> None:
    @server.get("/api/list")
    def list_(request: Request) -> Response:
        return _json(request, answers.listing())

    @server.get("/api/run")
    def run(request: Request, run: str) -> Response:
        return _json(request, answers.run(run))

    @server.get("/api/metrics")
    def metrics(request: Request, run: str, first: float | None = None, last: float | None = None) -> Response:
        stamp = answers.stamp(run)
        return _fresh(request, stamp) or _json(request, answers.metrics(run, first, last), stamp)

    @server.get("/api/remarks")
    def remarks(request: Request, run: str) -> Response:
        stamp = answers.stamp(run)
        return _fresh(request, stamp) or _json(request, answers.remarks(run), stamp)

    @server.get("/api/steps")
    def steps(request: Request, run: str) -> Response:
        stamp = answers.stamp(run)
        return _fresh(request, stamp) or _json(request, answers.steps(run), stamp)

    @server.get("/api/step")
    def step(request: Request, run: str, step: Step, test: bool = False) -> Response:
        return _json(request, answers.step(run, step, test))

    @server.get("/api/group")
    def group(request: Request, of: str, step: Step, problem: str, test: bool = False) -> Response:
        return _json(request, answers.group(of, step, problem, test))

    @server.get("/api/visits")
    def visits(request: Request, run: str, problem: str) -> Response:
        return _json(request, answers.visits(run, problem))

    @server.get("/api/find")
    def find(request: Request, run: str, kind: Kind, q: str = "", before: Step | None = None) -> Response:
        return _json(request, answers.find(run, kind, q, before))

    @server.get("/api/compare")
    def compare(request: Request, a: str, b: str) -> Response:
        stamp = answers.stamp(a, b)
        return _fresh(request, stamp) or _json(request, answers.compare(a, b), stamp)

    @server.get("/api/bench")
    def bench(request: Request, bench: str) -> Response:
        stamp = answers.stamp(bench)
        return _fresh(request, stamp) or _json(request, answers.bench(bench), stamp)

    @server.get("/api/study")
    def study(request: Request, study: str) -> Response:
        stamp = answers.stamp(study)
        return _fresh(request, stamp) or _json(request, answers.study(study), stamp)


def _json(request: Request, value: Any, stamp: object = None) -> Response:
    """Answer with the value, or 304 where the asker holds it. The ETag is of the stamp, else of the value."""
    try:
        try:
            body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        except ValueError:  # a file may hold what is not finite, which no browser reads
            body = json.dumps(plain(value), separators=(",", ":")).encode()
    except RecursionError:
        raise Missing("what is asked for is nested too deeply to be shown") from None
    tag = _tag(request, stamp if stamp is not None else body)
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type="application/json", headers={"ETag": tag, "Cache-Control": "no-cache"})


def _fresh(request: Request, stamp: object) -> Response | None:
    tag = _tag(request, stamp)
    return Response(status_code=304, headers={"ETag": tag}) if request.headers.get("if-none-match") == tag else None


def _tag(request: Request, stamp: object) -> str:
    return f'"{hashlib.sha256(f"{request.url.query} {stamp!r}".encode()).hexdigest()[:24]}"'


def _file(request: Request, path: Path, types: dict[str, str]) -> Response:
    try:
        with opened(path) as file:
            state = os.fstat(file.fileno())
            tag = _tag(request, (state.st_mtime_ns, state.st_size))
            headers = {"ETag": tag, "Cache-Control": "no-cache"}
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            if state.st_size > FILE:
                raise Missing(f"{path.name!r} has more than {FILE >> 20} MiB")
            return Response(file.read(FILE), media_type=types[path.suffix], headers=headers)
    except OSError:
        raise Missing(f"there is no {path.name!r}") from None


async def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 404)


class PageGuard:
    """Middleware that checks host and token. `hosts`: the allowed names; None: any, as a token decides."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] | None, token: str | None) -> None:
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and the end of the server; there are no web sockets
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(scope) or self._entry(scope)
        await (answer or self.app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        host = hostname(Headers(scope=scope).get("host", ""))
        if self.hosts is not None and host not in self.hosts:
            words = f"this server answers as {self.hosts[0]}, not as {host[:80]!r}; --host and --token change that\n"
            return PlainTextResponse(words, 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this server only reads\n", 405)
        return None

    def _entry(self, scope: Scope) -> Response | None:
        """None where the token is right. A token in the address is replaced by a cookie; without one, 401."""
        if self.token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        headers, cookie = Headers(scope=scope), f"microcoder-{(scope.get('server') or ('', 0))[1]}"
        if any(map(self._right, given)):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, quote(self.token, safe=""), httponly=True, samesite="strict")
            return answer
        if not given and self._right(headers.get("authorization", "").removeprefix("Bearer ")):
            return None
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(cookie)
        except CookieError:
            kept = None
        if not given and kept is not None and self._right(unquote(kept.value)):
            return None
        what = "that token is not the right one" if given else "a token is needed"
        words = f"{what}: open the address that `microcoder view` printed, which ends in ?token=...\n"
        return PlainTextResponse(words, 401)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), (self.token or "").encode())
