"""Find a model's weights by name: `nano`, `smollm2-135m`, a folder, a run, an adapter, a GGUF file, a hub id.

    source = resolve("smollm2-135m", progress=print)
    AutoModelForCausalLM.from_pretrained(source.path)

Importing this loads neither torch nor transformers; only `resolve` downloads.
"""

from .names import NANO, hub_fault, is_cached, known, resolve
from .source import KnownModel, ModelError, ModelSource, cache

__all__ = ["NANO", "KnownModel", "ModelError", "ModelSource", "cache", "hub_fault", "is_cached", "known", "resolve"]
