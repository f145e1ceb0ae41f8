"""The sizes of a model, or a guess by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    width: int  # of a head
    vocabulary: int
    parameters: int
    qk_norm: bool = False
    adapted: int = 0  # inputs and outputs of all linear layers that get an adapter: its weights for rank 1
    window: int = 0  # tokens that it was made to read at once; 0: not known

    @property
    def linear(self) -> int:
        """Weights of the layers' products, the head not among them."""
        attention = 2 * self.hidden * (self.heads + self.kv_heads) * self.width
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @staticmethod
    def of(model: Any, targets: str | Sequence[str] = "all-linear") -> ModelShape:
        """The shape of a model of transformers, which may be on the meta device."""
        text, head = model.config.get_text_config(), model.get_output_embeddings()
        layers = {
            name: (part.in_features, part.out_features)
            for name, part in model.named_modules()
            if isinstance(part, torch.nn.Linear) and part is not head
        }
        everywhere = isinstance(targets, str)
        adapted = (sum(size) for name, size in layers.items() if everywhere or name.rpartition(".")[2] in targets)
        return ModelShape(
            text.hidden_size,
            getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
            text.num_hidden_layers,
            text.num_attention_heads,
            getattr(text, "num_key_value_heads", None) or text.num_attention_heads,
            getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads,
            text.vocab_size,
            sum(parameter.numel() for parameter in model.parameters()),
            any(name.endswith(".q_norm") for name, _ in model.named_modules()),
            sum(adapted),
            getattr(text, "max_position_embeddings", None) or 0,
        )

    @staticmethod
    def guess(name: str) -> ModelShape | None:
        """The shape of a model whose size is known by its name alone: that of the Qwen3 nearest to Qwen3-4B's 4 B."""
        match = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)B(?![A-Za-z])", name, re.IGNORECASE)
        if not match:
            return None
        count = float(match[1]) * 1e9
        near = min(QWEN3, key=lambda shape: max(shape.parameters, count) / min(shape.parameters, count))
        return replace(near, parameters=int(count))


QWEN3 = tuple(
    ModelShape(h, i, n, heads, 8, 128, 151936, int(billions * 1e9), True, n * (7 * h + 256 * (heads + 8) + 3 * i))
    for billions, h, i, n, heads in (
        (0.6, 1024, 3072, 28, 16), (1.7, 2048, 6144, 28, 16), (4, 2560, 9728, 36, 32), (8.2, 4096, 12288, 36, 32),
        (14.8, 5120, 17408, 40, 40), (32.8, 5120, 25600, 64, 64),
    )
)  # fmt: skip
