"""Language models of a few thousand weights, random ones, but large enough that every layer matters."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

CONFIGS = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
SHAPE = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
}


def tiny(family: str, seed: int = 0, **changes: Any) -> Any:
    """A model of `family`; the same seed gives the same weights."""
    model = AutoModelForCausalLM.from_config(CONFIGS[family](**SHAPE | changes), dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        middle, spread = (0.0, 0.15) if weight.dim() > 1 or name.endswith("bias") else (1.0, 0.1)  # matrices; norms
        weight.data.normal_(middle, spread, generator=generator)
    return model


def random_prompts(*lengths: int, seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(SHAPE["vocab_size"], (length,), generator=generator).tolist() for length in lengths]
