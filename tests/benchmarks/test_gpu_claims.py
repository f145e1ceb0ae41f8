"""Runs of `benchmarks.gpu arms` as a scale of `microcoder study report`: told apart by their settings."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.gpu.arms import ARMS, Experiment
from benchmarks.gpu.claims import write_plan
from microcoder.config import load, to_toml
from microcoder.study.results import gather


def configured(tmp_path, arm, seed=0, *words):
    """The settings with which `arms run` starts an arm."""
    asked = {"model": "m.gguf", "data": tmp_path / "data", "out": tmp_path / "qwen", "arms": [arm], "seeds": [seed]}
    more = {"steps": 8, "every": 0, "size": "full", "judge_workers": 2, "budget": 1.0, "set": list(words)}
    experiment = Experiment(Namespace(**asked, **more))
    (name,) = experiment.runs
    command = experiment._train(name).command
    return name, load(None, command[command.index("train") + 1 :])


def trained(tmp_path, arm, seed=0, *words, gain=0.1):
    name, config = configured(tmp_path, arm, seed, *words)
    folder = tmp_path / "qwen" / "runs" / name
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(to_toml(config))
    (folder / "summary.json").write_text(json.dumps({"status": "finished", "steps": 8}))
    (folder / "run.json").write_text("{}")
    lines = [{"step": 0, "test_accuracy": 0.1}]
    for step in range(1, 9):
        lines.append({"step": step, "diversity": 0.9 - 0.05 * step - 0.001 * seed, "truncated_share": 0.01})
    lines[-1]["test_accuracy"] = 0.1 + gain + 0.001 * seed
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def forged(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train-forged.jsonl.gz").write_bytes(b"")


def planned(tmp_path):
    said = write_plan(tmp_path / "qwen")
    return said, json.loads((tmp_path / "qwen" / "plan.json").read_text())


def test_an_arm_has_the_settings_of_its_preset_and_those_that_all_share(tmp_path, forged):
    _, grpo = configured(tmp_path, "grpo", 1)
    assert (grpo.grpo.preset, grpo.grpo.kl, grpo.grpo.eps_high, grpo.grpo.temperature) == ("grpo", 0.001, 0.2, 1.0)
    assert (grpo.train.steps, grpo.train.eval_every, grpo.train.seed, grpo.train.lr) == (8, 2, 1, 3e-6)
    assert Path(grpo.data.train).name == "train-forged.jsonl.gz"
    _, chosen = configured(tmp_path, "microcoder-TD", 0, "train.lr=1e-5")
    assert (chosen.grpo.mask, chosen.grpo.temperature, chosen.train.lr) == ("conditional", "auto", 1e-5)
    for arm in ARMS:
        assert configured(tmp_path, arm)[1].train.update == ("padded" if arm == "padded" else "packed")


def test_runs_are_the_arms_of_the_papers_studies_whose_settings_they_have(tmp_path, forged):
    for seed in (0, 1):
        trained(tmp_path, "grpo", seed)
        trained(tmp_path, "plain=grpo_plus", seed)
        trained(tmp_path, "microcoder", seed)
    trained(tmp_path, "warm=grpo_plus grpo.temperature=1.1")  # no arm of any study
    said, plan = planned(tmp_path)
    assert plan == {
        f"{place}/{seed}": f"{arm}-s{seed}"
        for seed in (0, 1)
        for place, arm in {
            "temperature/middle": "plain",
            "truncation/none": "plain",
            "truncation/mask-20": "microcoder",
            "kl_clip/neither": "plain",
            "kl_clip/both": "grpo",
            "algorithms/grpo": "grpo",
            "algorithms/grpo_plus": "plain",
            "algorithms/microcoder": "microcoder",
        }.items()
    }
    assert "kl_clip: neither (2), both (2)" in said


def test_rewards_by_examples_and_by_forged_tests_are_a_study(tmp_path, forged):
    trained(tmp_path, "examples")
    trained(tmp_path, "forged")
    _, plan = planned(tmp_path)
    assert plan == {
        "rewards/examples/0": "examples-s0",
        "rewards/forged/0": "forged-s0",
        "temperature/middle/0": "forged-s0",
    }


def test_the_report_of_studies_reads_the_folder(tmp_path, forged):
    for seed in (0, 1, 2):
        trained(tmp_path, "grpo_plus", seed)
        trained(tmp_path, "mask-all", seed, gain=0.2)
    write_plan(tmp_path / "qwen")
    (scale,) = gather(tmp_path)
    assert scale.name == "qwen" and scale.planned == 6 and not scale.unfinished
    assert scale.values("truncation", "all", "last(test_accuracy)") == pytest.approx({0: 0.3, 1: 0.301, 2: 0.302})
    gate = scale.studies["truncation"].gates[0]
    assert (gate.statistic, gate.at_least) == ("mean(truncated_share)", 0.15)


def test_folders_without_runs_or_with_settings_of_another_version_have_no_claims(tmp_path, forged):
    assert write_plan(tmp_path) == ["no claims: there are no runs"]
    trained(tmp_path, "grpo")
    file = tmp_path / "qwen" / "runs" / "grpo-s0" / "config.toml"
    file.write_text(file.read_text() + "\n[strange]\nkey = 1\n")
    (said,) = write_plan(tmp_path / "qwen")
    assert said.startswith("no claims: ") and "strange" in said
