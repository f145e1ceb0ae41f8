"""What stands before the pages: who may ask, and what a browser may do with the answers.

1. The Host header must name this machine: a page of another site whose name was made to point here is turned away.
2. With a token, it must be given: once as ?token=, which a cookie then stands for, or as `Authorization: Bearer`.
3. Every answer carries a content security policy: nothing is loaded from elsewhere, no script but ours runs.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..web import hostname

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


class Guard:
    """The middleware. `hosts`: names by which this server is asked, None where any is good, as a token decides."""

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
        """None: come in. With a token in the address, a cookie, and the same address without it."""
        if self.token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        headers, cookie = Headers(scope=scope), f"microcoder-{(scope.get('server') or ('', 0))[1]}"
        if any(map(self._right, given)):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="strict")
            return answer
        if not given and self._right(headers.get("authorization", "").removeprefix("Bearer ")):
            return None
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(cookie)
        except CookieError:
            kept = None
        if not given and kept is not None and self._right(kept.value):
            return None
        what = "that token is not the right one" if given else "a token is needed"
        words = f"{what}: open the address that `microcoder view` printed, which ends in ?token=...\n"
        return PlainTextResponse(words, 401)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), (self.token or "").encode())
