"""A model and prompts in; completions out, each as soon as it is finished."""

from .choose import sampler_for
from .graph import GraphSampler
from .sampling import Completion, Sampling
from .shadow import NotCapturable
from .transformers import Sampler, encode
from .vllm import VllmError, VllmSampler

__all__ = [
    "Completion",
    "GraphSampler",
    "NotCapturable",
    "Sampler",
    "Sampling",
    "VllmError",
    "VllmSampler",
    "encode",
    "sampler_for",
]
