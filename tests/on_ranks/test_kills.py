"""A rank is killed: the others end, the message says which and why, and the run goes on exactly."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from benchmarks.training.kills import begin, difference, finish, kill, ranks_of
from microcoder.models import resolve
from microcoder.runs import Run, latest_checkpoint, read_info, read_metrics
from microcoder.training.card import export
from microcoder.training.ranks import GRACE_S

FSDP = ("train.steps=3", "run.processes=2", "run.layout=fsdp", "grpo.dynamic_sampling=1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two ranks that nobody disturbed."""
    folder = tmp_path_factory.mktemp("kills") / "whole"
    finish(folder, *FSDP)
    return folder


def first_step(process, folder):
    """Wait until the first step is written down; return the ranks."""
    while process.poll() is None and not (latest_checkpoint(folder) and read_metrics(folder)):
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]
    return ranks_of(process)


def test_a_killed_rank_ends_the_others_and_the_run_goes_on_exactly(whole):
    folder = whole.with_name("broken")
    process = begin(folder, *FSDP)
    report = kill(process, 1, first_step(process, folder))
    assert report["status"] == 1 and report["left"] == 0
    assert report["ended_s"] < 2 * GRACE_S
    assert "rank 1 of 2 was killed by SIGKILL" in report["said"][0]
    assert f"microcoder train {folder} --resume" in report["said"][0]
    assert read_info(folder)["status"] == "failed" and "rank 1" in read_info(folder)["reason"]
    process = begin(folder)
    while process.poll() is None and read_info(folder)["status"] != "running":
        time.sleep(0.05)
    ranks = ranks_of(process)
    process.send_signal(signal.SIGINT)  # Ctrl-C, while it goes on
    said, _ = process.communicate(timeout=10 * GRACE_S)
    assert process.returncode == 130 and "--resume" in said and not any(rank.is_running() for rank in ranks.values())
    assert read_info(folder)["status"] == "stopped"
    process = begin(folder)
    while process.poll() is None and len(ranks := ranks_of(process)) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # while the ranks still start: they hear of it later
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM, said
    assert "--resume" in said and not any(rank.is_running() for rank in ranks.values())
    info = read_info(folder)
    assert (info["status"], info["reason"], info["steps_done"]) == ("stopped", "SIGTERM", 2)
    finish(folder)
    assert difference(whole, folder) == ""


def test_a_run_that_is_there_is_refused_and_left_as_it_is(whole, tmp_path):
    """Whether it has ended, or another process has just begun it and no step is done."""
    ended, begun = tmp_path / "ended", tmp_path / "begun"
    shutil.copytree(whole, ended)
    with Run.create(begun, (whole / "config.toml").read_text(), {}):
        for folder, status in ((ended, "finished"), (begun, "running")):
            words = [f"train.folder={tmp_path}", f"train.name={folder.name}"]
            command = [sys.executable, "-m", "microcoder.cli", "train", str(whole / "config.toml"), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            assert done.returncode == 2, done.stderr
            assert {"finished": "already holds a run", "running": "is in use by process"}[status] in done.stderr
            assert read_info(folder)["status"] == status


def test_a_refused_resume_leaves_the_settings_as_they_were(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    command = [sys.executable, "-m", "microcoder.cli", "train", str(folder), "--resume", "run.layout=replicated"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "run.layout=fsdp" in " ".join(done.stderr.split())
    assert (folder / "config.toml").read_text() == (whole / "config.toml").read_text()


def test_another_number_of_processes_is_refused_and_says_why(whole):
    config = (whole / "config.toml").read_text()
    (whole / "config.toml").write_text(config.replace("processes = 2", "processes = 1").replace('"fsdp"', '"auto"'))
    process = begin(whole)
    said, _ = process.communicate(timeout=300)
    (whole / "config.toml").write_text(config)
    assert process.returncode == 2
    assert "run.processes=2 run.layout=fsdp" in " ".join(said.split())


def test_a_run_in_shares_is_exported_whole(whole, tmp_path):
    export(whole, tmp_path / "model")
    found = load_file(tmp_path / "model" / "model.safetensors")
    trained = load_file(latest_checkpoint(whole) / "model.safetensors")
    assert all(str(value.dtype) == "torch.bfloat16" for value in found.values())
    assert all(found[name].equal(trained[name].bfloat16()) for name in found)
    assert resolve(str(tmp_path / "model")).path == str(tmp_path / "model")
    assert "after 3 steps" in (tmp_path / "model" / "README.md").read_text()
    assert json.loads((tmp_path / "model" / "config.json").read_text())["dtype"] == "bfloat16"
