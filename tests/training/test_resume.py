"""A run outlives its process: what goes on after a kill is, bit for bit, what was never stopped.

One story for all: a run is killed in its fifth step, goes on, is interrupted, goes on, is told to end, and goes on to
its end. A twin of it trains without a stop in this process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from train_runs import TINY, Listening, resumed, same, timeless, trained, weights

import microcoder
from microcoder.runs import Run, RunError, checkpoints, read_info, read_metrics, steps
from microcoder.training import recorder

pytestmark = pytest.mark.long
RUN = (
    "data.train_size=5",  # epochs of two steps: order and chance must be right beyond the first
    "train.ppo_mini_batch_size=1",  # two updates in a step
    "train.steps=6",
    "train.save_every=3",
    "train.stages=[{at_step=6, temperature=1.0}]",  # a boundary after step 5
    "train.keep_checkpoints=9",
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(microcoder.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


class Process:
    """`microcoder train`, as a user starts it."""

    def __init__(self, log, *words):
        self.log = log
        command = [sys.executable, "-m", "microcoder.cli", "train", *words]
        with open(log, "w") as output:
            self.process = subprocess.Popen(command, env=ENVIRONMENT, stdout=output, stderr=output)

    def reaches(self, step):
        """Wait until this step is done: the next one is being generated."""
        deadline = time.monotonic() + 120
        while f"step {step}/6 " not in self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def ends(self, number=None):
        """Its exit status, what it printed and the processes that it left, after a signal or by itself."""
        children = []
        if number is not None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            assert children  # the judge
            self.process.send_signal(number)
        status = self.process.wait(timeout=120)
        _, left = psutil.wait_procs(children, timeout=10)
        return SimpleNamespace(status=status, printed=self.log.read_text(), left=left)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    path, log, seen = folder / "run", folder / "log", SimpleNamespace()
    run = Process(log, *TINY, *RUN, f"train.folder={folder}", "train.name=run")
    try:
        run.reaches(4)
        with pytest.raises(RunError) as refusal:
            Run.resume(path)
        seen.refusal, seen.holder = str(refusal.value), run.process.pid
        seen.killed = run.ends(signal.SIGKILL)
        seen.after_kill = SimpleNamespace(info=read_info(path), steps=steps(path), checkpoints=checkpoints(path))
        run = Process(log, str(path), "--resume")
        run.reaches(4)
        seen.interrupted = run.ends(signal.SIGINT)
        seen.after_interrupt = SimpleNamespace(info=read_info(path), checkpoints=checkpoints(path))
        run = Process(log, str(path), "--resume")
        run.reaches(4)
        seen.terminated = run.ends(signal.SIGTERM)
        seen.after_term = SimpleNamespace(
            info=read_info(path), checkpoints=checkpoints(path), metrics=read_metrics(path)
        )
        run = Process(log, str(path), "--resume")
        seen.path, seen.twin = path, folder / "twin"
        trained(seen.twin, *RUN)
        seen.finished = run.ends()
    finally:
        run.process.kill()
        run.process.wait()
    return seen


def test_a_killed_run_says_running_and_keeps_what_it_had(story):
    assert story.killed.status == -signal.SIGKILL
    assert story.after_kill.info["status"] == "running"
    assert story.after_kill.checkpoints[0] == 6  # step 3, in updates
    assert story.after_kill.steps[:4] == [1, 2, 3, 4]  # step 4 is to be made again
    assert not story.killed.left  # judge and sandboxes go with it


def test_a_run_in_use_is_refused_with_its_holder(story):
    assert f"in use by process {story.holder}" in story.refusal
    assert "train.name=" in story.refusal


def test_ctrl_c_stops_a_run_in_order(story):
    assert story.interrupted.status == 130
    assert (story.after_interrupt.info["status"], story.after_interrupt.info["reason"]) == ("stopped", "interrupted")
    assert story.after_interrupt.checkpoints[0] == 6
    assert f"microcoder train {story.path} --resume" in story.interrupted.printed
    assert "Traceback" not in story.interrupted.printed
    assert not story.interrupted.left


def test_sigterm_ends_a_run_after_its_step_with_a_checkpoint(story):
    assert story.terminated.status == 128 + signal.SIGTERM, story.terminated.printed
    info, done = story.after_term.info, story.after_term.info["steps_done"]
    assert (info["status"], info["reason"]) == ("stopped", "SIGTERM")
    assert done in (4, 5)  # none of them is a multiple of save_every
    assert story.after_term.checkpoints[-1] == 2 * done
    assert story.after_term.metrics[-1]["step"] == done
    assert "SIGTERM: this step is finished and saved" in story.terminated.printed
    assert f"microcoder train {story.path} --resume" in story.terminated.printed
    assert "Traceback" not in story.terminated.printed
    assert not story.terminated.left


def test_the_weights_are_equal_bit_for_bit_to_those_of_a_run_that_was_never_stopped(story):
    assert story.finished.status == 0, story.finished.printed
    assert checkpoints(story.path)[-1] == checkpoints(story.twin)[-1] == 12
    assert same(weights(story.path), weights(story.twin))


def test_so_are_the_metrics_and_the_rollouts(story):
    assert timeless(read_metrics(story.path)) == timeless(read_metrics(story.twin))
    assert [line["temperature"] for line in read_metrics(story.path)] == [1.2] * 5 + [1.0]
    assert max(line["grad_norm"] for line in read_metrics(story.path)) > 0
    for one in sorted((story.twin / "rollouts").glob("step_*")):
        assert (story.path / "rollouts" / one.name).read_bytes() == one.read_bytes()
    assert steps(story.path) == steps(story.twin) == [1, 2, 3, 4, 5, 6]


# ---- what else may happen


class Killing(Listening):
    """Kills one worker of the judge as the second step begins."""

    def __init__(self):
        super().__init__()
        self.steps, self.killed = 0, []
        self.others = psutil.Process().children()  # of judges that earlier tests have left

    def step(self, metrics):
        self.steps += 1

    def phase(self, name):
        if self.steps == 1 and not self.killed:
            ours = [child for child in psutil.Process().children() if child not in self.others]
            self.killed = [child for child in ours if "judge.worker" in " ".join(child.cmdline())][:1]
            for worker in self.killed:
                worker.kill()


def test_the_death_of_a_judge_worker_changes_nothing(story, tmp_path):
    observer = Killing()
    lines = trained(tmp_path / "run", *RUN, "train.steps=2", observer=observer)
    assert len(observer.killed) == 1
    assert not observer.killed[0].is_running()
    assert timeless(lines) == timeless(read_metrics(story.twin))[:2]
    assert [line["judge_faults"] for line in lines] == [0, 0]


@pytest.fixture
def small_disk(tmp_path):
    """A disk with room for one checkpoint of nano and a part of the next; and how to make it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True).returncode

    if mount("size=20m"):
        pytest.skip("only root can mount a small disk")
    try:
        yield place, lambda: mount("remount,size=80m")
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_named_and_the_run_goes_on_when_there_is_room(small_disk, story, monkeypatch):
    place, enlarge = small_disk
    options = (*RUN, "train.save_every=1", "train.steps=2")
    with pytest.raises(RunError, match=r"the checkpoint of step 2 takes about .*--resume"):
        trained(place / "run", *options)
    assert read_info(place / "run")["steps_done"] == 1  # nothing of step 2 was sampled
    shutil.rmtree(place / "run")
    monkeypatch.setattr(recorder, "checkpoint_bytes", lambda *_: 0)  # as if the room were taken by others meanwhile
    with pytest.raises(RunError, match=r"the disk is full, so .*checkpoint-4 could not be written.*--resume"):
        trained(place / "run", *options)
    info = read_info(place / "run")
    assert (info["status"], info["steps_done"]) == ("failed", 2)
    assert [one.name for one in (place / "run" / "checkpoints").iterdir()] == ["checkpoint-2"]  # nothing half-written
    enlarge()
    assert timeless(resumed(place / "run", *options)) == timeless(read_metrics(story.twin))[:2]
