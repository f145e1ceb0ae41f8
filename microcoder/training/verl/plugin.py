"""What verl must know in every process: the entry point of the group `verl.plugins`, which `import verl` loads.

verl says nothing of an entry point that fails to load, so `session.check` runs in a Ray worker before training begins.
"""

from __future__ import annotations

from . import cpu  # noqa: F401  # isort: skip  # first: what the others import asks for the platform when it is loaded
import asyncio
import functools
import random
import time
from concurrent.futures import Future
from itertools import product
from typing import Any, get_args
from uuid import uuid4

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput
from verl.experimental.agent_loop.agent_loop import register as register_agent
from verl.experimental.reward_loop.reward_manager import register as register_reward
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.core_algos import register_policy_loss

from ...collect import written
from ...config import JudgeConfig
from ...files import read_problems
from ...grpo import Objective, policy_loss
from ...grpo.loss import Clip, Ratio
from ...judge.extract import code_block
from ...judge.remote import open_judge
from ...schema import Problem, Verdict
from . import cpu_engine  # noqa: F401
from .settings import NAME, REDUCTIONS, loss_name


@register_agent(NAME)
class OneResponse(AgentLoopBase):
    """A prompt -> a response. The prompt's tokens are those of every engine; each response has a seed of its own."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        about = row["extra_info"]
        prompt = [int(token) for token in about["prompt_ids"]]
        step = "test" if about["test"] else row["global_steps"]  # evaluations draw the same at every step
        seed = random.Random(f"{self.rollout_config.seed} {step} {about['index']} {row['session_id']}").getrandbits(62)
        limit = about["limit"] or self.rollout_config.response_length
        started = time.time()
        named = "sampling_seed" if self.rollout_config.name == "sglang" else "seed"
        answer = await self.server_manager.generate(
            request_id=uuid4().hex,
            prompt_ids=prompt,
            sampling_params={**sampling_params, named: seed, "max_tokens": limit},
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


@register_reward(NAME)
class JudgeReward(RewardManagerBase):
    """A response -> a verdict, as soon as it is there: verl asks for each one while others are being generated.

    verl wants a number for every response, so a fault of the judge is a 0 here; the verdict travels along, and the
    trainer goes by that: such a response has no reward and leaves its group.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        found = read_problems(config.microcoder.problems)
        self.problems = {problem.id: problem for problem in found if isinstance(problem, Problem)}
        options = JudgeConfig(**config.microcoder.judge).options()
        self.judge = open_judge({**options, "queue": 1 << 20})  # `submit` must not hold up the others
        self.pending: dict[tuple[str, str | None], Future[Verdict]] = {}

    async def run_single(self, data: Any) -> dict[str, Any]:
        item = data[-1:][0]
        length = int(item.batch["attention_mask"][-item.batch["responses"].shape[-1] :].sum())
        row = item.non_tensor_batch["extra_info"]
        text = written(self.decode, row["prompt_ids"], item.batch["responses"][:length].tolist())
        asked = time.time()
        verdict = await self.verdict(row["problem"], text)
        about = {"verdict": verdict.to_dict(), "text": text, "asked": asked, "judged": time.time()}
        return {"reward_score": float(verdict.accepted), "reward_extra_info": about}

    def decode(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    async def verdict(self, problem: str, text: str) -> Verdict:
        """The same program for the same problem is judged once at a time."""
        key = problem, code_block(text)
        future = self.pending.get(key)
        if future is None:
            self.pending[key] = future = self.judge.submit(self.problems[problem], text)
            future.add_done_callback(lambda _: self.pending.pop(key, None))
        return await asyncio.wrap_future(future)


OURS: dict[str, Any] = {theirs: ours for ours, theirs in REDUCTIONS.items()}


def loss(
    ratio: Any,
    clip: Any,
    old_log_prob: torch.Tensor,  # (n, t)
    log_prob: torch.Tensor,  # (n, t)
    advantages: torch.Tensor,  # (n, t), the same all over a row
    response_mask: torch.Tensor,  # (n, t)
    loss_agg_mode: str,
    config: Any,
    rollout_is_weights: torch.Tensor | None = None,  # (n, t)
) -> tuple[torch.Tensor, dict[str, Any]]:
    """`grpo.policy_loss` as one of verl's policy losses. The KL term, which verl adds after it, is the same k3."""
    totals = config.global_batch_info
    result = policy_loss(
        log_prob,
        old_log_prob,
        advantages[:, 0],
        response_mask,
        Objective(
            config.clip_ratio_low,
            config.clip_ratio_high,
            config.clip_ratio_c or None,
            reduction=OURS[loss_agg_mode],
            ratio=ratio,
            clip=clip,
        ),
        weights=rollout_is_weights,
        tokens=totals["batch_num_tokens"],
        sequences=totals["global_batch_size"],
        limit=config.loss_scale_factor,
    )
    # verl takes the mean of these over passes: a quotient of two such means is that of the sums
    counted = {name: float(getattr(result, name)) for name in ("tokens", "clip_low", "clip_high")}
    return result.loss * totals["dp_size"], {f"microcoder/{name}": value for name, value in counted.items()}


for kinds in product(get_args(Ratio), get_args(Clip)):  # verl has no settings of its own for these two
    register_policy_loss(loss_name(*kinds))(functools.partial(loss, *kinds))

COMPLETE = True  # the last line: all of it is registered
