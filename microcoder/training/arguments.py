"""A run's settings as TRL, peft and the loss want them."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy
from trl import GRPOConfig

from ..config import Config
from ..grpo import Stage
from .optimizers import CompactAdamW
from .plan import Batches
from .sharding import layout_options


def arguments(config: Config, stage: Stage, counts: Batches, folder: str) -> GRPOConfig:
    """TRL's settings; what it would do to advantages and loss is left at values that we never read."""
    train = config.train
    cuda = torch.cuda.is_available()
    bf16 = cuda and torch.cuda.is_bf16_supported() if train.bf16 == "auto" else train.bf16
    options = layout_options(config.run.layout, bf16)
    found = GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=counts.micro,
        gradient_accumulation_steps=counts.passes,
        steps_per_generation=counts.passes * counts.updates,
        num_generations=counts.samples,
        max_steps=train.steps * counts.updates,
        temperature=stage.temperature,
        max_completion_length=stage.max_response_tokens,
        top_p=config.rollout.top_p,
        top_k=config.rollout.top_k,
        beta=config.grpo.kl,
        learning_rate=train.lr,
        lr_scheduler_type="constant_with_warmup" if train.schedule == "constant" else train.schedule,
        warmup_steps=train.warmup_steps * counts.updates,
        weight_decay=train.weight_decay,
        max_grad_norm=train.max_grad_norm,
        bf16=bf16 and "deepspeed" not in options,  # which casts by itself
        cast_lm_head_to_fp32=bf16 and train.float32_head,
        gradient_checkpointing=config.model.gradient_checkpointing is True,
        seed=train.seed,
        data_seed=train.seed,
        shuffle_dataset=False,
        save_strategy="no",  # the run says when, and which are kept
        logging_steps=1,
        report_to=train.trackers or "none",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        **options,
    )
    if found.fsdp_plugin_args:  # else accelerate would have weights and their gradients exchanged in bfloat16
        found.fsdp_plugin_args["mixed_precision_policy"] = MixedPrecisionPolicy()
    return found


def optimizer_of(config: Config) -> tuple[type, dict[str, Any]] | None:
    """The optimizer's class and arguments, as Trainer wants them; None: torch's AdamW, Trainer's default."""
    train = config.train
    if train.optimizer == "adamw" and config.model.dtype != "bfloat16":
        return None
    return CompactAdamW, {"lr": train.lr, "bits": 8 if train.optimizer == "adam8bit" else 32, "seed": train.seed}


def adapter(config: Config) -> Any:
    if not config.model.lora_rank:
        return None
    from peft import LoraConfig

    rank = config.model.lora_rank
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=rank,
        lora_alpha=config.model.lora_alpha or 2 * rank,
        target_modules=config.model.lora_targets,
    )
