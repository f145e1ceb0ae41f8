"""What a dry run says of memory, of how a training is started, and of what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from microcoder.config import find, load
from microcoder.files import write_problems
from microcoder.starter import problems
from microcoder.training import dry_run
from microcoder.training.dry_run import describe
from microcoder.training.memory import GIB, Device
from microcoder.training.plan import PlanError


def test_a_dry_run_names_a_model_that_cannot_be_had_and_does_not_fit_and_the_learning_rate(tmp_path, monkeypatch):
    monkeypatch.setattr(dry_run, "hub_fault", lambda name: "the hub cannot be used: offline")
    monkeypatch.setattr(dry_run, "here", lambda ranks=1: Device(23 * GIB, gpu=False))
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


def test_a_dry_run_names_a_folder_that_holds_no_model(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    found = describe(load(find("demo"), [f"model.name={tmp_path / 'model'}"]), tmp_path / "run")
    assert len(found.missing) == 1 and "holds no model" in found.missing[0]


def test_a_model_that_the_hub_has_and_that_fits_is_not_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(dry_run, "hub_fault", lambda name: "")
    monkeypatch.setattr(dry_run, "here", lambda ranks=1: Device(120 * GIB, gpu=False))
    assert describe(load(find("demo"), ["model.name=Qwen/Qwen3-4B"]), tmp_path / "run").missing == []


def test_a_dry_run_warns_of_problems_that_are_trained_and_tested_on(tmp_path):
    write_problems(tmp_path / "problems.jsonl", problems("train", 20, depths=[1]))
    words = [f"data.{split}={tmp_path / 'problems.jsonl'}" for split in ("train", "test")]
    found = describe(load(find("demo"), words), tmp_path / "run")
    assert any("20 of the 20 test problems are trained on too" in said for _, said in found.lines)


def test_a_dry_run_warns_of_a_limit_beyond_what_the_model_was_made_for(tmp_path):
    said = [words for _, words in describe(load(find("demo"), ["train.max_response_tokens=1000"]), tmp_path).lines]
    (warning,) = [words for words in said if "was made for 1,024" in words]
    limit = int(re.search(r"set train.max_response_tokens to (\d+) or less", warning)[1])
    for tokens, warned in ((limit, False), (limit + 1, True)):
        made = describe(load(find("demo"), [f"train.max_response_tokens={tokens}"]), tmp_path)
        assert any("was made for" in words for _, words in made.lines) == warned
    made = describe(load(find("demo"), ["grpo.turns=3", "train.max_response_tokens=400"]), tmp_path)
    assert any("was made for" in words for _, words in made.lines)


def test_a_plan_can_be_made_for_a_gpu_that_is_not_here(tmp_path, monkeypatch):
    monkeypatch.setattr(dry_run, "hub_fault", lambda name: "")
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


def test_a_plan_says_which_device_would_train(tmp_path, monkeypatch):
    def said(*words, device=None):
        return dict(describe(load(find("demo"), list(words)), tmp_path / "run", device=device).lines)["device"]

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert said() == "the CPU: torch sees no GPU"
    assert said("run.processes=2") == "the CPU: torch sees no GPU; 2 processes share it"
    assert said(device=Device(24 * GIB, gpu=True)) == "a GPU of 24 GiB"
    assert said("run.processes=8", device=Device(80 * GIB, gpu=True)) == "8 GPUs, each of 80 GiB"
    monkeypatch.setattr(dry_run, "here", lambda ranks=1: Device(80 * GIB, gpu=True))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda n: ("A", "A", "B", "B")[n])
    assert said("run.processes=1") == "1 of 4 GPUs: A"
    assert said() == "4 GPUs: A, B"


# --- the paper's setting on 1, 8 and 64 GPUs


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """(GPUs, GiB of each, settings) -> the plan of the paper's setting, and its lines by name."""
    monkeypatch.setattr(dry_run, "hub_fault", lambda name: "")
    write_problems(tmp_path / "problems.jsonl", problems("train", 64, depths=[1, 2]))

    def plan(gpus, gib, *words, name="paper"):
        words = (f"data.train={tmp_path / 'problems.jsonl'}", *words)
        words += (f"run.processes={gpus}",) * (gpus > 1 and name == "paper")
        config = load(find(name), list(words))
        made = describe(config, tmp_path / "run", device=Device(int(gib * GIB), gpu=True))
        return made, {what: said for what, said in made.lines if what}

    return plan


def gib(said, part):
    return float(re.search(rf"{part} ([\d.]+)", said)[1])


def test_what_each_of_8_gpus_holds_of_a_4b_model_is_what_is_found_by_hand(paper):
    made, lines = paper(8, 80)
    assert made.missing == [] and "FSDP2 over 8 devices" in lines["layout"]
    said, billions = lines["memory"], 4e9 / GIB
    token = 2 * 2 * 36 * 8 * 128  # bytes of keys and values: both, in bfloat16, 36 layers, 8 heads of 128
    kept = 36 * (12 * 2560 + 4 * 4096 + 4 * 1024 + 6 * 9728 + 2 * (4096 + 1024) + 4 * 32)  # by a token of a pass
    layer = 2 * 2560 * (32 + 8) * 128 + 3 * 2560 * 9728
    by_hand = {
        "weights": 4 * billions / 8,
        "gradients": 4 * billions / 8,
        "optimizer": 8 * billions / 8,
        "sampling copy": 2 * billions,
        "exchange": (4 * (2 * layer + 151936 * 2560) + 4 * layer) / GIB,  # two layers, the head; a layer's gradients
        "pages": 0.4 * 80,
    }
    for part, value in by_hand.items():
        assert gib(said, part) == pytest.approx(value, abs=0.01), part
    tokens = int(re.search(r"a pass of ([\d,]+) tokens", said)[1].replace(",", ""))
    head = 2048 * 151936 * 6 + (2 + 8) * 151936 * 2560
    one = (kept * tokens + 4 * 2560 * tokens + 2 * 36 * layer + head) / GIB
    assert gib(said, "tokens") == pytest.approx(one, abs=0.01)
    standing = sum(value for part, value in by_hand.items() if part not in ("pages", "gradients")) + 1.2
    assert gib(said, "about") == pytest.approx(standing + by_hand["gradients"] + one, abs=0.02)
    fit = int(32 * GIB / (token * (8192 + 2048 / 8)))  # a prompt is kept once for its eight samples
    assert "64 responses on each device, of up to 10,240 tokens" in lines["sampling"]
    assert f"there is room for {fit} at once (rollout.memory=0.4; 0.7: for 48)" in lines["sampling"]


def test_a_plan_says_what_checkpoints_take(paper):
    said = paper(1, 139.8)[1]["checkpoints"]
    assert gib(said, "steps,") == pytest.approx((4 + 8) * 4e9 / GIB, abs=0.01)
    assert said.endswith("up to 3 at a time, 134.1 GiB of disk")
    said = paper(8, 80)[1]["checkpoints"]  # FSDP2: weights twice, whole and in shares
    assert gib(said, "steps,") == pytest.approx((4 + 4 + 8) * 4e9 / GIB, abs=0.01)


def test_a_plan_for_64_gpus_is_one_of_machines_and_says_the_command_of_each_and_that_nobody_ran_it(paper):
    made, lines = paper(64, 80)
    assert made.missing == []
    assert lines["start"].startswith("on each of 8 machines of 8 GPUs: torchrun --nnodes 8 --nproc-per-node 8 ")
    said = [words for _, words in made.lines]
    assert "never run on several GPUs, so no time is known; two CPU processes: docs/explanation/scale.md" in said
    assert "a device has 1 of the problems: an update cuts through its groups of 8" in said
    assert "2 updates x 4 responses in packed passes" in lines["batches"]
    assert lines["sampling"].startswith("8 responses on each device")
    assert lines["sampling"].endswith("all that long have room")


@pytest.mark.parametrize(("gpus", "fewer"), [(48, 32), (7, 4)])
def test_gpus_that_cannot_share_64_problems_are_refused_with_a_number_that_can(paper, gpus, fewer):
    with pytest.raises(PlanError, match=rf"to {gpus} devices .* use {fewer} devices \(run.processes={fewer}\)"):
        paper(gpus, 80)
    assert paper(fewer, 80)[0].missing == []


def test_a_layout_of_several_devices_is_refused_for_one(paper):
    with pytest.raises(PlanError, match=r"there is one; set run.layout=auto"):
        paper(1, 80, "run.layout=fsdp")


def test_machines_of_verl_are_refused_with_trl_which_would_train_on_one_alone(paper):
    with pytest.raises(PlanError, match=r"cluster.nodes=8 is for run.engine=verl; .*: torchrun --nnodes 8 "):
        paper(1, 80, "cluster.nodes=8")


def test_a_model_that_one_gpu_has_no_room_for_is_offered_the_fewest_that_have(paper):
    (lack,) = paper(1, 80)[0].missing
    assert "2 such GPUs (" in lack.partition("what fits: ")[2]
    assert paper(2, 80)[0].missing == []


def test_a_model_whose_copy_no_gpu_can_hold_is_sent_to_verl_and_no_way_that_is_refused_is_named(paper):
    (lack,) = paper(64, 80, "model.name=Qwen/Qwen3-32B")[0].missing
    assert "let verl deal the sampling copy out to several GPUs: microcoder cp cluster-32b 32b.toml" in lack
    assert "run.layout" not in lack and "sampling copy 59.60" in lack


def test_a_plan_for_verl_says_what_ray_needs_and_that_its_memory_is_not_planned(paper):
    made, lines = paper(64, 80, name="cluster-32b")
    assert lines["start"].startswith("8 machines of 8 GPUs: ray start --head on the first")
    assert lines["start"].endswith("Ray needs 204 CPUs in all")
    assert lines["memory"].startswith("not planned for verl")
    assert any(words.startswith("never run: verl on GPUs") for _, words in made.lines)


@pytest.mark.parametrize("layout", ["replicated", "zero2", "fsdp"])
def test_the_page_about_scale_has_the_planners_numbers(paper, layout):
    said = paper(8, 80, f"run.layout={layout}")[1]["memory"]
    parts = ("weights", "gradients", "optimizer", "exchange", "sampling copy", "about")
    row = f"| `{layout}`" + " (`auto`)" * (layout == "fsdp") + "".join(f" | {gib(said, part):.1f}" for part in parts)
    assert row in (Path(__file__).parents[2] / "docs/explanation/scale.md").read_text()
