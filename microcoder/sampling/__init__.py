"""A model and prompts in; completions out, each as soon as it is finished."""

from .graph import GraphSampler, sampler_for
from .sampler import Completion, Sampler, Sampling, encode, encode_next
from .shadow import NotCapturable
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
    "encode_next",
    "sampler_for",
]
