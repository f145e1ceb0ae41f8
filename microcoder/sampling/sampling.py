"""What is asked of a sampler, what it gives back, and the draw itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sampling:
    """How to sample. Two calls with equal settings, prompts and weights on one device give equal completions."""

    temperature: float
    limit: int  # tokens in a response, its end token included
    samples: int = 1  # responses to each prompt
    top_p: float = 1.0
    top_k: int = 0  # 0: all tokens
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.limit < 1 or self.samples < 1 or not 0 < self.top_p <= 1 or self.top_k < 0:
            raise ValueError(
                f"{self}: the temperature must be 0 (the likeliest token) or more, limit and samples 1 or more, "
                "top_p above 0 and at most 1, top_k 0 (all tokens) or more"
            )


@dataclass(frozen=True, slots=True)
class Completion:
    prompt: int  # number of the prompt in the call
    sample: int  # number among the prompt's responses
    ids: list[int]  # with its end token, if it came to one
    logprobs: list[float]  # of ids, at the sampling temperature
    truncated: bool  # stopped by the limit, not by an end token


def draw(
    logits: torch.Tensor, sampling: Sampling, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the next token of each row, its log-probability at the temperature). logits (n, vocabulary)

    The log-probability is that of the whole distribution, which top_p and top_k only cut the tail of.
    """
    if sampling.temperature == 0:
        chosen = logits.argmax(-1)
        return chosen, torch.log_softmax(logits.float(), -1).gather(1, chosen[:, None])[:, 0]
    logprobs = torch.log_softmax(logits.float() / sampling.temperature, -1)
    probabilities = _cut(logprobs.exp(), sampling)
    # argmax of p / Exp(1) is a draw from p; it costs less than multinomial and needs no normalisation
    noise = torch.empty_like(probabilities).exponential_(generator=generator)
    chosen = (probabilities / noise).argmax(-1)
    return chosen, logprobs.gather(1, chosen[:, None])[:, 0]


def cut(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The logits with what top_p and top_k forbid at -inf. logits (n, vocabulary)"""
    probabilities = (logits / (sampling.temperature or 1.0)).softmax(-1)
    return logits.masked_fill(_cut(probabilities, sampling) == 0, float("-inf"))


def _cut(probabilities: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    if sampling.top_k and sampling.top_k < probabilities.shape[-1]:
        least = probabilities.topk(sampling.top_k).values[:, -1:]
        probabilities = probabilities.masked_fill(probabilities < least, 0)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True)
        before = ordered.cumsum(-1) - ordered  # the mass of the likelier tokens: 0 for the first, which always stays
        ordered = ordered.masked_fill(before >= sampling.top_p * ordered.sum(-1, keepdim=True), 0)
        probabilities = torch.zeros_like(probabilities).scatter(1, order, ordered)
    return probabilities
