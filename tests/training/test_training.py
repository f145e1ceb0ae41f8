"""Whole trainings, as small as they can be: every algorithm by its name, adapters, problems from a file."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from train_runs import Listening, resumed, same, settings, timeless, trained, weights
from trl import GRPOTrainer

from microcoder.config import PRESETS
from microcoder.files import FileError, write_problems
from microcoder.models import NANO
from microcoder.runs import checkpoints, read_info, read_rollouts, read_statements
from microcoder.starter import problems
from microcoder.training.dry_run import describe
from microcoder.training.plan import PlanError
from microcoder.training.ranks import Silent
from microcoder.training.recorder import StepRecorder
from microcoder.training.trl import TrlStageTrainer

NAMES = (
    "reward accuracy length_mean length_max length_finished truncated_share diversity entropy clip_low clip_high "
    "masked_share no_signal_share loss grad_norm learning_rate generation_s judging_s judging_floor_s "
    "update_s other_s step_s tokens_per_s"
).split()


@pytest.mark.long
@pytest.mark.parametrize("preset", PRESETS)
def test_each_algorithm_trains_by_its_name(tmp_path, preset):
    lines = trained(tmp_path / "run", f"grpo.preset={preset}", "train.ppo_mini_batch_size=1")
    assert [line["step"] for line in lines] == [1, 2]
    assert [line["updates"] for line in lines] == [2, 4]
    for line in lines:
        assert [name for name in NAMES if name not in line] == []
        assert all(math.isfinite(line[name]) for name in NAMES if name != "length_finished")
        assert ("kl" in line) == (preset == "grpo")
        assert 0 < line["length_mean"] <= line["length_max"] <= 48
        parts = [line[name] for name in ("generation_s", "judging_s", "update_s", "other_s")]
        assert line["step_s"] == pytest.approx(sum(parts))
        assert 0 <= line["judging_floor_s"] <= line["judging_s"]
        assert line["rows"] == len(read_rollouts(tmp_path / "run", line["step"])) >= 8
    assert max(line["grad_norm"] for line in lines) > 0
    before, after = load_file(NANO / "model.safetensors"), weights(tmp_path / "run")
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in before)
    info = read_info(tmp_path / "run")
    assert (info["status"], info["steps_done"], info["temperature"]) == ("finished", 2, 1.2)
    assert checkpoints(tmp_path / "run") == [4]  # counted in updates


@pytest.mark.long
@pytest.mark.parametrize(("schedule", "end"), [("constant", 1), ("linear", 0.5), ("cosine", 0.5)])
def test_the_learning_rate_rises_over_the_warm_up_whatever_comes_after_it(tmp_path, schedule, end):
    lines = trained(tmp_path / "run", f"train.schedule={schedule}", "train.warmup_steps=2", "train.steps=4")
    rates = [line["learning_rate"] for line in lines]
    assert rates == pytest.approx([0, 0.5e-4, 1e-4, end * 1e-4])


def test_evaluations_come_before_now_and_then_and_after(tmp_path):
    options = ("data.test=starter", "data.test_size=2", "train.eval_tries=2", "train.eval_every=2", "train.steps=3")
    lines = trained(tmp_path / "run", *options)
    assert [line["step"] for line in lines if "test_accuracy" in line] == [0, 2, 3]
    assert all(0 <= line["test_accuracy"] <= 1 for line in lines if "test_accuracy" in line)
    assert {line.get("test_problems") for line in lines} == {2, None}


def test_evaluations_may_have_a_limit_of_their_own_and_a_second_policy_is_recorded_beside(tmp_path):
    options = ("data.test=starter", "data.test_size=4", "train.eval_tries=2", "train.steps=1")
    limits = ("train.max_response_tokens=16", "train.eval_max_response_tokens=64")
    before, step = trained(tmp_path / "run", *options, *limits, "judge.also=exact")
    assert step["length_max"] == 16 < before["test_length"]
    assert before["test_accuracy_also"] <= before["test_accuracy"] and step["accuracy_also"] <= step["accuracy"]


def test_evaluations_may_have_a_top_k_of_their_own(tmp_path):
    options = ("data.test=starter", "data.test_size=2", "train.eval_tries=2", "train.eval_temperature=2.0")
    greedy, step = trained(tmp_path / "run", *options, "train.eval_top_k=1", "train.steps=1")
    assert greedy["test_diversity"] == 0 < step["diversity"]
    (free, _) = trained(tmp_path / "free", *options, "train.steps=1")
    assert free["test_diversity"] > 0


def test_stragglers_are_cut_in_training_and_waited_for_in_evaluations(tmp_path):
    loop = {"asserts": ["assert loop(solve) == 1"], "setup": "def loop(f):\n    while True: pass", "time_limit_s": 30}
    slow = [replace(one, kind="assert", tests=[], **loop) for one in problems("train", 2, depths=[1])]
    write_problems(tmp_path / "train.jsonl", slow)
    data = (f"data.train={tmp_path / 'train.jsonl'}", "data.test=starter", "data.test_size=1", "train.eval_tries=1")
    lines = trained(tmp_path / "run", *data, "train.steps=1", "rollout.straggler_s=0.001")
    assert lines[1]["cut_stragglers"] > 0
    assert [lines[1]["judge_faults"], *(line["test_judge_faults"] for line in lines)] == [0, 0, 0]
    rows = read_rollouts(tmp_path / "run", 1)
    assert sum(row["cut"] for row in rows) == lines[1]["cut_stragglers"]
    groups = {row["problem"] for row in rows if row["cut"]}
    assert {row["advantage"] for row in rows if row["problem"] in groups} == {0}


def test_problems_come_from_a_file_and_what_cannot_be_used_is_named(tmp_path):
    path, observer = tmp_path / "problems.jsonl", Listening()
    chosen = problems("train", 3, depths=[1])
    write_problems(path, chosen)
    path.write_text(path.read_text() + '{"id": "unusable"}\n')
    trained(tmp_path / "run", f"data.train={path}", "data.train_size=2", "train.steps=1", observer=observer)
    drawn = "1 not drawn: data.train_size=2 are drawn at random, always the same"
    (said,) = (note for note in observer.notes if note.startswith(f"train: {path}, 2 problems (left out: "))
    assert "(left out: 1 unreadable, such as line 4: " in said and said.endswith(f", {drawn})")
    found = read_statements(tmp_path / "run", 1)
    assert len(found) == 2 and found.items() <= {problem.id: problem.statement for problem in chosen}.items()


def test_a_run_that_goes_on_with_other_problems_than_it_began_with_says_so(tmp_path):
    path, undisturbed, observer = tmp_path / "problems.jsonl", Listening(), Listening()
    chosen, run = problems("train", 3, depths=[1]), tmp_path / "run"
    write_problems(path, chosen)
    trained(run, f"data.train={path}", "train.steps=1")
    resumed(run, f"data.train={path}", observer=undisturbed)
    write_problems(path, [replace(chosen[0], tests=chosen[0].tests[:1]), *chosen[1:]])
    resumed(run, f"data.train={path}", "train.steps=3", observer=Silent())
    resumed(run, f"data.train={path}", "train.steps=4", observer=observer)  # it is said each time
    said = f"data.train={path} has changed since the run began"
    assert [any(said in note for note in each.notes) for each in (undisturbed, observer)] == [False, True]


def test_fewer_problems_than_a_step_needs_end_the_run_with_directions(tmp_path):
    with pytest.raises(PlanError, match=r"only 1 to train on; set train\.train_batch_size=1"):
        trained(tmp_path / "run", "data.train_size=1")
    assert read_info(tmp_path / "run")["status"] == "failed"
    (lack,) = describe(settings("data.train_size=1"), tmp_path / "new").missing
    assert "set train.train_batch_size=1" in lack


def test_a_file_of_problems_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileError, match="none"):
        trained(tmp_path / "run", "data.train=none")


# ---- adapters

LORA = ("model.lora_rank=4", "model.lora_targets=all-linear", "train.lr=5e-3")
ADAPTER = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def lora(tmp_path_factory):
    path = tmp_path_factory.mktemp("lora") / "run"
    return path, trained(path, *LORA)


def test_an_adapter_trains_on_every_linear_layer(lora):
    path, lines = lora
    found = weights(path, ADAPTER)
    layers = {name.rpartition(".lora_")[0] for name in found}
    assert len(layers) == 4 * 7  # four layers of nano with seven linear ones each
    moved = {name for name, value in found.items() if "lora_B" in name and value.abs().max() > 0}
    assert len(moved) == len(layers)  # each B began at 0
    assert {len(value) for name, value in found.items() if "lora_A" in name} == {4}
    assert all(math.isfinite(line["grad_norm"]) for line in lines)


@pytest.mark.long
def test_an_adapter_that_is_resumed_is_the_one_that_was_never_stopped(lora, tmp_path):
    path, lines = lora
    trained(tmp_path / "run", *LORA, "train.steps=1")
    again = resumed(tmp_path / "run", *LORA)
    assert same(weights(tmp_path / "run", ADAPTER), weights(path, ADAPTER))
    assert timeless(again) == timeless(lines)


def test_an_adapter_on_an_adapter_is_refused_for_its_checkpoints_would_lose_the_first_one(lora, tmp_path):
    words = (f"model.name={lora[0]}", *LORA)
    with pytest.raises(PlanError, match=r"merge it first: microcoder export .* FOLDER"):
        trained(tmp_path / "run", *words)
    assert any("merge it first" in lack for lack in describe(settings(*words), tmp_path / "other").missing)


def test_a_run_that_begins_with_an_adapter_takes_the_adapted_model_as_its_reference(lora, tmp_path):
    (line,) = trained(tmp_path / "run", f"model.name={lora[0]}", "grpo.preset=grpo", "train.steps=1")
    assert line["kl"] < 1e-9  # before the first update the policy is its reference


@pytest.mark.long
def test_a_kl_is_not_taken_to_another_model_than_that_with_which_the_run_began(tmp_path):
    of, words = tmp_path / "of", ("grpo.preset=grpo", f"model.name={tmp_path / 'of'}")
    trained(of, "train.steps=1")
    trained(tmp_path / "run", *words, "train.steps=1")
    resumed(of)  # it has newer weights now
    with pytest.raises(PlanError, match=r"was begun with checkpoint-1 of .* which has checkpoint-2 now"):
        resumed(tmp_path / "run", *words)
    shutil.rmtree(of / "checkpoints" / "checkpoint-2")
    assert len(resumed(tmp_path / "run", *words)) == 2


def test_a_checkpoint_that_a_kill_has_cut_off_takes_the_place_of_no_whole_one(tmp_path):
    for number in (3, 4, 6):  # the run was killed while it wrote the last one, and went on from the one before
        (tmp_path / "checkpoints" / f"checkpoint-{number}").mkdir(parents=True)
    for number in (3, 4):
        (tmp_path / "checkpoints" / f"checkpoint-{number}" / "trainer_state.json").write_text("{}")
    run = SimpleNamespace(path=tmp_path, metrics=[])
    setup = SimpleNamespace(run=run, config=settings("train.keep_checkpoints=1"), counts=SimpleNamespace(updates=1))
    of = StepRecorder(setup, 9)
    of.trainer = SimpleNamespace(is_world_process_zero=lambda: True)
    of.drop_old()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["checkpoint-4"]


def test_dropout_does_not_make_another_policy_of_each_pass(tmp_path):
    shutil.copytree(NANO, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "attention_dropout": 0.5}))
    words = ("grpo.preset=grpo", "train.steps=1", "grpo.temperature=0.8")  # with a KL
    (line,) = trained(tmp_path / "run", f"model.name={tmp_path / 'model'}", *words)
    assert line["kl"] < 1e-9 and line["grad_norm"] > 0


def test_the_norm_of_a_step_s_gradients_is_the_mean_over_its_updates(tmp_path, monkeypatch):
    told, log = [], TrlStageTrainer.log
    monkeypatch.setattr(TrlStageTrainer, "log", lambda self, logs, *rest: (told.append(logs), log(self, logs, *rest)))
    words = ("train.update=packed", "train.ppo_mini_batch_size=1", "grpo.temperature=0.8")
    lines = trained(tmp_path / "run", *words)
    norms = [logs["grad_norm"] for logs in told if "loss" in logs]
    assert [line["grad_norm"] for line in lines] == [sum(norms[:2]) / 2, sum(norms[2:]) / 2]
    assert norms[0] != norms[1]


def test_trackers_are_told_the_metrics_by_their_names(tmp_path, monkeypatch):
    told = []
    log = GRPOTrainer.log
    monkeypatch.setattr(GRPOTrainer, "log", lambda self, logs, *rest: (told.append(dict(logs)), log(self, logs, *rest)))
    (line,) = trained(tmp_path / "run", "train.steps=1")
    assert told[0]["diversity"] == pytest.approx(line["diversity"]) and told[0]["step_s"] > 0
    assert all(isinstance(value, int | float) for value in told[0].values())  # what a tracker can draw
