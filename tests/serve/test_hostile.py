"""The service under clients that mean harm: real sockets, many without a token. Others are served all the while."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from serve_process import Served, served, until

from microcoder.judge.remote.http import RemoteJudge
from microcoder.schema import Problem, Test

BEARER = {"Authorization": "Bearer secret"}
SQUARE = {"id": "square", "tests": [{"input": "3\n", "output": "9\n"}], "time_limit_s": 20}
RIGHT = {"problem": SQUARE, "code": "print(int(input()) ** 2)"}
HOST = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    with served("--token", "secret", "--queue-mb", "128", workers=1) as service:
        yield service


@contextlib.contextmanager
def talking(service: Served, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    address = ("127.0.0.1", service.port)
    with socket.create_connection(address, timeout=60, source_address=(source, 0)) as client:
        yield client


def poured(client: socket.socket, piece: bytes, megabytes: int) -> int:
    """How many megabytes of it were taken before the other side hung up."""
    piece *= max(1, (1 << 20) // len(piece))
    for sent in range(megabytes):
        try:
            client.sendall(piece)
        except OSError:
            return sent
    return megabytes


def answer_of(client: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    parts = []
    with contextlib.suppress(OSError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def judged(service: Served, source: str = "127.0.0.1", headers: dict[str, str] = BEARER) -> Any:
    return service.ask("POST", "/v1/judge", RIGHT, headers, source)[1].get("verdict")


@contextlib.contextmanager
def others_are_answered(service: Served, within_s: float = 2.0) -> Iterator[None]:
    """Meanwhile, someone asks every tenth of a second."""
    slowest, ended = [0.0], threading.Event()

    def ask() -> None:
        while not ended.wait(0.1):
            start = time.monotonic()
            service.ask("GET", "/healthz")
            slowest[0] = max(slowest[0], time.monotonic() - start)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert slowest[0] < within_s


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: ", b"a"),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X", b"a"),
        (b"GET /healthz HTTP/1.1\r\n" + HOST, b"X: a\r\n"),
        (b"GET /", b"a"),
        (b"GE", b"T"),
        (b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"a" * 99),
        (b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n"),
        (b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a"),
    ],
    ids=["value", "name", "headers", "address", "method", "chunk-extension", "trailers", "trailer"],
)
def test_a_head_of_megabytes_is_not_kept(guarded: Served, begins: bytes, goes_on: bytes) -> None:
    before = guarded.memory()
    with talking(guarded) as client:
        client.sendall(begins)
        assert poured(client, goes_on, 64) < 32
        assert guarded.memory() - before < 16
    assert judged(guarded) == "accepted"


def test_a_head_that_is_too_large_is_told_so(guarded: Served) -> None:
    with talking(guarded) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 300 + b"\r\n")
        assert b" 431 " in answer_of(client)
    with talking(guarded) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * (1 << 17) + b"\r\n\r\n")
        assert b" 431 " in answer_of(client)


def test_half_open_connections_do_not_take_the_descriptors_of_the_judge() -> None:
    with served("--token", "secret", workers=1, files=160) as service, contextlib.ExitStack() as stack:
        for number in range(300):
            with contextlib.suppress(OSError):
                client = stack.enter_context(talking(service, f"127.0.0.{number % 5 + 2}"))
                client.sendall(b"GET / HTTP/1.1\r\n" * (number % 2))
        for _ in range(3):
            assert judged(service) == "accepted"  # in new processes, for which pipes and sockets are made
        assert judged(service, "127.0.0.3") == "accepted"  # an address that has too many, too
        assert service.metric("connections", BEARER) < 100


def test_connections_that_are_at_work_are_not_pushed_out() -> None:
    with served("--connections", "8", workers=1) as service, contextlib.ExitStack() as stack:
        slow = {**RIGHT, "code": "import time\ntime.sleep(2)\nprint(9)"}
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(service.ask("POST", "/v1/judge", slow)[1]["verdict"]))
        thread.start()
        until(lambda: service.metric("running") == 1)
        for number in range(30):
            stack.enter_context(talking(service, f"127.0.0.{number % 5 + 2}"))
        thread.join()
        assert found == ["accepted"]


@pytest.mark.parametrize(
    ("sends", "says"),
    [
        (b"", b"408"),
        (b"GET /healthz HTTP/1.1\r\nX: ", b"408"),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET /hea", b"408"),
        (b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{", b"408"),
        (b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"408"),
    ],
)
def test_who_stops_in_the_middle_of_a_request_is_hung_up_on(quick: Served, sends: bytes, says: bytes) -> None:
    start = time.monotonic()
    with talking(quick) as client:
        client.sendall(sends)
        assert says in answer_of(client)
    assert time.monotonic() - start < 15


def test_who_sends_a_byte_now_and_then_is_hung_up_on(quick: Served) -> None:
    with talking(quick) as client:
        client.sendall(b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Content-Length: 9999\r\n\r\n{")
        with pytest.raises(OSError):
            for _ in range(100):
                client.sendall(b" ")
                time.sleep(0.2)


@pytest.fixture(scope="module")
def quick() -> Iterator[Served]:
    constants = {"HEAD_S": 2.0, "STALL_S": 2.0, "STILL_S": 4.0, "LOOK_S": 0.2}
    with served("--queue-mb", "64", workers=1, quick=constants) as service:
        yield service


@pytest.mark.long
def test_answers_that_nobody_reads_are_not_piled_up(quick: Served) -> None:
    """A program that prints 12 MB, thirty times, by a client that reads nothing."""
    before = quick.memory()
    body = json.dumps({"code": "print('x' * 12_000_000)", "language": "python"}).encode()
    head = b"POST /run_code HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(talking(quick, "127.0.0.2")) for _ in range(30)]
        for client in clients:
            client.sendall(head + body)
        most, end = 0, time.monotonic() + 8
        while time.monotonic() < end:
            most = max(most, quick.memory())
            time.sleep(0.1)
        assert judged(quick, headers={}) == "accepted"
        assert most - before < 300  # of them all, about 700
        until(lambda: quick.metric("running") == quick.metric("waiting") == quick.metric("held_bytes") == 0, 120)
        cut = [client for client in clients if not answer_of(client).endswith(b"0\r\n\r\n")]
        assert len(cut) == len(clients)


def test_a_large_answer_arrives_whole_at_a_slow_reader(quick: Served) -> None:
    body = json.dumps({"code": "print('Q' * 3_000_000)", "language": "python"}).encode()
    with talking(quick) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        client.sendall(b"POST /run_code HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        got = bytearray()
        while not got.endswith(b"0\r\n\r\n"):
            part = client.recv(1 << 16)
            assert part
            got += part
            time.sleep(0.05)  # longer in all than a reader may stand still
    assert got.count(b"Q") == 3_000_000


def bodies() -> dict[str, Any]:
    size = 40 << 20
    return {
        "unknown-field": (b'{"' + b"a" * size + b'": 1}', 422),
        "unknown-field-of-a-problem": (b'{"problem": {"id": "p", "' + b"a" * size + b'": 1}, "code": ""}', 422),
        "numbers": (b'{"problem": {"id": "p", "tests": [' + b"1000," * (size // 5) + b'1]}, "code": ""}', 422),
        "objects": (b'{"problem": [' + b'{"":0},' * (size // 7) + b'0], "code": ""}', (413, 422)),
        "depth": (b'{"problem": ' + b"[" * size, 400),
        "digits": (b'{"id": ' + b"9" * size + b"}", 400),
        "kind": (b'{"code": "", "problem": {"id": "p", "kind": "' + b"a" * size + b'"}}', 422),
        "language": (json.dumps(RIGHT)[:-1].encode() + b', "language": "' + b"a" * size + b'"}', 422),
        "policy": (json.dumps(RIGHT)[:-1].encode() + b', "settings": {"policy": "' + b"a" * size + b'"}}', 422),
        "id": (json.dumps(RIGHT)[:-1].encode() + b', "id": "' + b"a" * size + b'"}', 422),
    }


@pytest.mark.parametrize("name", bodies())
def test_a_body_of_megabytes_holds_up_nobody_else(guarded: Served, name: str) -> None:
    body, status = bodies()[name]
    with others_are_answered(guarded):
        found, answer, _ = guarded.ask("POST", "/v1/judge", body, BEARER)
    assert found == status or found in (status if isinstance(status, tuple) else ())
    assert len(answer["error"]) < 1000


def test_large_problems_are_judged_as_ever(guarded: Served) -> None:
    large = {"id": "large", "tests": [{"input": "7" * (3 << 20), "output": "7" * (3 << 20)}]}
    for body in ({"problem": large, "code": "print(input())"}, {"candidates": [{"problem": large, "code": "1"}] * 2}):
        path = "/v1/judge/many" if "candidates" in body else "/v1/judge"
        status, answer, _ = guarded.ask("POST", path, body, BEARER)
        verdicts = [line["verdict"] for line in (answer if isinstance(answer, list) else [answer])]
        assert (status, verdicts) == (200, ["accepted"] if path == "/v1/judge" else ["wrong_answer"] * 2)
    data = json.dumps(large).encode()
    key = hashlib.sha256(data).hexdigest()
    assert guarded.ask("PUT", f"/v1/problems/{key}", data, BEARER)[0] == 200
    named = {"problem": key, "code": "print(input())"}
    assert guarded.ask("POST", "/v1/judge", named, BEARER)[1]["verdict"] == "accepted"


def test_what_a_client_has_here_is_bounded_in_bytes_too(guarded: Served) -> None:
    """Eight requests of 24 MB at once, where a client may have 64."""
    sent = {"problem": {**SQUARE, "setup": "#" * (24 << 20)}, "code": "import time\ntime.sleep(1)\nprint(9)"}
    body, found = json.dumps(sent).encode(), []

    def ask() -> None:
        found.append(guarded.ask("POST", "/v1/judge", body, BEARER)[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {200, 429}
    assert guarded.metric("held_bytes", BEARER) == 0
    assert judged(guarded) == "accepted"


def test_one_wide_character_makes_a_text_four_times_as_large_and_is_counted_so(guarded: Served) -> None:
    before = guarded.metric("problem_bytes", BEARER)
    data = json.dumps({**SQUARE, "id": "wide", "setup": "# 😀" + "a" * (1 << 20)}).encode()
    assert guarded.ask("PUT", f"/v1/problems/{hashlib.sha256(data).hexdigest()}", data, BEARER)[0] == 200
    assert guarded.metric("problem_bytes", BEARER) - before > 4 << 20


@pytest.mark.parametrize(
    ("asks", "option"),
    [
        ({**RIGHT, "settings": {"output_mb": 300}}, "--max-output-mb"),
        ({**RIGHT, "problem": {"id": "p", "tests": SQUARE["tests"] * 10_001}}, "--max-tests"),
        ({**RIGHT, "problem": {"id": "p", "kind": "assert", "asserts": ["assert 1"] * 10_001}}, "--max-tests"),
    ],
)
def test_output_and_tests_beyond_what_the_service_gives_are_refused(
    guarded: Served, asks: dict[str, Any], option: str
) -> None:
    status, answer, _ = guarded.ask("POST", "/v1/judge", asks, BEARER)
    assert status == 422 and option in answer["error"]
    case = {"input": {"stdin": ""}, "output": {"stdout": ""}}
    config = {"dataset_type": "CommonOJDataset", "language": "python", "provided_data": {"test": [case] * 10_001}}
    status, answer, _ = guarded.ask("POST", "/submit", {"id": 1, "completion": "", "config": config}, BEARER)
    assert status == 422 and "--max-tests" in answer["error"]


def test_requests_without_end_on_a_connection_are_not_kept(guarded: Served) -> None:
    before = guarded.memory()
    body = json.dumps({**RIGHT, "code": "import time\ntime.sleep(3)\nprint(9)"}).encode()
    head = b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Authorization: Bearer secret\r\nContent-Length: %d\r\n\r\n"
    with talking(guarded) as client:
        client.sendall(head % len(body) + body)
        taken = poured(client, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 64)
        assert taken < 32 and guarded.memory() - before < 32
    until(lambda: guarded.metric("held_bytes", BEARER) == 0)


def test_a_few_requests_at_once_are_answered_in_their_order(guarded: Served) -> None:
    with talking(guarded) as client:
        client.sendall((b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") * 4 + b"GET /no HTTP/1.1\r\n" + HOST + b"\r\n")
        got = b""
        while got.count(b"HTTP/1.1") < 5 or not got.endswith(b"}"):
            got += client.recv(1 << 16)
    assert got.count(b" 200 OK") == 4 and got.rindex(b" 401 ") > got.rindex(b" 200 OK")


def test_a_body_in_chunks_of_a_byte_is_refused_when_it_is_long(guarded: Served) -> None:
    head = b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Authorization: Bearer secret\r\nTransfer-Encoding: chunked\r\n\r\n"
    with talking(guarded) as client:
        client.sendall(head + b"".join(b"1\r\n%c\r\n" % byte for byte in json.dumps(RIGHT).encode()) + b"0\r\n\r\n")
        assert b" 200 OK" in client.recv(1 << 16)
    with talking(guarded) as client:
        client.sendall(head)
        assert poured(client, b"1\r\n \r\n", 64) < 32


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
    ],
)
def test_a_body_of_doubtful_length_is_refused(guarded: Served, lines: bytes) -> None:
    with talking(guarded) as client:
        client.sendall(b"POST /v1/judge HTTP/1.1\r\n" + HOST + lines + b"\r\n{}\r\n0\r\n\r\n")
        assert b" 400 " in answer_of(client)


def test_an_upgrade_with_a_body_is_refused_in_words(guarded: Served) -> None:
    """As Java's and curl's clients ask for HTTP/2; the parser would give the request without its body."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
    body = json.dumps(RIGHT).encode()
    with talking(guarded) as client:
        client.sendall(
            b"POST /v1/judge HTTP/1.1\r\n" + HOST + upgrade + b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert b"without an Upgrade header" in answer_of(client)
    with talking(guarded) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + upgrade + b"\r\n")
        assert b" 200 OK" in client.recv(1 << 16)


def test_a_reader_of_large_bodies_that_was_killed_meanwhile_is_replaced() -> None:
    large = {**RIGHT, "code": f"{RIGHT['code']}  # {'#' * (1 << 20)}"}
    with served(workers=1) as service:
        for _ in range(2):
            assert service.ask("POST", "/v1/judge", large)[1].get("verdict") == "accepted"
            for child in psutil.Process(service.process.pid).children():
                if "microcoder.serve.bodies" in " ".join(child.cmdline()):
                    child.kill()
                    until(lambda child=child: child.status() == psutil.STATUS_ZOMBIE)  # type: ignore[misc]


def test_who_may_not_ask_may_not_send_without_end_either(guarded: Served) -> None:
    with talking(guarded) as client:
        client.sendall(b"POST /v1/judge HTTP/1.1\r\n" + HOST + b"Content-Length: 9999999999\r\n\r\n")
        assert poured(client, b" ", 1000) < 400


@pytest.mark.parametrize(
    ("command", "options", "environment"),
    [
        ("serve", ["--token", ""], {}),
        ("serve", ["--token", "good", "--token", " "], {}),
        ("serve", [], {"MICROCODER_TOKEN": ""}),
        ("serve", ["--host", "0.0.0.0"], {"MICROCODER_TOKEN": "  "}),
        ("view", [".", "--token", ""], {}),
    ],
)
def test_an_empty_token_opens_nothing(command: str, options: list[str], environment: dict[str, str]) -> None:
    start = [sys.executable, "-m", "microcoder.cli", command, "--port", "0", *options]
    done = subprocess.run(start, capture_output=True, text=True, env={**os.environ, **environment}, timeout=30)
    assert done.returncode == 2 and "would let anybody in" in done.stderr


@pytest.mark.parametrize("megabytes", [5, 9])  # a client may have 8
def test_our_own_client_waits_for_room(megabytes: int) -> None:
    problems = [Problem(f"p{n}", tests=[Test("", "1")], setup="#" * (megabytes << 20)) for n in range(6)]
    with served("--queue-mb", "16", workers=1) as service, RemoteJudge(service.url, workers=2) as judge:
        verdicts = [verdict.verdict for _, verdict in judge.map((one, "```python\nprint(1)\n```") for one in problems)]
    assert verdicts == ["accepted"] * 6


def test_a_client_with_nothing_else_here_may_have_one_request_of_any_size() -> None:
    large = {**SQUARE, "setup": "#" * (9 << 20)}
    with served("--queue-mb", "16", workers=1) as service:
        for body in ({**RIGHT, "problem": large}, {**RIGHT, "code": f"{RIGHT['code']} # {large['setup']}"}):
            status, answer, _ = service.ask("POST", "/v1/judge", body)
            assert (status, answer.get("verdict")) == (200, "accepted"), answer
        assert service.metric("held_bytes") == 0


def test_more_than_may_wait_is_too_much_at_once_and_not_a_matter_of_time() -> None:
    with served("--queue", "4", "--per-client", "9", workers=1) as service:
        status, answer, _ = service.ask("POST", "/v1/judge/many", {"candidates": [RIGHT] * 5})
    assert status == 413 and "at most 4" in answer["error"]


def test_large_bodies_follow_each_other_on_a_connection(guarded: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=60)
    with contextlib.closing(connection):
        for size in (3 << 20, 1, 5 << 20, 2 << 20):
            sent = {**RIGHT, "code": f"{RIGHT['code']}  # {'#' * size}"}
            connection.request("POST", "/v1/judge", json.dumps(sent).encode(), BEARER)
            assert json.loads(connection.getresponse().read())["verdict"] == "accepted"
