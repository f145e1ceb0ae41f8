"""Accuracy on held-out problems: the mean of a few tries, with an interval over the problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..grpo import diversity
from ..stats import bootstrap
from .collect import Response, also_accuracy


def evaluation(responses: Sequence[Response], tries: int) -> dict[str, Any]:
    """The metrics of an evaluation. `responses` are groups of `tries`, one group a problem.

    A fault of the judge counts as neither right nor wrong. The interval is the 95% bootstrap over the problems, since
    the tries of one problem are alike.
    """
    groups = [responses[n : n + tries] for n in range(0, len(responses), tries)]
    scores = [_score(group) for group in groups]
    known = np.array([score for score in scores if score is not None])
    low, high = bootstrap(known)
    also = also_accuracy(responses)
    return {
        "test_accuracy": float(known.mean()) if len(known) else None,
        **({} if also is None else {"test_accuracy_also": also}),
        "test_accuracy_low": low,
        "test_accuracy_high": high,
        "test_pass_at_k": float((known > 0).mean()) if len(known) else None,
        "test_tries": tries,
        "test_problems": len(groups),
        "test_length": float(np.mean([len(row.ids) for row in responses])),
        "test_truncated_share": float(np.mean([row.truncated for row in responses])),
        "test_diversity": diversity([row.ids for row in responses], tries) if tries > 1 else None,
        "test_judge_faults": sum(row.faulty for row in responses),
        "test_by_difficulty": _by_difficulty(groups, scores),
    }


def _score(group: Sequence[Response]) -> float | None:
    judged = [row.accepted for row in group if not row.faulty]
    return sum(judged) / len(judged) if judged else None


def _by_difficulty(groups: Sequence[Sequence[Response]], scores: Sequence[float | None]) -> dict[str, dict[str, float]]:
    """Mean accuracy and number of problems for each difficulty score (or label, where there is none), in order."""
    found: dict[tuple[float, str], list[float]] = {}
    for group, score in zip(groups, scores, strict=True):
        problem = group[0].problem
        level = problem.difficulty_score
        if score is not None and (level is not None or problem.difficulty):
            key = (level, f"{level:g}") if level is not None else (0.0, problem.difficulty)
            found.setdefault(key, []).append(score)
    return {
        name: {"accuracy": sum(values) / len(values), "problems": len(values)}
        for (_, name), values in sorted(found.items())
    }
