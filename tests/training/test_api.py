"""`mc.train` and `mc.calibrate`: what the commands do, without a command line."""

from __future__ import annotations

import numpy as np
import pytest

import microcoder as mc
from microcoder.config import ConfigError
from microcoder.runs import read_prompts, read_rollouts, read_statements
from microcoder.training.launch import REFUSALS
from microcoder.training.ranks import Silent

SMALL = {
    "data.train_size": 12,
    "data.test_size": 4,
    "grpo.samples": 4,
    "train.train_batch_size": 2,
    "train.micro_batch_size": 8,
    "train.max_response_tokens": 48,
    "train.eval_tries": 2,
    "train.eval_every": 0,
    "judge.workers": 2,
}
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    return mc.train("demo", "train.steps=1", **SMALL, **{"train.folder": folder, "grpo.temperature": np.float64(1.0)})


def test_train_returns_the_run_with_metrics_rollouts_summary_and_checkpoint(run, capsys):
    assert [row["step"] for row in run.metrics] == [0, 1]
    assert len(run.rollouts(1)) == 2 * 4
    assert (run.summary["steps"], run.summary["after"]["step"]) == (1, 1)
    assert (run.checkpoint / "model.safetensors").is_file()
    assert capsys.readouterr().out == ""
    assert repr(run) == f"<Run {run.path}: finished, 1 step>"


def test_a_notebook_completes_the_names_of_the_library():
    assert {"train", "evaluate", "calibrate", "build_dataset", "load_problems", "Judge", "__version__"} <= set(dir(mc))
    assert all(hasattr(mc, name) for name in dir(mc))


def test_rollouts_keep_the_prompt_that_the_model_saw_and_the_answers_of_evaluations_are_kept(run):
    first = run.rollouts(1)[0]["problem"]
    statement, prompt = read_statements(run.path, 1)[first], read_prompts(run.path, 1)[first]
    assert statement in prompt and prompt != statement
    for step in (0, 1):
        answers = read_rollouts(run.path, step, test=True)
        assert len(answers) == 4 * 2 and {"completion", "verdict", "length"} <= answers[0].keys()
        right = sum(answer["verdict"] == "accepted" for answer in answers) / len(answers)
        assert right == run.metrics[step]["test_accuracy"]
        assert set(read_prompts(run.path, step, test=True)) == {answer["problem"] for answer in answers}


def test_a_run_goes_on_by_its_path_and_whoever_watches_is_told(run):
    seen = []

    class Watching(Silent):
        def step(self, metrics):
            seen.append(metrics["step"])

    again = mc.train(run.path, resume=True, observer=Watching(), **{"train.steps": 2})
    assert [row["step"] for row in again.metrics] == [0, 1, 2]
    assert seen == [2]


def test_what_cannot_be_trained_is_refused_before_a_folder_is_made(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'demo'"):
        mc.train("dmo")
    with pytest.raises(ConfigError, match=r"write train\.steps=4"):
        mc.train("demo", steps=4)
    with pytest.raises(REFUSALS, match="set it to one of 1, 2, 4, 8"):
        mc.train("demo", **SMALL | {"train.folder": str(tmp_path / "runs"), "train.micro_batch_size": 3})
    assert not list(tmp_path.rglob("run.json"))


def test_calibrate_returns_the_temperature_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path))
    found = mc.calibrate("demo", grid=(0.5, 1.5), problems=2, **SMALL)
    assert found.temperature == found.choice.temperature
    assert f"T = {found.temperature:g} is" in found.choice.reason
    assert [probe.temperature for probe in found.probes] == [0.5, 1.5]
