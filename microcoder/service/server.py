"""The routes: the judge under /v1, SandboxFusion's two, and those for whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from .. import __version__
from ..judge.examine import Settings
from ..judge.pool import Judge
from ..judge.running import Ran
from ..schema import LANGUAGES, Verdict
from . import fusion
from .answers import Answers
from .asking import CANDIDATE, Refused, candidate_of, known_keys, settings_of
from .described import answers, body, schemas, verdict
from .guard import Guard
from .shared import Service

NDJSON = "application/x-ndjson"


def app(
    judge: Judge, own: Settings, tokens: Sequence[str] = (), host: str = "127.0.0.1",
    queue: int = 1024, per_client: int = 512, max_mb: int = 128, most: tuple[int, int] = (600, 16384),
) -> FastAPI:  # fmt: skip
    """The service of a judge. `own`: the settings for requests that bring none; `most`: seconds and MB for a test."""
    service = Service(judge, own, queue, per_client, max_mb << 20, most)
    found = FastAPI(
        title="microcoder serve",
        version=__version__,
        summary="A judge of programs.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        middleware=[Middleware(Guard, tokens=tokens, host=host, metrics=service.metrics)],
        exception_handlers={Refused: _refused, HTTPException: _unknown, ClientDisconnect: _gone},
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
        record = known_keys(await service.asked(request), (*CANDIDATE, "settings"), "a candidate")
        settings = settings_of(record.pop("settings", None), service.own)
        start = service.judging(*candidate_of(record, service.shelf.get), settings)
        jobs = service.take(request, start)
        return Answers(service.desk, jobs, Verdict.to_dict)

    @found.post("/v1/judge/many", openapi_extra=body("Candidates"), responses=answers(NDJSON, verdict(), *busy))
    async def judge_many(request: Request) -> Response:
        """Judge many: a line for each verdict, as soon as it is known. One without an id is called by its number."""
        record = known_keys(await service.asked(request), ("candidates", "settings"), "the body")
        candidates = record.get("candidates")
        if not isinstance(candidates, list) or not candidates:
            raise Refused(422, '"candidates" must be a list of at least one')
        settings = settings_of(record.get("settings"), service.own)
        pairs = [candidate_of(one, service.shelf.get, str(number)) for number, one in enumerate(candidates)]
        if len({solution.id for _, solution in pairs}) < len(pairs):
            raise Refused(422, "two candidates have the same id, so their verdicts could not be told apart")
        starts = [service.judging(*pair, settings) for pair in pairs]
        jobs = service.take(request, *starts)
        return Answers(service.desk, jobs, Verdict.to_dict, NDJSON)

    @found.put(
        "/v1/problems/{key}", openapi_extra=body("Problem"), responses=answers("application/json", {}, 400, 413, 422)
    )
    async def put(request: Request, key: str) -> Response:
        """Send a problem, to name it by its key in what follows: the SHA-256 of these bytes."""
        service.shelf.put(key, await service.body(request))
        return JSONResponse({"key": key})

    @found.get("/v1/problems/{key}", responses=answers("application/json", {}, 404, 422))
    async def get(key: str) -> Response:
        """Whether a problem is here."""
        service.shelf.get(key)
        return JSONResponse({"key": key})

    @found.get("/v1/info", responses=answers("application/json", {"type": "object"}))
    async def info() -> Response:
        """What kind of judge this is."""
        return JSONResponse({
            "service": "microcoder", "version": __version__, "workers": service.judge.workers,
            "sandbox": service.judge.sandbox, "languages": sorted(set(LANGUAGES.values())),
            "queue": service.desk.queue, "per_client": service.desk.per_client, "max_bytes": service.most_bytes,
            "max_seconds": service.most[0], "max_memory_mb": service.most[1],
        })  # fmt: skip


def _fusion(found: FastAPI, service: Service) -> None:
    busy = (400, 413, 422, 504)

    @found.post("/run_code", openapi_extra=body("RunCode"), responses=answers("application/json", {}, *busy))
    async def run_code(request: Request) -> Response:
        """Run a program, as SandboxFusion does."""
        try:
            code, language, stdin, limits = fusion.program(await service.asked(request), service.own, service.most)
        except fusion.Unsupported as error:
            return JSONResponse(fusion.failed(str(error)))
        jobs = await service.take_patiently(request, lambda: service.judge.run(code, language, stdin, limits))

        def write(outcome: Ran) -> dict[str, Any]:
            return fusion.ran(language, outcome)

        return Answers(service.desk, jobs, write)

    @found.post("/submit", openapi_extra=body("Submit"), responses=answers("application/json", {}, *busy))
    async def submit(request: Request) -> Response:
        """Judge a completion by the tests that come with it, as SandboxFusion does."""
        record = await service.asked(request)
        problem, solution, settings = fusion.submitted(record, service.own, service.most)
        jobs = await service.take_patiently(request, service.judging(problem, solution, settings))

        def write(answer: Verdict) -> dict[str, Any]:
            return fusion.judged(record["id"], problem, solution, answer)

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
        }  # fmt: skip
        return PlainTextResponse(service.metrics.text(gauges), media_type="text/plain; version=0.0.4")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    request.app.state.service.metrics.refused[str(error.status)] += 1
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return JSONResponse({"error": error.reason}, error.status, headers)


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = f"{request.method} {request.url.path[:200]}: {error.detail}; /openapi.json lists what can be asked"
    return JSONResponse({"error": words}, error.status_code, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody is there to read it
