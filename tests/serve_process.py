"""A `microcoder serve` of its own, started as a user starts it."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil


class Served:
    """The process, and how to talk to it without our own client."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port, self.url = process, port, f"http://127.0.0.1:{port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, source: str = "127.0.0.1"
    ) -> tuple[int, Any, dict[str, str]]:
        """(status, the JSON or text that came back, headers); `body` is JSON, or bytes as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(source, 0))
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            text = answer.read().decode()
        lines = [json.loads(line) for line in text.splitlines()] if "json" in answer.headers["Content-Type"] else text
        many = "ndjson" in answer.headers["Content-Type"] or isinstance(lines, str)
        return answer.status, lines if many else lines[0], dict(answer.headers.items())

    def metric(self, name: str, headers: dict[str, str] | None = None) -> float:
        text = self.ask("GET", "/metrics", headers=headers)[1]
        return sum(float(value) for value in re.findall(rf"^microcoder_{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))

    def processes(self) -> int:
        return len(psutil.Process(self.process.pid).children(recursive=True))

    def memory(self) -> int:
        """MB of the service itself, without its workers."""
        return int(psutil.Process(self.process.pid).memory_info().rss) >> 20


QUICKLY = """
import sys, microcoder.serve.connections as connections
vars(connections).update({quick})
from microcoder.cli import main
main(sys.argv[1:])
"""


@contextlib.contextmanager
def served(
    *options: str, port: int = 0, workers: int = 2, quick: dict[str, float] | None = None, files: int = 0
) -> Iterator[Served]:
    """`quick`: constants of its connections, to wait less for them. `files`: how many it may have open."""
    start = ["-m", "microcoder.cli"] if quick is None else ["-c", QUICKLY.format(quick=quick)]
    limited = ["prlimit", f"--nofile={files}"] if files else []
    command = [*limited, sys.executable, *start, "serve", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.match(r"judge.on=http://.+:(\d+) ", said)
        assert found, said
        yield Served(process, int(found[1]))
    finally:
        process.kill()  # its workers end with it
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
