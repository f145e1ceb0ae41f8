"""The routes and their OpenAPI schemas: the judge under /v1, SandboxFusion's two, and those for whoever watches."""

from __future__ import annotations

import functools
import hmac
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import TypeAdapter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from .. import __version__
from ..config import JudgeConfig
from ..judge.examine import Settings
from ..judge.execution import Ran
from ..judge.pool import Judge
from ..judge.remote.http import SETTINGS
from ..schema import LANGUAGES, VERDICTS, Problem, Verdict
from ..web import LOOPBACK, hostname
from . import bodies, fusion
from .desk import Answers, Service, Work
from .fusion import RUN
from .requests import BadRequest, Most
from .room import Metrics

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
KEY: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The SHA-256 of the bytes as PUT."}
STATUSES = {
    400: "The body is not JSON.",
    401: "A token is needed.",
    403: "Pages in a browser may not ask.",
    404: "A problem that is named is not here (any more).",
    413: "More than this service takes at a time.",
    421: "Asked by a name that is not this machine's.",
    422: "What is asked for cannot be done; `error` says why.",
    429: "No room; see Retry-After.",
    500: "The judge failed on this program; `error` says why.",
    503: "The service is about to end; see Retry-After.",
    504: "No room for a long time (for clients that try again only on this status).",
}


@functools.cache
def schemas() -> dict[str, Schema]:
    """Return the OpenAPI components."""
    found: dict[str, Schema] = {}
    for kind in (Problem, Verdict):
        schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        found[kind.__name__] = schema | {"additionalProperties": False}
    found["Problem"]["anyOf"] = [  # a kind, and what it cannot be judged without
        {"properties": {"kind": {"const": name}, needed[0]: {"minItems": 1}}, "required": needed}
        for name, needed in (
            ("stdin", ["tests"]),
            ("function", ["tests", "kind", "entry_point"]),
            ("assert", ["asserts", "kind"]),
        )
    ]
    found["Problem"]["properties"]["entry_point"]["minLength"] = 1
    found["Verdict"]["properties"]["verdict"]["enum"] = list(VERDICTS)
    options = JudgeConfig.model_json_schema()["properties"]
    found["Settings"] = _object({name: options[name] for name in SETTINGS})
    about = {"anyOf": [_ref("Problem"), KEY], "description": "The problem, or the key that it was PUT under."}
    candidate = {"problem": about, "code": TEXT, "completion": TEXT, "language": {"enum": list(LANGUAGES)}, "id": TEXT}
    either = {"oneOf": [{"required": ["code"]}, {"required": ["completion"]}]}
    found["Candidate"] = _object({**candidate, "settings": _ref("Settings")}, "problem") | either
    some = {"type": "array", "items": _object(candidate, "problem") | either, "minItems": 1}
    found["Candidates"] = _object({"candidates": some, "settings": _ref("Settings")}, "candidates")
    found["Refusal"] = _object({"error": TEXT}, "error")
    seconds = {"type": "number"}
    run: dict[str, Schema] = dict.fromkeys(RUN, TEXT)
    run |= {"run_timeout": seconds, "compile_timeout": seconds, "memory_limit_MB": {"type": "integer"}}
    run |= {"files": {"type": "object"}, "fetch_files": {"type": "array", "items": TEXT}}
    found["RunCode"] = _object(run, "code", "language")
    ident = {"anyOf": [TEXT, {"type": "integer"}]}
    found["Submit"] = _object(
        {"dataset": TEXT, "id": ident, "completion": TEXT, "config": {"type": "object"}}, "id", "completion", "config"
    )
    return found


def body(name: str) -> Schema:
    """The `openapi_extra` of a route that reads its body by itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _ref(name)}}}}


def answers(media_type: str, schema: Schema, *refusals: int) -> dict[int | str, Schema]:
    """The `responses` of a route."""
    found: dict[int | str, Schema] = {200: {"description": "Done.", "content": {media_type: {"schema": schema}}}}
    refusal = {"content": {"application/json": {"schema": _ref("Refusal")}}}
    return found | {status: {"description": STATUSES[status], **refusal} for status in (401, 403, 421, *refusals)}


def verdict() -> Schema:
    return _ref("Verdict")


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


OPEN = ("/healthz", "/readyz")  # for those who only watch


class Guard:
    """The middleware; `host` is the address that the service listens at."""

    def __init__(self, app: ASGIApp, tokens: Sequence[str], host: str, metrics: Metrics) -> None:
        self.app, self.tokens, self.metrics = app, [token.strip().encode() for token in tokens], metrics
        self.hosts = {host, *LOOPBACK}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and the end of the server; there are no web sockets
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        refusal = None if scope["path"] in OPEN else self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, words = refusal
        self.metrics.refused[str(status)] += 1
        extra = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        await JSONResponse({"error": words}, status, extra)(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        if "origin" in headers:
            return 403, "this service is for programs, not for pages in a browser"
        address = (scope.get("client") or ("?", 0))[0]
        if not self.tokens:
            host = hostname(headers.get("host", ""))
            if host not in self.hosts:
                return 421, f"this service does not answer as {host[:80]!r}; --host and --token change that"
            scope["microcoder.client"] = address
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            query = parse_qsl(scope["query_string"].decode("latin-1"))
            given = next((value for name, value in query if name == "token"), "")
        for number, token in enumerate(self.tokens):
            if hmac.compare_digest(given.strip().encode("utf-8", "replace"), token):
                scope["microcoder.client"] = f"{number}@{address}"
                return None
        what = "that token is not the right one" if given else "a token is needed"
        return 401, f"{what}: send `Authorization: Bearer TOKEN`; for `microcoder`, put it into MICROCODER_TOKEN"


NDJSON = "application/x-ndjson"


def app(
    judge: Judge, own: Settings, tokens: Sequence[str] = (), host: str = "127.0.0.1",
    queue: int = 1024, per_client: int = 512, queue_mb: int = 2048, connections: int = 1024, max_mb: int = 128,
    most: Most | None = None,
) -> FastAPI:  # fmt: skip
    """The service of a judge. `own`: the settings for requests that bring none; `most`: what they may ask for."""
    service = Service(judge, own, queue, per_client, queue_mb << 20, connections, max_mb << 20, most or Most())
    found = FastAPI(
        title="microcoder serve",
        version=__version__,
        summary="A judge of programs.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        middleware=[Middleware(Guard, tokens=tokens, host=host, metrics=service.metrics)],
        exception_handlers={BadRequest: _refused, HTTPException: _unknown, ClientDisconnect: _gone},
    )
    found.state.service = service
    _judging(found, service)
    _fusion(found, service)
    _watching(found, service)
    describe = found.openapi

    def described() -> dict[str, Any]:
        schema = describe()
        schema.setdefault("components", {})["schemas"] = schemas()
        return schema

    found.openapi = described  # type: ignore[method-assign]
    return found


def _judging(found: FastAPI, service: Service) -> None:
    busy = (400, 404, 413, 422, 429, 503)

    @found.post("/v1/judge", openapi_extra=body("Candidate"), responses=answers("application/json", verdict(), *busy))
    async def judge(request: Request) -> Response:
        """Judge one candidate."""
        async with service.asked(request, bodies.one) as (one, settings):
            jobs = service.take(request, service.judging(one, settings))
        return Answers(service.desk, jobs, Verdict.to_dict)

    @found.post("/v1/judge/many", openapi_extra=body("Candidates"), responses=answers(NDJSON, verdict(), *busy))
    async def judge_many(request: Request) -> Response:
        """Judge many: a line for each verdict, as soon as it is known. One without an id is called by its number."""
        async with service.asked(request, bodies.many) as (found, settings):
            jobs = service.take(request, *(service.judging(one, settings) for one in found))
        return Answers(service.desk, jobs, Verdict.to_dict, NDJSON)

    @found.put(
        "/v1/problems/{key}",
        openapi_extra=body("Problem"),
        responses=answers("application/json", {}, 400, 413, 422, 429),
    )
    async def put(request: Request, key: str) -> Response:
        """Send a problem, to name it by its key in what follows: the SHA-256 of these bytes."""
        async with service.asked(request, bodies.problem) as (right, problem):
            service.shelf.put(key, right, problem)
        return JSONResponse({"key": key})

    @found.get("/v1/problems/{key}", responses=answers("application/json", {}, 404, 422))
    async def get(key: str) -> Response:
        """Whether a problem is here."""
        service.shelf.get(key)
        return JSONResponse({"key": key})

    @found.get("/v1/info", responses=answers("application/json", {"type": "object"}))
    async def info() -> Response:
        """Describe the judge of this server."""
        return JSONResponse({
            "service": "microcoder", "version": __version__, "workers": service.judge.workers,
            "sandbox": service.judge.sandbox, "languages": sorted(set(LANGUAGES.values())),
            "queue": service.desk.queue, "per_client": service.desk.per_client, "max_bytes": service.most_bytes,
            "max_seconds": service.most.seconds, "max_memory_mb": service.most.memory_mb,
            "max_output_mb": service.most.output_mb, "max_tests": service.most.tests,
        })  # fmt: skip


def _fusion(found: FastAPI, service: Service) -> None:
    busy = (400, 413, 422, 504)

    @found.post("/run_code", openapi_extra=body("RunCode"), responses=answers("application/json", {}, *busy))
    async def run_code(request: Request) -> Response:
        """Run a program, as SandboxFusion does."""
        async with service.asked(request, bodies.run_code, 504) as asked:
            if isinstance(asked, str):
                return JSONResponse(fusion.failed(asked))
            code, language, stdin, limits = asked
            size = sys.getsizeof(code) + sys.getsizeof(stdin)
            work = Work(lambda: service.judge.run(code, language, stdin, limits), size)
            jobs = await service.take_patiently(request, work)

        def write(outcome: Ran) -> dict[str, Any]:
            return fusion.ran(language, outcome)

        return Answers(service.desk, jobs, write)

    @found.post("/submit", openapi_extra=body("Submit"), responses=answers("application/json", {}, *busy, 500))
    async def submit(request: Request) -> Response:
        """Judge a completion by the tests that come with it, as SandboxFusion does."""
        async with service.asked(request, bodies.submit, 504) as (ident, problem, solution, settings):
            jobs = await service.take_patiently(request, service.submitted(problem, solution, settings))

        def write(answer: Verdict) -> dict[str, Any]:
            if answer.verdict == "internal_error":  # "accepted": false would be a reward of 0
                raise BadRequest(500, answer.message)
            return fusion.judged(ident, problem, solution, answer)

        return Answers(service.desk, jobs, write)


def _watching(found: FastAPI, service: Service) -> None:
    @found.get("/healthz")
    async def healthz() -> Response:
        """Whether the service is alive."""
        return JSONResponse({"status": "ok"})

    @found.get("/readyz", responses={503: {"description": "It is about to end."}})
    async def readyz() -> Response:
        """Whether it takes new work."""
        draining = service.desk.draining
        return JSONResponse({"status": "draining" if draining else "ok"}, 503 if draining else 200)

    @found.get("/metrics", responses=answers("text/plain", {"type": "string"}), response_class=PlainTextResponse)
    async def metrics() -> Response:
        """For Prometheus."""
        desk, shelf = service.desk, service.shelf
        gauges: dict[str, float] = {
            "waiting": desk.waiting, "running": len(desk.running), "clients": len(desk.held),
            "workers": service.judge.workers, "problems": len(shelf.problems), "problem_bytes": shelf.bytes,
            "held_bytes": service.room.total, "connections": len(service.doors.connections),
        }  # fmt: skip
        return PlainTextResponse(service.metrics.text(gauges), media_type="text/plain; version=0.0.4")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    request.app.state.service.metrics.refused[str(error.status)] += 1
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return JSONResponse({"error": error.reason}, error.status, headers)


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = f"{request.method} {request.url.path[:200]}: {error.detail}; /openapi.json lists what can be asked"
    return JSONResponse({"error": words}, error.status_code, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody is there to read it
