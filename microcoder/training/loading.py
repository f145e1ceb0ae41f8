"""Settings -> the model of a run, and the adapter that they ask for."""

from __future__ import annotations

from typing import Any

import torch

from ..config import Config
from ..models import ModelSource
from ..models.weights import load


def load_model(config: Config, source: ModelSource) -> Any:
    dtype = torch.bfloat16 if config.model.dtype == "bfloat16" else torch.float32
    kind = {} if config.model.attention == "auto" else {"attn_implementation": config.model.attention}
    return load(source, dtype, **kind)


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
