"""A step's responses -> its metrics and its rollouts, by the names that every engine uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grpo import diversity
from ..judge.extract import code_block
from ..schema import Problem
from .collect import Batch, also_accuracy, signal


def measures(batch: Batch, samples: int) -> dict[str, Any]:
    """The step's metrics that follow from its responses."""
    rows = batch.responses
    everything = [*rows, *batch.discarded]
    rewards = [row.reward for row in rows if row.reward is not None]
    lengths = [len(row.ids) for row in rows]
    finished = [len(row.ids) for row in rows if not row.truncated]
    verdicts: dict[str, int] = {}
    for row in everything:
        verdicts[row.verdict.verdict] = verdicts.get(row.verdict.verdict, 0) + 1
    judged = [row.accepted for row in everything if not row.faulty]
    also = also_accuracy(everything)
    return {
        "reward": _mean(rewards),
        "accuracy": _mean(judged),
        **({} if also is None else {"accuracy_also": also}),
        "length_mean": _mean(lengths),
        "length_max": max(lengths),
        "length_finished": _mean(finished),
        "truncated_share": _mean([row.truncated for row in rows]),
        "repeated_share": _mean([row.repeated for row in rows]),
        "masked_share": _mean([row.masked for row in rows]),
        "entropy": -_mean([value for row in rows for value in row.logprobs]),
        "diversity": diversity([row.ids for row in rows], samples),
        "no_signal_share": 1 - _mean(signal(rows, samples).tolist()),
        "no_code_share": verdicts.get("no_code", 0) / len(everything),
        "judge_faults": sum(row.faulty and not row.cut for row in everything),
        "cut_stragglers": sum(row.cut for row in everything),
        "resampled": batch.resampled,
        "tests_mean": _mean([_tests(row.problem) for row in everything]),
        "rows": len(everything),
        "tokens": sum(len(row.ids) for row in everything),
        "verdicts": verdicts,
    }


def records(batch: Batch, temperature: float, first_row: int = 0) -> list[dict[str, Any]]:
    """The rollouts as they are written to the run directory."""
    return [
        {
            "row": first_row + n,
            "problem": row.problem.id,
            "sample": row.sample,
            "completion": row.text,
            "code": code_block(row.text) or "",
            "verdict": row.verdict.verdict,
            "strategy": row.verdict.strategy,
            "message": row.verdict.message,
            "reward": row.reward,
            "advantage": row.advantage,
            "length": len(row.ids),
            "truncated": row.truncated,
            "repeated": row.repeated,
            "masked": row.masked,
            "discarded": row.discarded,
            "cut": row.cut,
            "temperature": temperature,
        }
        for n, row in enumerate([*batch.responses, *batch.discarded])
    ]


def _tests(problem: Problem) -> int:
    """How many tests decide; asserts are counted by the word, since one text may hold many."""
    return len(problem.tests) + sum(text.count("assert ") for text in problem.asserts)


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values) if values else float("nan")
