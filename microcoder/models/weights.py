"""A model's source -> the model, its tokenizer, and what ends its responses. Imports torch and transformers.

Everything that is loaded with transformers is loaded here, so this is where its progress bars and reminders are
silenced.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers import logging as transformers_logging

from .source import ModelSource


@cache  # once for each process: whoever turns messages on again afterwards keeps them
def quiet() -> None:
    """Silence the progress bars and reminders of transformers, tokenizers and TRL."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # its attention is planned anew for each shape: 0.1 s for every batch
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("trl").setLevel(logging.ERROR)  # it warns of every response without a reward; we count them


def load(source: ModelSource, dtype: torch.dtype, **options: Any) -> Any:
    """Load the weights, with the adapter merged where the source has one; the options are transformers'."""
    quiet()
    model = AutoModelForCausalLM.from_pretrained(source.path, dtype=dtype, **options)
    if source.adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, source.adapter).merge_and_unload()
        model.requires_grad_(True)  # peft has frozen it
    return model


def load_shape(source: ModelSource) -> Any:
    """Make the model without its weights, on the meta device."""
    quiet()
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source.path))


def load_tokenizer(source: ModelSource) -> Any:
    """Load the tokenizer; it pads on the left, with the end token where it has no other."""
    quiet()
    tokenizer = AutoTokenizer.from_pretrained(source.path, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Whatever ends a response: the tokenizer's end token, and others that the model declares (of a turn, say)."""
    declared = model.generation_config.eos_token_id
    found = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])}
    return sorted(found - {None})
