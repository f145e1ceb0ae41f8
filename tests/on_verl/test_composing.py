"""verl accepts every configuration that comes with the package; what it does not know is a fault, not a silence."""

from __future__ import annotations

import pytest
from omegaconf.errors import OmegaConfBaseException
from verl_runs import CPU, settings, theirs

from microcoder.config import PRESETS, load
from microcoder.config.layers import shipped
from microcoder.training.verl.trainer import composed

GPUS = ("run.engine=verl", "cluster.gpus_per_node=8")


@pytest.mark.parametrize("where", [CPU, GPUS], ids=["cpu", "gpus"])
@pytest.mark.parametrize("name", shipped())
def test_every_shipped_configuration_is_one_of_verls(name, where):
    config = load(shipped()[name], [*where, "rollout.engine=auto"])
    if config.model.lora_rank and config.cluster.gpus_per_node:
        pytest.importorskip("vllm", reason="verl asks it which ranks of adapters it takes")
    found = theirs(config)
    assert found.actor_rollout_ref.rollout.n == config.grpo.samples
    assert found.trainer.device == ("cuda" if config.cluster.gpus_per_node else "cpu")
    assert found.trainer.v1.trainer_mode == "sync"  # any other would train on stale responses without a word


def test_verl_knows_the_name_of_sglang():
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY

    found = theirs(settings(*GPUS, "cluster.gpus_per_node=2", "rollout.engine=sglang")).actor_rollout_ref.rollout
    assert found.name == "sglang" and ("sglang", found.mode) in _ROLLOUT_REGISTRY


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_one_of_verls(preset):
    config = settings(f"grpo.preset={preset}")
    actor = theirs(config).actor_rollout_ref.actor
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (config.grpo.eps, config.grpo.eps_high)
    assert actor.use_kl_loss == (config.grpo.kl > 0)


def test_a_setting_that_verl_does_not_have_is_a_fault():
    with pytest.raises(OmegaConfBaseException, match="flavour"):
        composed({"trainer.flavour": 1})
