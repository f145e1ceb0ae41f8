"""Two real ranks over gloo in each layout: the weights are those of one process, on the same rollouts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import microcoder

PACKED, ADAPTER = ",train.update=packed", ",model.lora_rank=4"
UPDATES = ",train.ppo_mini_batch_size=2,train.update=packed"  # the second one needs the log-probabilities of before
CASES = ["replicated", f"replicated{PACKED}", f"fsdp{PACKED}", f"fsdp{UPDATES}", f"fsdp{ADAPTER}", "fsdp"]
ZERO = ["zero1", f"zero2{PACKED}", f"zero3{PACKED}", "zero3"]
deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="DeepSpeed is not installed: make test-ranks installs it"
)


def scripted(folder: Path, cases: list[str], *launcher: str) -> None:
    folder.mkdir(exist_ok=True)
    root = str(Path(microcoder.__file__).parents[1])
    command = [sys.executable, *launcher, str(Path(__file__).parent / "scripted_ranks.py"), str(folder), *cases]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """(the layout and settings) -> the weights of one process, and of two ranks."""
    folder, ranks = (
        tmp_path_factory.mktemp("ranks"),
        ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"),
    )
    cases = CASES + (ZERO if importlib.util.find_spec("deepspeed") else [])
    alone = sorted({",".join(["replicated", *case.split(",")[1:]]) for case in cases})
    scripted(folder / "one", alone)
    scripted(folder / "two", cases, *ranks)
    return lambda case: (
        load_file(folder / "one" / f"{','.join(['replicated', *case.split(',')[1:]])}.safetensors"),
        load_file(folder / "two" / f"{case}.safetensors"),
    )


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=deepspeed) for case in ZERO)])
def test_two_ranks_give_the_weights_of_one_process(weights, case):
    one, two = weights(case)
    assert one.keys() == two.keys()
    start = load_file(Path(microcoder.__file__).parent / "models" / "nano" / "model.safetensors")
    moved = max(float((one[name] - start[name]).abs().max()) for name in start if name in one)
    apart = max(float((one[name] - two[name]).abs().max()) for name in one)
    assert moved > 1e-4 and apart < 0.05 * moved  # Adam makes whole steps of tiny gradients, which rounding may turn
    distance = sum(float((one[name] - two[name]).square().sum()) for name in one)
    way = sum(float((one[name] - start[name]).square().sum()) for name in start if name in one)
    assert distance < 1e-6 * way
    assert torch.isfinite(torch.stack([value.sum() for value in two.values()])).all()
