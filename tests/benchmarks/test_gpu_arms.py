"""In what order `benchmarks.gpu arms run` trains and scores: what is scored is kept, what has no time is not begun."""

from __future__ import annotations

import tarfile
from argparse import Namespace

import pytest

from benchmarks.gpu.arms import Experiment, pack
from microcoder.config import load


@pytest.fixture
def experiment(tmp_path):
    return Experiment(_asked(tmp_path))


def _asked(tmp_path, **changed):
    asked = {"model": "m.gguf", "data": tmp_path / "data", "out": tmp_path / "out", "seeds": [0, 1], "budget": 1000.0}
    more = {"arms": ["grpo", "dapo"], "steps": 8, "every": 0, "size": "full", "judge_workers": 2, "set": []}
    scoring = {"suites": ["test"], "limits": [64], "tries": 0, "drop_weights": True}
    return Namespace(**{**asked, **more, **scoring, **changed})


def test_the_untrained_model_is_asked_in_the_style_of_the_runs(tmp_path):
    (score,) = Experiment(_asked(tmp_path, set=["data.style=reason", "train.lr=1e-6"]))._scores("base")
    assert score.command[score.command.index("--style") + 1] == "reason"


def test_what_an_arm_says_wins_over_what_all_have(tmp_path):
    arms = ["cool=grpo grpo.temperature=0.6", "grpo"]
    experiment = Experiment(_asked(tmp_path, arms=arms, set=["grpo.temperature=1", "train.lr=1e-6"]))
    for name, temperature in (("cool-s0", 0.6), ("grpo-s0", 1.0)):
        words = experiment._train(name).command
        config = load(None, [word for word in words if "=" in word])
        assert (config.grpo.temperature, config.train.lr) == (temperature, 1e-6)


def test_a_run_that_has_ended_is_scored_before_another_is_trained(experiment):
    first, second = experiment._train("grpo-s0"), experiment._train("dapo-s0")
    assert experiment._fits(first)
    (score,) = experiment._ended(first, 0, 100.0)
    assert score.name == "score grpo-s0"
    assert not experiment._fits(second)
    assert experiment._fits(score)  # it starts
    assert experiment._fits(second)


def test_a_training_is_begun_only_if_the_slowest_so_far_would_fit(experiment):
    first, second, third = map(experiment._train, ("grpo-s0", "dapo-s0", "grpo-s1"))
    for job, seconds in ((first, 1200.0), (second, 10.0)):
        for score in experiment._ended(job, 0, seconds):
            assert experiment._fits(score)
    assert not experiment._fits(third)


def test_a_failed_training_is_tried_once_more_and_keeps_no_other_waiting(experiment, capsys):
    first, second = experiment._train("grpo-s0"), experiment._train("dapo-s0")
    first.log.parent.mkdir(parents=True)
    first.log.write_text("out of memory\n")
    (again,) = experiment._ended(first, 1, 5.0)
    assert again.name == first.name
    assert experiment._fits(second)
    assert experiment._ended(again, 1, 5.0) == []
    assert "out of memory" in capsys.readouterr().out


def test_what_was_tried_is_packed_too(tmp_path):
    for name in ("bench/base.test/scores.json", "tried/verdicts.jsonl"):
        file = tmp_path / "out" / name
        file.parent.mkdir(parents=True)
        file.write_text("{}\n")
    (volume,) = pack(tmp_path / "out", tmp_path / "packed", 1)
    with tarfile.open(volume) as archive:
        assert archive.getnames() == ["bench/base.test/scores.json", "tried/verdicts.jsonl"]
