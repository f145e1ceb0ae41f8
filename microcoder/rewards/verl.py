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
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    judge: str = "here",
    shape: str = "all",
    problems: str = "",
    on_fault: float = 0.0,
    **_: Any,
) -> dict[str, Any]:
    """Score one response. It blocks its thread, so verl judges as many at a time as its pool has threads.

    Args:
        data_source: Not looked at.
        solution_str: The response.
        ground_truth: The problem as JSON text; or whatever else, where `problems` has the id of `extra_info`.
        extra_info: `id` is the problem's, where `problems` is given.
        judge: As in CodeReward: `here`, `http://HOST:8422` or `ray:auto`; or a mapping of settings.
        shape: As in CodeReward.
        problems: A file of problems.
        on_fault: The score of a response on which the judge is at fault.
    """
    reward = _reward(_frozen(judge), shape, problems)
    problem = _problem(reward, ground_truth, extra_info)
    (verdict,) = reward.verdicts([problem], [solution_str])
    return _scored(reward, problem, verdict, on_fault)


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    judge: str = "here",
    shape: str = "all",
    problems: str = "",
    on_fault: float = 0.0,
    **_: Any,
) -> dict[str, Any]:
    """Score one response as a coroutine: all that verl has are judged at the same time."""
    reward = _reward(_frozen(judge), shape, problems)
    problem = _problem(reward, ground_truth, extra_info)
    (verdict,) = await reward.averdicts([problem], [solution_str])
    return _scored(reward, problem, verdict, on_fault)


def compute_score_batched(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None],
    *,
    judge: str = "here",
    shape: str = "all",
    problems: str = "",
    on_fault: float = 0.0,
    **_: Any,
) -> list[dict[str, Any]]:
    """Score many responses, all at the same time: for the reward manager `batch`."""
    reward = _reward(_frozen(judge), shape, problems)
    rows = zip(ground_truths, extra_infos, strict=True)
    found = [_problem(reward, truth, about) for truth, about in rows]
    verdicts = reward.verdicts(found, solution_strs)
    return [_scored(reward, problem, verdict, on_fault) for problem, verdict in zip(found, verdicts, strict=True)]


def _frozen(judge: Any) -> Any:
    return judge if isinstance(judge, str) else tuple(sorted(judge.items()))


@functools.lru_cache
def _reward(judge: Any, shape: str, problems: str) -> CodeReward:
    return CodeReward(problems or None, judge=judge if isinstance(judge, str) else dict(judge), shape=shape)


def _problem(reward: CodeReward, ground_truth: Any, extra_info: Mapping[str, Any] | None) -> Problem:
    ident = (extra_info or {}).get("id")
    return reward.problems[ident] if ident in reward.problems else problem_of(ground_truth)


def _scored(reward: CodeReward, problem: Problem, verdict: Verdict, on_fault: float) -> dict[str, Any]:
    """Return the score and what verl logs beside it. Each row has the same keys, since verl makes columns of them."""
    score = reward.score(problem, verdict)
    return {
        "score": on_fault if score is None else score,
        "acc": float(verdict.accepted),
        "judge_fault": float(score is None),
        "verdict": verdict.verdict,
    }
