"""`microcoder judge --ray` and `microcoder data run --ray`: what they write is what they write here."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from microcoder import Problem, Test
from microcoder.files import write_problems
from microcoder.starter import problems

BEGUN = 20  # verdicts after which a command is stopped
SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(4)], time_limit_s=2)


def command(*words: Any, **options: Any) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "microcoder.cli", *map(str, words)]
    return subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def done(*words: Any, status: int = 0, **options: Any) -> str:
    process = command(*words, **options)
    out, err = process.communicate(timeout=120)
    assert process.returncode == status, out + err
    return out + err


def verdicts(path: Path) -> dict[str, str]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({record["id"] for record in records}) == len(records)
    return {record["id"]: record["verdict"] for record in records}


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> list[Path]:
    folder = tmp_path_factory.mktemp("judge")
    write_problems(folder / "problems.parquet", [SQUARE])
    programs = ["print(int(input()) ** 2)", "print(int(input()) + 2)", "print(1 / int(input()))", "print("]
    lines = [json.dumps({"id": n, "problem_id": "square", "code": programs[n % 4]}) for n in range(160)]
    (folder / "solutions.jsonl").write_text("\n".join(lines))
    return [folder / "problems.parquet", folder / "solutions.jsonl"]


@pytest.mark.parametrize("address", ["the cluster", "local"])
def test_ctrl_c_leaves_no_process_and_the_same_command_goes_on(
    nodes: Any, files: list[Path], tmp_path: Path, address: str
) -> None:
    address = nodes.address if address == "the cluster" else address
    there, here = tmp_path / "there.jsonl", tmp_path / "here.jsonl"
    words = ["judge", *files, "-o", there, "--ray", address]
    stopped = command(*words, start_new_session=True)
    started: set[psutil.Process] = set()
    while not (there.exists() and len(there.read_text().splitlines()) > BEGUN):
        assert stopped.poll() is None, stopped.communicate()
        started.update(psutil.Process(stopped.pid).children(recursive=True))
        time.sleep(0.05)
    os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does
    assert "run the same command again" in stopped.communicate(timeout=60)[1] and stopped.returncode == 130
    assert not psutil.wait_procs(started, timeout=20)[1]
    deadline = time.monotonic() + 20
    while nodes.processes("NodeJudge") or nodes.processes("zygote import main"):
        assert time.monotonic() < deadline, "the nodes still judge"
        time.sleep(0.1)
    assert BEGUN < len(verdicts(there)) < 160
    if address == nodes.address:
        done(*words)
        done("judge", *files, "-o", here)
        assert verdicts(there) == verdicts(here) and len(verdicts(here)) == 160


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with three files of problems, and so three parts; some problems are alike."""
    folder = tmp_path / "there"
    folder.mkdir()
    made = problems("train", 12)
    for name, some in {"a": made[:6], "b": made[4:10], "c": made[8:]}.items():
        write_problems(folder / f"{name}.jsonl", some)
    named = "".join(f'[[collect.sources]]\npath = "{name}.jsonl"\n' for name in "abc")
    (folder / "data.toml").write_text(named + '[verify]\nmutants = 2\n[difficulty]\nby = "none"\n')
    shutil.copytree(folder, tmp_path / "here")  # with the times of the files, by which they are known
    return tmp_path


def contents(folder: Path) -> dict[str, Any]:
    """Of every file but the report and the lock, which names a process.

    Outside of dataset/ without what was measured: seconds of steps and references.
    """
    found: dict[str, Any] = {}
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("report.html", ".lock")
    ):
        name = str(path.relative_to(folder))
        text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        measured = rb'"(seconds|reference_cpu_s|reference_total_s)": [\d.e-]+'
        found[name] = text if path.parent.name == "dataset" else re.sub(measured, b"", text)
    assert {"out/dataset/problems.parquet", "out/dataset/README.md"} <= set(found)
    return found


def test_data_made_on_a_cluster_is_byte_for_byte_what_is_made_here(nodes: Any, sources: Path) -> None:
    there, here = sources / "there", sources / "here"
    said = done("data", "run", "data.toml", "--ray", nodes.address, cwd=there)
    assert "duplicate 4" in said
    done("data", "run", "data.toml", cwd=here)
    assert contents(there) == contents(here)
    again = done("data", "run", "data.toml", cwd=there)  # where it was made makes no difference to what is done
    assert again.count("done before") == again.count(" kept (")


class Refusing(BaseHTTPRequestHandler):
    """A server that refuses whatever it is asked, so that nothing is tried again."""

    def do_POST(self) -> None:
        self.send_error(401)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_fault_on_a_node_is_told_as_one_here(nodes: Any, sources: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"endpoint.base_url=http://127.0.0.1:{server.server_port}"
        words = ["data", "run", "data.toml", url, "endpoint.model=m", 'endpoint.key_env=""', "difficulty.by=endpoint"]
        said = [done(*words, *more, status=2, cwd=sources / "there") for more in ((), ("--ray", nodes.address))]
        server.shutdown()
    assert "Traceback" not in said[1] and "401" in said[0]
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]


def test_a_node_that_does_not_see_the_files_ends_it_before_anything_is_made(nodes: Any, sources: Path) -> None:
    """A node in a mount namespace of its own, where another disk lies over the folder."""
    there = sources / "there"
    ray = Path(sys.executable).with_name("ray")
    start = f"mount -t tmpfs none {there} && exec {ray} start --address={nodes.address} --num-cpus=1 --block"
    blind = subprocess.Popen(["unshare", "-rm", "sh", "-c", start], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        nodes.wait_for(4)
        said = done("data", "run", "data.toml", "--ray", nodes.address, status=2, cwd=there)
        assert "does not see" in said and "output.folder" in said and not (there / "out" / "process").exists()
    finally:
        os.killpg(blind.pid, signal.SIGTERM)
        blind.wait(timeout=30)
