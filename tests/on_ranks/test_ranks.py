"""Training on several devices: here two processes on one CPU, as `torchrun` starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import microcoder
from microcoder.runs import checkpoints, read_info, read_metrics, read_rollouts

SETTINGS = (
    "train.steps=2",
    "train.train_batch_size=4",
    "grpo.samples=4",
    "train.micro_batch_size=4",
    "train.max_response_tokens=48",
    "train.eval_every=0",
    "train.stages=[{at_step=2,temperature=1.3}]",
    "data.train_size=20",
    "data.test_size=5",
    "judge.workers=1",
)


PACKED = "16 responses = 1 update x 8 responses in packed passes of up to 400 tokens x 2 devices"
OPTIONS = ("train.update=packed", "train.pass_tokens=400", "grpo.turns=2")


def test_two_processes_share_a_step_and_one_of_them_writes_it_down(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    command += ["-m", "microcoder.cli", "train", "demo", f"train.folder={tmp_path}", *SETTINGS, *OPTIONS]
    root = str(Path(microcoder.__file__).parents[1])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "demo"
    assert PACKED in done.stdout
    assert done.stdout.count("before: test accuracy") == 1  # the second process is silent
    assert [line["step"] for line in read_metrics(run)] == [0, 1, 2]
    assert [line["rows"] for line in read_metrics(run)[1:]] == [16, 16]
    rows = read_rollouts(run, 1)
    assert len(rows) == 16 and len({row["problem"] for row in rows}) == 4  # whole groups, each of one process
    assert [row["row"] for row in rows] == list(range(16))
    assert any("earlier" in row for row in rows)
    assert len({row["completion"] for row in rows}) > 4  # the processes do not draw alike
    assert read_info(run)["status"] == "finished" and checkpoints(run)[-1] == 2
    assert json.loads((run / "summary.json").read_text())["after"]["problems"] == 5
