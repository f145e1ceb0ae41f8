"""A response -> a verdict, as soon as it is there: verl asks for each one by itself, while others are being generated.

verl wants a number for every response, so a fault of the judge is a 0 here; the verdict travels along, and the trainer
goes by that: such a response has no reward and leaves its group.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import Any

from verl.experimental.reward_loop.reward_manager import register
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from ...config import JudgeConfig
from ...files import read_problems
from ...judge.extract import code_block
from ...judge.remote import open_judge
from ...schema import Problem, Verdict
from .settings import NAME


@register(NAME)
class Judging(RewardManagerBase):
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
        text = self.tokenizer.decode(item.batch["responses"][:length], skip_special_tokens=True)
        asked = time.time()
        verdict = await self.verdict(item.non_tensor_batch["extra_info"]["problem"], text)
        about = {"verdict": verdict.to_dict(), "text": text, "asked": asked, "judged": time.time()}
        return {"reward_score": float(verdict.accepted), "reward_extra_info": about}

    async def verdict(self, problem: str, text: str) -> Verdict:
        """The same program for the same problem is judged once at a time."""
        key = problem, code_block(text)
        future = self.pending.get(key)
        if future is None:
            self.pending[key] = future = self.judge.submit(self.problems[problem], text)
            future.add_done_callback(lambda _: self.pending.pop(key, None))
        return await asyncio.wrap_future(future)
