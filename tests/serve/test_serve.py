"""The service as any client sees it: real processes, plain HTTP, none of our own client."""

from __future__ import annotations

import hashlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from serve_process import Served, served, until

TOKEN = "a-long-secret"
SQUARE = {"id": "square", "tests": [{"input": f"{n}\n", "output": f"{n * n}\n"} for n in range(3)], "time_limit_s": 2}
RIGHT = "print(int(input()) ** 2)"
ENDLESS = {"id": "f", "tests": [{"input": "", "output": "1"}], "time_limit_s": 600}
FOREVER = {"problem": ENDLESS, "code": "while True: pass"}


def slow(seconds: float = 0.5) -> dict[str, Any]:
    problem = {"id": "one", "tests": [{"input": "", "output": "1\n"}], "time_limit_s": 20}
    return {"problem": problem, "code": f"import time\ntime.sleep({seconds})\nprint(1)"}


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served("--max-mb", "2") as service:
        yield service


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    """One worker, and little room."""
    with served("--token", TOKEN, "--token", "another", "--queue", "6", "--per-client", "4", workers=1) as service:
        yield service


def test_one_candidate_gets_one_verdict(service: Served) -> None:
    status, verdict, _ = service.ask("POST", "/v1/judge", {"problem": SQUARE, "code": RIGHT, "id": "x"})
    assert (status, verdict["verdict"], verdict["id"], verdict["problem_id"]) == (200, "accepted", "x", "square")
    assert len(verdict["tests"]) == 3 and verdict["sandbox"] in ("full", "landlock")


@pytest.mark.parametrize("asks", [{"time_limit_s": 601}, {"memory_mb": 20_000}])
def test_limits_beyond_what_the_service_gives_are_refused(service: Served, asks: dict[str, int]) -> None:
    status, answer, _ = service.ask("POST", "/v1/judge", {"problem": {**SQUARE, **asks}, "code": RIGHT})
    assert status == 422 and "--max-seconds" in answer["error"] and "'square'" in answer["error"]
    settings = {"time_limit_s": 400.0, "time_factor": 2.0}
    free = {name: value for name, value in SQUARE.items() if name != "time_limit_s"}
    assert service.ask("POST", "/v1/judge", {"problem": free, "code": RIGHT, "settings": settings})[0] == 422


def test_of_many_each_verdict_comes_as_soon_as_it_is_known(service: Served) -> None:
    quick = {"problem": SQUARE, "completion": f"So:\n```python\n{RIGHT}\n```\n", "id": "quick"}
    _, lines, headers = service.ask("POST", "/v1/judge/many", {"candidates": [{**slow(3), "id": "slow"}, quick]})
    assert [(line["id"], line["verdict"]) for line in lines] == [("quick", "accepted"), ("slow", "accepted")]
    assert headers["content-type"] == "application/x-ndjson"


def test_a_problem_is_sent_once_and_named_by_its_digest(service: Served) -> None:
    data = json.dumps(SQUARE).encode()
    key = hashlib.sha256(data).hexdigest()
    ask = {"problem": key, "code": RIGHT}
    assert service.ask("POST", "/v1/judge", ask)[0] == service.ask("GET", f"/v1/problems/{key}")[0] == 404
    assert service.ask("PUT", f"/v1/problems/{key}", data)[0] == 200
    assert service.ask("GET", f"/v1/problems/{key}")[0] == 200
    assert service.ask("POST", "/v1/judge", ask)[1]["verdict"] == "accepted"
    status, body, _ = service.ask("PUT", f"/v1/problems/{'0' * 64}", data)
    assert status == 422 and key in body["error"]  # no problem can stand under another's name


def test_settings_travel_with_a_request(service: Served) -> None:
    lenient = {"problem": {"id": "p", "tests": [{"input": "", "output": "1 2"}] * 2}, "code": "print(2, 1)"}
    verdicts = {
        name: service.ask("POST", "/v1/judge", {**lenient, "settings": settings})[1]
        for name, settings in {
            "robust": {},
            "paper": {"policy": "paper"},
            "all": {"stop_at_first_failure": False},
        }.items()
    }
    assert {name: verdict["verdict"] for name, verdict in verdicts.items()} == {
        "robust": "wrong_answer", "paper": "accepted", "all": "wrong_answer",
    }  # fmt: skip
    assert [len(verdict["tests"]) for verdict in verdicts.values()] == [1, 2, 2]


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/v1/judge", b"", 400, "not JSON"),
        ("/v1/judge", b'{"problem": NaN}', 400, "NaN"),
        ("/v1/judge", b"\xff\xfe\xfd", 400, "not JSON"),
        ("/v1/judge", b"[" * 100_000, 400, "nested"),
        ("/v1/judge", b'{"id": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        ("/v1/judge", b"[]", 422, "object"),
        ("/v1/judge", {"code": RIGHT}, 422, '"problem"'),
        ("/v1/judge", {"problem": SQUARE}, 422, '"code" and "completion"'),
        ("/v1/judge", {"problem": SQUARE, "code": 5}, 422, "must be text"),
        ("/v1/judge", {"problem": SQUARE, "cod": RIGHT}, 422, "did you mean 'code'?"),
        ("/v1/judge", {"problem": SQUARE, "code": RIGHT, "language": "lua"}, 422, "python, cpp,"),
        ("/v1/judge", {"problem": SQUARE, "code": RIGHT, "id": []}, 422, '"id"'),
        ("/v1/judge", {"problem": "no-such-key", "code": RIGHT}, 404, "PUT it"),
        ("/v1/judge", {"problem": {"id": "p"}, "code": RIGHT}, 422, '"tests" is empty'),
        ("/v1/judge", {"problem": {**SQUARE, "setup": 7}, "code": RIGHT}, 422, "setup must be text"),
        ("/v1/judge", {"problem": {**SQUARE, "asserts": 7}, "code": RIGHT}, 422, "asserts"),
        ("/v1/judge", {"problem": {**SQUARE, "compare": {"checker": 1}}, "code": RIGHT}, 422, "compare.checker"),
        ("/v1/judge", {"problem": SQUARE, "code": RIGHT, "settings": {"policy": "kind"}}, 422, "policy"),
        ("/v1/judge", {"problem": SQUARE, "code": RIGHT, "settings": {"policy": ["paper"]}}, 422, "settings"),
        ("/v1/judge", {"problem": SQUARE, "code": RIGHT, "settings": {"sandbox": "rlimits"}}, 422, "sandbox"),
        ("/v1/judge", {"problem": SQUARE, "code": "#" * (3 << 20)}, 413, "--max-mb"),
        ("/v1/judge/many", {"candidates": []}, 422, "at least one"),
        (
            "/v1/judge/many",
            {"candidates": [{"problem": SQUARE, "code": "#"}, {"problem": SQUARE}]},
            422,
            "candidates[1]: a solution",
        ),
        ("/v1/judge/many", {"candidates": [{"problem": SQUARE, "code": RIGHT, "id": "x"}] * 2}, 422, "same id"),
        ("/v1/judge/many", {"candidates": [{"problem": SQUARE, "code": "#"}] * 1000}, 413, "at most 512"),
        ("/v1/jugde", {}, 404, "/openapi.json"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    service: Served, path: str, body: Any, status: int, says: str
) -> None:
    found, answer, _ = service.ask("POST", path, body)
    assert found == status, answer
    assert says in answer["error"]


def test_text_that_is_no_unicode_is_judged_like_any_other(service: Served) -> None:
    broken = {"id": "\ud800", "tests": [{"input": "\udfff", "output": "\ud800"}]}
    status, verdict, _ = service.ask("POST", "/v1/judge", {"problem": broken, "code": "print('\ud800')"})
    assert (status, verdict["verdict"], verdict["problem_id"]) == (200, "compile_error", "\ud800")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/info", {}, 401),
        ("/v1/info", {"Authorization": "Bearer wrong"}, 401),
        ("/v1/info", {"Authorization": f"Bearer {TOKEN}"}, 200),
        ("/v1/info", {"Authorization": "Bearer another"}, 200),
        (f"/v1/info?token={TOKEN}", {}, 200),
        ("/v1/info?token=wrong", {}, 401),
        (f"/v1/info?token={TOKEN}", {"Authorization": "Bearer wrong"}, 401),
        ("/openapi.json", {}, 401),
        ("/metrics", {}, 401),
        ("/healthz", {}, 200),
        ("/readyz", {}, 200),
        ("/v1/info", {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
        ("/v1/info", {"Authorization": f"Bearer {TOKEN}", "Host": "any.name.example"}, 200),
    ],
)
def test_who_may_ask(guarded: Served, path: str, headers: dict[str, str], status: int) -> None:
    assert guarded.ask("GET", path, headers=headers)[0] == status


def test_without_a_token_only_names_of_this_machine_are_answered(service: Served) -> None:
    assert service.ask("GET", "/v1/info", headers={"Host": "evil.example"})[0] == 421
    assert service.ask("GET", "/v1/info", headers={"Host": "localhost:1"})[0] == 200


def test_a_full_queue_and_a_greedy_client_are_told_to_wait_and_others_have_their_turn(guarded: Served) -> None:
    ended = []

    def ask(token: str, count: int, source: str = "127.0.0.1") -> tuple[int, Any, dict[str, str]]:
        many = {"candidates": [slow(0.3)] * count}
        answer = guarded.ask("POST", "/v1/judge/many", many, {"Authorization": f"Bearer {token}"}, source)
        ended.append((token, source))
        return answer

    first = threading.Thread(target=ask, args=(TOKEN, 4))
    first.start()
    metric = {"Authorization": f"Bearer {TOKEN}"}
    until(lambda: "microcoder_running 2" in guarded.ask("GET", "/metrics", headers=metric)[1])
    status, answer, headers = ask(TOKEN, 1)
    assert (status, headers["retry-after"]) == (429, "1") and "4 that a client may have" in answer["error"]
    second = threading.Thread(target=ask, args=("another", 1))  # the same address by another token is another client
    second.start()
    third = threading.Thread(target=ask, args=(TOKEN, 3, "127.0.0.2"))  # and so is another address
    third.start()
    until(lambda: "microcoder_waiting 6" in guarded.ask("GET", "/metrics", headers=metric)[1])
    status, answer, headers = ask("another", 2)
    assert (status, headers["retry-after"]) == (429, "1") and "6 that may" in answer["error"]
    for thread in (first, second, third):
        thread.join(60)
    assert ended[2] == ("another", "127.0.0.1")  # before those that were there long before it, after the two refused


def test_a_client_that_vanishes_leaves_nothing(service: Served) -> None:
    service.ask("POST", "/v1/judge/many", {"candidates": [{"problem": SQUARE, "code": RIGHT}] * 8})
    at_rest, dropped = service.processes(), service.metric("dropped_total")
    body = json.dumps({"candidates": [FOREVER] * 20}).encode()
    head = f"POST /v1/judge/many HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.sendall(head.encode() + body)
        until(lambda: service.metric("waiting") == 16 and service.processes() > at_rest)
    until(lambda: service.metric("waiting") == service.metric("running") == service.metric("clients") == 0)
    assert service.metric("dropped_total") - dropped == 20
    until(lambda: service.processes() <= at_rest)
    assert service.ask("POST", "/v1/judge", {"problem": SQUARE, "code": RIGHT})[1]["verdict"] == "accepted"


def test_sigterm_finishes_what_was_taken_and_takes_nothing_more() -> None:
    with served() as service:
        answers: list[Any] = []
        many = {"candidates": [slow(1.0)] * 5}
        client = threading.Thread(target=lambda: answers.append(service.ask("POST", "/v1/judge/many", many)))
        client.start()
        until(lambda: service.metric("running") > 0)
        workers = psutil.Process(service.process.pid).children(recursive=True)
        service.process.send_signal(signal.SIGTERM)
        until(lambda: service.ask("GET", "/readyz")[0] == 503)
        assert service.ask("GET", "/healthz")[0] == 200
        status, answer, headers = service.ask("POST", "/v1/judge", {"problem": SQUARE, "code": RIGHT})
        assert status == 503 and "retry-after" in headers and "about to end" in answer["error"]
        client.join(60)
        assert [line["verdict"] for line in answers[0][1]] == ["accepted"] * 5
        assert service.process.wait(30) == 0
        assert not any(worker.is_running() for worker in workers)


def test_sigterm_does_not_wait_for_who_is_still_sending() -> None:
    with served(workers=1) as service, socket.create_connection(("127.0.0.1", service.port)) as client:
        client.sendall(b"POST /v1/judge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{")
        until(lambda: service.metric("held_bytes") == 1)
        service.process.send_signal(signal.SIGTERM)
        assert b"about to end" in client.recv(1 << 16)
        assert service.process.wait(5) == 0


@pytest.mark.long
def test_a_second_signal_ends_it_at_once() -> None:
    with served() as service:
        body = json.dumps(FOREVER).encode()
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.request("POST", "/v1/judge", body)
        until(lambda: service.metric("running") > 0)
        workers = psutil.Process(service.process.pid).children(recursive=True)
        service.process.send_signal(signal.SIGINT)
        until(lambda: service.ask("GET", "/readyz")[0] == 503)
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(30) == 130
        until(lambda: not any(worker.is_running() for worker in workers))
        connection.close()


def test_metrics_are_text_that_prometheus_reads(service: Served) -> None:
    before = service.metric("verdicts_total")
    service.ask("POST", "/v1/judge", {"problem": SQUARE, "code": "print(0)"})
    status, text, headers = service.ask("GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    assert service.metric("verdicts_total") == before + 1
    assert service.metric("seconds_count") == before + 1 and 'le="+Inf"' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) > 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["judge.on=ray:auto"], "leave it away"),
        (["judge.remember=9"], "leave it away"),
        (["judge.sandbox=none"], "expected"),
        (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
    ],
)
def test_a_service_that_cannot_start_says_why(options: list[str], says: str) -> None:
    command = [sys.executable, "-m", "microcoder.cli", "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_another_address_than_loopback_has_a_token() -> None:
    with served("--host", "0.0.0.0", workers=1) as service:
        assert service.process.stdout is not None
        token = service.process.stdout.readline().removeprefix("MICROCODER_TOKEN=").strip()
        assert service.ask("GET", "/v1/info")[0] == 401
        assert service.ask("GET", "/v1/info", headers={"Authorization": f"Bearer {token}"})[0] == 200


@pytest.mark.long
def test_no_request_that_schemathesis_can_think_of_is_a_500(service: Served, tmp_path: Path) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    options = ["--checks", checks, "--max-examples", "5", "--phases", "coverage,fuzzing", "--seed", "1", "--no-color"]
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert service.metric("verdicts_total") > 20  # it came as far as the judge
