"""A model's source -> the model and its tokenizer, and the adapter that the settings ask for."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ..config import Config
from ..models import ModelSource


def load_model(config: Config, source: ModelSource) -> Any:
    dtype = torch.bfloat16 if config.model.dtype == "bfloat16" else torch.float32
    kind = {} if config.model.attention == "auto" else {"attn_implementation": config.model.attention}
    model = AutoModelForCausalLM.from_pretrained(source.path, dtype=dtype, **kind)
    if source.adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, source.adapter).merge_and_unload()
        model.requires_grad_(True)  # peft has frozen it
    return model


def load_tokenizer(source: ModelSource) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(source.path, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Whatever ends a response: the tokenizer's end token, and others that the model declares (of a turn, say)."""
    declared = model.generation_config.eos_token_id
    found = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])}
    return sorted(found - {None})


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
