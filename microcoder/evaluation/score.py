"""Marks -> scores: accuracy with its interval, pass@k, Table 1, months, and where the two policies disagree.

Each limit (in ascending order, "0" for none at the end) has these, and under "exact" and "robust" what depends on the
policy. Nothing is NaN; what is not known is None.

1. Accuracy is the mean over problems of the mean of a problem's tries, as in the paper. A fault of the judge
   (internal_error) is neither right nor wrong: the try is left out, and a problem with none left is "unjudged".
2. The interval is the 95% percentile bootstrap over problems, since the tries at one problem are alike. It has no width
   where all problems score the same, and there is none for fewer than two problems.
3. pass@k is the unbiased estimate of the paper Evaluating Large Language Models Trained on Code.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import ACCEPTED, VERDICTS, Problem
from ..stats import bootstrap
from .records import BenchError, Mark, Sample

POLICIES = ("exact", "robust")  # those that a mark has
PLATFORMS = ("atcoder", "leetcode", "codeforces")  # in the order of the tables; others follow by name
DIFFICULTIES = ("easy", "medium", "hard")  # others, such as a rating, count in "all" alone
KS = (1, 2, 4, 5, 8, 10, 20, 50, 100)
FAULT = "internal_error"

Floats = NDArray[np.float64]


def score(marks: Sequence[Mark], problems: Sequence[Problem], samples: Sequence[Sample] = ()) -> dict[str, Any]:
    """{limit: its scores}, ready for JSON. Of the problems only id, platform, difficulty and date are read."""
    strange = sorted({mark.problem_id for mark in marks} - {problem.id for problem in problems})
    if strange:
        raise BenchError(
            f"marks of {len(strange)} problems that are not in the suite, the first is {strange[0]!r}: the suite has "
            "changed since they were made; run the bench again into a new folder"
        )
    limits: dict[int, list[Mark]] = {}
    for mark in marks:
        limits.setdefault(mark.limit, []).append(mark)
    return {
        str(limit): {**_of_limit(limits[limit], limit), "diversity": _diversity(samples, limit)}
        | {policy: _of_policy(limits[limit], problems, policy) for policy in POLICIES}
        for limit in sorted(limits, key=lambda limit: limit or math.inf)
    }


def outcomes(marks: Iterable[Mark], policy: str) -> dict[str, list[float]]:
    """{problem: 1 or 0 for each try}, without the judge's faults. The marks are those of one limit."""
    found: dict[str, list[float]] = {}
    for mark in marks:
        verdict = getattr(mark, policy)
        if verdict != FAULT:
            found.setdefault(mark.problem_id, []).append(float(verdict == ACCEPTED))
    return found


def pass_at_k(tries: int, right: int, k: int) -> float:
    """1 - C(tries - right, k) / C(tries, k) as a product, which overflows nowhere. With fewer than k wrong tries one
    factor is 0, since k is then among the numbers that are multiplied over."""
    return 1.0 - math.prod(1.0 - k / n for n in range(tries - right + 1, tries + 1))


def _of_limit(marks: Sequence[Mark], limit: int) -> dict[str, Any]:
    """What is the same under both policies, and where they disagree."""
    return {
        "tries": len(marks),
        "internal_errors": sum(FAULT in (mark.exact, mark.robust) for mark in marks),
        "truncated_share": _mean(mark.truncated for mark in marks) if limit else None,
        "no_code_share": _mean(mark.robust == "no_code" for mark in marks),
        "length": _mean(mark.tokens for mark in marks if mark.tokens is not None),
        "only_robust": [_case(m, m.exact_message) for m in marks if m.robust == ACCEPTED and _refused(m.exact)],
        "only_exact": [_case(m, m.robust_message) for m in marks if m.exact == ACCEPTED and _refused(m.robust)],
    }


def _of_policy(marks: Sequence[Mark], problems: Sequence[Problem], policy: str) -> dict[str, Any]:
    tries = outcomes(marks, policy)
    means = np.array([np.mean(tries[p.id]) if p.id in tries else math.nan for p in problems])  # (problems,)
    verdicts = Counter(getattr(mark, policy) for mark in marks)
    right = [mark for mark in marks if getattr(mark, policy) == ACCEPTED]
    return {
        **_cell(means),
        "unjudged": int(np.isnan(means).sum()),
        "pass_at_k": _pass_at_ks(tries),
        "table": _table(means, problems),
        "months": _months(means, problems),
        "verdicts": {name: verdicts[name] for name in VERDICTS if verdicts[name]},
        "length_right": _mean(mark.tokens for mark in right if mark.tokens is not None),
    }


def _cell(means: Floats) -> dict[str, Any]:
    judged = means[~np.isnan(means)]
    low, high = bootstrap(judged)
    accuracy = float(judged.mean()) if len(judged) else None
    return {"accuracy": accuracy, "low": low, "high": high, "problems": len(judged)}


def _table(means: Floats, problems: Sequence[Problem]) -> dict[str, dict[str, Any]]:
    """The paper's Table 1: {platform: {difficulty: cell}}, of what occurs; "all" comes last in both."""
    platforms = np.array([problem.platform for problem in problems])  # (problems,)
    levels = np.array([problem.difficulty for problem in problems])  # (problems,)
    others = sorted(set(platforms) - {"", *PLATFORMS})
    rows = {name: platforms == name for name in map(str, (*PLATFORMS, *others)) if name in platforms}
    columns = {name: levels == name for name in DIFFICULTIES if name in levels}
    everything = np.ones(len(means), bool)
    return {
        row: {column: _cell(means[here & there]) for column, there in {**columns, "all": everything}.items()}
        for row, here in {**rows, "all": everything}.items()
    }


def _months(means: Floats, problems: Sequence[Problem]) -> dict[str, Any]:
    months = np.array([p.date[:7] if re.match(r"\d{4}-\d\d", p.date) else "" for p in problems])  # (problems,)
    return {str(month): _cell(means[months == month]) for month in np.unique(months) if month}


def _pass_at_ks(tries: dict[str, list[float]]) -> dict[str, float]:
    fewest = min(map(len, tries.values()), default=0)
    alike = Counter((len(each), int(sum(each))) for each in tries.values())  # many problems share both numbers
    return {
        str(k): sum(count * pass_at_k(n, right, k) for (n, right), count in alike.items()) / len(tries)
        for k in sorted({fewest, *KS})
        if 0 < k <= fewest
    }


def _diversity(samples: Sequence[Sample], limit: int) -> float | None:
    """The mean D of the groups whose tokens are known, cut to the limit; None without a group of two."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.problem_id, []).append(sample)
    known = [group for group in groups.values() if len(group) > 1 and all(s.ids or s.tokens == 0 for s in group)]
    if not known:
        return None
    from ..grpo.diversity import group_diversity  # loads torch: files of completions do without

    return _mean(group_diversity([sample.ids[: limit or None] for sample in group]) for group in known)


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return sum(values) / len(values) if values else None


def _refused(verdict: str) -> bool:
    return verdict not in (ACCEPTED, FAULT)


def _case(mark: Mark, message: str) -> dict[str, str]:
    return {"id": mark.id, "problem_id": mark.problem_id, "strategy": mark.strategy, "message": message}
