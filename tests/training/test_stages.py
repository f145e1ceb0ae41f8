"""Stages: temperature and limit change at their step, in sampling and in training alike; T(D) and the watch over D."""

from __future__ import annotations

import functools
import os
import shutil
from types import SimpleNamespace

import pytest
import torch
from train_runs import Listening, resumed, same, settings, timeless, trained, weights
from transformers import AutoModelForCausalLM

from microcoder.config import to_toml
from microcoder.grpo import token_logprobs
from microcoder.models import NANO
from microcoder.runs import Run, checkpoints, read_info, read_metrics, read_rollouts
from microcoder.training import calibration as calibrating
from microcoder.training import launch as training
from microcoder.training import recorder as recording
from microcoder.training.calibration import calibrate, choose
from microcoder.training.trl import TrlStageTrainer

STAGED = (
    "train.steps=3",
    "train.max_response_tokens=32",
    "train.stages=[{at_step=2, temperature=1.4}, {at_step=3, max_response_tokens=64}]",
    "train.keep_checkpoints=3",
    "train.lr=5e-4",
)


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """A run with two boundaries, and what its trainers took for log-probabilities."""
    path, seen = tmp_path_factory.mktemp("staged") / "run", []
    real = TrlStageTrainer._get_per_token_logps_and_entropies

    def noting(self, model, ids, attention, count, *args, **kwargs):
        found = real(self, model, ids, attention, count, *args, **kwargs)
        sampled = {tuple(row.ids): row.logprobs for row in self.batch.responses}
        seen.append(SimpleNamespace(step=self.steps_done() + 1, ids=ids, attention=attention, sampled=sampled))
        seen[-1].logprobs = found[0].detach()  # (n, t)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrlStageTrainer, "_get_per_token_logps_and_entropies", noting)
        lines = trained(path, *STAGED)
    return SimpleNamespace(path=path, lines=lines, seen=seen)


def test_metrics_rollouts_and_run_json_change_at_exactly_these_steps(staged):
    assert [line["temperature"] for line in staged.lines] == [1.2, 1.4, 1.4]
    assert [line["max_response_tokens"] for line in staged.lines] == [32, 32, 64]
    for line in staged.lines:
        assert {row["temperature"] for row in read_rollouts(staged.path, line["step"])} == {line["temperature"]}
    assert read_info(staged.path)["stages"] == [
        {"first_step": 1, "temperature": 1.2, "max_response_tokens": 32},
        {"first_step": 2, "temperature": 1.4, "max_response_tokens": 32},
        {"first_step": 3, "temperature": 1.4, "max_response_tokens": 64},
    ]


def test_lengths_obey_the_limit_of_their_stage_and_use_the_new_one(staged):
    lengths = [[row["length"] for row in read_rollouts(staged.path, step)] for step in (1, 2, 3)]
    assert max(lengths[0] + lengths[1]) == 32
    assert 32 < max(lengths[2]) <= 64
    for step in (1, 2):
        assert all(row["length"] == 32 for row in read_rollouts(staged.path, step) if row["truncated"])


def test_a_boundary_is_a_checkpoint(staged):
    assert checkpoints(staged.path) == [1, 2, 3]


@pytest.mark.parametrize("step", [2, 3])
def test_training_takes_log_probabilities_at_the_temperature_of_the_stage(staged, step):
    model = AutoModelForCausalLM.from_pretrained(staged.path / "checkpoints" / f"checkpoint-{step - 1}")
    passes = [one for one in staged.seen if one.step == step]
    assert passes
    for one in passes:
        count = one.logprobs.size(1)
        mask = one.attention[:, -count:].bool()  # (n, t)
        with torch.no_grad():
            logits = model(input_ids=one.ids, attention_mask=one.attention).logits[:, -count - 1 : -1]
        new, old = (token_logprobs(logits, one.ids[:, -count:], t)[mask] for t in (1.4, 1.2))
        torch.testing.assert_close(one.logprobs[mask], new, rtol=1e-4, atol=1e-4)
        assert (one.logprobs[mask] - old).abs().mean() > 1e-2


def test_what_is_trained_on_has_the_probabilities_that_it_was_sampled_with(staged):
    for one in staged.seen:
        count = one.logprobs.size(1)
        rows = zip(one.ids[:, -count:], one.attention[:, -count:].bool(), one.logprobs, strict=True)
        for ids, mask, logprobs in rows:
            sampled = torch.tensor(one.sampled[tuple(ids[mask].tolist())])
            torch.testing.assert_close(logprobs[mask], sampled, rtol=1e-4, atol=1e-4)
    assert {one.step for one in staged.seen} == {1, 2, 3}


# ---- T(D)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))


AUTO = ('grpo.temperature="auto"', "grpo.samples=4", "train.steps=1")
SMALL = {"grid": (0.2, 1.4), "count": 4, "pilot_steps": 1}


def test_the_temperature_is_chosen_by_diversity_and_the_run_remembers_why(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(calibrating, "calibrate", functools.partial(calibrate, **SMALL))
    config, observer = settings(*AUTO, "grpo.diversity_target=0.3"), Listening()
    with Run.create(tmp_path / "run", to_toml(config), {}) as run:
        training.train(config, run, observer, choose=lambda settings: choose(settings, run, observer))
    info = read_info(tmp_path / "run")
    low, high = info["calibration"]["probes"]
    assert low["diversity"] < 0.3 < high["diversity"]
    assert (low["pilot"], len(high["pilot"])) == ([], 1)  # only a candidate gets a pilot
    assert info["temperature"] == info["calibration"]["temperature"] == 1.4
    assert (info["diversity_target"], info["calibration"]["target_from"]) == (0.3, "grpo.diversity_target")
    assert info["calibration"]["reason"] in observer.notes
    assert [line["temperature"] for line in read_metrics(tmp_path / "run")] == [1.4]


def test_what_was_measured_is_kept_and_other_settings_measure_anew(cache):
    class Counting(Listening):
        def phase(self, name):
            self.notes.append(name)

    options = {"grid": (0.2, 1.4), "count": 2, "pilot_steps": 0}
    config, observers = settings(*AUTO, "grpo.diversity_target=0.3"), [Counting() for _ in range(4)]
    first = calibrate(config, observers[0], **options)
    again = calibrate(config, observers[1], **options)
    assert first == again
    calibrate(config, observers[2], **options | {"grid": (0.2, 0.8, 1.4)})
    greedy = calibrate(settings(*AUTO, "grpo.diversity_target=0.3", "rollout.top_k=1"), observers[3], **options)
    sampled = [[note for note in observer.notes if note.startswith("sampling")] for observer in observers]
    at = "sampling at temperature "
    assert sampled == [[at + "0.2", at + "1.4"], [], [at + "0.8"], [at + "0.2", at + "1.4"]]
    assert [probe.diversity for probe in greedy.probes] == [0, 0]  # probes are sampled as training samples


def test_without_a_pilot_the_target_must_be_given(cache):
    with pytest.raises(ValueError, match=r"set grpo\.diversity_target"):
        calibrate(settings(*AUTO), Listening(), pilot_steps=0)


def test_a_stage_that_the_chosen_temperature_makes_needless_is_passed_over(tmp_path):
    stages = "train.stages=[{at_step=5, temperature=1.4}, {at_step=9, temperature=1.4, max_response_tokens=64}]"
    with Run.create(tmp_path / "run", "", {"temperature": 1.4, "asked": [[7, 1.6]]}) as run:
        planned = training.plan_of(settings(*AUTO, stages), run)
    assert [(stage.first_step, stage.temperature, stage.max_response_tokens) for stage in planned] == [
        (1, 1.4, 48),
        (7, 1.6, 48),
        (9, 1.4, 64),
    ]


# ---- the watch over D

WATCHED = ('grpo.temperature="auto"', "train.steps=7", "train.save_every=4", "train.keep_checkpoints=5")


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """D* is out of reach, so the watch asks for a stage as soon as its window is full."""
    path, observer = tmp_path_factory.mktemp("watched") / "run", Listening()
    config = settings(*WATCHED)
    with pytest.MonkeyPatch.context() as patch, Run.create(path, to_toml(config), {"diversity_target": 0.99}) as run:
        patch.setattr(recording, "WINDOW", 6)
        training.train(config, run, observer, choose=lambda _: 0.8)
    return SimpleNamespace(path=path, observer=observer)


def test_a_diversity_that_settles_too_low_leads_to_a_warmer_stage(watched):
    assert [line["temperature"] for line in read_metrics(watched.path)] == [0.8] * 6 + [1.0]
    info = read_info(watched.path)
    assert info["asked"] == [[7, 1.0]]
    assert [(stage["first_step"], stage["temperature"]) for stage in info["stages"]] == [(1, 0.8), (7, 1.0)]
    assert checkpoints(watched.path) == [4, 6, 7]
    (reason,) = [note for note in watched.observer.notes if note.startswith("step 6: D is")]
    assert "temperature 0.8 -> 1" in reason


def test_a_run_that_goes_on_from_before_the_question_asks_it_again_once(watched, tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "WINDOW", 6)
    path = shutil.copytree(watched.path, tmp_path / "run")
    for step in (6, 7):
        shutil.rmtree(path / "checkpoints" / f"checkpoint-{step}")
    again = resumed(path, *WATCHED)
    assert read_info(path)["asked"] == [[7, 1.0]]
    assert timeless(again) == timeless(read_metrics(watched.path))
    assert same(weights(path), weights(watched.path))
    assert read_info(path)["stages"] == read_info(watched.path)["stages"]


def test_a_model_of_the_same_name_that_has_changed_is_measured_anew(tmp_path, cache):
    folder = shutil.copytree(NANO, tmp_path / "model")
    config = settings(f"model.name={folder}", "grpo.diversity_target=0.1")
    observers = [Listening() for _ in range(3)]
    calibrate(config, observers[0], grid=[1.0], count=1, pilot_steps=0)
    calibrate(config, observers[1], grid=[1.0], count=1, pilot_steps=0)
    os.utime(folder / "model.safetensors", (1, 1))
    calibrate(config, observers[2], grid=[1.0], count=1, pilot_steps=0)
    measured = [any(note.startswith("temperature 1: D") for note in observer.notes) for observer in observers]
    assert measured == [True, False, True]
