"""Training and generation of verl on CPUs: its FSDP2 engine under a device that it is not registered for, and a rollout
replica where vLLM and SGLang do not run, with the project's sampler for transformers.

1. One request at a time, each with its own seed: a response depends on the weights, the prompt and the seed, and not on
   what else is being generated.
2. The weights travel through Ray's object store, all of them (or the adapter's) after each step: this is for small
   models.
3. An adapter is applied as training applies it, not merged.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import ray
import torch
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.rollout.base import _ROLLOUT_REGISTRY, BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

from ...models import ModelSource
from ...models.weights import end_tokens, load, load_tokenizer
from ...sampling import Sampling
from ...sampling.sampler import Sampler
from .cpu import NAME as CPU
from .settings import NAME


@EngineRegistry.register(model_type="language_model", backend="fsdp2", device=CPU)
class CpuEngine(FSDPEngineWithLMHead):
    engine_config: Any

    def _build_fsdp_module(self, module: Any) -> Any:
        """A reference is not moved to main memory, where it lies already: verl would pin it, which takes a GPU."""
        config = self.engine_config
        self.engine_config = replace(config, forward_only=False)
        try:
            return super()._build_fsdp_module(module)
        finally:
            self.engine_config = config


class SamplingServer:
    """A Ray actor that holds the model and answers tokens with tokens."""

    def __init__(self, path: str, limit: int) -> None:
        source = ModelSource(path, path)
        self.model = load(source, torch.float32).eval()
        self.sampler = Sampler(self.model, end_tokens(self.model, load_tokenizer(source)))
        self.limit, self.step, self.turn = limit, 0, asyncio.Lock()
        self.adapted: Any = None  # the same model, if it has an adapter

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        sampling = Sampling(
            temperature=sampling_params["temperature"],
            limit=sampling_params.get("max_tokens", self.limit),
            top_p=sampling_params["top_p"],
            top_k=max(0, sampling_params["top_k"]),
            seed=sampling_params.get("seed", 0),
        )
        async with self.turn:
            (completion,) = await asyncio.to_thread(lambda: list(self.sampler([prompt_ids], sampling)))
            step = self.step
        return TokenOutput(
            token_ids=completion.ids,
            log_probs=completion.logprobs,
            stop_reason="length" if completion.truncated else "completed",
            extra_fields={"global_steps": step},
        )

    async def update(
        self, weights: dict[str, torch.Tensor], step: int | None, adapter: dict[str, Any] | None = None
    ) -> None:
        """`adapter`: the weights are those of a LoRA adapter with this configuration."""
        async with self.turn:
            if adapter is None:
                unknown = self.model.load_state_dict(weights, strict=False).unexpected_keys
            else:
                self.adapted = self.adapted or get_peft_model(self.model, LoraConfig(**adapter)).eval()
                result: Any = set_peft_model_state_dict(self.adapted, weights)
                unknown = result.unexpected_keys
            if unknown:
                raise ValueError(f"the rollout's model has no weights called {', '.join(unknown[:3])}")
            self.step = step or 0

    async def wake_up(self, **_: Any) -> None: ...
    async def sleep(self, **_: Any) -> None: ...


class Replica(RolloutReplica):
    async def launch_servers(self) -> None:
        actor = ray.remote(SamplingServer).options(name=_actor(self.replica_rank), num_cpus=0, max_concurrency=1000)
        self.servers = [actor.remote(self.model_config.path, self.config.response_length)]
        self._server_handle, self._server_address = self.servers[0], _actor(self.replica_rank)
        await self.servers[0].wake_up.remote()  # until it has loaded its model


class Adapter(BaseRollout):
    """The training process's side: it hands the weights over."""

    def __init__(self, *args: Any, replica_rank: int = -1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rank = int(os.environ["RANK"])
        parts = self.config.tensor_model_parallel_size * self.config.data_parallel_size
        self.replica, self.first = (rank // parts if replica_rank < 0 else replica_rank), rank % parts == 0

    async def resume(self, tags: list[str]) -> None: ...
    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        global_steps: int | None = None,
        peft_config: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        # every process goes through them, for each gathers its share of all tensors
        whole = {name: tensor.detach().cpu() for name, tensor in weights}
        if self.first:
            await ray.get_actor(_actor(self.replica)).update.remote(whole, global_steps, peft_config)


def _actor(replica: int) -> str:
    return f"{NAME}_server_{replica}"


RolloutReplicaRegistry.register(NAME, lambda: Replica)
_ROLLOUT_REGISTRY[(NAME, "async")] = f"{__name__}.{Adapter.__name__}"
