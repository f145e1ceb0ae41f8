"""HTTP: hostile connections to a real `microcoder serve`, and an honest client beside them.

A case is what one connection does: bytes sent at once or slowly, pauses, reads that stop, ways to leave. It may carry
a token or not. The honest client, a client of its own, judges a right and a wrong program in turn all the while: its
verdicts must be right and none may take over two seconds. No answer may be a 500, nothing may be written to standard
error, and what the service holds must stay bounded.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]
from fuzz_recipes import Case, Malformed, Recipe, expand, mutated
from fuzz_shapes import TEXT_SHAPES, VALUE_SHAPES, value

STALL_S = 2.0
CASE_S = 8.0  # the longest that a connection is kept
MOST_MB = 8  # --max-mb
MOST_BYTES = 40 << 20  # that one connection sends
FIELDS = ("steps",)
TOKENS = {"honest": "honest-6f1c", "fuzz": "fuzz-93ab"}
RIGHT, WRONG = "print(int(input()) ** 2)", "print(int(input()) ** 2 + 1)"
PROBLEM = {"id": "square", "tests": [{"input": "7\n", "output": "49\n"}], "time_limit_s": 1, "memory_mb": 64}
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
ALLOWED = (503, 504)  # busy; every other 5xx is a fault of the service
MARK = "@here@"

PROBLEMS: tuple[dict[str, Any], ...] = (
    PROBLEM,
    {"id": "add", "kind": "function", "entry_point": "add", "tests": [{"input": "[1, 2]", "output": "3"}], "compare": {"tolerance": 1e-6}},
    {"id": "a", "kind": "assert", "entry_point": "f", "asserts": ["assert f(1) == 2"], "setup": "import math"},
    {"id": "c", "tests": [{"input": "1", "output": "1"}], "compare": {"checker": "def check(i, o, e): return True", "policy": "paper"}},
    {"id": "v", "tests": [{"input": "", "output": "1.5"}], "compare": {"validator_flags": "float_tolerance 1e-6", "lines": True}, "memory_mb": 64},
)
CODES = ("print(1)", "def f(x): return 2", "def add(a, b): return a + b", "x", "", "print(int(input()) ** 2)", "1/0", "raise SystemExit(3)")
SETTINGS = {"policy": "paper", "also": "exact", "stop_at_first_failure": False, "reuse": True, "time_limit_s": 1, "time_factor": 1, "memory_mb": 64, "output_mb": 1}
TEST = {"input": {"stdin": "1"}, "output": {"stdout": "1"}}
SUBMIT = {"dataset": "x", "id": 1, "completion": "```python\nprint(1)\n```", "config": {
    "dataset_type": "CommonOJDataset", "language": "python", "run_timeout": 1, "provided_data": {"id": 1, "test": [TEST]}, "extra": {"run_all_cases": True}}}  # fmt: skip
RUN = {"code": "print(1)", "language": "python", "stdin": "x", "run_timeout": 1, "compile_timeout": 1, "memory_limit_MB": 64, "files": {}, "fetch_files": []}
HEADERS = (
    "Host: 127.0.0.1", "Host: evil.example", "Host: " + "h" * 5000, "Origin: http://evil.example", "Expect: 100-continue", "Connection: close", "Connection: upgrade\r\nUpgrade: websocket",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Content-Encoding: gzip",
    "Content-Length: -1", "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 99999999999999999999", "Content-Length: " + "9" * 5000, "Content-Length: 0x10", "Content-Length: ", "Content-Length: \xb2", "Content-Length: 1e3",
    "Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x", "Accept: */*", "X: \xff\xfe", ": empty", "X : y", " folded", "X", "X: a\x00b", "X: a\rb", "Authorization: Basic eDp5", "Authorization: Bearer", "Authorization: Bearer " + "t" * 9000,
    "Authorization: bearer \xff\xff", "Range: bytes=0-", "TE: trailers", "Cookie: " + "a=b; " * 500, "X-Forwarded-For: 1.2.3.4", "Proxy: x", "Keep-Alive: timeout=1",
)  # fmt: skip
PATHS = ("/", "/v1/judge", "/v1/judge/many", "/v1/info", "/v1/problems/x", "/run_code", "/submit", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "//v1//judge", "/v1/judge/", "/v1/../v1/judge",
         "/%2e%2e/etc/passwd", "/v1/problems/%00", "/v1/problems/%ff%fe", "/v1/problems/%F0%9F", "/\xff", "*", "http://127.0.0.1/v1/info", "/v1/info?token=x", "/v1/info?" + "a=b&" * 900, "/v1/info#x", "/" + "a" * 9000, "/v1/problems/" + "f" * 64, "/?token=%ff%00")  # fmt: skip
METHODS = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "P\x00ST", "PRI", "X" * 300, "")


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
        steps = [["send", _cut(draw, request)], ["wait", draw.choice((0.0, 0.2, 2.0))], [draw.choice(("reset", "half", "close"))], ["read", 0.5]]
    elif way == 7:
        name += ", slowly"
        steps = [["drip", request, draw.choice((0.001, 0.01, 0.1)), draw.choice((1, 7, 1000))], ["read", 1.0]]
    elif way == 8:
        name += ", again and again"
        steps = [["send", request] for _ in range(draw.choice((2, 5, 30)))] + [["read", 2.0]]
    elif way == 9:
        name += ", unread"
        steps = [["send", request] for _ in range(draw.choice((1, 10)))] + [["wait", draw.choice((0.1, 1.0, 3.0))], [draw.choice(("reset", "close"))]]
    elif way == 10:
        name, steps = _flood(draw)
    else:
        name, steps = "bytes", [["send", mutated(draw, request)], ["read", 1.0]]
    return {"target": "http", "name": name, "connections": draw.choice((1, 1, 1, 1, 5, 40)) if way in (6, 9, 10) else 1, "steps": steps}


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
        problem = draw.choice(PROBLEMS)
        body = _json(draw, problem)
        key = hashlib.sha256(expand(body, MOST_BYTES)).hexdigest()
        return "PUT", f"/v1/problems/{key}", body, "a problem"
    problem: Any = draw.choice((*PROBLEMS, "f" * 64))
    one = {"problem": problem, draw.choice(("code", "completion")): draw.choice(CODES), "id": "x", "language": "python"}
    if way < 5:
        return "POST", "/v1/judge", _json(draw, {**one, "settings": dict(SETTINGS)} if draw.random() < 0.5 else one), "a candidate"
    if way < 7:
        many = {"candidates": [{**one, "id": n} for n in range(draw.choice((1, 2, 5)))], "settings": dict(SETTINGS)}
        return "POST", "/v1/judge/many", _json(draw, many), "candidates"
    return ("POST", "/run_code", _json(draw, RUN), "run_code") if way < 9 else ("POST", "/submit", _json(draw, SUBMIT), "submit")


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
        return [draw.choice(("null", "true", "[]", "{}", '""', "0", "-1", "1e999", "-0.0", "1e-320", "NaN", "[[]]", '{"a":1}', '"\\ud800"', '"\\u0000"', "9" * 25, "1e18", "1.5", '"x"', "1e400", "false", "2147483648", "[null]", '["assert"]', '"[]"', '"[[[["', "-1e400"))]
    if way == 2:
        return value(draw)
    if way == 3:
        return VALUE_SHAPES[draw.choice(list(VALUE_SHAPES))](n)
    if way == 4:
        shape = TEXT_SHAPES[draw.choice(list(TEXT_SHAPES))](n)
        return ['"', *[p if isinstance(p, str) else [_escaped(p[0]), *p[1:]] for p in shape], '"'] if not any('"' in str(p) for p in shape) else ['"', ["x", n], '"']
    return [["[", n // 2], ["]", n // 2]]


def _escaped(piece: Any) -> Any:
    return piece.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") if isinstance(piece, str) else piece


def _cut(draw: random.Random, request: Recipe) -> Recipe:
    data = expand(request, MOST_BYTES)
    return [data[: draw.randrange(1, min(len(data), 3000) + 1)].decode("latin-1")]


def _flood(draw: random.Random) -> tuple[str, list[Any]]:
    n = draw.choice((100, 10_000, 300_000))
    kind, pieces = draw.choice((
        ("headers", ["GET /healthz HTTP/1.1\r\n", ["X-%d: y\r\n", n, 0, 1], "\r\n"]), ("a long header", ["GET /healthz HTTP/1.1\r\nX: ", ["y", 30 * n], "\r\n\r\n"]),
        ("a long name", ["GET /healthz HTTP/1.1\r\n", ["y", 30 * n], ": x\r\n\r\n"]), ("a long path", ["GET /", ["y", 30 * n], " HTTP/1.1\r\n\r\n"]), ("a long method", [["G", 30 * n], " / HTTP/1.1\r\n\r\n"]),
        ("line breaks", [["\r\n", 10 * n], "GET /healthz HTTP/1.1\r\n\r\n"]), ("cookies", ["GET /healthz HTTP/1.1\r\n", ["Cookie: a=b\r\n", n], "\r\n"]), ("hosts", ["GET /healthz HTTP/1.1\r\n", ["Host: x\r\n", n], "\r\n"]),
        ("requests", [["GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", n // 10]]), ("refused requests", [["POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", n // 10]]), ("openapi", [["GET /openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fuzz-93ab\r\n\r\n", 100]]),
        ("metrics", [["GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fuzz-93ab\r\n\r\n", 1000]]), ("nothing", []), ("half a request", ["GET /heal"]), ("half headers", ["GET /healthz HTTP/1.1\r\nHost: x\r\n"]), ("TLS", ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ["\xab", 500]]), ("HTTP/2", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["\0", 999]]),
        ("a body without end", ["POST /v1/judge HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fuzz-93ab\r\nTransfer-Encoding: chunked\r\n\r\n", ["1000\r\n" + "x" * 4096 + "\r\n", n // 50]]),
        ("a body nobody may send", ["POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n", ["x", 100 * n]]),
        ("a query", ["GET /v1/info?", ["a=b&", 10 * n], " HTTP/1.1\r\nHost: x\r\n\r\n"]),
    ))  # fmt: skip
    read = draw.choice(([["read", 2.0]], [["wait", 1.0], ["reset"]], [["wait", 3.0], ["close"]], [["half"], ["read", 1.0]]))
    return f"a flood of {kind}", [["send", pieces], *read]


class Service:
    """The service, the honest client beside it, and what is seen of both."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "microcoder.cli", "serve", "--port", "0", "--workers", "2", "--max-mb", str(MOST_MB), "--max-seconds", "2", "--max-memory-mb", "256"]
        for token in TOKENS.values():
            command += ["--token", token]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        assert self.process.stdout is not None
        said = re.search(r":(\d+) ", self.process.stdout.readline())
        if said is None:
            self.process.kill()
            raise RuntimeError(f"the service did not start: {self.process.stdout.read()}")
        self.port = int(said[1])
        self.leave = threading.Event()
        self.wrong: list[str] = []
        self.waits: list[tuple[float, float]] = []  # of the honest client: when an answer came, and after how long
        self.honest()  # the first is slow: it starts zygotes
        self.waits.clear()
        if self.wrong:
            raise RuntimeError(f"the honest client is refused before anything began: {self.wrong}")
        self.honest_thread = threading.Thread(target=self._honest)
        self.honest_thread.start()

    def honest(self) -> None:
        """Have a right and a wrong program judged."""
        for code, truth in ((RIGHT, "accepted"), (WRONG, "wrong_answer")):
            start = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            with contextlib.closing(connection):
                headers = {"Authorization": f"Bearer {TOKENS['honest']}"}
                try:
                    connection.request("POST", "/v1/judge", json.dumps({"problem": PROBLEM, "code": code}), headers)
                    answer = connection.getresponse()
                    text = answer.read().decode()
                    if answer.status != 200 or json.loads(text)["verdict"] != truth:
                        self.wrong.append(f"{truth} expected, {answer.status}: {text[:300]}")
                except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                    self.wrong.append(f"{truth} expected, {type(error).__name__}: {error}")
            now = time.monotonic()
            self.waits.append((now, now - start))

    def _honest(self) -> None:
        while not self.leave.wait(0.05):
            self.honest()

    def longest_wait(self, since: float) -> float:
        """Of the honest client from `since` to its next answer."""
        now = time.monotonic()
        while self.waits[-1:] < [(now, 0.0)] and time.monotonic() < now + 65 and self.process.poll() is None:
            time.sleep(0.01)
        return max((seconds for at, seconds in self.waits if at > since), default=0.0)

    def held(self) -> dict[str, float]:
        service = psutil.Process(self.process.pid)
        row = {"MB": service.memory_info().rss / 1e6, "descriptors": float(service.num_fds()), "processes": 0.0}
        for process in service.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                row["MB"] += process.memory_info().rss / 1e6
                row["processes"] += 1
        return row

    def complaints(self) -> str:
        """What was written to standard error, but for warnings: those are about requests that are no HTTP."""
        with open(f"/proc/self/fd/{self.errors.fileno()}", errors="replace") as file:
            return "".join(line for line in file if line.strip() and not line.startswith("WARNING:"))

    def close(self) -> list[tuple[str, str]]:
        """End it as a user does; what was wrong that no case could be blamed for."""
        self.leave.set()
        self.honest_thread.join()
        self.process.terminate()
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        found = [("exit", f"SIGTERM: {status}")] if status else []
        if words := self.complaints():
            found.append(("stderr", words[-600:]))
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        return found


class Caller:
    """Opens the connections of a case, and watches how the honest client fares meanwhile."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def draw(self, source: random.Random) -> Case:
        return cases(source)

    def run(self, case: Case) -> dict[str, Any]:
        service = self.service
        said, wrong = service.complaints(), len(service.wrong)
        start = time.monotonic()
        end, got = start + CASE_S, b""
        sockets = [_Connection(service.port) for _ in range(case["connections"])]
        try:
            for step in case["steps"]:
                for one in sockets:
                    got += one.take(step, end)
        finally:
            for one in sockets:
                one.close()
        waited = service.longest_wait(start)
        complaints = service.complaints()[len(said) :]
        return {
            "statuses": sorted({int(s) for s in STATUS.findall(got)}), "stall_s": waited, "wrong": service.wrong[wrong:],
            "complaints": complaints, "faults": got.count(b"the judge failed"), "alive": service.process.poll() is None, "memory": service.held()["MB"],
        }  # fmt: skip

    def finding(self, case: Case, result: dict[str, Any]) -> tuple[str, str]:
        if not result["alive"]:
            return "died", f"the service ended: {result['complaints'][-300:]}"
        if result["complaints"]:
            return "stderr", result["complaints"][-300:]
        bad = [status for status in result["statuses"] if status >= 500 and status not in ALLOWED]
        if bad:
            return "status", str(bad)
        if result["faults"]:
            return "internal_error", "the judge failed"
        if result["wrong"]:
            return "honest client", result["wrong"][0]
        if result["stall_s"] > STALL_S:
            return "stall", f"the honest client waited for {result['stall_s']:.1f} s"
        return "", ""

    def held(self) -> dict[str, float] | None:
        return self.service.held()

    def close(self) -> None:
        pass


class _Connection:
    """One connection; it takes what the other end does to it."""

    def __init__(self, port: int) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(CASE_S)
        self.sock.bind(("127.0.0.2", 0))
        self.gone = False
        try:
            self.sock.connect(("127.0.0.1", port))
        except OSError:
            self.gone = True

    def take(self, step: list[Any], end: float) -> bytes:
        try:
            match step:
                case ["send", list(recipe)]:
                    self._send(expand(recipe, MOST_BYTES), end)
                case ["drip", list(recipe), float(pause), int(at_once)]:
                    data = expand(recipe, MOST_BYTES)
                    for n in range(0, min(len(data), 500 * at_once), max(1, at_once)):
                        if time.monotonic() > end:
                            break
                        self._send(data[n : n + at_once], end)
                        time.sleep(pause)
                case ["wait", int(seconds) | float(seconds)]:
                    time.sleep(max(0.0, min(seconds, end - time.monotonic())))
                case ["read", int(seconds) | float(seconds)]:
                    return self._read(min(end, time.monotonic() + seconds))
                case ["reset"]:
                    self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close()
                case ["half"]:
                    self.sock.shutdown(socket.SHUT_WR)
                case ["close"]:
                    self.close()
                case _:
                    raise Malformed(f"no step: {step!r:.80}")
        except (OSError, TimeoutError):
            self.gone = True
        return b""

    def _send(self, data: bytes, end: float) -> None:
        if not self.gone:
            self.sock.settimeout(max(0.05, min(2.0, end - time.monotonic())))
            self.sock.sendall(data)

    def _read(self, end: float) -> bytes:
        """What comes; it ends when nothing more does."""
        parts: list[bytes] = []
        while not self.gone and (left := end - time.monotonic()) > 0:
            self.sock.settimeout(left)
            part = self.sock.recv(1 << 20)
            if not part:
                break
            parts.append(part)
            if STATUS.search(part) and len(part) < 1000:
                end = min(end, time.monotonic() + 0.2)
        return b"".join(parts)

    def close(self) -> None:
        self.gone = True
        self.sock.close()
