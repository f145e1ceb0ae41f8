"""HTTP: hostile connections to a real `microcoder serve`, and an honest client beside them.

A case is what one connection does: bytes sent at once or slowly, pauses, reads that stop, ways to leave. It may carry
a token or not. The honest client, a client of its own, judges a right and a wrong program in turn all the while: its
verdicts must be right and none may take over two seconds. No answer may be a 500, nothing may be written to standard
error, and what the service holds must stay bounded.
"""

from __future__ import annotations

import contextlib
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

from benchmarks.fuzz.recipes import Case, Malformed, expand
from benchmarks.fuzz.requests import MOST_BYTES, MOST_MB, PROBLEM, TOKENS, cases

STALL_S = 2.0
CASE_S = 5.0  # the longest that a connection is kept
RIGHT, WRONG = "print(int(input()) ** 2)", "print(int(input()) ** 2 + 1)"
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
ALLOWED = (503, 504)  # busy; every other 5xx is a fault of the service


class Service:
    """The service, the honest client beside it, and what is seen of both."""

    def __init__(self) -> None:
        command = [
            sys.executable,
            "-m",
            "microcoder.cli",
            "serve",
            "--port",
            "0",
            "--workers",
            "2",
            "--max-mb",
            str(MOST_MB),
            "--max-seconds",
            "2",
            "--max-memory-mb",
            "256",
        ]
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

    def fared(self) -> str:
        seconds = sorted(seconds for _, seconds in self.waits) or [0.0]
        median, late = seconds[len(seconds) // 2], seconds[int(0.99 * (len(seconds) - 1))]
        words = f"p50 {median:.2f} s, p99 {late:.2f} s, longest {seconds[-1]:.2f} s"
        return f"the honest client: {len(self.waits)} verdicts, {len(self.wrong)} wrong; {words}"

    def held(self) -> dict[str, float]:
        service = psutil.Process(self.process.pid)
        row = {"MB": service.memory_info().rss / 1e6, "below MB": 0.0, "descriptors": float(service.num_fds())}
        row["processes"] = 0.0
        for process in service.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                row["below MB"] += process.memory_info().rss / 1e6
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
            "statuses": sorted({int(s) for s in STATUS.findall(got)}), "stall_s": waited,
            "wrong": service.wrong[wrong:],
            "complaints": complaints, "faults": got.count(b"the judge failed"), "alive": service.process.poll() is None,
            "memory": service.held()["MB"],
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
                    for n in range(0, min(len(data), 200 * at_once), max(1, at_once)):
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
