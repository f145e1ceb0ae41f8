"""Sampling with vLLM from a folder of weights: the same call as `Sampler`, for evaluation. Training goes through TRL.

It is written against vLLM's documented interface (0.11 and later) and has not been run by us: its tests know a stand-in
for vLLM only. Where it differs from the other samplers:

1. `LLM.generate` comes back when the last response is finished, so all completions of a call come at once. Whoever
   wants some of them sooner calls with fewer prompts.
2. With top_p or top_k the log-probabilities are those of what these leave over, not of the whole distribution.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .sampler import Completion, Sampling


class VllmError(ValueError):
    """vLLM cannot be used; the message says what to do."""


class VllmSampler:
    """`memory` is the share of the GPU that vLLM may take; `options` are further ones of `vllm.LLM`.

    context   tokens that a prompt and its response may have together
    """

    def __init__(self, path: str, end_tokens: Sequence[int], memory: float = 0.9, **options: Any) -> None:
        try:
            self.vllm = importlib.import_module("vllm")
            engine = self.vllm.LLM  # loaded only here, and with it the compiled parts
        except ImportError as error:
            raise VllmError(
                f"rollout.engine=vllm cannot be used ({error}); install it: pip install vllm, or serve the model "
                "elsewhere and name it: --server URL, or use rollout.engine=auto"
            ) from None
        # processed: after the temperature, as everywhere in this package; vLLM's default is before it
        options = {"gpu_memory_utilization": memory, "logprobs_mode": "processed_logprobs", **options}
        self.llm = engine(model=path, **options)
        self.end_tokens = sorted(end_tokens)
        self.context = int(self.llm.llm_engine.model_config.max_model_len)

    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, prompt after prompt."""
        asked = [self.vllm.TokensPrompt(prompt_token_ids=list(ids)) for ids in prompts]
        params = [self._params(sampling, n) for n in range(len(prompts))]
        for n, request in enumerate(self.llm.generate(asked, params, use_tqdm=False)):
            found = [_completion(n, output) for output in request.outputs]
            if sampling.temperature == 0:  # asked for once
                found = [replace(found[0], sample=k) for k in range(sampling.samples)]
            yield from found

    def _params(self, sampling: Sampling, prompt: int) -> Any:
        return self.vllm.SamplingParams(
            n=sampling.samples if sampling.temperature else 1,  # vLLM refuses to say the likeliest several times
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.limit,
            # the samples of a prompt get this seed, the next one, and so on; equal seeds would be equal noise
            seed=random.Random(f"{sampling.seed} {prompt}").getrandbits(31),
            stop_token_ids=self.end_tokens,
            logprobs=0,  # of the chosen token alone
            detokenize=False,
        )


def _completion(prompt: int, output: Any) -> Completion:
    ids = list(output.token_ids)
    logprobs = [step[token].logprob for token, step in zip(ids, output.logprobs, strict=True)]
    return Completion(prompt, output.index, ids, logprobs, truncated=output.finish_reason == "length")
