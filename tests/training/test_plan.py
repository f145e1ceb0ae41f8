"""What a dry run says of memory, and of what is missing."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from microcoder.config import find, load
from microcoder.files import write_problems
from microcoder.models import NANO
from microcoder.starter import problems
from microcoder.training import plan
from microcoder.training.plan import GIB, batches, describe, memory


@pytest.fixture(scope="module")
def nano():
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(NANO))


def estimate(model, gpu, *words):
    config = load(find("paper"), words)
    return memory(config, batches(config), model, 1024, gpu)


def test_keys_and_values_take_no_more_of_a_gpu_than_rollout_memory_lets(nano):
    free = estimate(nano, 1 << 50)
    assert estimate(nano, GIB, "rollout.memory=0.25")["key-value cache"] == 0.25 * GIB < free["key-value cache"]
    assert estimate(nano, 0)["key-value cache"] == 2 * free["key-value cache"]  # float32 on a CPU, bfloat16 on a GPU


def test_a_dry_run_names_a_model_that_cannot_be_had_and_does_not_fit_and_the_learning_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "hub_fault", lambda name: "the hub cannot be used: offline")
    monkeypatch.setattr(plan, "memory_here", lambda: 23 * GIB)
    config = load(find("demo"), ["model.name=Qwen/Qwen3-4B"])
    found = describe(config, tmp_path / "run")
    model, room = found.missing
    assert "the model Qwen/Qwen3-4B: it is not on this machine, and the hub cannot be used: offline" in model
    assert "take 60 GiB" in room and "has 23" in room
    assert ("optimizer", "AdamW, learning rate 0.0002 (constant)") in found.lines


def test_a_model_that_the_hub_has_and_that_fits_is_not_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "hub_fault", lambda name: "")
    monkeypatch.setattr(plan, "memory_here", lambda: 80 * GIB)
    assert describe(load(find("demo"), ["model.name=Qwen/Qwen3-4B"]), tmp_path / "run").missing == []


def test_a_dry_run_warns_of_problems_that_are_trained_and_tested_on(tmp_path):
    write_problems(tmp_path / "problems.jsonl", problems("train", 20, depths=[1]))
    words = [f"data.{split}={tmp_path / 'problems.jsonl'}" for split in ("train", "test")]
    found = describe(load(find("demo"), words), tmp_path / "run")
    assert any("20 of the 20 test problems are trained on too" in said for _, said in found.lines)
