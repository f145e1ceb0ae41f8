"""nano trained on the CPU through verl's own trainer: T(D), dynamic sampling, stages, LoRA, tests, exact resume."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter

import pytest
import ray
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import load_file
from train_runs import same, timeless, weights
from verl_runs import settings, trained

from microcoder.models import resolve
from microcoder.models.weights import load
from microcoder.runs import checkpoints, read_info, read_rollouts
from microcoder.training.card import export
from microcoder.training.plan import GRID
from microcoder.training.verl.cpu_engine import SamplingServer
from microcoder.training.verl.session import check, environment

CHANGES = (
    'grpo.temperature="auto"',
    "grpo.dynamic_sampling=2",
    "data.test=starter",
    "data.test_size=3",
    "train.eval_tries=2",
    "train.eval_every=0",
    "train.save_every=1",
    "train.steps=2",
)
LR = 1e-2
ADAPTED = (
    "model.lora_rank=4",
    "grpo.kl=0.001",
    "train.schedule=linear",
    f"train.lr={LR}",
    "train.weight_decay=0",
    "train.steps=2",
    "train.stages=[{at_step = 2, temperature = 0.9}]",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROCODER_CACHE", str(path.parent / "cache"))
        return path, trained(path, *CHANGES)


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "lora"
    return path, trained(path, *ADAPTED)


def test_two_steps_leave_a_run_directory(run):
    path, lines = run
    assert [line["step"] for line in lines] == [0, 1, 2]
    assert lines[0]["test_problems"] == lines[2]["test_problems"] == 3
    assert any(line["grad_norm"] > 0 for line in lines[1:])
    assert all(line["mismatch_mean"] < 1e-4 for line in lines[1:])
    assert [len(list(read_rollouts(path, line["step"]))) for line in lines[1:]] == [line["rows"] for line in lines[1:]]
    assert checkpoints(path) == [1, 2]
    assert read_info(path)["versions"]["verl"]


def test_the_temperature_is_that_of_t_of_d(run):
    path, lines = run
    found = read_info(path)["calibration"]
    assert [probe["temperature"] for probe in found["probes"]] == list(GRID)
    assert all(line["temperature"] == found["temperature"] for line in lines[1:])


def test_groups_without_signal_are_replaced_by_those_of_other_problems(run):
    path, lines = run
    for line in lines[1:]:
        rows = list(read_rollouts(path, line["step"]))
        kept = Counter(row["problem"] for row in rows if not row["discarded"])
        others = Counter(row["problem"] for row in rows if row["discarded"])
        assert list(kept.values()) == [4, 4]  # 2 problems x 4 samples are trained on, however many are discarded
        assert set(others.values()) <= {4} and not kept.keys() & others.keys()
        silent = [p for p in kept if len({row["reward"] for row in rows if row["problem"] == p}) == 1]
        assert len(silent) == round(2 * line["no_signal_share"])
        assert line["resampled"] <= len(others) <= 2 * 2  # at most two rounds for at most two groups
    assert any(line["rows"] > 8 for line in lines[1:])


def test_the_checkpoint_is_a_model_like_any_other(run):
    path, _ = run
    before, after = weights(path), resolve(str(path))
    assert before and after.path.endswith("checkpoint-2")


def test_a_run_that_goes_on_ends_with_the_weights_of_one_that_never_stopped(run, tmp_path):
    path, lines = run
    shutil.copytree(path, tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "checkpoints" / "checkpoint-2")
    again = trained(tmp_path / "b", *CHANGES)
    assert same(weights(tmp_path / "b"), weights(path))
    clocks = {"tokens_per_s"}
    kept = [[{k: v for k, v in line.items() if k not in clocks} for line in timeless(part)] for part in (again, lines)]
    assert kept[0] == kept[1]


def test_an_adapter_is_trained_in_two_stages_with_a_linear_schedule(adapted):
    path, lines = adapted
    assert [line["temperature"] for line in lines] == [1.2, 0.9]
    assert [line["learning_rate"] for line in lines] == pytest.approx([LR / 2, 0])  # verl says what the next step has
    assert lines[0]["kl"] == pytest.approx(0, abs=1e-6) and lines[1]["kl"] > 1e-6  # of the model without its adapter
    assert all(line["mismatch_mean"] < 1e-4 for line in lines)  # what samples has the adapter that is trained
    first, second = (_matrices(path / "checkpoints" / f"checkpoint-{n}") for n in (1, 2))
    assert first.abs().max() == pytest.approx(LR, rel=0.01)  # B was 0, and Adam's first step is the rate
    moved = (second - first).abs().max()
    assert 0 < moved < 0.6 * LR  # the second stage began with it: the other way round, 1.5 LR


def test_the_adapters_checkpoint_is_loaded_and_exported_like_trls(adapted, tmp_path):
    path, _ = adapted
    source = resolve(str(path))
    assert source.adapter.endswith("checkpoint-2") and source.path == resolve("nano").path
    export(path, tmp_path / "model")
    merged, base = (load(resolve(name), torch.float32) for name in (str(tmp_path / "model"), "nano"))
    names = [name for name, value in merged.named_parameters() if not torch.equal(value, base.get_parameter(name))]
    assert any("q_proj" in name for name in names)


def test_what_samples_on_cpus_applies_the_adapter():
    nano = resolve("nano")
    server = SamplingServer(nano.path, 8)
    theirs = get_peft_model(load(nano, torch.float32), LoraConfig(r=2, target_modules=["q_proj", "up_proj"])).eval()
    for name, value in theirs.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.5)
    state = {name: value.detach().clone() for name, value in get_peft_model_state_dict(theirs).items()}
    asyncio.run(server.update(state, 1, theirs.peft_config["default"].to_dict()))
    ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        torch.testing.assert_close(server.sampler.model(ids).logits, theirs(ids).logits)
        with theirs.disable_adapter():
            assert not torch.allclose(server.sampler.model(ids).logits, theirs(ids).logits)


def test_a_ray_worker_knows_our_plugin_or_says_why_not():
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        asked = []
        for policy in ("auto", "none"):
            variables = {**environment(settings()), "VERL_USE_EXTERNAL_PLUGINS": policy}
            asked.append(ray.remote(check).options(runtime_env={"env_vars": variables}).remote())
        known, hidden = ray.get(asked)
    finally:
        ray.shutdown()
    assert known == ""
    assert "VERL_USE_EXTERNAL_PLUGINS" in hidden


def _matrices(folder):
    """All B of an adapter, in one row."""
    found = load_file(folder / "adapter_model.safetensors")
    return torch.cat([value.flatten() for name, value in sorted(found.items()) if "lora_B" in name])
