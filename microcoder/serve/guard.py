"""What stands before the service: who may ask, and as whom.

1. With tokens, one of them must be given, as `Authorization: Bearer` or, for clients that can only be told an address,
   as ?token=. Without, the Host header must name this machine: a name of another's may have been made to point here.
2. No page in a browser may ask: it would do so without its reader knowing.
3. A client, for the limits, is a token at an address.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..web import LOOPBACK, hostname
from .metrics import Metrics

OPEN = ("/healthz", "/readyz")  # for those who only watch


class Guard:
    """The middleware; `host` is the address that the service listens at."""

    def __init__(self, app: ASGIApp, tokens: Sequence[str], host: str, metrics: Metrics) -> None:
        self.app, self.tokens, self.metrics = app, [token.encode() for token in tokens], metrics
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
