"""`microcoder study run`: real runs of nano, a few steps long, side by side; stopped, killed and gone on with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from train_runs import timeless

from microcoder.cli import main
from microcoder.config import load
from microcoder.runs import latest_checkpoint, read_info, read_metrics, read_rollouts
from microcoder.runs.disk import release_lock, take_lock
from microcoder.study.launch import Command, Planned, StudyOutcome, _make, side_by_side, tail

COMMAND = [sys.executable, "-m", "microcoder.cli", "study", "run"]
STUDY = """
title = "Tiny"
shared = ["data.train={varied}"]
measurements = ["judging", "styles"]
[[arms]]
name = "plain"
"""
FURTHER = """
[[arms]]
name = "twin"
set = ["train.lr=2e-4"]
[[arms]]
name = "tested-hot"
set = ["train.eval_temperature=1.4"]
[[arms]]
name = "wrong"
set = ["train.train_batch_size=3", "train.ppo_mini_batch_size=2"]
[[arms]]
name = "later"
after = "plain"
[[arms]]
name = "after-wrong"
after = "wrong"
"""
TINY = (
    "data.train_size=8",
    "data.test_size=2",
    "grpo.samples=2",
    "train.steps=4",
    "train.train_batch_size=2",
    "train.max_response_tokens=64",
    "train.eval_max_response_tokens=64",
    "train.eval_every=0",
    "train.eval_tries=2",
    "train.save_every=1",
)


def command(folder, *more):
    place = [str(folder / "tiny.toml"), "--out", str(folder / "out")]
    return [*COMMAND, *place, "--seeds", "1", "--together", "2", *TINY, *more]


def run(folder, *more):
    return subprocess.run(command(folder, *more), capture_output=True, text=True, timeout=300)


def said(capsys, folder, *more):
    """The exit status of the command in this process, and what it printed."""
    with pytest.raises(SystemExit) as ended:
        main(command(folder, *more)[3:])
    return ended.value.code, "".join(capsys.readouterr())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which all arms were run, and what was said."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiny.toml").write_text(STUDY + FURTHER)
    return folder, run(folder)


@pytest.fixture(scope="module")
def runs(made):
    return made[0] / "out" / "nano" / "runs"


@pytest.mark.long
def test_a_run_that_fails_is_named_with_the_end_of_its_log_and_the_others_go_on(made, runs):
    _, done = made
    assert done.returncode == 1
    assert "tiny.wrong.0: failed with exit status 2; the end of" in done.stdout
    assert "ppo_mini_batch_size" in done.stdout
    assert "1 failed: tiny.wrong.0; the same command tries again" in done.stdout
    assert {path.name for path in runs.iterdir()} == {"tiny.plain.0", "tiny.tested-hot.0", "tiny.later.0"}
    assert all(read_info(path)["status"] == "finished" for path in runs.iterdir())


@pytest.mark.long
def test_what_would_begin_after_a_failed_run_is_not_begun(made):
    assert "tiny.after-wrong.0: not started: it continues from tiny.wrong.0" in made[1].stdout
    assert "1 not finished: tiny.after-wrong.0" in made[1].stdout


@pytest.mark.long
def test_each_run_ends_in_a_line_with_its_gain_and_what_is_left(made):
    line = r"^tiny\.plain\.0: \d+ s, accuracy \d\.\d{3} -> \d\.\d{3}; \d left, about \d"
    assert re.search(line, made[1].stdout, re.MULTILINE)


@pytest.mark.long
def test_arms_with_the_same_settings_are_told_and_run_once(made):
    folder, done = made
    assert done.stdout.count("tiny/plain, tiny/twin: the same settings, so that one run serves them all") == 1
    plan = json.loads((folder / "out" / "nano" / "plan.json").read_text())
    assert plan["tiny/twin/0"] == plan["tiny/plain/0"] == "tiny.plain.0"
    assert plan["tiny/tested-hot/0"] == "tiny.tested-hot.0"


@pytest.mark.long
def test_another_temperature_of_the_tests_changes_nothing_in_the_training(runs):
    usual, hot = (timeless(read_metrics(runs / f"tiny.{name}.0")) for name in ("plain", "tested-hot"))
    untested = [[{k: v for k, v in line.items() if not k.startswith("test_")} for line in run] for run in (usual, hot)]
    assert untested[0] == untested[1] and len(untested[0]) == 5
    assert [line.get("test_diversity") for line in usual] != [line.get("test_diversity") for line in hot]


@pytest.mark.long
def test_a_run_after_another_begins_with_its_last_weights(runs):
    before, after = (timeless(read_metrics(runs / f"tiny.{name}.0")) for name in ("plain", "later"))
    tested = [name for name in after[0] if name.startswith("test_")]
    assert [after[0][name] for name in tested] == [before[-1][name] for name in tested]
    assert [line["step"] for line in after] == [0, 1, 2, 3, 4]


@pytest.mark.long
def test_the_study_lies_beside_its_runs_and_no_optimizer_does(made, runs):
    folder, _ = made
    assert (folder / "out" / "nano" / "studies" / "tiny.toml").read_bytes() == (folder / "tiny.toml").read_bytes()
    assert list(runs.glob("*/checkpoints/*/model.safetensors")) and not list(runs.glob("*/checkpoints/*/optimizer.pt"))


@pytest.mark.long
def test_what_is_to_be_measured_of_finished_runs_is_measured(made, runs):
    folder = made[0] / "out" / "nano"
    judged = {path.stem: json.loads(path.read_text()) for path in (folder / "judged").iterdir()}
    assert judged.keys() == {path.name for path in runs.iterdir()}
    programs = [row for step in range(1, 5) for row in read_rollouts(runs / "tiny.plain.0", step) if row["code"]]
    assert judged["tiny.plain.0"]["programs"] == len(programs) > 0
    shares = {path.stem: json.loads(path.read_text()) for path in (folder / "styles").iterdir()}
    assert shares.keys() == judged.keys() and list(shares["tiny.plain.0"]) == ["1", "2", "3", "4"]
    trained = {load(path / "config.toml").data.train for path in runs.iterdir()}
    assert trained == {str((folder / "varied.jsonl").resolve())}


@pytest.mark.long
def test_a_dry_run_says_what_is_there(made, capsys):
    code, words = said(capsys, made[0], "--dry-run")
    states = dict(line.split(maxsplit=1) for line in words.splitlines() if line.startswith("  "))
    there = {"tiny.plain.0": "finished", "tiny.tested-hot.0": "finished", "tiny.later.0": "finished"}
    assert states == {**there, "tiny.wrong.0": "to be made", "tiny.after-wrong.0": "to be made"}
    assert code == 0 and "5 runs in" in words and "3 finished, 2 to be made" in words


@pytest.mark.long
def test_runs_that_were_made_with_other_settings_are_refused_by_name(made, capsys):
    code, words = said(capsys, made[0], "grpo.rho=0.5")
    assert code == 2
    assert "the run tiny.plain.0 is there, made with other settings: grpo.rho was 0.2, now 0.5; name another" in words


@pytest.mark.long
def test_a_run_whose_first_weights_were_removed_is_refused_until_it_is_removed_too(made, runs, capsys, tmp_path):
    shutil.move(runs / "tiny.plain.0", tmp_path)
    try:
        code, words = said(capsys, made[0])
    finally:
        shutil.move(tmp_path / "tiny.plain.0", runs)
    assert code == 2 and "tiny.later.0 continued from the weights of tiny.plain.0" in words


def test_what_was_measured_of_a_run_that_was_removed_goes_when_it_is_made_anew(tmp_path, monkeypatch):
    (tmp_path / "styles").mkdir()
    (tmp_path / "styles" / "a.0.json").write_text("{}")
    (tmp_path / "styles" / "b.0.json").write_text("{}")
    monkeypatch.setattr("microcoder.study.launch.command", lambda run, out: [sys.executable, "-c", "exit(1)"])
    _make([Planned("a.0", ())], tmp_path, 1, time.monotonic() + 60, lambda line: None, StudyOutcome([]))
    assert [path.name for path in (tmp_path / "styles").iterdir()] == ["b.0.json"]


def test_a_folder_that_another_command_works_in_is_refused(tmp_path, capsys):
    (tmp_path / "tiny.toml").write_text(STUDY)
    (tmp_path / "out" / "nano").mkdir(parents=True)
    held = take_lock(tmp_path / "out" / "nano")
    code, words = said(capsys, tmp_path)
    release_lock(held)
    assert code == 2
    assert f"in use by process {os.getpid()}" in words and "--out" in words


@pytest.mark.long
def test_after_a_kill_the_same_command_ends_as_if_nothing_had_happened(tmp_path, runs):
    (tmp_path / "tiny.toml").write_text(STUDY)
    metrics = tmp_path / "out" / "nano" / "runs" / "tiny.plain.0"
    process = subprocess.Popen(command(tmp_path), stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(read_metrics(metrics)) >= 3, process)
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert children and not alive
    assert read_info(metrics)["status"] == "running"  # in the middle of it
    again = run(tmp_path)
    assert again.returncode == 0, again.stderr
    assert timeless(read_metrics(metrics)) == timeless(read_metrics(runs / "tiny.plain.0"))


@pytest.mark.long
def test_after_ctrl_c_a_run_goes_on_from_the_step_in_which_it_was_stopped(tmp_path, runs):
    (tmp_path / "tiny.toml").write_text(STUDY)
    metrics = tmp_path / "out" / "nano" / "runs" / "tiny.plain.0"
    process = subprocess.Popen([*command(tmp_path), "train.save_every=1000"], stdout=subprocess.DEVNULL)
    wait_until(lambda: len(read_metrics(metrics)) >= 2, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    kept = read_metrics(metrics)
    assert latest_checkpoint(metrics)
    assert run(tmp_path).returncode == 0
    assert read_metrics(metrics)[: len(kept)] == kept  # clocks too: these steps were not made again
    assert timeless(read_metrics(metrics)) == timeless(read_metrics(runs / "tiny.plain.0"))


@pytest.mark.long
def test_a_run_that_fails_half_way_goes_on_once_after_the_others(tmp_path, runs):
    (tmp_path / "tiny.toml").write_text(STUDY)
    folder = tmp_path / "out" / "nano" / "runs" / "tiny.plain.0"
    process = subprocess.Popen(command(tmp_path), stdout=subprocess.PIPE, text=True)
    for _ in range(2):  # the second time it is given up
        steps = len(read_metrics(folder))
        wait_until(lambda: len(read_metrics(folder)) >= max(2, steps + 1), process)  # noqa: B023
        trainer = next(each for each in psutil.Process(process.pid).children() if "train" in each.cmdline())
        trainer.kill()
        psutil.wait_procs([trainer], timeout=20)
    words, _ = process.communicate(timeout=200)
    assert process.returncode == 1
    assert words.count("tiny.plain.0: failed with exit status -9; it is resumed after the others; the end of") == 1
    assert words.count("tiny.plain.0: failed with exit status -9; the end of") == 1
    assert "1 failed: tiny.plain.0; the same command tries again" in words
    assert run(tmp_path).returncode == 0
    assert timeless(read_metrics(folder)) == timeless(read_metrics(runs / "tiny.plain.0"))


# Commands side by side


def wait_until(condition, process, seconds=200):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def job(folder, name, script):
    return Command(name, ["bash", "-c", script], folder / "logs" / f"{name}.log")


def test_jobs_run_in_order_so_many_at_a_time_with_a_thread_each(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    ended = []
    # the first one waits until it sees another: on a busy machine that may take long
    wait = "for n in $(seq 300); do [ $0 = 0 -a $(ls | grep -c there) = 1 ] || break; sleep 0.1; done"
    script = f"cd $1; echo $OMP_NUM_THREADS; touch there.$0; {wait}; ls | grep -c there; sleep 0.3; rm there.$0"
    jobs = [Command(str(n), ["bash", "-c", script, str(n), str(tmp_path)], tmp_path / f"{n}.log") for n in range(5)]
    left = side_by_side(jobs, 2, 60, lambda job, status, seconds: ended.append((job.name, status, seconds)))
    assert left == [] and sorted(name for name, _, _ in ended) == list("01234")
    assert all(status == 0 and seconds >= 0.3 for _, status, seconds in ended)
    said = [tail(job.log).split() for job in jobs]
    assert {threads for threads, _ in said} == {"1"}
    assert max(int(count) for _, count in said) == 2


def test_a_job_that_is_not_ready_lets_the_next_go_first_and_has_its_turn_before_the_rest(tmp_path):
    jobs = [job(tmp_path, name, "true") for name in ("a", "b", "c", "never")]
    ended = []

    def ready(job):
        return job.name != "never" and (job.name != "a" or "b" in ended)

    left = side_by_side(jobs, 1, 60, lambda job, status, seconds: ended.append(job.name), ready)
    assert ended == ["b", "a", "c"]
    assert [job.name for job in left] == ["never"]


def test_when_the_time_is_over_running_jobs_are_told_to_stop_and_the_others_never_begin(tmp_path):
    stops = "trap 'echo told; exit 0' TERM; sleep 60 & wait"
    jobs = [job(tmp_path, "a", "exit 3"), job(tmp_path, "b", stops), job(tmp_path, "c", stops)]
    ended = []
    left = side_by_side(jobs, 1, 2.5, lambda job, status, seconds: ended.append((job.name, status)))
    assert ended == [("a", 3)]
    assert [job.name for job in left] == ["b", "c"]
    assert tail(jobs[1].log) == "told" and not jobs[2].log.exists()


PARENT = """
import sys
from pathlib import Path
from microcoder.study.launch import Command, side_by_side
folder = Path(sys.argv[1])
script = "cd $0; echo $$; trap 'echo told' TERM; for n in $(seq 600); do sleep 0.05; [ -e enough ] && exit; done"
side_by_side([Command("a", ["bash", "-c", script, str(folder)], folder / "a.log")], 1, 60, print)
"""


def parent_of_a_job(folder):
    """A process that runs a job in a session of its own; it has begun when this returns. And the job's log."""
    command = [sys.executable, "-c", PARENT, str(folder)]
    parent = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    log = folder / "a.log"
    wait_until(lambda: log.exists() and log.read_text().strip(), parent)
    return parent, log


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_request_to_end_is_handed_on_once(tmp_path, number, status):
    parent, log = parent_of_a_job(tmp_path)
    os.killpg(parent.pid, number)  # as a terminal does
    wait_until(lambda: "told" in log.read_text(), parent)
    (tmp_path / "enough").touch()
    assert parent.wait(timeout=20) == status
    assert log.read_text().count("told") == 1


def test_a_killed_parent_takes_its_jobs_along(tmp_path):
    parent, log = parent_of_a_job(tmp_path)
    child = psutil.Process(int(log.read_text().split()[0]))
    parent.kill()
    parent.wait()
    assert psutil.wait_procs([child], timeout=10)[1] == []
