"""Training that samples by a real vLLM: in the process, and from a server that is killed and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from benchmarks.gpu.engines import end, start, untied
from benchmarks.training.kills import SETTINGS, difference
from microcoder.runs import read_metrics

SAMPLING = ("rollout.engine=vllm", "train.update=packed", "rollout.memory=0.05", "train.lr=1e-3")


def training(folder, *settings):
    """Begin a run, or go on with it; a server must have been started."""
    begun = (folder / "config.toml").exists()
    words = (
        [str(folder), "--resume"] if begun else ["demo", f"train.folder={folder.parent}", f"train.name={folder.name}"]
    )
    settings = settings if begun else (*SETTINGS, *SAMPLING, *settings)
    command = [sys.executable, "-m", "microcoder.cli", "train", *words, *settings]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(folder, *settings):
    process = training(folder, *settings)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said


def mismatches(folder):
    """How far sampler and training are apart in each step that was trained on."""
    return [line["mismatch_mean"] for line in read_metrics(folder) if "mismatch_mean" in line]


@contextmanager
def serving(model, port, tmp_path):
    process = start(str(model), port, 256, tmp_path / "server.log")
    try:
        yield process
    finally:
        end(process)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return untied("nano", tmp_path_factory.mktemp("untied"))


@pytest.fixture(scope="module")
def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_in_the_process_it_trains_on_what_its_weights_sampled_and_goes_on_exactly(tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    finish(whole, "train.steps=3", "grpo.temperature=1.3")
    assert len(mismatches(whole)) > 1 and max(mismatches(whole)) < 1e-5
    finish(stopped, "train.steps=2", "grpo.temperature=1.3")
    finish(stopped, "train.steps=3")
    assert difference(whole, stopped) == ""


def test_a_server_that_is_killed_ends_the_run_which_goes_on_exactly_with_another(tmp_path, model, port):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    settings = (
        "train.steps=3",
        "grpo.temperature=1.3",
        f"model.name={model}",
        f"rollout.server=http://127.0.0.1:{port}",
    )
    with serving(model, port, tmp_path) as server:
        finish(whole, *settings)
        assert len(mismatches(whole)) > 1 and max(mismatches(whole)) < 1e-5
        process = training(broken, *settings)
        while process.poll() is None and not (len(read_metrics(broken)) > 1 and list(broken.glob("checkpoints/*"))):
            time.sleep(0.02)
        end(server, signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 2, said
    words = " ".join(said.split())
    assert "the vLLM server is gone" in words and "start it again" in words and "--resume" in words
    refused = training(broken)
    said, _ = refused.communicate(timeout=120)
    assert refused.returncode == 2 and "no vLLM server answers" in " ".join(said.split()), said
    with serving(model, port, tmp_path):
        finish(broken)
        assert difference(whole, broken) == ""


def test_a_server_samples_one_step_ahead(tmp_path, model, port):
    ahead = tmp_path / "ahead"
    settings = (
        "train.steps=4",
        "grpo.temperature=1.3",
        f"model.name={model}",
        f"rollout.server=http://127.0.0.1:{port}",
    )
    with serving(model, port, tmp_path):
        finish(ahead, *settings, "rollout.ahead=1", "train.train_batch_size=6", "grpo.samples=8")
    lines = read_metrics(ahead)
    assert [line["staleness"] for line in lines] == [0, 1, 1, 1]
    assert max(line.get("mismatch_mean", 0) for line in lines) > 1e-5  # older weights sampled them


RANKS = ("run.processes=2", "train.steps=3", "grpo.temperature=1.3")
LAYOUTS = [
    ("run.layout=replicated",),
    ("run.layout=fsdp",),
    ("run.layout=fsdp", "model.lora_rank=4", "grpo.dynamic_sampling=2", "train.train_batch_size=4"),
]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=["replicated", "fsdp", "adapter and dynamic sampling"])


@layouts
def test_two_ranks_have_an_engine_each(tmp_path, layout):
    finish(tmp_path / "run", *RANKS, *layout)
    found = mismatches(tmp_path / "run")
    assert len(found) > 1 and max(found) < 1e-5


@layouts
def test_two_ranks_share_a_server_and_none_samples_before_it_has_the_new_weights(tmp_path, model, port, layout):
    with serving(model, port, tmp_path):
        server = f"rollout.server=http://127.0.0.1:{port}"
        finish(tmp_path / "run", *RANKS, *layout, f"model.name={model}", server)
    found = mismatches(tmp_path / "run")
    assert len(found) > 1 and max(found) < 1e-5


def test_two_ranks_end_when_their_server_is_killed(tmp_path, model, port):
    with serving(model, port, tmp_path) as killed:
        server = f"rollout.server=http://127.0.0.1:{port}"
        process = training(tmp_path / "run", *RANKS, f"model.name={model}", server)
        while process.poll() is None and not read_metrics(tmp_path / "run"):
            time.sleep(0.02)
        end(killed, signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and "the vLLM server is gone" in " ".join(said.split()), said
