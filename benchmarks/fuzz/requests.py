"""Generators for HTTP: requests of every route with something wrong in them, and what a connection can do besides."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

from benchmarks.fuzz.recipes import Case, Recipe, expand, mutated
from benchmarks.fuzz.shapes import TEXT_SHAPES, VALUE_SHAPES, value

MOST_MB = 8  # of a request that the service takes
MOST_BYTES = 40 << 20  # that one connection sends
TOKENS = {"honest": "honest-6f1c", "fuzz": "fuzz-93ab"}
PROBLEM = {"id": "square", "tests": [{"input": "7\n", "output": "49\n"}], "time_limit_s": 1, "memory_mb": 64}
MARK = "@here@"
ESCAPES = {ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}  # what JSON wants escaped

PROBLEMS: tuple[dict[str, Any], ...] = (
    PROBLEM,
    {"id": "add", "kind": "function", "entry_point": "add", "tests": [{"input": "[1, 2]", "output": "3"}],
     "compare": {"tolerance": 1e-6}},
    {"id": "a", "kind": "assert", "entry_point": "f", "asserts": ["assert f(1) == 2"], "setup": "import math"},
    {"id": "c", "tests": [{"input": "1", "output": "1"}],
     "compare": {"checker": "def check(i, o, e): return True", "policy": "paper"}},
    {"id": "v", "tests": [{"input": "", "output": "1.5"}], "memory_mb": 64,
     "compare": {"validator_flags": "float_tolerance 1e-6", "lines": True}},
)  # fmt: skip
CODES = (
    "print(1)", "def f(x): return 2", "def add(a, b): return a + b", "x", "", "print(int(input()) ** 2)", "1/0",
    "raise SystemExit(3)",
)  # fmt: skip
SETTINGS = {
    "policy": "paper", "also": "exact", "stop_at_first_failure": False, "reuse": True, "time_limit_s": 1,
    "time_factor": 1, "memory_mb": 64, "output_mb": 1,
}  # fmt: skip
TEST = {"input": {"stdin": "1"}, "output": {"stdout": "1"}}
CONFIG = {
    "dataset_type": "CommonOJDataset", "language": "python", "run_timeout": 1, "extra": {"run_all_cases": True},
    "provided_data": {"id": 1, "test": [TEST]},
}  # fmt: skip
SUBMIT = {"dataset": "x", "id": 1, "completion": "```python\nprint(1)\n```", "config": CONFIG}
RUN = {
    "code": "print(1)", "language": "python", "stdin": "x", "run_timeout": 1, "compile_timeout": 1,
    "memory_limit_MB": 64, "files": {}, "fetch_files": [],
}  # fmt: skip
HEADERS = (
    "Host: 127.0.0.1", "Host: evil.example", "Host: " + "h" * 5000, "Origin: http://evil.example",
    "Expect: 100-continue", "Connection: close", "Connection: upgrade\r\nUpgrade: websocket",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Content-Encoding: gzip",
    "Content-Length: -1", "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 99999999999999999999",
    "Content-Length: " + "9" * 5000, "Content-Length: 0x10", "Content-Length: ", "Content-Length: \xb2",
    "Content-Length: 1e3",
    "Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x", "Accept: */*", "X: \xff\xfe",
    ": empty", "X : y", " folded", "X", "X: a\x00b", "X: a\rb", "Authorization: Basic eDp5", "Authorization: Bearer",
    "Authorization: Bearer " + "t" * 9000,
    "Authorization: bearer \xff\xff", "Range: bytes=0-", "TE: trailers", "Cookie: " + "a=b; " * 500,
    "X-Forwarded-For: 1.2.3.4", "Proxy: x", "Keep-Alive: timeout=1",
)  # fmt: skip
PATHS = (
    "/", "/v1/judge", "/v1/judge/many", "/v1/info", "/v1/problems/x", "/run_code", "/submit", "/healthz", "/readyz",
    "/metrics", "/openapi.json", "/docs", "//v1//judge", "/v1/judge/", "/v1/../v1/judge", "/%2e%2e/etc/passwd",
    "/v1/problems/%00", "/v1/problems/%ff%fe", "/v1/problems/%F0%9F", "/\xff", "*", "http://127.0.0.1/v1/info",
    "/v1/info?token=x", "/v1/info?" + "a=b&" * 900, "/v1/info#x", "/" + "a" * 9000, "/v1/problems/" + "f" * 64,
    "/?token=%ff%00",
)  # fmt: skip
METHODS = (
    "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "P\x00ST", "PRI", "X" * 300,
    "",
)  # fmt: skip
SMALL = (
    "null", "true", "false", "[]", "{}", '""', "0", "-1", "1.5", "-0.0", "1e-320", "1e18", "1e400", "-1e400", "1e999",
    "NaN",
    "2147483648", "9" * 25, "[[]]", "[null]", '{"a":1}', '"x"', '"\\ud800"', '"\\u0000"', '["assert"]', '"[]"',
    '"[[[["',
)  # fmt: skip


def cases(draw: random.Random) -> Case:
    """The next connection."""
    way = draw.randrange(12)
    token = TOKENS["fuzz"] if draw.random() < 0.8 else draw.choice(("", "wrong", TOKENS["fuzz"] + "x"))
    request, name = _request(draw, token)
    steps: list[Any] = [["send", request]]
    if way < 6:
        steps.append(["read", draw.choice((0.5, 2.0, 4.0))])
    elif way == 6:
        name += ", cut off"
        steps = [
            ["send", _cut(draw, request)],
            ["wait", draw.choice((0.0, 0.2, 2.0))],
            [draw.choice(("reset", "half", "close"))],
            ["read", 0.5],
        ]
    elif way == 7:
        name += ", slowly"
        steps = [["drip", request, draw.choice((0.001, 0.01, 0.1)), draw.choice((1, 7, 1000))], ["read", 1.0]]
    elif way == 8:
        name += ", again and again"
        steps = [["send", request] for _ in range(draw.choice((2, 5, 30)))] + [["read", 2.0]]
    elif way == 9:
        name += ", unread"
        steps = [["send", request] for _ in range(draw.choice((1, 10)))] + [
            ["wait", draw.choice((0.1, 1.0, 3.0))],
            [draw.choice(("reset", "close"))],
        ]
    elif way == 10:
        name, steps = _flood(draw)
    else:
        name, steps = "bytes", [["send", mutated(draw, request)], ["read", 1.0]]
    return {
        "target": "http",
        "name": name,
        "connections": draw.choice((1, 1, 1, 1, 5, 40)) if way in (6, 9, 10) else 1,
        "steps": steps,
    }


def _request(draw: random.Random, token: str) -> tuple[Recipe, str]:
    method, path, body, name = _asked(draw)
    lines = [f"{method} {path} HTTP/{draw.choice(('1.1',) * 8 + ('1.0', '0.9', '2.0', '1.1 x'))}"]
    lines += ["Host: 127.0.0.1"] * (draw.random() < 0.95) + [f"Authorization: Bearer {token}"] * bool(token)
    if draw.random() < 0.25:
        odd = draw.choice(HEADERS)
        lines.append(odd)
        name += f", {odd[:30]!r}"
    length = len(expand(body, MOST_BYTES))
    if body and draw.random() < 0.2:
        name += ", in chunks"
        return ["\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]), *_chunks(draw, body, length)], name
    if body:
        wrong = draw.choice((length + 1, length - 1, 0, 2 * length, 10**12)) if draw.random() < 0.1 else length
        lines.append(f"Content-Length: {wrong}")
    return ["\r\n".join([*lines, "", ""]), *body], name


def _chunks(draw: random.Random, body: Recipe, length: int) -> Recipe:
    end = draw.choice(("0\r\n\r\n", "0\r\n", "0\r\nX: y\r\n\r\n", "", "-1\r\n", "0;x=y\r\n\r\n", "g\r\n\r\n"))
    way = draw.randrange(6)
    if way == 0:
        return [f"{length + draw.choice((1, -1, 1 << 40)):x}\r\n", *body, "\r\n", end]
    if way == 1:
        return [["1\r\n{\r\n", draw.choice((10, 10_000, 1_000_000))], end]
    if way == 2:
        return ["1;", ["x", draw.choice((100, 100_000, 5_000_000))], "\r\n{\r\n", end]
    if way == 3:
        return [["0", draw.choice((10, 1000, 100_000))], f"{length:x}\r\n", *body, "\r\n", end]
    if way == 4:
        return [f"{length:x}\r\n", *body, "\r\n0\r\n", ["X: y\r\n", draw.choice((1, 1000, 500_000))], "\r\n"]
    return [f"{length:x}\r\n", *body, "\r\n", end]


def _asked(draw: random.Random) -> tuple[str, str, Recipe, str]:
    """(method, path, body, name)."""
    way = draw.randrange(10)
    if way == 0:
        method, path = draw.choice(METHODS), draw.choice(PATHS)
        return method, path, _hostile(draw) if draw.random() < 0.5 else [], f"{method[:9]} {path[:20]}"
    if way == 1:
        body = _json(draw, draw.choice(PROBLEMS))
        key = hashlib.sha256(expand(body, MOST_BYTES)).hexdigest()
        return "PUT", f"/v1/problems/{key}", body, "a problem"
    problem: Any = draw.choice((*PROBLEMS, "f" * 64))
    one = {"problem": problem, draw.choice(("code", "completion")): draw.choice(CODES), "id": "x", "language": "python"}
    if way < 5:
        return (
            "POST",
            "/v1/judge",
            _json(draw, {**one, "settings": dict(SETTINGS)} if draw.random() < 0.5 else one),
            "a candidate",
        )
    if way < 7:
        many = {"candidates": [{**one, "id": n} for n in range(draw.choice((1, 2, 5)))], "settings": dict(SETTINGS)}
        return "POST", "/v1/judge/many", _json(draw, many), "candidates"
    return (
        ("POST", "/run_code", _json(draw, RUN), "run_code")
        if way < 9
        else ("POST", "/submit", _json(draw, SUBMIT), "submit")
    )


def _json(draw: random.Random, record: Any) -> Recipe:
    """The record as JSON, mostly with something hostile in one of its places."""
    if draw.random() < 0.1:
        return [json.dumps(record)]
    record = json.loads(json.dumps(record))
    places: list[tuple[Any, Any]] = []
    stack = [record]
    while stack:
        one = stack.pop()
        for name, item in one.items() if isinstance(one, dict) else enumerate(one):
            places.append((one, name))
            if isinstance(item, dict | list):
                stack.append(item)
    holder, name = draw.choice(places)
    way = draw.random()
    if way < 0.15 and isinstance(holder, dict):  # a field that nobody knows
        holder[MARK] = holder[name]
        before, _, after = json.dumps(record).partition(MARK)
        return [before, ["k", draw.choice((1, 100, 10_000, 1_000_000))], after]
    if way < 0.25 and isinstance(holder, list):
        holder += [holder[name]] * draw.choice((1, 100))
        return [json.dumps(record)]
    if way < 0.35 and isinstance(holder, dict):
        del holder[name]
        return [json.dumps(record)]
    holder[name] = MARK
    before, _, after = json.dumps(record).partition(f'"{MARK}"')
    return [before, *_hostile(draw), after]


def _hostile(draw: random.Random) -> Recipe:
    n = draw.choice((10, 1000, 1000, 100_000, 1_000_000, (MOST_MB << 20) - 2000 if draw.random() < 0.2 else 500))
    way = draw.randrange(6)
    if way < 2:
        return [draw.choice(SMALL)]
    if way == 2:
        return value(draw)
    if way == 3:
        return VALUE_SHAPES[draw.choice(list(VALUE_SHAPES))](n)
    if way == 4:
        shape = TEXT_SHAPES[draw.choice(list(TEXT_SHAPES))](n)
        if any('"' in str(piece) for piece in shape):
            return ['"', ["x", n], '"']
        return ['"', *[_escaped(p) if isinstance(p, str) else [_escaped(p[0]), *p[1:]] for p in shape], '"']
    return [["[", n // 2], ["]", n // 2]]


def _escaped(piece: Any) -> Any:
    return piece.translate(ESCAPES) if isinstance(piece, str) else piece


def _cut(draw: random.Random, request: Recipe) -> Recipe:
    data = expand(request, MOST_BYTES)
    return [data[: draw.randrange(1, min(len(data), 3000) + 1)].decode("latin-1")]


def _head(line: str, *headers: str, token: bool = False) -> str:
    """The head of a request; the caller ends it."""
    given = (f"Authorization: Bearer {TOKENS['fuzz']}",) if token else ()
    return "\r\n".join([f"{line} HTTP/1.1", "Host: x", *given, *headers, ""])


def _flood(draw: random.Random) -> tuple[str, list[Any]]:
    n = draw.choice((100, 10_000, 300_000))
    kind, pieces = draw.choice((
        ("headers", ["GET /healthz HTTP/1.1\r\n", ["X-%d: y\r\n", n, 0, 1], "\r\n"]),
        ("a long header", ["GET /healthz HTTP/1.1\r\nX: ", ["y", 30 * n], "\r\n\r\n"]),
        ("a long name", ["GET /healthz HTTP/1.1\r\n", ["y", 30 * n], ": x\r\n\r\n"]),
        ("a long path", ["GET /", ["y", 30 * n], " HTTP/1.1\r\n\r\n"]),
        ("a long method", [["G", 30 * n], " / HTTP/1.1\r\n\r\n"]),
        ("line breaks", [["\r\n", 10 * n], "GET /healthz HTTP/1.1\r\n\r\n"]),
        ("cookies", ["GET /healthz HTTP/1.1\r\n", ["Cookie: a=b\r\n", n], "\r\n"]),
        ("hosts", ["GET /healthz HTTP/1.1\r\n", ["Host: x\r\n", n], "\r\n"]),
        ("requests", [[_head("GET /healthz") + "\r\n", n // 10]]),
        ("refused requests", [[_head("POST /v1/judge", "Content-Length: 2") + "\r\n{}", n // 10]]),
        ("openapi", [[_head("GET /openapi.json", token=True) + "\r\n", 100]]),
        ("metrics", [[_head("GET /metrics", token=True) + "\r\n", 1000]]),
        ("nothing", []), ("half a request", ["GET /heal"]), ("half headers", ["GET /healthz HTTP/1.1\r\nHost: x\r\n"]),
        ("TLS", ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ["\xab", 500]]),
        ("HTTP/2", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["\0", 999]]),
        ("a body without end", [_head("POST /v1/judge", "Transfer-Encoding: chunked", token=True) + "\r\n",
                                ["1000\r\n" + "x" * 4096 + "\r\n", n // 50]]),
        ("a body nobody may send", [_head("POST /v1/judge", f"Content-Length: {10**10}") + "\r\n", ["x", 100 * n]]),
        ("a query", ["GET /v1/info?", ["a=b&", 10 * n], " HTTP/1.1\r\nHost: x\r\n\r\n"]),
    ))  # fmt: skip
    read = draw.choice(
        ([["read", 2.0]], [["wait", 1.0], ["reset"]], [["wait", 3.0], ["close"]], [["half"], ["read", 1.0]])
    )
    return f"a flood of {kind}", [["send", pieces], *read]
