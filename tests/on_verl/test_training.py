"""nano trained on the CPU through verl's own trainer: stages, evaluations, a run directory like TRL's, exact resume."""

from __future__ import annotations

import shutil

import pytest
import ray
from train_runs import same, timeless, weights
from verl_runs import settings, trained

from microcoder.models import resolve
from microcoder.runs import checkpoints, read_info, read_rollouts
from microcoder.training.verl.session import check, environment

CHANGES = (
    "data.test=starter",
    "data.test_size=3",
    "train.eval_tries=2",
    "train.eval_every=0",
    "train.save_every=2",
    "train.steps=3",
    "train.stages=[{at_step = 3, temperature = 0.9}]",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a"
    return path, trained(path, *CHANGES)


def test_three_steps_in_two_stages_leave_a_run_directory(run):
    path, lines = run
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert [line["temperature"] for line in lines[1:]] == [1.2, 1.2, 0.9]
    assert lines[0]["test_problems"] == lines[3]["test_problems"] == 3
    assert all(line["grad_norm"] >= 0 and line["rows"] == 8 for line in lines[1:])
    assert any(line["grad_norm"] > 0 for line in lines[1:])
    assert [len(list(read_rollouts(path, step))) for step in (1, 2, 3)] == [8, 8, 8]
    assert checkpoints(path) == [2, 3]
    assert read_info(path)["versions"]["verl"]


def test_the_checkpoint_is_a_model_like_any_other(run):
    path, _ = run
    before, after = weights(path), resolve(str(path))
    assert before and after.path.endswith("checkpoint-3")


def test_a_run_that_goes_on_ends_with_the_weights_of_one_that_never_stopped(run, tmp_path):
    path, lines = run
    shutil.copytree(path, tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "checkpoints" / "checkpoint-3")
    again = trained(tmp_path / "b", *CHANGES)
    assert same(weights(tmp_path / "b"), weights(path))
    clocks = {"tokens_per_s"}
    kept = [[{k: v for k, v in line.items() if k not in clocks} for line in timeless(part)] for part in (again, lines)]
    assert kept[0] == kept[1]


@pytest.mark.parametrize(("policy", "words"), [("auto", ""), ("none", "VERL_USE_EXTERNAL_PLUGINS")])
def test_a_ray_worker_knows_our_plugin_or_says_why_not(policy, words):
    variables = {**environment(settings()), "VERL_USE_EXTERNAL_PLUGINS": policy}
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        found = ray.get(ray.remote(check).options(runtime_env={"env_vars": variables}).remote())
    finally:
        ray.shutdown()
    assert words in found and bool(found) == bool(words)
