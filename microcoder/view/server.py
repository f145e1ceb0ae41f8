"""The answers over HTTP: GET only, JSON under /api, the pages under /static.

An answer carries an ETag, and one that its asker still holds is not sent again: most polls end with a few stats.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.middleware import Middleware

from ..runs.disk import opened, plain
from ..web import LOOPBACK
from .answers import Answers
from .find import KINDS
from .guard import Guard
from .library import Library, Missing

STATIC = Path(__file__).resolve().parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
Step = Annotated[int, Query(ge=0, le=10**9)]
Kind = Annotated[str, Query(pattern=f"^({'|'.join(KINDS)})$")]
Text = Annotated[str, Query(max_length=500)]
FILE = 1 << 25  # bytes of a picture
FIGURES = {".png": "image/png", ".svg": "image/svg+xml"}


def app(root: Path, token: str | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The server of the folder `root`; with a token, whoever gives it may ask by any name of this machine."""
    answers = Answers(Library(root))
    hosts = None if token else tuple(dict.fromkeys((host, *LOOPBACK)))
    server = FastAPI(
        title="microcoder view",
        openapi_url=None,
        middleware=[Middleware(Guard, hosts=hosts, token=token)],
        exception_handlers={Missing: _missing},
    )
    _pages(server, answers)
    _questions(server, answers)
    return server


def serve(server: FastAPI, listener: socket.socket) -> None:
    """Answer until Ctrl-C. Addresses may hold a token, so none is logged."""
    config = uvicorn.Config(
        server,
        http="h11",  # which bounds the head of a request
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
    )
    uvicorn.Server(config).run([listener])


def plotly_script() -> Path:
    """The script that the plotly package brings along."""
    return (Path(str(files("plotly"))) / "package_data" / "plotly.min.js").resolve()


def _pages(server: FastAPI, answers: Answers) -> None:
    pages = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}

    @server.get("/")
    def page(request: Request) -> Response:
        return _file(request, pages["index.html"], TYPES)

    @server.get("/static/{name}")
    def static(request: Request, name: str) -> Response:
        if name == "plotly.js":
            return _file(request, plotly_script(), TYPES)
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


def _questions(server: FastAPI, answers: Answers) -> None:
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
    def step(request: Request, run: str, step: Step) -> Response:
        return _json(request, answers.step(run, step))

    @server.get("/api/group")
    def group(request: Request, of: str, step: Step, problem: Text) -> Response:
        return _json(request, answers.group(of, step, problem))

    @server.get("/api/visits")
    def visits(request: Request, run: str, problem: Text) -> Response:
        return _json(request, answers.visits(run, problem))

    @server.get("/api/find")
    def find(request: Request, run: str, kind: Kind, q: Text = "", before: Step | None = None) -> Response:
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
    """The value; or nothing, where the asker holds the same. Without a stamp the value itself tells."""
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
