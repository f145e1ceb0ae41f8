"""What is asked of a sampler, what it gives back, the draw itself, and the sampler that runs anywhere.

`Sampler` samples from a transformers model, on a CPU or wherever else it lies. A prompt is read once for all of its
samples, rows that have finished leave the batch, and each is handed out at once. `generate` does neither, and on a
small model its bookkeeping costs as much as the model.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from .shadow import head_width


@dataclass(frozen=True)
class Sampling:
    """Sampling settings. Equal settings, prompts and weights on one device give equal completions."""

    temperature: float
    limit: int  # tokens in a response, its end token included
    samples: int = 1  # responses to each prompt
    top_p: float = 1.0
    top_k: int = 0  # 0: all tokens
    seed: int = 0

    def __post_init__(self) -> None:
        if (
            not 0 <= self.temperature < math.inf
            or self.limit < 1
            or self.samples < 1
            or not 0 < self.top_p <= 1
            or self.top_k < 0
        ):
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


def draw(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
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


ARM = platform.machine() == "aarch64"
SHRINK = 0.75  # the batch is made smaller when fewer than this share of its rows is still being written


def encode(tokenizer: Any, messages: list[dict[str, str]], chat: Mapping[str, Any] | None = None) -> list[int]:
    """Encode chat messages as token ids; without a chat template, the text alone. `chat`: arguments of the template."""
    if tokenizer.chat_template is None:
        ids = tokenizer("\n\n".join(message["content"] for message in messages) + "\n")["input_ids"]
    else:
        try:
            made = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, **(chat or {}))
        except TemplateError as error:
            raise ValueError(f"the model's chat template refuses the prompt: {error}; try another style") from None
        ids = made["input_ids"]
    return list(ids)


MARK = "0f41c2"  # stands for what a model wrote, to find where a chat template goes on after it


def encode_next(
    tokenizer: Any, ids: Sequence[int], message: str, ends: Sequence[int], chat: Mapping[str, Any] | None = None
) -> list[int]:
    """Encode what stands between two turns of a model: the end of its turn, the user's message, the start of its next.

    ids    the tokens that the model wrote; they are not encoded again, so they stay what they are, thoughts included
    ends   tokens that end a turn; if `ids` has such an end already, it is not repeated
    """
    if tokenizer.chat_template is None:
        return list(tokenizer(f"\n\n{message}\n", add_special_tokens=False)["input_ids"])
    talk = [("user", "."), ("assistant", MARK), ("user", message)]
    messages = [{"role": role, "content": content} for role, content in talk]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **(chat or {}))
    if MARK not in text or message.strip() not in text:
        raise ValueError(
            "the model's chat template leaves out what was said before, so it has no turns; set grpo.turns=1"
        )
    found = list(tokenizer(text.partition(MARK)[2], add_special_tokens=False)["input_ids"])
    return found[1:] if ids and ids[-1] in ends and found[:1] and found[0] in ends else found


class Sampler:
    """Sample from a causal language model with transformers. The model's weights may change between calls.

    batch   responses at once
    memory  share of a GPU's memory for keys and values: fewer responses at once where it is too little
    """

    def __init__(self, model: Any, end_tokens: Sequence[int], batch: int = 512, memory: float = 0.4) -> None:
        self.model, self.end_tokens, self.batch, self.memory = model, sorted(end_tokens), batch, memory

    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, in the order in which they finish."""
        generator = torch.Generator(self.model.device).manual_seed(sampling.seed)
        order = sorted(range(len(prompts)), key=lambda n: len(prompts[n]))  # alike lengths together: less padding
        rows = self._rows(max(map(len, prompts), default=0) + sampling.limit)
        width = max(1, rows // sampling.samples)  # prompts at a time
        for start in range(0, len(order), width):
            for first in range(0, sampling.samples, rows):
                part = range(first, min(first + rows, sampling.samples))  # samples at a time
                yield from self._some(prompts, order[start : start + width], part, sampling, generator)

    def _rows(self, tokens: int) -> int:
        """Return how many responses are written at once, of so many tokens with their prompts."""
        if self.model.device.type != "cuda":
            return self.batch
        config, bits = self.model.config.get_text_config(), torch.finfo(self.model.dtype).bits
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = 2 * config.num_hidden_layers * heads * head_width(config) * bits // 8 * tokens
        total = torch.cuda.get_device_properties(self.model.device).total_memory
        return max(1, min(self.batch, int(self.memory * total) // size))

    @torch.no_grad()
    def _some(
        self, prompts: Sequence[Sequence[int]], chosen: list[int], part: range, sampling: Sampling,
        generator: torch.Generator,
    ) -> Iterator[Completion]:  # fmt: skip
        device, samples = self.model.device, len(part)
        ids, mask = _left_padded([prompts[n] for n in chosen], device)  # (prompts, longest)
        cache = roomy(DynamicCache(config=self.model.config))
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        logits = self._forward(ids, mask, positions, cache)
        cache.batch_repeat_interleave(samples)
        logits, mask = logits.repeat_interleave(samples, 0), mask.repeat_interleave(samples, 0)
        position = positions[:, -1:].repeat_interleave(samples, 0)  # (rows, 1)
        ends = torch.tensor(self.end_tokens, device=device)
        row = torch.arange(len(chosen) * samples, device=device)  # which response each row of the batch is
        open_ = torch.ones_like(row, dtype=torch.bool)
        written = torch.zeros(len(row), sampling.limit, dtype=torch.long, device=device)
        logprobs = torch.zeros(len(row), sampling.limit, device=device)
        for length in range(1, sampling.limit + 1):
            token, logprob = draw(logits, sampling, generator)
            written[row, length - 1], logprobs[row, length - 1] = token, logprob
            ended = torch.isin(token, ends)
            last = length == sampling.limit
            done = open_ if last else open_ & ended
            if done.any():
                for n, finished in zip(row[done].tolist(), ended[done].tolist(), strict=True):
                    yield Completion(
                        chosen[n // samples],
                        part[n % samples],
                        written[n, :length].tolist(),
                        logprobs[n, :length].tolist(),
                        truncated=not finished,
                    )
                open_ = open_ & ~done
                left = int(open_.sum())
                if left == 0:
                    return
                if left < SHRINK * len(open_):
                    keep = open_.nonzero()[:, 0]
                    cache.batch_select_indices(keep)
                    token, mask, position, row, open_ = token[keep], mask[keep], position[keep], row[keep], open_[keep]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            position = position + 1
            logits = self._forward(token[:, None], mask, position, cache)

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Any) -> torch.Tensor:
        with _products(self.model):
            output = self.model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        last: torch.Tensor = output.logits[:, -1]
        return last


ROOM = 32  # tokens that there is room for behind the keys and values of a layer, when they are copied


class RoomyLayer(DynamicLayer):
    """Keys and values of a layer with room behind them: a new token is written there, where `cat` would copy all."""

    room: tuple[torch.Tensor, torch.Tensor] | None = None  # (rows, heads, places, width) each

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        before = self.get_seq_length()
        if not before or self.keys is None or self.values is None:
            return super().update(key_states, value_states, *args, **kwargs)
        after = before + key_states.shape[-2]
        if self.room is None or after > self.room[0].shape[-2]:
            self.room = _with_room(self.keys, after), _with_room(self.values, after)
        keys, values = self.room
        keys[:, :, before:after], values[:, :, before:after] = key_states, value_states
        self.keys, self.values = keys[:, :, :after], values[:, :, :after]
        return self.keys, self.values

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self.room = None

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self.room = None


def _with_room(states: torch.Tensor, tokens: int) -> torch.Tensor:
    rows, heads, there, width = states.shape
    found = states.new_empty(rows, heads, tokens + ROOM, width)
    found[:, :, :there] = states
    return found


def roomy(cache: DynamicCache) -> DynamicCache:
    """Give the plain layers of a cache room; others, such as those with a sliding window, stay what they are."""
    cache.layers = [RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


@contextmanager
def _products(model: Any) -> Iterator[None]:
    """How matrices are multiplied: on Arm, torch takes oneDNN, whose preparations cost more than a small product."""
    onednn: Any = torch.backends.mkldnn
    if not (ARM and onednn.enabled and model.device.type == "cpu" and model.dtype == torch.float32):
        yield
        return
    onednn.enabled = False
    try:
        yield
    finally:
        onednn.enabled = True


def _left_padded(rows: Sequence[Sequence[int]], device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for n, row in enumerate(rows):
        ids[n, longest - len(row) :] = torch.tensor(row)
        mask[n, longest - len(row) :] = 1
    return ids.to(device), mask.to(device)
