"""verl's custom reward function: rewards for the rows of verl.parquet, or for any with a problem in `ground_truth`.

    reward.custom_reward_function.path=pkg://microcoder.rewards.verl
    reward.custom_reward_function.name=compute_score_async
    +reward.custom_reward_function.reward_kwargs.judge=ray:auto

Both of verl's trainers ask it for each response by itself, through the reward manager `naive` (or `dapo`). Each row
counts alone there, and a row without a number ends the run. So a response on which the judge is at fault gets
`on_fault`, 0 if not given, and `judge_fault` is 1 in what verl logs; `microcoder train run.engine=verl` leaves such a
response out of its group instead.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ..schema import Problem, Verdict
from .reward import CodeReward, problem_of


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **given: Any
) -> dict[str, Any]:
    """Score one response. It blocks its thread, so verl judges as many at a time as its pool has threads.

    Args:
        data_source: Not looked at.
        solution_str: The response.
        ground_truth: The problem as JSON text; or whatever else, where `problems` has the id of `extra_info`.
        extra_info: `id` is the problem's, where `problems` is given.
        **given: What `reward_kwargs` has: `judge` and `shape` as in CodeReward; `problems`, a file; `on_fault`, the
            score of a response on which the judge is at fault. What verl adds of its own is not looked at.
    """
    (found,) = compute_score_batched([data_source], [solution_str], [ground_truth], [extra_info], **given)
    return found


async def compute_score_async(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **given: Any
) -> dict[str, Any]:
    """Score one response as a coroutine: all that verl has are judged at the same time."""
    reward = _reward(given)
    problem = _problem(reward, ground_truth, extra_info)
    (verdict,) = await reward.averdicts([problem], [solution_str])
    return _scored(reward, problem, verdict, given)


def compute_score_batched(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None],
    **given: Any,
) -> list[dict[str, Any]]:
    """Score many responses, all at the same time: for the reward manager `batch`."""
    reward = _reward(given)
    problems = [_problem(reward, *row) for row in zip(ground_truths, extra_infos, strict=True)]
    verdicts = reward.verdicts(problems, solution_strs)
    return [_scored(reward, problem, verdict, given) for problem, verdict in zip(problems, verdicts, strict=True)]


def _reward(given: Mapping[str, Any]) -> CodeReward:
    judge = given.get("judge", "here")
    frozen = judge if isinstance(judge, str) else tuple(sorted(judge.items()))
    return _made(frozen, given.get("shape", "all"), given.get("problems") or None)


@functools.lru_cache
def _made(judge: Any, shape: str, problems: str | None) -> CodeReward:
    return CodeReward(problems, judge=judge if isinstance(judge, str) else dict(judge), shape=shape)


def _problem(reward: CodeReward, ground_truth: Any, extra_info: Mapping[str, Any] | None) -> Problem:
    ident = str((extra_info or {}).get("id"))
    return reward.problems[ident] if ident in reward.problems else problem_of(ground_truth)


def _scored(reward: CodeReward, problem: Problem, verdict: Verdict, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score and what verl logs beside it. Each row has the same keys, since verl makes columns of them."""
    score = reward.score(problem, verdict)
    return {
        "score": given.get("on_fault", 0.0) if score is None else score,
        "acc": float(verdict.accepted),
        "judge_fault": float(score is None),
        "verdict": verdict.verdict,
    }
