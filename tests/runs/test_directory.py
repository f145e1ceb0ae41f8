"""A run directory outlives what happens to the process that writes it: kills, a full disk, a second writer."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from microcoder.runs import (
    Run,
    RunError,
    checkpoints,
    index,
    latest_checkpoint,
    read_info,
    read_metrics,
    read_rollouts,
    write_rollouts,
)

CONFIG = "[train]\nseed = 7\n"
ROLLOUT = {"row": 0, "problem": "p", "completion": "```python\n```", "verdict": "accepted", "reward": 1.0, "length": 3}


def make(path, steps=0):
    """A run in `path` with the metrics and rollouts of so many steps, and let go of as if it went on."""
    run = Run.create(path, CONFIG, {"seed": 7})
    for step in range(1, steps + 1):
        write_rollouts(path, step, [ROLLOUT])
        run.log(step, {"reward": step / 10})
    run.close()
    return path


def content(path):
    """Every file that the run is made of, but for the times in run.json."""
    files = {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}
    files["run.json"] = {**json.loads(files["run.json"]), "started": None, "updated": None, "ended": None}
    return files


def script(text, *args, **options):
    """A Python program in a process of its own, which prints a line when it is ready to be killed."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


# ---- a run's life


def test_a_new_run_holds_its_config_and_says_it_is_running(tmp_path):
    path = tmp_path / "runs" / "a"
    with Run.create(path, CONFIG, {"seed": 7, "versions": {"torch": "2"}}):
        assert (path / "config.toml").read_text() == CONFIG
        info = read_info(path)
        assert (info["status"], info["steps_done"], info["ended"]) == ("running", 0, None)
        assert (info["seed"], info["versions"]) == (7, {"torch": "2"})


def test_leaving_a_run_says_that_it_finished_and_when(tmp_path):
    with Run.create(tmp_path / "a", CONFIG, {}) as run:
        run.log(1, {"reward": 0.5})
        run.update(stages=[{"first_step": 1}])
    info = read_info(tmp_path / "a")
    assert (info["status"], info["steps_done"], info["stages"]) == ("finished", 1, [{"first_step": 1}])
    assert info["started"] <= info["ended"]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(KeyboardInterrupt(), "stopped", "interrupted"), (ZeroDivisionError("by 0"), "failed", "ZeroDivisionError: by 0")],
)
def test_an_error_passes_through_and_is_recorded(tmp_path, error, status, reason):
    with pytest.raises(type(error)), Run.create(tmp_path / "a", CONFIG, {}):
        raise error
    info = read_info(tmp_path / "a")
    assert (info["status"], info["reason"]) == (status, reason)


def test_a_run_that_was_told_otherwise_is_not_called_finished(tmp_path):
    with Run.create(tmp_path / "a", CONFIG, {}) as run:
        run.update(status="stopped", reason="the time is up")
    info = read_info(tmp_path / "a")
    assert (info["status"], info["reason"]) == ("stopped", "the time is up")


def test_a_resumed_run_is_running_again_and_keeps_what_it_knew(tmp_path):
    with pytest.raises(ZeroDivisionError), Run.create(tmp_path / "a", CONFIG, {"seed": 7}):
        raise ZeroDivisionError
    with Run.resume(tmp_path / "a"):
        info = read_info(tmp_path / "a")
        assert (info["status"], info["reason"], info["ended"], info["seed"]) == ("running", None, None, 7)


def test_a_folder_with_a_run_in_it_is_refused_with_what_it_holds(tmp_path):
    with Run.create(tmp_path / "a", CONFIG, {}) as run:
        run.log(12, {})
    with pytest.raises(RunError, match=r"finished, 12 steps done.*--resume.*train\.name="):
        Run.create(tmp_path / "a", "other", {})
    assert (tmp_path / "a" / "config.toml").read_text() == CONFIG


def test_a_killed_run_is_called_interrupted(tmp_path):
    with pytest.raises(RunError, match="interrupted, 3 steps done"):
        Run.create(make(tmp_path / "a", steps=3), CONFIG, {})


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "config.toml").write_text("mine")
    with pytest.raises(RunError, match=r"other things in it \(config\.toml\).*train\.name="):
        Run.create(tmp_path, CONFIG, {})
    assert (tmp_path / "config.toml").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_no_run_is_refused_with_the_runs_beside_it(tmp_path):
    make(tmp_path / "a")
    for path in (tmp_path, tmp_path / "b"):
        with pytest.raises(RunError, match=f"not a run directory.*runs are {tmp_path / 'a'}"):
            Run.resume(path)
    assert not (tmp_path / ".lock").exists()


# ---- one writer


def test_a_run_in_use_is_refused_naming_the_process_and_is_free_once_that_is_killed(tmp_path):
    path = make(tmp_path / "a")
    holder = script(
        """
        import sys, time
        from microcoder.runs import Run
        run = Run.resume(sys.argv[1])
        print("ready", flush=True)
        time.sleep(60)
        """,
        path,
    )
    try:
        assert holder.stdout.readline() == "ready\n"
        for open_again in (Run.resume, lambda path: Run.create(path, CONFIG, {})):
            with pytest.raises(RunError, match=f"in use by process {holder.pid} on .*train.name="):
                open_again(path)
    finally:
        holder.kill()
        holder.communicate()
    Run.resume(path).close()


def test_one_process_cannot_open_a_run_twice_but_one_after_the_other(tmp_path):
    with Run.create(tmp_path / "a", CONFIG, {}), pytest.raises(RunError, match=f"process {os.getpid()} "):
        Run.resume(tmp_path / "a")
    Run.resume(tmp_path / "a").close()


def test_a_forked_child_that_lives_on_does_not_keep_the_run_in_use(tmp_path):
    with Run.create(tmp_path / "a", CONFIG, {}):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        Run.resume(tmp_path / "a").close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---- metrics


def test_metrics_come_back_as_they_were_logged_with_null_for_what_is_not_finite(tmp_path):
    logged = {"loss": float("nan"), "kl": np.float32("inf"), "rows": np.int64(3), "verdicts": {"a": 2, "x": np.nan}}
    with Run.create(tmp_path / "a", CONFIG, {}) as run:
        run.log(0, {"test_accuracy": 0.25})
        run.log(1, logged | {"step": 1})
        expected = [{"step": 0, "test_accuracy": 0.25}]
        expected += [{"step": 1, "loss": None, "kl": None, "rows": 3, "verdicts": {"a": 2, "x": None}}]
        assert run.metrics == read_metrics(tmp_path / "a") == expected


def test_a_step_is_logged_once(tmp_path):
    make(tmp_path / "a", steps=3)
    with Run.resume(tmp_path / "a") as run:
        with pytest.raises(RunError, match=r"step 3 is there already.*rewind\(1\)"):
            run.log(2, {})
        run.log(4, {})
    assert [line["step"] for line in read_metrics(tmp_path / "a")] == [1, 2, 3, 4]


def test_a_last_line_cut_off_anywhere_is_passed_over_and_then_cut_away(tmp_path):
    path = make(tmp_path / "a", steps=2) / "metrics.jsonl"
    whole = path.read_bytes()
    first, second = whole.splitlines(keepends=True)
    for kept in range(len(second)):
        path.write_bytes(first + second[:kept])
        assert [line["step"] for line in read_metrics(tmp_path / "a")] == [1]
        with Run.resume(tmp_path / "a") as run:
            run.log(2, {"reward": 0.2})
        assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ['{"step": 2, "rew', "[2]", "2", '{"reward": 1}', "\x00\x00"])
def test_a_bad_line_that_is_not_the_last_is_named(tmp_path, line):
    path = make(tmp_path / "a", steps=1) / "metrics.jsonl"
    path.write_text(path.read_text() + line + "\n" + '{"step": 3}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2 .*remove that line"):
        read_metrics(tmp_path / "a")


def test_a_run_without_metrics_has_none(tmp_path):
    assert read_metrics(make(tmp_path / "a")) == []


# ---- rewinding


@pytest.mark.parametrize("step", [0, 2, 5, 9])
def test_rewinding_leaves_a_run_as_it_was_at_that_step(tmp_path, step):
    make(tmp_path / "short", steps=min(step, 5))
    make(tmp_path / "long", steps=5)
    with Run.resume(tmp_path / "long") as run:
        run.rewind(step)
        left, expected = content(tmp_path / "long"), content(tmp_path / "short")
        if step == 0:  # empty files rather than none
            assert (left.pop("metrics.jsonl"), left.pop("rollouts/index.jsonl")) == (b"", b"")
        assert left == expected
        run.log(min(step, 5) + 1, {})


# ---- kills


def killed_at(moment, act, path):
    """Run `act(path)` in a child that kills itself when it touches a file for the `moment`-th time; whether it did."""
    child = os.fork()
    if child == 0:
        moments = itertools.count(1)

        def hook(event, _):
            if event in ("open", "os.mkdir", "os.rename", "os.remove") and next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            act(path)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status != 0


def create(path):
    Run.create(path, CONFIG, {"seed": 7})


def go_on(path):
    """Go on from a checkpoint of step 2 with step 3."""
    run = Run.resume(path)
    run.rewind(2)
    write_rollouts(path, 3, [ROLLOUT])
    run.log(3, {"reward": 0.3})


def test_a_creation_killed_at_any_moment_can_be_done_again_or_resumed(tmp_path):
    whole = content(make(tmp_path / "whole"))
    for moment in itertools.count(1):
        path = tmp_path / str(moment)
        if not killed_at(moment, create, path):
            break
        (Run.resume if (path / "config.toml").exists() else create)(path)
        assert content(path) == whole
    assert moment > 5


@pytest.mark.long
def test_a_run_killed_at_any_moment_of_rewinding_and_going_on_can_be_resumed_to_the_same_end(tmp_path):
    whole = content(make(tmp_path / "whole", steps=3))
    make(tmp_path / "long", steps=4)
    for moment in itertools.count(1):
        path = shutil.copytree(tmp_path / "long", tmp_path / str(moment))
        if not killed_at(moment, go_on, path):
            break
        seen = [line["step"] for line in read_metrics(path)]
        assert seen == list(range(1, len(seen) + 1))
        assert all(entry["rows"] == len(read_rollouts(path, entry["step"])) for entry in index(path))
        go_on(path)
        assert content(path) == whole
    assert moment > 20


def test_a_process_killed_while_it_writes_loses_no_step_that_it_told_of(tmp_path):
    program = """
        import itertools, sys
        from microcoder.runs import Run, write_rollouts
        run = Run.create(sys.argv[1], "", {})
        for step in itertools.count(1):
            write_rollouts(run.path, step, [{"row": 0, "problem": "p", "completion": "x" * 5000, "verdict": "no_code"}])
            run.log(step, {"text": "y" * 5000})
            print(step, flush=True)
    """
    for delay in (0.01, 0.05, 0.1):
        writer = script(program, tmp_path / str(delay))
        writer.stdout.readline()
        time.sleep(delay)
        writer.kill()
        told = [1, *map(int, writer.communicate()[0].split())]
        logged = [line["step"] for line in read_metrics(tmp_path / str(delay))]
        assert logged[: len(told)] == told
        assert {entry["step"] for entry in index(tmp_path / str(delay))} >= set(told)


# ---- full disks


def test_a_full_disk_is_told_with_directions_and_the_run_goes_on_when_there_is_room(tmp_path):
    program = """
        import errno, os, subprocess, sys
        from pathlib import Path
        from microcoder.runs import Run, RunError, read_info, read_metrics
        place, ballast = Path(sys.argv[1]), Path(sys.argv[1], "ballast")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place]).returncode:
            sys.exit(77)
        def fill():
            with open(ballast, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError as error:
                    assert error.errno == errno.ENOSPC
        def log(run):
            run.log(2, {"note": "y" * 6000})
        def save(run):  # as an engine saves a checkpoint
            Path(run.path, "weights").write_bytes(bytes(9999))
        with Run.create(place / "a", "", {}) as run:
            run.log(1, {"note": "x" * 6000})
        for act in (log, save):
            told = ""
            try:
                with Run.resume(place / "a") as run:
                    fill()
                    act(run)
            except RunError as error:
                told = str(error)
            assert "the disk is full" in told and "--resume" in told, told
            assert [line["step"] for line in read_metrics(place / "a")] == [1]
            assert Path(place, "a", "metrics.jsonl").read_bytes().endswith(b"\\n")  # nothing half-written
            assert read_info(place / "a")["status"] == "running"
            try:
                Run.resume(place / "a")
                raise SystemExit("resumed on a full disk")
            except RunError as error:
                assert "the disk is full" in str(error)
            ballast.unlink()
        try:
            with Run.resume(place / "a"):
                fill()
                1 / 0
        except ZeroDivisionError:  # the first fault is told, though that cannot be recorded
            ballast.unlink()
        with Run.resume(place / "a") as run:
            run.rewind(1)
            run.log(2, {})
        print("went on")
    """
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", textwrap.dedent(program)]
    try:
        done = subprocess.run([*command, tmp_path], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("no disk can be mounted here")
    assert (done.stdout, done.stderr) == ("went on\n", "")


def test_a_line_that_could_only_be_written_in_part_is_taken_back(tmp_path):
    path = make(tmp_path / "a", steps=1)
    before = (path / "metrics.jsonl").read_bytes()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            Run.resume(path).log(2, {"note": "x" * 5000})
        except RunError as error:
            os._exit(0 if "cannot write" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert (path / "metrics.jsonl").read_bytes() == before


# ---- checkpoints


def test_a_checkpoint_counts_when_its_state_is_whole(tmp_path):
    for name, state in {
        "checkpoint-9": "{}",
        "checkpoint-10": '{"global_step": 10}',
        "checkpoint-11": None,
        "checkpoint-12": '{"global_st',
        "checkpoint-13-old": "{}",
    }.items():
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        if state is not None:
            (tmp_path / "checkpoints" / name / "trainer_state.json").write_text(state)
    assert checkpoints(tmp_path) == [9, 10]
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoints" / "checkpoint-10"


def test_without_checkpoints_there_is_no_latest(tmp_path):
    assert (checkpoints(tmp_path), latest_checkpoint(tmp_path)) == ([], None)
