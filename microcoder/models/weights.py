"""Load a model, its tokenizer and its end tokens from a ModelSource. Imports torch and transformers.

All loading with transformers is done here, so its progress bars and reminders are silenced here.
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, TemplateError, meta, nodes
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers import logging as transformers_logging

from .source import ModelError, ModelSource

# what transformers gives to every chat template, or keeps for itself
_TAKEN = {"messages", "tools", "documents", "add_generation_prompt", "raise_exception", "strftime_now"}
_TAKEN |= {f"{kind}_token" for kind in ("bos", "eos", "pad", "unk", "sep", "cls", "mask")} | {"continue_final_message"}
_ASKS = {"defined", "undefined", "none", "default", "d"}
_GENERATION = re.compile(r"\{%-?\s*(end)?generation\s*-?%\}")  # a statement of transformers that Jinja does not know


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
    """Load the weights, and merge the adapter if the source has one; the options are those of transformers.

    Raise ModelError if there are not weights for the whole model: transformers would draw the others at random.
    """
    quiet()
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source.path, dtype=dtype, output_loading_info=True, **options
        )
    except RuntimeError as error:
        raise ModelError(f"{source.path}: its weights do not fit its config.json: {_first(error)}") from None
    model, found = loaded
    if missing := sorted(found["missing_keys"]):
        raise ModelError(f"{source.path} lacks {len(missing)} of its weights, such as {missing[0]}; it is not complete")
    if source.adapter:
        from peft import PeftModel

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="Found missing adapter keys")
                model = PeftModel.from_pretrained(model, source.adapter).merge_and_unload()
        except (UserWarning, RuntimeError, ValueError) as error:
            raise ModelError(f"the adapter {source.adapter} does not fit {source.path}: {_first(error)}") from None
        model.requires_grad_(True)  # peft has frozen it
    return model


def _first(error: Exception) -> str:
    """What an error says, on one line and not at length."""
    return " ".join(str(error).split())[:300]


def load_shape(source: ModelSource) -> Any:
    """Make the model without its weights, on the meta device."""
    quiet()
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source.path))


def load_tokenizer(source: ModelSource, chat: Mapping[str, Any] | None = None) -> Any:
    """Load the tokenizer; it pads on the left, with the end token if it has no pad token. An adapter may have its own.

    Raise ModelError if its chat template cannot be read, or cannot use the arguments `chat`.
    """
    quiet()
    own = source.adapter and (Path(source.adapter) / "tokenizer_config.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(source.adapter if own else source.path, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    _check_chat(source.name, tokenizer, chat or {})
    return tokenizer


def _check_chat(name: str, tokenizer: Any, chat: Mapping[str, Any]) -> None:
    """Raise ModelError for arguments that the tokenizer's chat template would not read."""
    if tokenizer.chat_template is not None:
        chat_arguments(tokenizer.get_chat_template())
    elif chat:
        raise ModelError(f"model.chat gives {', '.join(chat)}, but {name} has no chat template; leave model.chat out")
    for key, value in chat.items():
        if key not in (known := chat_arguments(tokenizer.get_chat_template())):
            there = f"it has {', '.join(known)}" if known else "it has none, so leave model.chat out"
            raise ModelError(f"model.chat.{key}: the chat template of {name} has no such argument; {there}")
        if isinstance(value, str) and value.lower() in ("true", "false"):
            raise ModelError(
                f'model.chat.{key} is the text "{value}", which a template takes for true; write {value.lower()}'
            )


@cache
def chat_arguments(template: str) -> list[str]:
    """The variables of a chat template that are left to its caller, in the order of the alphabet."""
    jinja = Environment(extensions=["jinja2.ext.loopcontrols"])
    try:
        tree = jinja.parse(_GENERATION.sub("", template))
    except TemplateError as error:
        raise ModelError(f"the chat template cannot be read: {error}") from None
    used = meta.find_undeclared_variables(tree) - _TAKEN - set(jinja.globals)
    its_own = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    asked = [*tree.find_all(nodes.Test), *tree.find_all(nodes.Filter)]  # x is defined, x | default(1): may be given
    given = {one.node.name for one in asked if one.name in _ASKS and isinstance(one.node, nodes.Name)}
    return sorted(used - (its_own - given))


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end a response: the tokenizer's end token, and others of the model (end of turn)."""
    declared = model.generation_config.eos_token_id
    found = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])}
    return sorted(found - {None})
