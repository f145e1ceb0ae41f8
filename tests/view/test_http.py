"""The server and the command: who may ask, what a browser may do with the answers, what an exported file holds."""

from __future__ import annotations

import base64
import builtins
import gzip
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
import uvicorn
from click.testing import CliRunner
from starlette.testclient import TestClient
from view_runs import HOSTILE, make_bench, make_run, make_study, rollout

from microcoder.cli import cli, main
from microcoder.runs import write_rollouts
from microcoder.view import app, export, find
from microcoder.view.export import MODULES, bundle
from microcoder.view.routes import STATIC, settings

TOKEN = "a-long-secret"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("view") / "runs"
    make_run(root / "a")
    make_run(root / "b", steps=4)
    make_bench(root / "tiny")
    make_study(root / "claims")
    return root


@pytest.fixture(scope="module")
def client(root):
    return TestClient(app(root), base_url="http://127.0.0.1:8421")


QUESTIONS = [
    "/",
    "/static/main.js",
    "/static/style.css",
    "/static/plotly.js",
    "/api/list",
    "/api/run?run=a",
    "/api/metrics?run=a",
    "/api/metrics?run=a&first=2&last=4",
    "/api/remarks?run=a",
    "/api/steps?run=a",
    "/api/step?run=a&step=9",
    "/api/group?of=a&step=9&problem=p0",
    "/api/visits?run=a&problem=p0",
    "/api/find?run=a&kind=worst",
    "/api/compare?a=a&b=b",
    "/api/bench?bench=tiny",
    "/api/group?of=tiny&step=64&problem=b0",
    "/api/study?study=claims",
    "/figure?of=claims&path=figures/one.png",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_is_guarded_and_is_not_sent_twice(client, question):
    answer = client.get(question)
    assert answer.status_code == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    again = client.get(question, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == policy


def test_an_answer_changes_its_tag_when_the_run_goes_on(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=2)
    client = TestClient(app(tmp_path / "runs"), base_url="http://127.0.0.1")
    before = client.get("/api/metrics?run=a")
    with open(path / "metrics.jsonl", "a") as file:
        file.write('{"step": 3, "reward": 0.25}\n')
    after = client.get("/api/metrics?run=a", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert after.json()["series"]["reward"]["y"][-1] == 0.25


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ("/api/run?run=../runs/a", 404),
        ("/api/run?run=%2e%2e/a", 404),
        ("/api/metrics?run=/etc/passwd", 404),
        ("/api/step?run=a&step=99", 404),
        ("/api/step?run=a&step=-1", 422),
        ("/api/find?run=a&kind=everything", 422),
        ("/api/run", 422),
        ("/api/study?study=a", 404),
        ("/static/../server.py", 404),
        ("/static/%2e%2e%2fserver.py", 404),
        ("/static/server.py", 404),
        ("/figure?of=claims&path=report.md", 404),
        ("/figure?of=claims&path=../a/config.toml", 404),
        ("/figure?of=claims&path=../../x.png", 404),
        ("/figure?of=claims&path=figures/none.png", 404),
        ("/docs", 404),
        ("/openapi.json", 404),
    ],
)
def test_what_is_not_there_is_refused(client, question, status):
    answer = client.get(question)
    assert answer.status_code == status
    assert "content-security-policy" in answer.headers
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_the_server_only_reads(client, method):
    assert client.request(method, "/api/list").status_code == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8421", 200),
        ("localhost:8421", 200),
        ("[::1]:8421", 200),
        ("evil.example", 421),  # a name of another's that was made to point here
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_only_names_of_this_machine_are_answered(client, host, status):
    assert client.get("/api/list", headers={"Host": host}).status_code == status


def test_what_is_not_a_finite_number_or_not_text_reaches_the_browser_as_json(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=1)
    rows = '{"problem": "p", "completion": "\\ud800", "reward": NaN, "length": 3, "verdict": "x"}\n'
    (path / "rollouts" / "step_00001.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    client = TestClient(app(tmp_path / "runs"), base_url="http://localhost")
    (row,) = client.get("/api/group?of=a&step=1&problem=p").json()["rows"]
    assert (row["completion"], row["reward"]) == ("\ud800", None)


def test_a_token_is_asked_for_and_once_given_stands_in_a_cookie(root):
    client = TestClient(app(root, TOKEN), base_url="http://machine.example:8421", follow_redirects=False)
    assert client.get("/").status_code == 401
    assert "?token=" in client.get("/").text
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/api/list", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/api/list", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    entered = client.get(f"/api/run?token={TOKEN}&run=a")
    assert (entered.status_code, entered.headers["location"]) == (303, "/api/run?run=a")
    assert {"httponly", "samesite=strict"} <= set(entered.headers["set-cookie"].lower().split("; "))
    assert client.get("/api/run?run=a").status_code == 200  # by the cookie
    assert client.get("/?token=wrong").status_code == 401  # which does not make a wrong one right
    assert TOKEN not in client.get("/").text


@pytest.mark.parametrize("token", ["a&b #c+d%e/f;g=h", "geheimes Wörtchen", "合言葉"])
def test_any_token_works_in_the_address_that_is_printed_and_in_the_cookie(root, monkeypatch, token):
    monkeypatch.setattr("microcoder.view.serve", lambda server, listener: listener.close())
    said = CliRunner().invoke(cli, ["view", str(root), "--port", "0", "--token", token]).output
    query = re.search(r"http://[^/]+(/\?token=\S+)", said)[1]
    client = TestClient(app(root, token), base_url="http://localhost", follow_redirects=False)
    assert client.get(query).status_code == 303
    assert client.get("/api/list").status_code == 200
    client.cookies.clear()
    assert client.get("/api/list").status_code == 401


def test_long_texts_are_looked_for_and_problems_with_long_names_are_shown(tmp_path):
    name = "p" * 3000
    make_run(tmp_path / "runs" / "a", steps=1, rollouts=False)
    write_rollouts(tmp_path / "runs" / "a", 1, [rollout(0, name, True)])
    client = TestClient(app(tmp_path / "runs"), base_url="http://localhost")
    for question in ("group?of=a&step=1&problem=", "visits?run=a&problem=", "find?run=a&kind=text&q="):
        assert client.get(f"/api/{question}{name}").status_code == 200


# ---- the pages


def test_the_pages_name_nothing_on_the_network_and_hold_no_inline_script_or_style():
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://", text), path.name
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\(|new Function", text), path.name
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script>|<style|\son\w+=|style=", page)


def test_the_bundle_holds_every_module_after_those_it_needs():
    modules = {path.name for path in STATIC.glob("*.js")} - {"theme.js"}
    assert set(MODULES) == modules
    for n, name in enumerate(MODULES):
        needed = set(re.findall(r"from '\./([\w.]+)'", (STATIC / name).read_text(encoding="utf-8")))
        assert needed <= set(MODULES[:n]), name
    assert not re.search(r"^(import|export) ", bundle(), re.MULTILINE)


# ---- the exported file


def packed(path):
    text = path.read_text(encoding="utf-8")
    data = re.search(r'id="packed">([^<]*)</script>', text)[1]
    return text, json.loads(gzip.decompress(base64.b64decode(data)))


def test_an_export_holds_the_run_and_none_of_its_text_as_it_is(root, tmp_path):
    words = export(root / "a", tmp_path / "a.html")
    text, data = packed(tmp_path / "a.html")
    assert words.startswith("A copy of 1 run, with the rollouts of 10 of 10 steps.")
    assert data["about"] == {"words": words, "only": "a"}
    assert data["answers"]["group\nof=a\nproblem=p0\nstep=9"]["rows"][0]["message"] == HOSTILE
    assert data["answers"]["metrics\nrun=a"]["steps"] == 10
    assert "gnp.exe" not in text
    assert text.lower().count("</script>") == 4  # the theme, the data, the charts, the pages
    assert "src=" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_an_export_that_must_be_small_keeps_the_last_step_and_says_what_it_left_out(root, tmp_path):
    assert "the rollouts of 1 of 10 steps" in export(root / "a", tmp_path / "a.html", megabytes=0.001)
    data = packed(tmp_path / "a.html")[1]["answers"]
    assert data["steps\nrun=a"] == {"train": [10], "test": [], "running": False}
    assert {hit["step"] for hit in data["find\nkind=truncated\nrun=a"]["found"]} == {10}


def test_an_export_holds_the_answers_of_evaluations_as_the_page_asks_for_them(tmp_path):
    make_run(tmp_path / "runs" / "a", steps=4)
    for step in (0, 4):
        answers = [rollout(0, "t0", right=True), rollout(1, "t0", right=False)]
        write_rollouts(tmp_path / "runs" / "a", step, answers, {"t0": "Held out."}, test=True)
    words = export(tmp_path / "runs" / "a", tmp_path / "a.html")
    assert "the rollouts of 4 of 4 steps and the answers of 2 of 2 evaluations" in words
    data = packed(tmp_path / "a.html")[1]["answers"]
    assert data["steps\nrun=a"]["test"] == [0, 4]
    assert [group["problem"] for group in data["step\nrun=a\nstep=4\ntest=true"]["groups"]] == ["t0"]
    group = data["group\nof=a\nproblem=t0\nstep=4\ntest=true"]
    assert group["statement"] == "Held out." and len(group["rows"]) == 2
    small = export(tmp_path / "runs" / "a", tmp_path / "a.html", megabytes=0.001)
    assert "the rollouts of 1 of 4 steps and the answers of 0 of 2 evaluations" in small


def test_the_finders_of_an_export_know_all_of_its_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(find, "LIMIT", 2)
    monkeypatch.setattr(find, "BUDGET_S", 0.0)
    make_run(tmp_path / "runs" / "a", steps=6)
    export(tmp_path / "runs" / "a", tmp_path / "a.html")
    data = packed(tmp_path / "a.html")[1]["answers"]
    for kind, steps in (("truncated", range(1, 7)), ("lost", (2, 4, 6)), ("hacks", (1, 3, 5))):
        assert {hit["step"] for hit in data[f"find\nkind={kind}\nrun=a"]["found"]} == set(steps), kind


def test_an_export_holds_the_whole_of_metrics_that_take_long_to_read(tmp_path, monkeypatch):
    make_run(tmp_path / "runs" / "a", steps=6)
    monkeypatch.setattr("microcoder.view.follow.BUDGET_S", 0.0)
    export(tmp_path / "runs" / "a", tmp_path / "a.html")
    found = packed(tmp_path / "a.html")[1]["answers"]["metrics\nrun=a"]
    assert (found["steps"], found["behind"]) == (6, False)


@pytest.mark.parametrize("megabytes", ["inf", "nan"])
def test_an_export_may_be_as_large_as_it_takes(root, tmp_path, megabytes):
    done = CliRunner().invoke(cli, ["view", str(root), "--export", str(tmp_path / "a.html"), "--export-mb", megabytes])
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert "the rollouts of 14 of 14 steps" in done.output


def test_a_folder_of_runs_is_exported_with_all_of_them(root, tmp_path):
    assert "A copy of 2 runs, with the rollouts of 14 of 14 steps" in export(root, tmp_path / "a.html")


# ---- the command


def refused(*args):
    done = CliRunner().invoke(cli, ["view", *map(str, args)])
    assert done.exit_code == 2, done.output
    return done.output


def test_a_folder_that_is_not_there_and_a_file_that_cannot_be_written_are_refused(root, tmp_path):
    assert "microcoder train demo" in refused(tmp_path / "none")
    assert "cannot write" in refused(root, "--export", tmp_path / "none" / "a.html")


@pytest.mark.parametrize("more", [(), ("--export", "a.html")])
def test_a_folder_that_may_not_be_read_is_refused(tmp_path, monkeypatch, more):
    def shut(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.iterdir", shut)
    assert f"cannot read {tmp_path}: Permission denied" in refused(tmp_path, *more)


def test_without_the_packages_it_says_what_to_install(root, monkeypatch):
    real = builtins.__import__

    def without_fastapi(name, *args, **more):
        if name.startswith("fastapi"):
            raise ImportError(name, name="fastapi")
        return real(name, *args, **more)

    for name in [name for name in sys.modules if name.startswith("microcoder.view")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_fastapi)
    assert "pip install 'microcoder[view]'" in refused(root)


def test_without_the_charts_it_says_what_to_install(root, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(SystemExit, match="2"):
        main(["view", str(root), "--port", "0"])
    assert "pip install 'microcoder[view]'" in capsys.readouterr().err


def served(*args):
    command = [sys.executable, "-m", "microcoder.cli", "view", *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return process, re.search(r"http://\S+", process.stdout.readline())[0]


def test_it_serves_until_ctrl_c_and_a_port_that_is_taken_is_refused(root):
    process, address = served(root, "--port", 0)
    try:
        with urllib.request.urlopen(f"{address}api/list", timeout=20) as answer:
            assert [run["name"] for run in json.load(answer)["runs"]] == ["a", "b"]
        port = address.rstrip("/").rpartition(":")[2]
        assert "--port 0" in refused(root, "--port", port)
    finally:
        process.send_signal(2)
        assert process.wait(timeout=20) == 130
    assert "Traceback" not in process.stdout.read()


def test_another_address_than_loopback_needs_a_token_which_is_made_up_and_printed(root):
    process, address = served(root, "--host", "0.0.0.0", "--port", 0)
    try:
        port, token = re.fullmatch(r"http://[^:]+:(\d+)/\?token=(\S{32})", address).groups()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/list", timeout=20)
        headers = {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/list", headers=headers)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(2)
        process.wait(timeout=20)


# ---- connections


@pytest.fixture
def listening(root, monkeypatch):
    """A real server that takes eight connections, and waits two seconds for a request."""
    monkeypatch.setattr("microcoder.view.routes.CONNECTIONS", 8)
    monkeypatch.setattr("microcoder.view.routes.HEAD_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(settings(app(root)))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield server, listener.getsockname()
        server.should_exit = True
        thread.join(10)


def until(condition):
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_half_open_connections_are_bounded_make_room_for_requests_and_are_cut_in_the_end(listening):
    server, address = listening
    idle = [socket.create_connection(address) for _ in range(40)]
    for one in idle[::2]:
        one.sendall(b"GET / HTTP/1.1\r\nHost: 127")  # the rest never comes
    until(lambda: len(server.server_state.connections) <= 8)
    with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/api/list", timeout=20) as answer:
        assert answer.status == 200
    until(lambda: not server.server_state.connections)
    for one in idle:
        one.close()


def test_a_connection_that_goes_on_asking_is_kept(listening):
    _, address = listening
    with socket.create_connection(address, timeout=20) as connection:
        for _ in range(4):
            connection.sendall(b"GET /static/theme.js HTTP/1.1\r\n")
            time.sleep(0.8)
            connection.sendall(b"Host: 127.0.0.1\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
