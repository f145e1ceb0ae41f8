"""A model and prompts in; completions out, each as soon as it is finished."""

from .sampling import Completion, Sampling
from .transformers import Sampler, encode

__all__ = ["Completion", "Sampler", "Sampling", "encode"]
