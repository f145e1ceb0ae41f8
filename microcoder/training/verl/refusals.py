"""What the settings ask for and verl cannot be asked for, by name and with what to type instead."""

from __future__ import annotations

import importlib.util

from ...config import Config

TRACKERS = {"clearml", "mlflow", "swanlab", "tensorboard", "trackio", "wandb"}


def lacking(config: Config) -> list[str]:
    """What stands in the way of a training: settings, and packages."""
    wanted = ("verl", "ray", "vllm") if config.cluster.gpus_per_node else ("verl", "ray")
    absent = [name for name in wanted if importlib.util.find_spec(name) is None]
    where = "it has an environment of its own: make verl, then .venv-verl/bin/microcoder train ..."
    return refusals(config) + [f"the package {name}, which run.engine=verl needs; {where}" for name in absent]


def refusals(config: Config) -> list[str]:
    """The settings that stand in the way."""
    grpo, train, rollout = config.grpo, config.train, config.rollout
    found = []
    if grpo.dynamic_sampling:
        found.append("grpo.dynamic_sampling works with run.engine=trl only: set grpo.dynamic_sampling=0")
    if grpo.temperature == "auto":
        found.append('grpo.temperature="auto" works with run.engine=trl only: choose beforehand, microcoder calibrate')
    if rollout.straggler_s:
        found.append("rollout.straggler_s works with run.engine=trl only: set rollout.straggler_s=0")
    if rollout.engine == "graph":
        found.append("rollout.engine=graph works with run.engine=trl only: use vllm, or auto")
    if rollout.engine == "transformers" and config.cluster.gpus_per_node:
        found.append("rollout.engine=transformers generates on CPUs only with verl: use vllm, or auto")
    if rollout.engine == "vllm" and not config.cluster.gpus_per_node:
        found.append("rollout.engine=vllm needs GPUs: set cluster.gpus_per_node, or rollout.engine=auto")
    if train.schedule == "linear":
        found.append("train.schedule=linear is none of verl's: use constant or cosine")
    if others := sorted(set(train.trackers) - TRACKERS):
        found.append(f"train.trackers: verl knows no {', '.join(others)}; it has {', '.join(sorted(TRACKERS))}")
    if config.model.lora_rank:
        found.append("model.lora_rank works with run.engine=trl only: set model.lora_rank=0")
    if config.cluster.processes % config.cluster.tensor_parallel:
        found.append(f"cluster.tensor_parallel must divide the {config.cluster.processes} GPUs of the cluster")
    if config.cluster.nodes > 1 and not config.cluster.address:
        found.append("cluster.nodes is above 1, but Ray would be started on this machine alone: cluster.address=auto")
    return found
