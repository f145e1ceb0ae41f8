"""Load a model, its tokenizer and its end tokens from a ModelSource. Imports torch and transformers.

All loading with transformers is done here, so its progress bars and reminders are silenced here.
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


@cache  # once for each process: a user may turn messages on again afterwards
def quiet() -> None:
    """Silence the progress bars and reminders of transformers, tokenizers and TRL."""
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN plans its attention again for each shape: 0.1 s a batch
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("trl").setLevel(logging.ERROR)  # it warns of every response without a reward; we count them


def load(source: ModelSource, dtype: torch.dtype, **options: Any) -> Any:
    """Load the weights, and merge the adapter if the source has one; the options are those of transformers."""
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
    """Load the tokenizer; it pads on the left, with the end token if it has no pad token."""
    quiet()
    tokenizer = AutoTokenizer.from_pretrained(source.path, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end a response: the tokenizer's end token, and others of the model (end of turn)."""
    declared = model.generation_config.eos_token_id
    found = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])}
    return sorted(found - {None})
