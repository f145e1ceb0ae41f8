"""A prompt -> a response. The prompt's tokens are those of every engine; each response has a seed of its own."""

from __future__ import annotations

import random
import time
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from .settings import NAME


@register(NAME)
class OneResponse(AgentLoopBase):
    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        about = row["extra_info"]
        prompt = [int(token) for token in about["prompt_ids"]]
        step = "test" if about["test"] else row["global_steps"]  # evaluations draw the same at every step
        seed = random.Random(f"{self.rollout_config.seed} {step} {about['index']} {row['session_id']}").getrandbits(62)
        limit = about["limit"] or self.rollout_config.response_length
        started = time.time()
        answer = await self.server_manager.generate(
            request_id=uuid4().hex,
            prompt_ids=prompt,
            sampling_params={**sampling_params, "seed": seed, "max_tokens": limit},
        )
        ended = time.time()
        return AgentLoopOutput(
            prompt_ids=prompt,
            response_ids=answer.token_ids,
            response_mask=[1] * len(answer.token_ids),
            response_logprobs=answer.log_probs,
            num_turns=2,
            metrics=AgentLoopMetrics(generate_sequences=ended - started),
            extra_fields={**answer.extra_fields, "limit": limit, "started": started, "ended": ended},
        )
