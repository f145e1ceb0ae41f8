"""Which sampler: CUDA graphs where the model allows it, else transformers, with a word on why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph import GraphSampler
from .shadow import NotCapturable
from .transformers import Sampler


def sampler_for(
    model: Any,
    end_tokens: Sequence[int],
    engine: str = "auto",
    batch: int = 512,
    memory: float = 0.4,
    note: Callable[[str], None] | None = None,
) -> Sampler | GraphSampler:
    """A sampler of `model` where it lies. `engine`: auto, graph (or nothing else), transformers."""
    on_gpu = next(model.parameters()).is_cuda
    if engine == "graph" and not on_gpu:
        raise NotCapturable("rollout.engine=graph needs a CUDA GPU; use rollout.engine=auto here")
    if engine == "transformers" or not on_gpu:
        return Sampler(model, end_tokens, batch)
    try:
        return GraphSampler(model, end_tokens, batch, memory)
    except NotCapturable as reason:
        if engine == "graph":
            raise NotCapturable(
                f"{type(model).__name__} cannot be sampled through CUDA graphs: {reason}; use rollout.engine=auto"
            ) from None
        if note is not None:
            note(f"rollouts go through transformers, which is slower: CUDA graphs cannot be used ({reason})")
        return Sampler(model, end_tokens, batch)
