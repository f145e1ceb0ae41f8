"""What a dry run says of memory, and of what is missing."""

from __future__ import annotations

import pytest

from microcoder.config import find, load
from microcoder.files import write_problems
from microcoder.starter import problems
from microcoder.training import plan
from microcoder.training.memory import GIB, Device
from microcoder.training.plan import PlanError, batches, describe


def test_a_dry_run_names_a_model_that_cannot_be_had_and_does_not_fit_and_the_learning_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "hub_fault", lambda name: "the hub cannot be used: offline")
    monkeypatch.setattr(plan, "here", lambda ranks=1: Device(23 * GIB, gpu=False))
    config = load(find("demo"), ["model.name=Qwen/Qwen3-4B"])
    found = describe(config, tmp_path / "run")
    model, room = found.missing
    assert "the model Qwen/Qwen3-4B: it is not on this machine, and the hub cannot be used: offline" in model
    assert "weights 14.90, gradients 14.90, optimizer 29.80" in room
    assert "main memory of 23 GiB, for there is no GPU, leaves 21.2" in room
    assert ("optimizer", "AdamW, learning rate 0.0002 (constant)") in found.lines


def test_a_dry_run_names_a_gguf_file_that_cannot_be_used_and_goes_on(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF\3\0\0\0" + bytes(16))  # no metadata, no tensors
    (tmp_path / "n.gguf").write_text("version https://git-lfs.github.com/spec/v1")
    for name, words in (("m.gguf", "lack general.architecture"), ("n.gguf", "is no GGUF file: it begins with")):
        found = describe(load(find("demo"), [f"model.name={tmp_path / name}"]), tmp_path / "run")
        assert words in found.missing[0]
        assert "starter: 1000 problems" in dict(found.lines)["train"]


def test_a_model_that_the_hub_has_and_that_fits_is_not_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "hub_fault", lambda name: "")
    monkeypatch.setattr(plan, "here", lambda ranks=1: Device(120 * GIB, gpu=False))
    assert describe(load(find("demo"), ["model.name=Qwen/Qwen3-4B"]), tmp_path / "run").missing == []


def test_a_dry_run_warns_of_problems_that_are_trained_and_tested_on(tmp_path):
    write_problems(tmp_path / "problems.jsonl", problems("train", 20, depths=[1]))
    words = [f"data.{split}={tmp_path / 'problems.jsonl'}" for split in ("train", "test")]
    found = describe(load(find("demo"), words), tmp_path / "run")
    assert any("20 of the 20 test problems are trained on too" in said for _, said in found.lines)


def test_a_plan_can_be_made_for_a_gpu_that_is_not_here(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "hub_fault", lambda name: "")
    words = ["model.name=Qwen/Qwen3-4B", "rollout.engine=graph", "train.update=packed"]
    config = load(find("demo"), words)
    small, large = (describe(config, tmp_path / "run", device=Device(gib * GIB, gpu=True)) for gib in (48, 141))
    (lack,) = small.missing
    assert "model.lora_rank=32 (" in lack.partition("what fits: ")[2]
    assert large.missing == []
    said = dict(large.lines)
    assert "a GPU of 141 GiB" in said["memory"] and said["memory"].endswith("recompute: no")
    assert "in packed passes of up to " in said["batches"]
    assert "guessed from its name" in said["model"]


def test_settings_of_the_loss_that_do_not_go_together_are_refused():
    with pytest.raises(PlanError, match=r"\[grpo\]: dual_clip belongs to clip ppo"):
        batches(load(None, ["grpo.clip=cispo", "grpo.dual_clip=3"]))
    with pytest.raises(PlanError, match="set ratio to token"):
        batches(load(None, ["grpo.preset=dppo", "grpo.ratio=sequence"]))
