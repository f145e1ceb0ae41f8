"""Stages: temperature and limit change at their step, in sampling and in training alike; T(D)."""

from __future__ import annotations

import functools
import os
import shutil
from types import SimpleNamespace

import pytest
import torch
from train_runs import Listening, settings, trained
from transformers import AutoModelForCausalLM

from microcoder.config import to_toml
from microcoder.grpo import token_logprobs
from microcoder.models import NANO, resolve
from microcoder.runs import Run, checkpoints, read_info, read_metrics, read_rollouts
from microcoder.training import calibration as calibrating
from microcoder.training import launch as training
from microcoder.training.calibration import Notes, calibrate, until_program
from microcoder.training.plan import GRID, probed
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


class Counting(Listening):
    def phase(self, name):
        self.notes.append(name)

    @property
    def sampled(self):
        return [note.rpartition(" ")[2] for note in self.notes if note.startswith("sampling at")]


def test_the_temperature_is_chosen_before_the_first_step_and_the_run_remembers_why(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(calibrating, "calibrate", functools.partial(calibrate, grid=(0.4, 1.0), count=4))
    config, observer = settings(*AUTO), Counting()
    with Run.create(tmp_path / "run", to_toml(config), {}) as run:
        training.train(config, run, observer)
    info = read_info(tmp_path / "run")
    low, high = info["calibration"]["probes"]
    assert low["diversity"] < high["diversity"]
    assert (len(low["right"]), set(low["judged"])) == (4, {4})
    assert low["signal"] >= 0 and 0 <= low["accuracy"] <= 1
    assert info["temperature"] == info["calibration"]["temperature"]
    assert info["calibration"]["reason"] in observer.notes
    assert "T(D): 2 temperatures x 4 problems x 4 samples = 32 responses, 400% of the run's; none is trained on" in (
        observer.notes
    )
    assert [line["temperature"] for line in read_metrics(tmp_path / "run")] == [info["temperature"]]
    shutil.rmtree(tmp_path / "cache")
    again = Counting()
    with Run.resume(tmp_path / "run") as run:
        training.train(settings(*AUTO, "train.steps=2"), run, again)
    assert again.sampled == []  # what was chosen stays
    assert {line["temperature"] for line in read_metrics(tmp_path / "run")} == {info["temperature"]}


def test_what_was_measured_is_kept_and_other_settings_measure_anew(cache):
    config, observers = settings(*AUTO), [Counting() for _ in range(5)]
    first = calibrate(config, observers[0], (0.2, 1.4), 2)
    again = calibrate(config, observers[1], (1.4, 0.2), 2)
    assert first == again
    calibrate(config, observers[2], (0.2, 0.8, 1.4), 2)
    calibrate(
        settings(*AUTO, "train.lr=1e-3", "train.steps=9"), observers[3], (0.2, 1.4), 2
    )  # samples do not depend on it
    greedy = calibrate(settings(*AUTO, "rollout.top_k=1"), observers[4], (0.2, 1.4), 2)
    assert [each.sampled for each in observers] == [["0.2", "1.4"], [], ["0.8"], [], ["0.2", "1.4"]]
    assert [probe.diversity for probe in greedy.probes] == [0, 0]  # probes are sampled as training samples


def test_another_chat_template_is_measured_anew(cache, tmp_path):
    shutil.copytree(NANO, tmp_path / "model")
    config, observers = settings(*AUTO, f"model.name={tmp_path / 'model'}"), [Counting() for _ in range(2)]
    calibrate(config, observers[0], (1.0,), 2)
    template = tmp_path / "model" / "chat_template.jinja"
    template.write_text(template.read_text() + " ")
    calibrate(config, observers[1], (1.0,), 2)
    assert [each.sampled for each in observers] == [["1"], ["1"]]


def test_what_is_kept_depends_on_the_tries_that_chose_the_problems(tmp_path):
    config = settings(f"data.tried={tmp_path}")
    path = Notes(config, resolve(config.model.name), 2).path
    (tmp_path / "verdicts.jsonl").write_text("{}\n")
    assert Notes(config, resolve(config.model.name), 2).path != path


def test_processes_share_the_problems_and_choose_from_all_of_them(cache, monkeypatch):
    found = {}
    monkeypatch.setattr(calibrating, "shared", lambda known: known or {})
    for rank in (0, 1):
        monkeypatch.setattr(calibrating, "rank", lambda rank=rank: rank)
        monkeypatch.setattr(calibrating, "devices", lambda: 2)
        monkeypatch.setattr(calibrating, "gathered", lambda rows, rank=rank: found.setdefault(rank, rows))
        calibrate(settings(*AUTO), Listening(), [1.0], 5)
        shutil.rmtree(calibrating.cache() / "calibrations", ignore_errors=True)  # the second one writes nothing
    assert [[row[0] for row in found[rank]] for rank in (0, 1)] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize(
    ("steps", "batch", "problems"),
    [(100, 64, 64), (300, 64, 64), (40, 64, 28), (4, 8, 16)],  # the most; a tenth of the run; the fewest
)
def test_sampling_costs_a_tenth_of_the_run_or_the_fewest_problems_that_say_something(steps, batch, problems):
    config = settings(f"train.steps={steps}", f"train.train_batch_size={batch}")
    assert probed(config) == problems
    assert len(GRID) * problems <= 0.1 * steps * batch or problems == 16


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("why\n```python\nprint(1)\n```\nthanks", "why\n```python\nprint(1)\n```"),
        ("```a```b```c```", "```a```b```c```"),
        ("no program at all", "no program at all"),
        ("```python\nnever closed", "```python\nnever closed"),
        ("", ""),
    ],
)
def test_the_diversity_of_a_probe_is_that_of_responses_up_to_the_end_of_their_program(text, kept):
    def decode(ids):
        return "".join(map(chr, ids))

    assert decode(until_program([ord(letter) for letter in text], decode)) == kept


def test_a_stage_that_the_chosen_temperature_makes_needless_is_passed_over(tmp_path):
    stages = "train.stages=[{at_step=5, temperature=1.4}, {at_step=9, temperature=1.4, max_response_tokens=64}]"
    with Run.create(tmp_path / "run", "", {"temperature": 1.4, "asked": [[7, 1.6]]}) as run:
        planned = training.plan_of(settings(*AUTO, stages), run)
    assert [(stage.first_step, stage.temperature, stage.max_response_tokens) for stage in planned] == [
        (1, 1.4, 48),
        (7, 1.6, 48),
        (9, 1.4, 64),
    ]


def test_a_model_of_the_same_name_that_has_changed_is_measured_anew(tmp_path, cache):
    folder = shutil.copytree(NANO, tmp_path / "model")
    config = settings(f"model.name={folder}")
    observers = [Counting() for _ in range(3)]
    calibrate(config, observers[0], grid=[1.0], count=1)
    calibrate(config, observers[1], grid=[1.0], count=1)
    os.utime(folder / "model.safetensors", (1, 1))
    calibrate(config, observers[2], grid=[1.0], count=1)
    assert [observer.sampled for observer in observers] == [["1"], [], ["1"]]
