"""Our settings -> verl's. Every setting is mapped, used by our own code, or refused by name; a test holds all three.

Where verl differs from TRL with the same settings:

1. The learning rate's schedule and warm-up go by steps; TRL's go by updates.
2. Logits have the type of the pass, bfloat16 on GPUs: train.float32_head has no counterpart.
3. Responses are dealt out to updates so that the processes have about equally many tokens each.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ...config import Config
from ...grpo import Stage

if TYPE_CHECKING:
    from ..plan import Batches  # which imports this module

NAME = "microcoder"  # of all that is registered with verl
REDUCTIONS = {
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
}
CPUS = 12  # logical ones that Ray must have beside those of training processes: TransferQueue waits for them in silence
CPUS_OF_A_PROCESS = 3
UNHEARD = {"train.float32_head"}  # see 2


def cpus(config: Config) -> int:
    """Logical CPUs that Ray must have."""
    return CPUS + CPUS_OF_A_PROCESS * config.cluster.processes


def loss_name(ratio: str, clip: str) -> str:
    """The name under which verl has our loss with this ratio and these bounds."""
    return f"{NAME}_{ratio}_{clip}"


def compiled(
    config: Config, stage: Stage, counts: Batches, model: str, folder: Path, resume_from: str | None = None
) -> dict[str, Any]:
    """verl's settings that differ from its defaults, by their dotted names; `+` where verl has none of that name."""
    gpus = config.cluster.gpus_per_node > 0
    bf16 = gpus if config.train.bf16 == "auto" else config.train.bf16
    limit = max(stage.max_response_tokens, config.train.eval_max_response_tokens)
    return {
        **_data(config, stage, counts, folder),
        **_model(config, model),
        **_actor(config, stage, counts),
        **_engine(config, "actor", bf16),
        **(_engine(config, "ref", bf16) if config.grpo.kl else {}),
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": counts.micro,
        **_rollout(config, stage, counts, limit),
        "reward.num_workers": config.cluster.nodes,
        "reward.reward_manager.name": NAME,
        "trainer.device": "cuda" if gpus else "cpu",
        "trainer.nnodes": config.cluster.nodes,
        "trainer.n_gpus_per_node": max(1, config.cluster.gpus_per_node),
        "trainer.logger": config.train.trackers,
        "trainer.project_name": NAME,
        "trainer.experiment_name": folder.name,
        "trainer.total_training_steps": config.train.steps,
        "trainer.total_epochs": config.train.steps,
        "trainer.save_freq": config.train.save_every,
        "trainer.test_freq": 1,  # the trainer knows when
        "trainer.val_before_train": False,
        "trainer.resume_mode": "resume_path" if resume_from else "disable",
        "trainer.resume_from_path": resume_from,
        "transfer_queue.enable": True,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 8 if gpus else 1,
        "+microcoder.judge": config.judge.model_dump(),
        "+microcoder.problems": str(folder / "data" / "problems.jsonl"),
    }


def _data(config: Config, stage: Stage, counts: Batches, folder: Path) -> dict[str, Any]:
    return {
        "data.train_files": str(folder / "data" / "train.parquet"),
        "data.val_files": str(folder / "data" / "test.parquet"),
        "data.train_batch_size": counts.problems,
        "data.max_prompt_length": config.data.max_prompt_tokens,
        "data.max_response_length": stage.max_response_tokens,
        "data.shuffle": False,  # the file is the whole run in order
        "data.dataloader_num_workers": 0,
    }


def _model(config: Config, model: str) -> dict[str, Any]:
    attention = "sdpa" if config.model.attention == "auto" else config.model.attention
    rank = config.model.lora_rank
    return {
        "actor_rollout_ref.model.lora_rank": rank,
        "actor_rollout_ref.model.lora_alpha": config.model.lora_alpha or 2 * rank,
        "actor_rollout_ref.model.target_modules": config.model.lora_targets,
        # with adapters: what samples loads the base by itself, and is given nothing else
        "actor_rollout_ref.rollout.load_format": "safetensors" if rank else "dummy",
        "actor_rollout_ref.model.path": model,
        "+actor_rollout_ref.model.override_config.attn_implementation": attention,
        "actor_rollout_ref.model.use_remove_padding": attention == "flash_attention_2",  # its kernels alone can
        "actor_rollout_ref.model.enable_gradient_checkpointing": config.model.gradient_checkpointing is not False,
    }


def _actor(config: Config, stage: Stage, counts: Batches) -> dict[str, Any]:
    grpo, train = config.grpo, config.train
    settings = {
        "policy_loss.loss_mode": loss_name(grpo.ratio, grpo.clip),
        "clip_ratio_low": grpo.eps,
        "clip_ratio_high": grpo.eps_high,
        "clip_ratio_c": grpo.dual_clip,
        "loss_agg_mode": REDUCTIONS[grpo.reduction],
        "loss_scale_factor": stage.max_response_tokens,
        "use_kl_loss": grpo.kl > 0,
        "kl_loss_coef": grpo.kl,
        "kl_loss_type": "low_var_kl",
        "ppo_mini_batch_size": counts.mini,
        "ppo_micro_batch_size_per_gpu": counts.micro,
        "data_loader_seed": train.seed,
        "grad_clip": train.max_grad_norm,
        "optim.clip_grad": train.max_grad_norm,
        "optim.lr": train.lr,
        "optim.lr_scheduler_type": "constant" if train.schedule == "linear" else train.schedule,
        "optim.lr_warmup_steps": train.warmup_steps,
        "optim.weight_decay": train.weight_decay,
        "checkpoint.save_contents": ["model", "optimizer", "extra"] + ["hf_model"] * (not config.model.lora_rank),
        "checkpoint.load_contents": ["model", "optimizer", "extra"],
    }
    return {
        "algorithm.adv_estimator": "grpo",  # whatever it finds is written over
        "+actor_rollout_ref.microcoder.schedule": train.schedule,  # verl has no linear one; worker.py makes it
        **{f"actor_rollout_ref.actor.{name}": value for name, value in settings.items()},
    }


def _engine(config: Config, role: str, bf16: bool) -> dict[str, Any]:
    """Return the settings of the training process, or of the reference model."""
    pass_type = "bf16" if bf16 else "fp32"
    settings = {
        "strategy": "fsdp2",
        "fsdp_config.strategy": "fsdp2",
        "fsdp_config.model_dtype": "bf16" if config.model.dtype == "bfloat16" else "fp32",
        "fsdp_config.param_offload": config.cluster.offload,
        "fsdp_config.optimizer_offload": config.cluster.offload,
        "fsdp_config.use_torch_compile": False,  # it compiles the entropy alone, which no loss of ours has
    }
    mixed = {"param_dtype": pass_type, "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
    return {
        **{f"actor_rollout_ref.{role}.{name}": value for name, value in settings.items()},
        f"+actor_rollout_ref.{role}.fsdp_config.mixed_precision": mixed,
    }


def _rollout(config: Config, stage: Stage, counts: Batches, limit: int) -> dict[str, Any]:
    train, gpus = config.train, config.cluster.gpus_per_node > 0
    name = served(config)
    top = {"top_p": config.rollout.top_p, "top_k": config.rollout.top_k or -1}
    top_p, top_k = config.eval_top()
    validation = {"n": train.eval_tries, "temperature": train.eval_temperature, "do_sample": True}
    validation |= {"top_p": top_p, "top_k": top_k or -1}
    settings = {
        "name": name,
        "n": counts.samples,
        "temperature": stage.temperature,
        **top,
        "seed": train.seed,
        "dtype": "bfloat16" if gpus else "float32",
        "tensor_model_parallel_size": config.cluster.tensor_parallel,
        "max_model_len": config.data.max_prompt_tokens + limit + (name == "sglang"),  # verl leaves a token free there
        "max_num_seqs": config.rollout.batch,
        "gpu_memory_utilization": config.rollout.memory,
        "log_prob_micro_batch_size_per_gpu": counts.micro,
        "free_cache_engine": gpus,
        "agent.num_workers": 8 if gpus else 1,
        "agent.default_agent_loop": NAME,
        **{f"val_kwargs.{name}": value for name, value in validation.items()},
    }
    importance = config.grpo.importance
    if importance == "auto":  # our own sampler, on CPUs, has the trainer's numbers
        importance = "token" if gpus else "none"
    weights: dict[str, Any] = {"rollout_is": importance} if importance != "none" else {}
    weights["rollout_is_threshold"] = config.grpo.importance_cap
    return {
        **{f"actor_rollout_ref.rollout.{name}": value for name, value in settings.items()},
        **{f"algorithm.rollout_correction.{name}": value for name, value in weights.items()},
    }


def served(config: Config) -> str:
    """The name of what generates under verl."""
    if not config.cluster.gpus_per_node:
        return NAME
    return "sglang" if config.rollout.engine == "sglang" else "vllm"


TRACKERS = {"clearml", "mlflow", "swanlab", "tensorboard", "trackio", "wandb"}


def lacking(config: Config) -> list[str]:
    """Return what prevents training: settings and missing packages."""
    wanted = ["verl", "ray", *[served(config)] * (config.cluster.gpus_per_node > 0)]
    absent = [name for name in wanted if importlib.util.find_spec(name) is None]
    where = "it has an environment of its own: make verl, then .venv-verl/bin/microcoder train ..."
    found = refusals(config) + [f"the package {name}, which run.engine=verl needs; {where}" for name in absent]
    if config.grpo.temperature == "auto" and config.cluster.gpus_per_node and not torch.cuda.is_available():
        found.append(
            'a GPU on this machine, which samples for grpo.temperature="auto" before verl starts: start the training '
            "on a node with GPUs, or choose beforehand, microcoder calibrate, and set grpo.temperature to a number"
        )
    return found


def refusals(config: Config) -> list[str]:
    """Return the settings that verl cannot honour."""
    grpo, train, rollout = config.grpo, config.train, config.rollout
    found = []
    if grpo.turns > 1:
        found.append("grpo.turns works with run.engine=trl only: set grpo.turns=1")
    if config.run.processes != "auto":
        found.append("run.processes works with run.engine=trl only: set cluster.nodes and cluster.gpus_per_node")
    if config.run.layout != "auto":
        found.append("run.layout works with run.engine=trl only: verl shards by FSDP2; set run.layout=auto")
    if train.keep_best:
        found.append("train.keep_best works with run.engine=trl only: set train.keep_best=false")
    if train.update == "packed":
        found.append("train.update=packed works with run.engine=trl only: set train.update=padded")
    if train.optimizer != "adamw":
        found.append(f"train.optimizer={train.optimizer} works with run.engine=trl only: set train.optimizer=adamw")
    if rollout.straggler_s:
        found.append("rollout.straggler_s works with run.engine=trl only: set rollout.straggler_s=0")
    if rollout.server:
        found.append("rollout.server works with run.engine=trl only: leave it out, verl starts its own")
    if rollout.ahead:
        found.append("rollout.ahead works with run.engine=trl only: set rollout.ahead=0")
    if rollout.engine == "graph":
        found.append("rollout.engine=graph works with run.engine=trl only: use vllm, sglang or auto")
    if rollout.engine == "transformers" and config.cluster.gpus_per_node:
        found.append("rollout.engine=transformers generates on CPUs only with verl: use vllm, sglang or auto")
    if rollout.engine in ("vllm", "sglang") and not config.cluster.gpus_per_node:
        found.append(f"rollout.engine={rollout.engine} needs GPUs: set cluster.gpus_per_node, or rollout.engine=auto")
    if rollout.engine == "sglang" and config.model.lora_rank:
        found.append("adapters have not been tried with rollout.engine=sglang: use vllm, or model.lora_rank=0")
    if others := sorted(set(train.trackers) - TRACKERS):
        found.append(f"train.trackers: verl knows no {', '.join(others)}; it has {', '.join(sorted(TRACKERS))}")
    if config.cluster.processes % config.cluster.tensor_parallel:
        found.append(f"cluster.tensor_parallel must divide the {config.cluster.processes} GPUs of the cluster")
    if config.cluster.nodes > 1 and not config.cluster.address:
        found.append("cluster.nodes is above 1, but Ray would be started on this machine alone: cluster.address=auto")
    return found


NAMES = {
    "actor/loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "actor/kl_loss": "kl",
}
SHARES = {  # of the tokens that an update counted
    "actor/microcoder/clip_low": "clip_low",
    "actor/microcoder/clip_high": "clip_high",
}
TOKENS = "actor/microcoder/tokens"
UPDATE = ("old_log_prob", "ref", "adv", "update_actor")  # parts of a step that are its update


def metrics_of(
    metrics: Mapping[str, Any], seconds: Mapping[str, float], rollout: Mapping[str, float]
) -> dict[str, Any]:
    """A step's metrics by our names: verl's metrics, its clock, and the seconds of the rollout."""
    found = {ours: float(metrics[theirs]) for theirs, ours in NAMES.items() if theirs in metrics}
    tokens = max(float(metrics[TOKENS]), 1.0)
    found |= {ours: float(metrics[theirs]) / tokens for theirs, ours in SHARES.items()}
    checkpoint = seconds.get("save_checkpoint", 0.0)
    step = seconds["step"] - checkpoint
    update = sum(seconds.get(part, 0.0) for part in UPDATE)
    return {
        **found,
        **rollout,
        "update_s": update,
        "checkpoint_s": checkpoint,
        "other_s": step - update - rollout["generation_s"] - rollout["judging_s"],  # weights handed over, above all
        "step_s": step,
    }
