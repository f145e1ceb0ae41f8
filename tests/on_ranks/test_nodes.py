"""Training on several machines: two nodes of torchrun, here both on this machine, give what `run.processes` gives."""

from __future__ import annotations

import time

import psutil
import pytest

from benchmarks.training.kills import begin, difference, finish
from microcoder.runs import latest_checkpoint, read_metrics
from microcoder.training.ranks import _free_port

TORCHRUN = ("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d")


def nodes(folder, *settings):
    """Two machines that train in one folder."""
    meeting = ("--rdzv-endpoint", f"127.0.0.1:{_free_port()}", "--rdzv-id", "test")
    return [begin(folder, *settings, launcher=(*TORCHRUN, *meeting)) for _ in range(2)]


def ended(machines, timeout=900):
    """Wait until all have ended; return what they printed."""
    said = [machine.communicate(timeout=timeout)[0] for machine in machines]
    assert [machine.returncode for machine in machines] == [0] * len(machines), said
    return said


def gone(machine):
    """A machine that is switched off: torchrun, and all that it has started."""
    agent = psutil.Process(machine.pid)
    for process in [agent, *agent.children(recursive=True)]:
        process.kill()
    machine.communicate(timeout=60)


@pytest.mark.parametrize("layout", ["replicated", "fsdp"])
def test_two_machines_train_bit_for_bit_as_two_processes_of_one_and_go_on_when_one_is_gone(tmp_path, layout):
    settings = ("train.steps=3", f"run.layout={layout}")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(whole, *settings, "run.processes=2")
    one, other = nodes(broken, *settings, "run.processes=2")
    while one.poll() is other.poll() is None and not (latest_checkpoint(broken) and read_metrics(broken)):
        time.sleep(0.05)
    gone(other)
    one.communicate(timeout=300)  # it notices when the ranks next speak with each other
    assert one.returncode
    ended(nodes(broken))
    assert difference(whole, broken) == ""


def test_a_folder_that_is_refused_is_refused_by_all_machines_and_said_once(tmp_path):
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    machines = nodes(folder, "train.steps=1")
    said = "".join(machine.communicate(timeout=300)[0] for machine in machines)
    assert all(machine.returncode for machine in machines)
    assert " ".join(said.split()).count("with other things in it") == 1
