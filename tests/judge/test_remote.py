"""Our own client: the verdicts of a judge here, from a service, whatever happens to the service."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from serve_process import Served, served, until
from train_runs import trained

from microcoder import Judge, Problem, Solution, Test
from microcoder.config import ConfigError, load
from microcoder.judge import JudgeError
from microcoder.judge.remote import open_judge
from microcoder.judge.remote.http import RemoteJudge
from microcoder.schema import VERDICTS, Compare, Verdict

TOKEN = "a-long-secret"
SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(4)], time_limit_s=2)
RIGHT = "print(int(input()) ** 2)"
PAIR = Problem("pair", "function", entry_point="pair", tests=[Test("[1, 2]", "[2, 1]"), Test("[3, 4]", "[3, 4]")])
ASSERTS = Problem("double", "assert", asserts=["assert double(2) == 4", "assert double(-1) == -2"])
CHECKED = Problem(
    "even", tests=[Test("", "")], compare=Compare(checker="def check(i, o, e): return int(o) % 2 == 0, 'odd'")
)
SHORT = Problem("short", tests=[Test("", "1")], time_limit_s=0.3, memory_mb=64)
BROKEN = Problem("broken", "assert", asserts=["assert f() == 1"], setup="def (")
FOREVER = Problem("forever", tests=[Test("", "1")], time_limit_s=600)
MIXED = [  # every verdict, every kind of problem
    (SQUARE, Solution("square", code=RIGHT, id="right")),
    (SQUARE, Solution("square", completion=f"```python\n{RIGHT}\n```", id="completion")),
    (SQUARE, Solution("square", completion="I give up.", id="no code")),
    (SQUARE, Solution("square", code="print(1)", id="wrong")),
    (SQUARE, Solution("square", code="print(1 // 0)", id="raises")),
    (SQUARE, Solution("square", code="print(", id="syntax")),
    (SQUARE, Solution("square", code="print('\ud800')", id="no unicode")),
    (SHORT, Solution("short", code="while True: pass", id="loop")),
    (SHORT, Solution("short", code="x = b'x' * (1 << 32)\nprint(1)", id="memory")),
    (SHORT, Solution("short", code="print('x' * (1 << 22) * 5)", id="output")),
    (PAIR, Solution("pair", code="def pair(a, b): return [a, b]", id="order")),
    (ASSERTS, Solution("double", code="def double(x): return 2 * x", id="asserts")),
    (CHECKED, Solution("even", code="print(4)", id="even")),
    (CHECKED, Solution("even", code="print(5)", id="odd")),
    (BROKEN, Solution("broken", code="def f(): return 1", id="broken problem")),
]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served("--max-mb", "1", "judge.policy=paper", "judge.time_limit_s=1") as service:
        yield service


@pytest.fixture(scope="module")
def judge(service: Served) -> Iterator[RemoteJudge]:
    with RemoteJudge(service.url) as judge:
        yield judge


def compared(verdict: Verdict) -> dict[str, Any]:
    """Everything but what is measured."""
    record = dataclasses.asdict(verdict)
    for part in (record, *record["tests"]):
        for name in ("cpu_s", "wall_s", "memory_mb"):
            del part[name]
        if part["verdict"] in ("time_limit", "memory_limit"):  # its message holds seconds or megabytes
            del part["message"], part["also_message"]
    return record


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": "paper", "also": "exact", "stop_at_first_failure": False},
        {"policy": "exact", "reuse": True, "time_factor": 2.0, "output_mb": 1},
    ],
)
def test_a_service_gives_the_verdicts_of_a_judge_here(service: Served, options: dict[str, Any]) -> None:
    """With its own settings, not with those the service was started with."""
    with Judge(workers=2, **options) as here, open_judge({"on": service.url, "workers": 2, **options}) as there:
        assert there.sandbox == here.sandbox and there.workers == 2
        expected = {solution.id: compared(verdict) for solution, verdict in here.map(MIXED)}
        found = {solution.id: compared(verdict) for solution, verdict in there.map(MIXED)}
    assert found == expected
    if not options:
        assert {verdict["verdict"] for verdict in found.values()} == set(VERDICTS)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_the_language_of_a_program_travels_with_it(judge: RemoteJudge) -> None:
    code = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n * n; }"
    assert judge.check(SQUARE, Solution("square", code=code, language="cpp")).accepted
    assert judge.check(SQUARE, Solution("square", code=code)).verdict == "compile_error"


def test_problems_that_the_service_has_forgotten_are_sent_again(judge: RemoteJudge, service: Served) -> None:
    """Its shelf holds two megabytes."""
    large = [Problem(f"p{n}", tests=[Test("x" * 900_000, str(n))]) for n in range(4)]
    pairs = [(large[n % 4], Solution(f"p{n % 4}", code=f"print({n % 4})", id=str(n))) for n in range(16)]
    assert all(verdict.accepted for _, verdict in judge.map(pairs))
    assert service.metric("problem_bytes") < 2 << 20


def test_a_problem_too_large_for_the_service_is_its_fault_not_the_programs(judge: RemoteJudge) -> None:
    verdict = judge.check(Problem("large", tests=[Test("x" * 1_100_000, "1")]), code="print(1)")
    assert verdict.verdict == "internal_error" and "--max-mb is 1" in verdict.message


def test_many_coroutines_may_ask_at_once(judge: RemoteJudge) -> None:
    async def ask() -> list[Verdict]:
        return await asyncio.gather(*[judge.acheck(SQUARE, code=RIGHT if n % 2 else "print(1)") for n in range(40)])

    threads = threading.active_count()
    verdicts = asyncio.run(ask())
    assert [verdict.accepted for verdict in verdicts] == [bool(n % 2) for n in range(40)]
    assert threading.active_count() - threads <= 4 * judge.workers


def test_what_is_dropped_is_killed_there_or_never_sent(service: Served) -> None:
    with RemoteJudge(service.url) as judge:
        lanes = 4 * judge.workers
        futures = [judge.submit(FOREVER, code="while True: pass") for _ in range(lanes + 2)]
        until(lambda: service.metric("running") + service.metric("waiting") == lanes)
        for future in futures:
            judge.drop(future)
        until(lambda: service.metric("running") + service.metric("waiting") == 0)
        assert all(future.cancelled() or "dropped" in future.result(30).message for future in futures)
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_a_cancelled_coroutine_drops_its_candidate(judge: RemoteJudge, service: Served) -> None:
    async def give_up() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(judge.acheck(FOREVER, code="while True: pass"), 0.5)

    asyncio.run(give_up())
    until(lambda: service.metric("running") == 0)


def test_leaving_by_an_exception_does_not_wait_for_programs(service: Served) -> None:
    with pytest.raises(KeyboardInterrupt), RemoteJudge(service.url) as judge:
        for _ in range(4):
            judge.submit(FOREVER, code="while True: pass")
        raise KeyboardInterrupt
    until(lambda: service.metric("running") == 0)
    with pytest.raises(JudgeError, match="closed"):
        judge.submit(SQUARE, code=RIGHT)


def test_a_service_that_is_killed_and_started_again_loses_nothing() -> None:
    pairs = [(SQUARE, Solution("square", code=f"print(int(input()) ** 2 + {n % 2})", id=str(n))) for n in range(60)]
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(served())
        judge = stack.enter_context(RemoteJudge(service.url))
        found: dict[str, bool] = {}
        for solution, verdict in judge.map(pairs):
            assert solution.id not in found and verdict.verdict != "internal_error", verdict.message
            found[solution.id] = verdict.accepted
            if len(found) == 20:
                service.process.kill()
                service.process.wait()
                stack.enter_context(served(port=service.port))
        assert found == {str(n): n % 2 == 0 for n in range(60)}


def test_a_service_that_is_gone_for_good_is_an_internal_error_never_a_guess() -> None:
    with served(workers=1) as service:
        judge = RemoteJudge(service.url, patience_s=0.5)
        future = judge.submit(FOREVER, code="while True: pass")
        until(lambda: service.metric("running") == 1)
    verdict = future.result(30)
    assert verdict.verdict == "internal_error" and "no answer for" in verdict.message
    judge.close()


INFO = {"service": "microcoder", "workers": 1, "sandbox": "full", "max_bytes": 1 << 20}
ACCEPTED = {"verdict": "accepted", "id": "", "problem_id": ""}
Script = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, Any] | None]  # status and answer; None: it hangs up


@contextlib.contextmanager
def scripted(script: Script) -> Iterator[str]:
    """The address of something that answers as a service may."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = (200, INFO) if self.path == "/v1/info" else script(self, body)
            self.close_connection = answer is None
            if answer is not None:
                data = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        do_POST = do_PUT = do_GET

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("services", [2, 3])
def test_of_several_services_in_turn_behind_a_proxy_none_is_asked_forever(services: int) -> None:
    """The request always goes to one of them, the problem to another."""
    shelves: list[set[str]] = [set() for _ in range(services)]
    turns = itertools.cycle(shelves)

    def script(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        shelf, key = next(turns), request.path.rpartition("/")[2]
        if request.command == "PUT":
            shelf.add(key)
        elif request.command == "POST":
            key = json.loads(body)["problem"]
        return (200, ACCEPTED) if isinstance(key, dict) or key in shelf else (404, {"error": "not here"})

    with scripted(script) as url, RemoteJudge(url) as judge:
        for n in range(3):
            future = judge.submit(dataclasses.replace(SQUARE, id=str(n)), code=RIGHT)
            assert future.result(10).accepted


def test_time_in_which_the_service_worked_on_a_program_is_not_time_that_it_was_away() -> None:
    tries = []

    def script(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any] | None:
        tries.append(request.command)
        if len(tries) > 1:
            return 200, ACCEPTED
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n\n")
        time.sleep(1.5)
        return None  # it is ended, and another takes its place

    with scripted(script) as url, RemoteJudge(url, patience_s=1) as judge:
        verdict = judge.check(SQUARE, code=RIGHT)
    assert verdict.accepted, verdict.message


def test_more_lanes_than_the_service_has_connections_lose_nothing() -> None:
    with served("--connections", "8", workers=1) as service:  # half of them for an address
        with RemoteJudge(service.url, workers=2, patience_s=1) as judge:
            slow = [judge.submit(SQUARE, code=f"import time\ntime.sleep(0.1)\n{RIGHT}") for _ in range(12)]
            assert [future.result().verdict for future in slow] == ["accepted"] * 12


def test_a_busy_service_is_waited_for_however_long_it_takes() -> None:
    with served("--queue", "2", workers=1) as service, RemoteJudge(service.url, patience_s=1) as judge:
        waiting = [judge.submit(SQUARE, code=f"import time\ntime.sleep(0.2)\n{RIGHT}") for _ in range(4)]
        assert all(future.result().accepted for future in waiting)
        assert service.metric("refused_total") > 1


def test_an_address_or_a_token_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(JudgeError, match=f"nothing answers at http://127.0.0.1:{port} .* `microcoder serve`"):
        RemoteJudge(f"http://127.0.0.1:{port}")
    with served("--token", TOKEN, workers=1) as service:
        with pytest.raises(JudgeError, match="MICROCODER_TOKEN"):
            RemoteJudge(service.url)
        with pytest.raises(JudgeError, match="is no `microcoder serve`"):
            RemoteJudge(f"{service.url}/elsewhere", token=TOKEN)
        with pytest.raises(JudgeError, match="leave judge\\.sandbox at auto"):
            RemoteJudge(service.url, sandbox="rlimits", token=TOKEN)
        monkeypatch.setenv("MICROCODER_TOKEN", f"{TOKEN}\n")  # as from a file
        with RemoteJudge(f"{service.url}/") as judge:
            assert judge.check(SQUARE, code=RIGHT).accepted


@pytest.mark.parametrize(
    ("address", "token"), [("", ""), ("", "\u20ac"), ("/a b", ""), (":", ""), ("x", ""), ("99999", "")]
)
def test_what_is_no_service_or_no_address_is_said_in_words(address: str, token: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            with contextlib.suppress(OSError):
                other.accept()[0].sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(JudgeError, match=r"judge\.on is the address of a `microcoder serve`"):
            RemoteJudge(f"http://127.0.0.1:{other.getsockname()[1]}{address}", token=token)


def test_a_config_may_name_the_service_alone(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('judge = "http://there:8422"\n')
    assert (
        load(tmp_path / "my.toml").judge.on == load(None, ["judge=http://there:8422"]).judge.on == "http://there:8422"
    )
    assert load(tmp_path / "my.toml", ["judge.on=here"]).judge == load().judge
    with pytest.raises(ConfigError, match=r"judge\.on is \"there\" \(text\); expected"):
        load(None, ["judge=there"])


@pytest.mark.usefixtures("one_thread")
def test_training_judges_by_a_service(service: Served, tmp_path: Path) -> None:
    before = service.metric("verdicts_total")
    lines = trained(tmp_path / "run", f"judge.on={service.url}")
    assert [line["step"] for line in lines if "reward" in line] == [1, 2]
    assert service.metric("verdicts_total") > before
