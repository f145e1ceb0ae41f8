"""`train`, `calibrate`, `ls` and `cp` as users type them: real training of nano, a step or two long.

Most commands run in this process, where an exception that is no message fails the test. A few are real processes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from microcoder.cli import main
from microcoder.config import PRESETS, load
from microcoder.config.layers import shipped
from microcoder.models import known
from microcoder.runs import read_info, read_metrics

COMMAND = [sys.executable, "-m", "microcoder.cli"]
TINY = (
    "data.train_size=20",
    "data.test_size=4",
    "grpo.samples=4",
    "train.train_batch_size=2",
    "train.micro_batch_size=8",
    "train.max_response_tokens=48",
    "train.eval_tries=2",
    "train.steps=2",
)
TINY_FILE = """
[data]
train_size = 20
test_size = 4

[grpo]
samples = 4
temperature = 0.8

[train]
steps = 2
stages = [{at_step = 2, temperature = 1.0}]
train_batch_size = 2
max_response_tokens = 48
lr = 1e-4
eval_tries = 2
"""
PNG = b"\x89PNG\r\n\x1a\n"

pytestmark = pytest.mark.usefixtures("one_thread")


def microcoder(*args):
    """The command in this process: its exit status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())


def process(*args, **options):
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=300, **options)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def runs():
    return sorted(str(path) for path in Path("runs").glob("*"))


# --- ls and cp


def test_ls_names_every_configuration_algorithm_and_model():
    done = process("ls")
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert done.returncode == 0
    assert {*shipped(), *PRESETS, *(model.name for model in known()), "starter"} <= listed
    found = json.loads(process("ls", "--json").stdout)
    assert {name for part in found.values() for name in part} == listed


def test_cp_copies_a_configuration_and_never_writes_over_a_file(here):
    assert microcoder("cp", "demo", "my.toml").code == 0
    assert load("my.toml") == load(shipped()["demo"])
    Path("my.toml").write_text("mine")
    again = microcoder("cp", "paper", "my.toml")
    assert (again.code, Path("my.toml").read_text()) == (2, "mine")
    assert "my.toml exists already" in again.err


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("dmo", "my.toml", "did you mean 'demo'?"),
        ("zzz", "my.toml", "`microcoder ls` lists them"),
        ("demo", "none/my.toml", "cannot write none/my.toml"),
    ],
)
def test_cp_says_what_is_wrong(here, name, file, words):
    done = microcoder("cp", name, file)
    assert done.code == 2
    assert words in done.err
    assert list(here.iterdir()) == []


def test_config_prints_what_train_would_use_of_a_name_or_a_file(here):
    done = microcoder("config", "demo", "--no-comments")
    Path("my.toml").write_text(done.out)
    assert (done.code, load("my.toml")) == (0, load(shipped()["demo"]))
    assert "did you mean 'demo'?" in microcoder("config", "dmo").err


# --- a dry run


def test_a_dry_run_says_what_would_be_done_and_does_nothing(here):
    stages = "train.stages=[{at_step=2,temperature=1.5}]"
    done = microcoder("train", "demo", *TINY, stages, "--dry-run")
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    for words in (
        "run runs/demo",
        "1.2 M parameters",
        "train starter: 20 problems",
        "2 problems x 4 samples = 8 responses",
        "steps 1 to 1: temperature 1,",
        "steps 2 to 2: temperature 1.5,",
        "nothing is missing",
    ):
        assert words in said
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["leetcode-0.5b", "leetcode-1.5b"])
def test_a_dry_run_of_a_leetcode_configuration_names_the_files_that_have_to_be_made(here, name):
    assert microcoder("cp", name, "my.toml").code == 0
    done = microcoder("train", "my.toml", "--dry-run", "--gpu-memory", "80")
    assert done.code == 1
    assert "missing: problems to train on (data.train): there is no file leetcode-forged.parquet" in done.out
    assert "missing: problems to test on (data.test): there is no file leetcode-forged.parquet" in done.out
    assert "64 problems x 8 samples = 512 responses = 2 updates" in " ".join(done.out.split())


def test_a_dry_run_of_the_papers_setting_says_what_is_missing_and_exits_1(here):
    done = microcoder("train", "paper", "--dry-run")
    assert done.code == 1
    assert "missing: problems to train on (data.train): there is no file problems.parquet" in done.out
    assert "4,194,304 a step; 600 updates" in " ".join(done.out.split())
    assert "it cannot start like this" in done.out


def test_a_dry_run_plans_for_a_gpu_that_is_not_here(here):
    done = microcoder("train", "paper", "--dry-run", "--gpu-memory", "80")
    said = " ".join(done.out.split())
    assert "a GPU of 80 GiB leaves 73.60" in said
    assert "what fits: model.lora_rank=32 (" in said
    assert "a CUDA GPU" not in said
    done = microcoder("train", "paper", "--gpu-memory", "80")
    assert (done.code, "add --dry-run" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("model.name=nanoo", "missing: the model nanoo: no model is called 'nanoo'; did you mean 'nano'?"),
        ("data.test=none.jsonl", "missing: problems to test on (data.test): there is no file none.jsonl"),
        ("data.train_size=1", "missing: problems to train on (data.train): a step has train.train_batch_size=2"),
        ('train.trackers=["nonesuch"]', "missing: the tracker nonesuch"),
    ],
)
def test_a_dry_run_finds_what_training_would_stumble_over(here, word, words):
    done = microcoder("train", "demo", *TINY, word, "--dry-run")
    assert done.code == 1
    assert words in done.out


def test_where_the_temperature_is_auto_a_stage_may_name_any(here):
    words = ["grpo.temperature=auto", "train.stages=[{at_step=2,temperature=1.0}]"]
    done = microcoder("train", "demo", *TINY, *words, "--dry-run")
    said = " ".join(done.out.split())
    assert done.code == 0
    assert "T(D) before step 1: 9 temperatures x 16 problems x" in said
    assert "steps 1 to 1: temperature T(D)," in said
    assert "steps 2 to 2: temperature 1," in said


# --- settings that cannot be trained with


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["demo", "train.stepz=3"], "unknown key 'stepz' in section [train]; did you mean 'steps'?"),
        (["demo", "demo"], "'demo' is not a setting; write section.key=value"),
        (["dmo"], "did you mean 'demo'?"),
        (["zzz"], f"there are {', '.join(shipped())}"),
        (["demo", "train.lr=2e4"], "expected a number above 0 up to 1"),
        (["demo", "--steps", "4"], "there is no option --steps; the setting is train.steps=..."),
        (["demo", "--max-response-tokens", "4"], "the setting is train.max_response_tokens=..."),
        (["demo", "data.train=empty.jsonl"], "empty.jsonl holds no problem to train on: it is empty"),
        (["demo", "data.train=table.csv"], "table.csv is a table; make problems of it first"),
        (["empty.jsonl"], "empty.jsonl holds problems, not settings; write data.train=empty.jsonl"),
        (["none.toml"], "there is no file none.toml; to begin one: microcoder cp demo none.toml"),
        (["."], "is a folder that holds no run"),
        (["demo", "--resume"], "runs/demo holds no run to go on with; leave out --resume"),
        (["demo", "train.train_batch_size=6", "train.ppo_mini_batch_size=4"], "to one of 1, 2, 3, 6"),
        (["demo", "train.micro_batch_size=3"], "set it to one of 1, 2, 4, 8"),
        (["demo", "data.train_size=1"], "there are only 1 to train on; set train.train_batch_size=1"),
        (["demo", "data.train=none"], "there is no file none"),
        (["demo", "data.train=none.jsonl"], "there is no file none.jsonl"),
        (["demo", "data.test=none.jsonl"], "there is no file none.jsonl"),
        (["demo", "data.difficulty=[7,9]"], "starter's depths are 1 to 6"),
        (["demo", "data.max_prompt_tokens=3"], "longer than data.max_prompt_tokens=3; the shortest has"),
        (["demo", "model.name=nanoo"], "did you mean 'nano'?"),
        (["demo", "model.name=./none"], "there is no folder ./none"),
        (["demo", "model.attention=nonesuch"], 'attn_implementation="nonesuch"'),
        (["demo", 'train.trackers=["nonesuch"]'], "missing: the tracker nonesuch"),
        (["demo", "train.stages=[{at_step=1,temperature=0.5}]"], "at_step (a whole number of at least 2)"),
        (["demo", "train.stages=[{at_step=2,temperature=1.0}]"], "stage 1 at step 2 changes nothing"),
        (
            ["demo", "train.stages=[{at_step=3,temperature=0.5},{at_step=2,temperature=0.7}]"],
            "stage 2 has at_step 2; the stage before it starts at step 3",
        ),
    ],
)
def test_wrong_settings_exit_2_with_directions_and_leave_no_run_behind(here, args, words):
    for file in ("empty.jsonl", "table.csv"):
        Path(file).touch()
    first, *rest = args
    known = TINY if first == "demo" else ()  # what is wrong comes after, and counts
    done = microcoder("train", first, *known, *rest)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("Error: ") == 1
    assert runs() == []


def test_train_alone_begins_no_training_that_nobody_asked_for(here):
    done = microcoder("train")
    assert (done.code, runs()) == (2, [])
    assert "name what to train: demo, another of `microcoder ls`" in done.err


def test_a_folder_that_happens_to_have_a_configurations_name_does_not_hide_it(here):
    Path("demo").mkdir()
    assert microcoder("train", "demo", *TINY, "--dry-run").code == 0


# --- a training


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with tiny.toml and the finished run runs/tiny, and what the command printed."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text(TINY_FILE)
    with contextlib.chdir(folder):
        return folder, microcoder("train", "tiny.toml")


@pytest.fixture
def copy(trained, here):
    """The same in a folder of its own."""
    shutil.copytree(trained[0], here, dirs_exist_ok=True)
    return here


def test_a_training_ends_with_before_and_after_and_says_where_to_look(trained):
    folder, done = trained
    assert (done.code, done.err) == (0, "")
    for words in (
        "before: test accuracy",
        "step 1/2",
        "step 2/2",
        "nano on 4 test problems, mean of 2 tries",
        "solved at least once",
        "runs/tiny/dynamics.png",
        "microcoder rollouts runs/tiny --worst 5",
        "microcoder train runs/tiny --resume train.steps=4",
    ):
        assert words in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines() if line.startswith(("┃", "│")))
    assert (folder / "runs/tiny/dynamics.png").read_bytes().startswith(PNG)


def test_a_training_leaves_a_summary_of_what_it_changed(trained):
    run = trained[0] / "runs/tiny"
    summary = json.loads((run / "summary.json").read_text())
    steps = read_metrics(run)
    assert (summary["status"], summary["model"], summary["steps"]) == ("finished", "nano", 2)
    assert (summary["before"]["step"], summary["after"]["step"]) == (0, 2)
    assert summary["after"]["accuracy"] == steps[-1]["test_accuracy"]
    assert summary["gain_points"] == 100 * (summary["after"]["accuracy"] - summary["before"]["accuracy"])
    assert summary["train_seconds"] >= round(sum(line.get("step_s", 0) for line in steps), 1) > 0
    assert [line["step"] for line in steps] == [0, 1, 2]
    assert [line.get("temperature") for line in steps] == [None, 0.8, 1.0]


def test_the_settings_a_run_keeps_are_those_it_was_given(trained):
    folder, _ = trained
    assert load(folder / "runs/tiny/config.toml") == load(folder / "tiny.toml")


def test_the_rollouts_of_a_training_can_be_read(trained):
    done = microcoder("rollouts", trained[0] / "runs/tiny", "--worst", 2)
    assert done.code == 0
    assert done.out.count("--- ") == 2
    assert "2 of the 8 rollouts of step 2" in done.err


@pytest.mark.parametrize("config", ["tiny.toml", "runs/tiny"])
def test_the_same_training_again_is_refused_with_both_ways_on(copy, config):
    before = Path("runs/tiny/run.json").read_bytes()
    done = microcoder("train", config)
    assert done.code == 2
    for words in ("runs/tiny already holds a run (finished, 2 steps done)", "--resume", "train.name="):
        assert words in done.err
    assert Path("runs/tiny/run.json").read_bytes() == before
    dry = microcoder("train", config, "--dry-run")
    assert dry.code == 1
    assert "missing: a free name: runs/tiny holds a run; go on with it by --resume" in dry.out


def test_a_run_goes_on_for_more_steps_wherever_it_lies_now_and_keeps_its_new_length(copy):
    moved = shutil.move("runs/tiny", "elsewhere")
    done = microcoder("train", moved, "--resume", "train.steps=3")
    assert (done.code, done.err) == (0, "")
    assert "steps 3 to 3, from checkpoint-2" in done.out
    assert [line["step"] for line in read_metrics(moved)] == [0, 1, 2, 3]
    assert json.loads(Path(moved, "summary.json").read_text())["after"]["step"] == 3
    assert load(Path(moved, "config.toml")).train.steps == 3
    assert runs() == []


def test_a_finished_run_that_is_gone_on_with_ends_at_once(copy):
    before = read_metrics("runs/tiny")
    done = microcoder("train", "tiny.toml", "--resume")
    assert done.code == 0
    assert "nano on 4 test problems" in done.out
    assert read_metrics("runs/tiny") == before


@pytest.mark.parametrize("options", [["--resume"], ["--resume", "--dry-run"]])
def test_a_run_does_not_go_on_with_other_settings_and_they_are_named(copy, options):
    words = ["train.lr=0.5", "train.stages=[]", "train.steps=9", "judge.workers=1"]
    done = microcoder("train", "tiny.toml", *words, *options)
    assert done.code == 2
    assert "train.lr was 0.0001, now 0.5" in done.err
    assert "train.stages was [{at_step = 2, temperature = 1.0}], now []" in done.err
    assert "train.steps" not in done.err  # more steps, or other workers, are no other run
    assert "judge.workers" not in done.err
    assert "to go on with its own: microcoder train runs/tiny --resume" in done.err
    assert read_info("runs/tiny")["status"] == "finished"


def test_the_settings_of_a_run_begin_another_under_another_name(copy):
    done = microcoder("train", "runs/tiny", "train.name=other", "--dry-run")
    assert done.code == 0
    assert "run          runs/other" in done.out


@pytest.mark.long
def test_ctrl_c_stops_a_run_which_says_how_to_go_on(here):
    Path("tiny.toml").write_text(TINY_FILE)
    words = ["train", "tiny.toml", "train.steps=1000", "data.test=none"]
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert any("step    1/1000" in line for line in child.stdout)  # reads until it has come
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert "to go on from the last checkpoint: microcoder train runs/tiny --resume" in err
    assert "Traceback" not in err
    assert read_info("runs/tiny")["status"] == "stopped"


# --- calibrate


@pytest.mark.long
def test_calibrate_prints_json_alone_draws_the_figure_and_remembers_what_it_measured(here):
    words = ["calibrate", *TINY, "--grid", "1.5,0.5", "--problems", "3"]
    done = process(*words, "--json", env={**os.environ, "MICROCODER_CACHE": str(here / "cache")})
    assert done.returncode == 0
    found = json.loads(done.stdout)  # nothing but JSON
    assert "temperature 0.5: D" in done.stderr
    assert [probe["temperature"] for probe in found["probes"]] == [0.5, 1.5]
    assert found["probes"][0]["diversity"] < found["probes"][1]["diversity"]
    assert found["temperature"] in (0.5, 1.5) and f"T = {found['temperature']:g} is" in found["reason"]
    assert Path("calibration.png").read_bytes().startswith(PNG)

    again = microcoder(*words, "-o", "again.svg")
    assert again.code == 0
    assert "temperature 0.5: D" not in again.out  # it was not sampled again
    assert "3 problems at each temperature" in again.out
    assert f"microcoder train {' '.join(TINY)} grpo.temperature={found['temperature']:g}" in again.out
    assert "<svg" in Path("again.svg").read_text()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--grid", "a,b"], "--grid 'a,b' is no list of numbers; write --grid 0.4,0.8,1.2"),
        (["--grid", "0.5,"], "is no list of numbers"),
        (["--grid", "0,0.5"], "not above 0 and at most 10"),
        (["--grid", "0.5,nan"], "not above 0 and at most 10"),
        (["-o", "figure.doc"], "name a file that ends in .png or .svg"),
        (["-o", "none/figure.png"], "there is no folder none"),
        (["grpo.diversity_target=0.3"], "unknown key 'diversity_target'"),
        (["grpo.temprature=1"], "did you mean 'temperature'?"),
        (["model.name=nanoo"], "did you mean 'nano'?"),
        (["data.train=none.jsonl"], "there is no file none.jsonl"),
    ],
)
def test_calibrate_says_what_is_wrong_before_it_measures(here, args, words):
    done = microcoder("calibrate", *args)
    assert done.code == 2
    assert words in done.err
    assert list(here.iterdir()) == []
