"""Runs that somebody made to do harm: nothing outside a run is shown, and the other runs are shown as ever."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import resource
import socket
import time
import urllib.parse

import pytest
from starlette.testclient import TestClient
from view_runs import make_bench, make_run, make_study

from microcoder.view import app, export, groups
from microcoder.view.library import Library, Missing
from microcoder.view.questions import Questions

SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----"
QUICK_S = 10.0
WIDE = b"[" * 100_000
ASKED = (
    "run?run=a", "metrics?run=a", "remarks?run=a", "steps?run=a", "step?run=a&step=2", "find?run=a&kind=worst",
    "find?run=a&kind=hacks",
)  # fmt: skip


def asked(root):
    return TestClient(app(root), base_url="http://127.0.0.1:8421", raise_server_exceptions=False)


def exported(root, tmp_path):
    """The answers that an export holds, as text."""
    export(root, tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    return gzip.decompress(base64.b64decode(re.search(r'id="packed">([^<]*)<', page)[1])).decode()


@pytest.mark.parametrize("file", ["config.toml", "run.json", "metrics.jsonl", "rollouts/step_00001.jsonl.gz", ".lock"])
@pytest.mark.parametrize("hard", [False, True], ids=["file", "folder"])
def test_a_link_out_of_a_run_is_neither_served_nor_exported(tmp_path, file, hard):
    """Even where the run itself is named, and the link stays within the folder around it."""
    make_run(tmp_path / "runs" / "b", steps=1)
    path = make_run(tmp_path / "runs" / "a", steps=2)
    secret = tmp_path / "runs" / ".ssh"
    secret.mkdir()
    key = secret / os.path.basename(file)
    key.write_bytes(gzip.compress(SECRET.encode()) if file.endswith(".gz") else SECRET.encode())
    (path / file).unlink()
    if hard and "/" in file:
        for entry in (path / "rollouts").iterdir():
            entry.unlink()
        (path / "rollouts").rmdir()
        (path / "rollouts").symlink_to(secret)
    else:
        (path / file).symlink_to(os.path.relpath(key, (path / file).parent))
    for root in (path, tmp_path / "runs"):
        client = asked(root)
        for question in ("list", "run?run=a", "metrics?run=a", "step?run=a&step=1"):
            assert SECRET not in client.get(f"/api/{question}").text
        assert SECRET not in exported(root, tmp_path)
        assert [run["name"] for run in client.get("/api/list").json()["runs"]] in (["a"], ["a", "b"])


def test_a_bench_in_a_run_that_is_named_cannot_be_that_of_its_neighbour(tmp_path):
    make_bench(tmp_path / "runs" / "other")
    path = make_run(tmp_path / "runs" / "a", steps=1)
    (path / "bench").symlink_to("../other")
    listing = Library(path).listing()
    assert (list(listing.folders), listing.refused) == (["a"], ("a/bench",))


@pytest.mark.parametrize("kind", ["bench", "study"])
def test_a_report_and_its_pictures_are_those_of_its_own_folder(tmp_path, kind):
    path = {"bench": make_bench, "study": make_study}[kind](tmp_path / "runs" / "one")
    path = tmp_path / "runs" / "one"
    secret = tmp_path / "runs" / "id.png"
    secret.write_text(SECRET)
    (path / "report.md").unlink(missing_ok=True)
    (path / "report.md").symlink_to(secret)
    (path / "figures").mkdir(exist_ok=True)
    (path / "figures" / "x.png").symlink_to(secret)
    client = asked(tmp_path / "runs")
    for question in (f"/api/{kind}?{kind}=one", "/figure?of=one&path=figures/x.png", "/figure?of=one&path=%00.png"):
        answer = client.get(question)
        assert answer.status_code == 404 and SECRET not in answer.text
    if kind == "bench":
        (path / "scores.json").unlink()
        (path / "scores.json").symlink_to(secret)
        (bench,) = client.get("/api/list").json()["bench"]
        assert "leads out" in bench["fault"]


def fifo(path):
    os.mkfifo(path)


def device(path):
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def door(path):
    socket.socket(socket.AF_UNIX).bind(str(path))


def folder(path):
    path.mkdir()


def circle(path):
    path.symlink_to(path)


@pytest.mark.parametrize("make", [fifo, device, door, folder, circle])
@pytest.mark.parametrize(
    "file", ["run.json", "config.toml", "metrics.jsonl", ".lock", "rollouts/index.jsonl", "rollouts/groups.jsonl",
             "rollouts/step_00002.jsonl.gz"],
)  # fmt: skip
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, monkeypatch, make, file):
    make_run(tmp_path / "r" / "b", steps=2)
    path = make_run(tmp_path / "r" / "a", steps=2, status="running")
    (path / file).unlink()
    monkeypatch.chdir((path / file).parent)  # the name of a socket is short
    make((path / file).relative_to((path / file).parent) if make is door else path / file)
    client, start = asked(tmp_path / "r"), time.monotonic()
    for question in (*ASKED, "visits?run=a&problem=p0"):
        assert client.get(f"/api/{question}").status_code in (200, 404), question
    runs = {run["name"]: run for run in client.get("/api/list").json()["runs"]}
    assert (runs["b"]["step"], runs["b"]["faults"]) == (2, [])
    assert bool(runs["a"]["faults"]) == (file in ("run.json", "config.toml"))
    assert '"b"' in exported(tmp_path / "r", tmp_path)
    assert time.monotonic() - start < QUICK_S


BAD = {
    "steps-in-words": ("run.json", b'{"status": "running", "steps_done": "abc"}'),
    "steps-as-a-list": ("run.json", b'{"status": [1], "steps_done": [], "model": {"a": 1}, "reason": 7}'),
    "steps-without-end": ("run.json", b'{"steps_done": 1e999}'),
    "digits": ("run.json", b'{"steps_done": ' + b"9" * 5000 + b"}"),
    "many-steps": ("run.json", b'{"steps_done": ' + b"9" * 4000 + b"}"),
    "deep-json": ("run.json", WIDE),
    "deeper-than-it-can-be-written": ("run.json", b'{"a":' * 900 + b"0" + b"}" * 900),
    "large-json": ("run.json", b'{"reason": "' + b"a" * (8 << 20) + b'"}'),
    "deep-toml": ("config.toml", b"a = " + WIDE),
    "deep-key": ("config.toml", b".".join([b"a"] * 60_000) + b" = 1"),
    "deep-keys": ("config.toml", b"\n".join(b".".join([b"a"] * 150 + [b"%d" % n]) + b" = 1" for n in range(400))),
    "large-toml": ("config.toml", b"a = 1 #" + b"a" * (8 << 20)),
    "steps-of-toml": ("config.toml", b"[train]\nsteps = inf\n[model]\nname = [[1]]\n[grpo]\npreset = 1979-05-27\n"),
    "pid": (".lock", b"process " + b"9" * 5000 + b" on " + socket.gethostname().encode()),
    "large-lock": (".lock", b"a" * (8 << 20)),
    "one-line": ("metrics.jsonl", b"[" + b"1," * (150 << 20)),
    "one-line-of-many": ("metrics.jsonl", b'{"step": 1}\n' + b'"' * (300 << 20) + b'\n{"step": 2}\n'),
    "step-beyond-floats": ("metrics.jsonl", b'{"step": 1' + b"0" * 400 + b"}\n"),
    "words-for-numbers": ("metrics.jsonl", b'{"step": 1, "reward": "x", "step_s": [], "diversity": {}}\n' * 50),
    "index": ("rollouts/index.jsonl", b'{"step": 2, "accuracy": []}\n{"step": []}\n[]\n' + b"[" * (64 << 20)),
    "groups": ("rollouts/groups.jsonl", b'{"step":2,"size":SIZE,"groups":[["p",1,"x",0,0,[],0]]}\n' + WIDE * 600),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_is_read_in_bounded_time_and_memory_and_the_others_are_shown(tmp_path, name):
    file, content = BAD[name]
    make_run(tmp_path / "r" / "b", steps=2)
    path = make_run(tmp_path / "r" / "a", steps=2, status="running")
    size = os.stat(path / "rollouts" / "step_00002.jsonl.gz").st_size
    (path / file).write_bytes(content.replace(b"SIZE", str(size).encode()))
    if file == "run.json":
        (path / "metrics.jsonl").write_bytes(b"")  # else its last step is that of the metrics
    client, start = asked(tmp_path / "r"), time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runs = {run["name"]: run for run in client.get("/api/list").json()["runs"]}
    assert (runs["b"]["step"], runs["b"]["faults"]) == (2, [])
    for question in (*ASKED, "find?run=a&kind=lost", "compare?a=a&b=b"):
        assert client.get(f"/api/{question}").status_code in (200, 404), question
    assert time.monotonic() - start < QUICK_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10
    assert len(client.get("/api/list").content) < 100_000
    assert '"b"' in exported(tmp_path / "r", tmp_path)


def rows(*records):
    return b"".join(json.dumps({"problem": "p0", **record}).encode() + b"\n" for record in records)


@pytest.mark.parametrize(
    "unpacked",
    [
        lambda: b"\0" * (300 << 20),
        lambda: b'{"problem": ' + b"[]," * (90 << 20),
        lambda: b"[" * (300 << 20),
        lambda: rows({}) * (3 << 20),
        lambda: rows({"length": "x", "advantage": [], "reward": {}, "verdict": 5, "completion": {"a": 1}, "code": 7}),
        lambda: rows({"step": "x", "row": 10**400, "length": 10**400, "advantage": 1e400, "code": "(" * 10**6}),
    ],
    ids=["zeros", "lists", "depth", "rows", "kinds", "numbers"],
)
def test_a_bomb_among_the_rollouts_is_cut(tmp_path, unpacked, monkeypatch):
    monkeypatch.setattr(groups, "BUDGET_S", 4.0)  # instead of 20
    make_run(tmp_path / "r" / "b", steps=2)
    path = make_run(tmp_path / "r" / "a", steps=2)
    (path / "rollouts" / "groups.jsonl").unlink()
    (path / "rollouts" / "step_00002.jsonl.gz").write_bytes(gzip.compress(unpacked(), 1))
    client, start = asked(tmp_path / "r"), time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for question in ("list", "step?run=a&step=2", "find?run=a&kind=worst", "find?run=a&kind=hacks", "compare?a=a&b=b"):
        assert client.get(f"/api/{question}").status_code in (200, 404), question
    assert time.monotonic() - start < 6 * QUICK_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 << 20


@pytest.mark.parametrize(
    "question",
    [
        "step?run=a&step={}", "group?of=a&step={}&problem=p0", "group?of=tiny&step={}&problem=b0",
        "find?run=a&kind=worst&before={}", "metrics?run=a&first={}", "run?run={}", "visits?run=a&problem={}",
        "bench?bench={}",
    ],
)  # fmt: skip
def test_a_number_of_thousands_of_digits_in_an_address_is_refused(tmp_path, question):
    make_run(tmp_path / "r" / "a", steps=2)
    make_bench(tmp_path / "r" / "tiny")
    client = asked(tmp_path / "r")
    for digits in ("9" * 5000, "-" + "9" * 5000, "٣" * 20, "1e999", "nan", "\ud800\0"):
        told = client.get(f"/api/{question}".format(urllib.parse.quote(digits, errors="replace")))
        shown = any(name in question for name in ("first=", "before=", "visits"))
        assert told.status_code in ((200, 404, 422) if shown else (404, 422))


def test_ids_of_thousands_of_digits_in_a_bench_are_passed_over(tmp_path):
    make_bench(tmp_path / "r" / "tiny")
    with open(tmp_path / "r" / "tiny" / "verdicts.jsonl", "a") as file:
        file.write(json.dumps({"id": f"b0#{'9' * 5000}@64", "verdict": "accepted"}) + "\n")
    assert asked(tmp_path / "r").get("/api/bench?bench=tiny").status_code == 200


def test_a_file_that_takes_long_is_read_on_with_the_next_answers(tmp_path, monkeypatch):
    path = make_run(tmp_path / "r" / "a", steps=1)
    (path / "metrics.jsonl").write_bytes(b"".join(b'{"step": %d, "reward": 1}\n' % n for n in range(400)))
    monkeypatch.setattr("microcoder.view.follow.BUDGET_S", 0.0)
    client = asked(tmp_path / "r")
    tags, steps = [], []
    for _ in range(440):
        answer = client.get("/api/metrics?run=a", headers={"If-None-Match": tags[-1] if tags else ""})
        if answer.status_code == 304:
            break
        tags.append(answer.headers["etag"])
        steps.append(answer.json()["steps"])
    assert answer.status_code == 304 and steps[-1] == 400 and steps[0] < 400


def test_a_run_that_cannot_be_read_at_all_says_why(tmp_path, monkeypatch):
    make_run(tmp_path / "r" / "a", steps=1)
    monkeypatch.setattr("microcoder.view.state._read", lambda *_: 1 / 0)
    (run,) = Questions(Library(tmp_path / "r")).listing()["runs"]
    assert run["faults"] == ["it cannot be read: ZeroDivisionError: division by zero"]
    with pytest.raises(Missing):
        Questions(Library(tmp_path / "r")).run("b")


def test_a_link_to_itself_among_the_runs_does_not_hide_them(tmp_path):
    make_run(tmp_path / "r" / "a", steps=1)
    (tmp_path / "r" / "loop").symlink_to("loop")
    assert list(Library(tmp_path / "r").listing().folders) == ["a"]
