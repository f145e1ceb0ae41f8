"""Which layout a plan chooses, what a device then holds, and what is refused."""

from __future__ import annotations

import pytest

from microcoder.config import load, shipped
from microcoder.training.dry_run import describe
from microcoder.training.memory import GIB, Device, MemoryPlan
from microcoder.training.model_shape import ModelShape
from microcoder.training.plan import PlanError, batches, settled
from microcoder.training.ranks import wanted
from microcoder.training.sharding import words


def plan(name: str, ranks: int, *more: str, gib: int = 80) -> MemoryPlan:
    """The paper's setting on GPUs of `gib` GiB."""
    config = settled(load(shipped()["paper"], [f"model.name={name}", *more]), None, True)
    shape = ModelShape.guess(name)
    assert shape is not None
    return MemoryPlan(config, batches(config, ranks), shape, 600, Device(gib * GIB, True))


def test_4b_is_dealt_out_over_eight_gpus_of_80_gib_since_eight_copies_do_not_fit():
    assert "98.4 GiB at the least" in plan("Qwen3-4B", 8, "run.layout=replicated").lack()
    chosen = plan("Qwen3-4B", 8)
    assert chosen.fitted().config.run.layout == "fsdp" and chosen.lack() == ""
    whole, parts = plan("Qwen3-4B", 1).parts(), chosen.fitted().parts()
    assert all(parts[name] == whole[name] // 8 for name in ("weights", "gradients", "optimizer"))
    assert parts["sampling copy"] == whole["sampling copy"]


def test_what_fits_is_replicated_and_one_device_needs_no_layout():
    assert plan("Qwen3-0.6B", 8).fitted().config.run.layout == "replicated"
    assert plan("Qwen3-4B", 1, gib=141).fitted().config.run.layout == "replicated"


def test_32b_does_not_fit_since_each_rank_samples_from_a_whole_copy():
    assert "sampling copy 59.60" in plan("Qwen3-32B", 64).lack()


@pytest.mark.parametrize(("layout", "shares"), [("zero1", 1), ("zero2", 2), ("zero3", 3), ("fsdp", 3)])
def test_each_stage_deals_out_one_more_part(layout, shares):
    one, parts = plan("Qwen3-4B", 1).parts(), plan("Qwen3-4B", 8, f"run.layout={layout}").parts()
    assert sum(parts[name] < one[name] / 2 for name in ("weights", "gradients", "optimizer")) == shares
    assert f"1/8 of {('weights, ' if shares == 3 else '')}" in words(layout, 8)


@pytest.mark.parametrize(
    ("settings", "ranks", "way"),
    [
        (["run.layout=fsdp"], 1, "run.layout=auto"),
        (["run.layout=fsdp", "train.optimizer=adam8bit"], 2, "train.optimizer=adamw"),
        (["run.layout=zero2", "model.dtype=bfloat16"], 2, "model.dtype=auto"),
        (["run.layout=zero3", "train.optimizer=adam8bit"], 2, "run.layout=auto"),
    ],
)
def test_a_layout_that_cannot_work_is_refused_with_what_can(settings, ranks, way):
    with pytest.raises(PlanError, match=way):
        batches(load(None, settings), ranks)


def test_a_dry_run_says_the_layout_and_plans_for_gpus_elsewhere(tmp_path):
    config = load(None, ["run.processes=8", "run.layout=fsdp", "train.train_batch_size=8"])
    said = dict(describe(config, tmp_path / "run", device=Device(80 * GIB, True)).lines)
    assert said["layout"].startswith("FSDP2 over 8 devices: each holds 1/8 of weights, gradients, optimizer")
    assert said["memory"].startswith("on each device about ")


def test_ranks_are_started_where_they_are_asked_for_and_not_by_a_rank(monkeypatch):
    assert wanted(load(None, [])) == 0  # no GPU here: this process trains by itself
    assert wanted(load(None, ["run.processes=2"])) == 2
    assert wanted(load(None, ["run.processes=2", "run.engine=verl"])) == 0
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert wanted(load(None, ["run.processes=2"])) == 0
