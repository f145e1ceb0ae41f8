"""A model's source -> the model, its tokenizer, and what ends its responses. Imports torch and transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from .source import ModelSource


def load(source: ModelSource, dtype: torch.dtype, **options: Any) -> Any:
    """The weights, with the adapter merged where the source has one; the options are transformers'."""
    model = AutoModelForCausalLM.from_pretrained(source.path, dtype=dtype, **options)
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
