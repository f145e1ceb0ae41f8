"""`microcoder advise` as users type it: on run directories written by hand, and on a real training of nano."""

from __future__ import annotations

import contextlib
import io
import json
from types import SimpleNamespace

import pytest

from microcoder.advise import Advice
from microcoder.cli import main
from microcoder.config import load, to_toml
from microcoder.runs import Run, read_metrics

COLD = {"reward": 0.4, "accuracy": 0.4, "diversity": 0.1, "no_signal_share": 0.97, "temperature": 0.2}
NOISE = {"accuracy": 0.05, "rows": 64, "verdicts": {"compile_error": 40}, "no_code_share": 0.1, "truncated_share": 0.0}


def microcoder(*args):
    """The command in this process: its exit status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A run directory with these lines of metrics; what is printed about it is not wrapped early."""
    monkeypatch.setenv("COLUMNS", "120")

    def make(lines, name="a", settings=()):
        with Run.create(tmp_path / name, to_toml(load(None, list(settings))), {}) as run:
            for step, line in enumerate(lines):
                run.log(step, line)
        return tmp_path / name

    return make


def test_each_finding_says_since_when_what_why_what_to_type_and_which_claim(made):
    run = made([{"test_accuracy": 0.3}, *[COLD] * 11, {**COLD, "test_accuracy": 0.35}])
    done = microcoder("advise", run)
    said = " ".join(done.out.split())
    assert done.code == 0
    assert "finished after 12 steps, test accuracy 30.0% -> 35.0%, reward 0.40 -> 0.40, D 0.10 -> 0.10" in said
    assert "D 0.10 -> 0.10, all but accuracy as means of the first and the last 5 steps" in said
    assert "1. too_cold, since step 5: D is 0.10 at temperature 0.2, 0.10 at the first step; 97% of the groups" in said
    assert "why: the samples of a group are nearly one answer" in said
    assert "try: sample more widely: grpo.temperature=0.4 or more" in said
    assert "see: claim 8 (figure 3 of the paper)" in said
    assert "with it: one_answer, since step 3: nearly all groups teach nothing; accuracy is 0.40" in said
    assert "2." not in said


def test_what_is_to_be_typed_names_the_run_itself(made):
    run = made([{"reward": 0.0, "accuracy": 0.0}] * 4)
    assert f"microcoder rollouts {run} --worst 5" in " ".join(microcoder("advise", run).out.split())


def test_of_a_run_in_which_nothing_is_wrong_it_says_what_was_looked_at(made):
    run = made([{}, *[{**COLD, "no_signal_share": 0.3}] * 6])
    said = " ".join(microcoder("advise", run).out.split())
    assert "nothing stands out in 6 steps; looked at: rewards, groups that teach nothing, D; not recorded: " in said
    assert "gradients, held-out accuracy" in said


def test_a_short_run_that_earned_nothing_is_not_called_healthy(made):
    said = " ".join(microcoder("advise", made([{}, *[{"reward": 0.0, "accuracy": 0.0}] * 2])).out.split())
    assert "1. no_reward" in said
    assert "nothing stands out" not in said


def test_a_short_run_shows_its_first_and_last_values_and_a_long_one_means_which_it_calls_so(made):
    rewards = [{"reward": n / 10, "accuracy": 0.5} for n in range(10)]
    said = " ".join(microcoder("advise", made([{}, *rewards[:6]], "short")).out.split())
    assert "reward 0.00 -> 0.50" in said
    assert "means" not in said
    said = " ".join(microcoder("advise", made([{}, *rewards], "long")).out.split())
    assert "reward 0.20 -> 0.70, all but accuracy as means of the first and the last 5 steps" in said
    assert "reward 0.30 " in " ".join(microcoder("advise", made([{}, rewards[3]], "one")).out.split())


def test_a_run_without_a_step_is_not_called_healthy(made):
    assert "no step to look at yet" in microcoder("advise", made([{"test_accuracy": 0.3}])).out


def test_settings_of_the_run_are_evidence_too(made):
    lines = [{"test_accuracy": 0.4}, *[NOISE | {"temperature": 1.2}] * 4]
    assert "too_hot" in microcoder("advise", made(lines, "cooler", ["train.eval_temperature=0.6"])).out
    assert "too_hot" not in microcoder("advise", made(lines, "same", ["train.eval_temperature=1.2"])).out


def test_json_holds_what_is_printed(made):
    run = made([{}, *[COLD] * 6])
    found = json.loads(microcoder("advise", run, "--json").out)
    assert (found["run"], found["status"], found["steps"]) == (str(run), "finished", 6)
    (cause,) = found["findings"]
    assert set(cause) == set(Advice.__dataclass_fields__)
    assert (cause["code"], cause["step"], cause["holds"]) == ("too_cold", 5, True)
    assert (cause["claim"], cause["figure"]) == (8, 3)
    assert [symptom["code"] for symptom in cause["symptoms"]] == ["one_answer"]


def test_what_is_no_run_is_refused_with_the_runs_that_there_are(made, tmp_path):
    run = made([])
    done = microcoder("advise", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert f"runs are {run}" in done.err
    (run / "config.toml").write_text("[train\n")
    done = microcoder("advise", run)
    assert (done.code, done.out) == (2, "")
    assert f"cannot read {run / 'config.toml'}" in done.err


@pytest.mark.usefixtures("one_thread")
def test_a_training_that_is_cut_off_too_early_is_told_so(tmp_path):
    sizes = ("data.train_size=20", "data.test_size=2", "grpo.samples=2", "train.train_batch_size=2", "judge.workers=1")
    short = ("train.max_response_tokens=12", "train.steps=5", "train.eval_every=0", "train.eval_tries=1")
    trained = microcoder("train", "demo", *sizes, *short, f"train.folder={tmp_path}", "train.name=a")
    assert trained.code == 0
    assert "error at step 5: 100% of the responses are cut off at 12 tokens" in trained.out  # the live display
    assert [line["tests_mean"] for line in read_metrics(tmp_path / "a")[1:]] == [6] * 5  # starter's tests a problem
    (found,) = json.loads(microcoder("advise", tmp_path / "a", "--json").out)["findings"]
    assert (found["code"], found["step"]) == ("limit_too_short", 5)
    assert {"all_truncated", "no_reward"} <= {symptom["code"] for symptom in found["symptoms"]}
    assert "train.max_response_tokens=24" in found["remedy"]
