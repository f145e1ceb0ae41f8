"""Scores of an evaluation: accuracy with interval, pass@k, Table 1, months; and a test of two evaluations' difference.

Each limit has its scores (limits ascend; "0", for no limit, is last). Those that depend on the policy are under "exact"
and "robust"; "base" has the same for the base tests of EvalPlus alone. An unknown value is None, never NaN.

1. Accuracy is the mean over problems of the mean over a problem's tries, as in the paper. A fault of the judge
   (internal_error) is neither right nor wrong: that try is left out. A problem with no try left is "unjudged".
2. The interval is the 95% percentile bootstrap over problems, since the tries at one problem are similar. Its width is
   0 if all problems score the same, and it is None for fewer than two problems.
3. pass@k is the unbiased estimate of the paper Evaluating Large Language Models Trained on Code.
4. Two evaluations are compared problem by problem, since problems differ far more than models do. The interval of the
   difference is a paired bootstrap over problems; the p-value is that of a paired permutation test: were the two alike,
   each problem's difference could as well have had the other sign. All orders are tried where at most 12 problems
   differ, else 20,000.
5. A side may be several evaluations, such as those of three training seeds: its score at a problem is their mean. The
   interval is then the bootstrap over problems and over the evaluations of each side (`crossed_means`). The p-value is
   the larger of two: that of the sign flips, which takes these evaluations as all there are, and the two-sided share
   of that bootstrap beyond 0, which knows that new seeds would differ.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema import ACCEPTED, VERDICTS, Problem, bands, in_order
from ..stats import bootstrap, crossed_means, middle, pass_at_k
from .suite import NONE, EvaluationError, Mark, Sample

POLICIES = ("exact", "robust")  # the policies of a mark's verdicts
PLATFORMS = ("atcoder", "leetcode", "codeforces")  # in the order of the tables; others follow by name
KS = (1, 2, 4, 5, 8, 10, 20, 50, 100)
FAULT = "internal_error"
RESAMPLES = 10_000  # of the bootstrap of a difference
DRAWS = 20_000
ENUMERATED = 12  # differing problems: 4,096 orders
LEVEL = 0.05

Floats = NDArray[np.float64]
Tries = Mapping[str, Sequence[float]]


def score(marks: Sequence[Mark], problems: Sequence[Problem], samples: Sequence[Sample] = ()) -> dict[str, Any]:
    """Return {limit: scores}, ready for JSON. Only id, platform, difficulty and date of problems are read."""
    strange = sorted({mark.problem_id for mark in marks} - {problem.id for problem in problems})
    if strange:
        raise EvaluationError(
            f"marks of {len(strange)} problems that are not in the suite, the first is {strange[0]!r}: the suite has "
            "changed since they were made; run the evaluation again into a new folder"
        )
    limits: dict[int, list[Mark]] = {}
    for mark in marks:
        limits.setdefault(mark.limit, []).append(mark)
    return {
        str(limit): {**_of_limit(limits[limit], limit), "diversity": _diversity(samples, limit)}
        | {policy: _of_policy(limits[limit], problems, policy) for policy in POLICIES}
        | _of_base_tests(limits[limit], problems)
        for limit in sorted(limits, key=lambda limit: limit or math.inf)
    }


def _of_base_tests(marks: Sequence[Mark], problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the scores for the base tests alone, where there are such."""
    if not any(mark.robust_base for mark in marks):
        return {}
    base = on_base_tests(marks)
    return {"base": {policy: _of_policy(base, problems, policy) for policy in POLICIES}}


def on_base_tests(marks: Iterable[Mark]) -> list[Mark]:
    """Return the marks with the verdicts on the base tests in place of those on all tests."""
    return [replace(mark, robust=mark.robust_base, exact=mark.exact_base) for mark in marks]


def outcomes(marks: Iterable[Mark], policy: str) -> dict[str, list[float]]:
    """Return {problem: 1 or 0 for each try} for the marks of one limit, without the judge's faults."""
    found: dict[str, list[float]] = {}
    for mark in marks:
        verdict = getattr(mark, policy)
        if verdict != FAULT:
            found.setdefault(mark.problem_id, []).append(float(verdict == ACCEPTED))
    return found


def _of_limit(marks: Sequence[Mark], limit: int) -> dict[str, Any]:
    """Compute the scores that do not depend on the policy, and list the samples that policies disagree on."""
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
        "table": _table_1(means, problems),
        "months": _months(means, problems),
        "verdicts": {name: verdicts[name] for name in VERDICTS if verdicts[name]},
        "length_right": _mean(mark.tokens for mark in right if mark.tokens is not None),
    }


def _cell(means: Floats) -> dict[str, Any]:
    judged = means[~np.isnan(means)]
    low, high = bootstrap(judged)
    accuracy = float(judged.mean()) if len(judged) else None
    return {"accuracy": accuracy, "low": low, "high": high, "problems": len(judged)}


def _table_1(means: Floats, problems: Sequence[Problem]) -> dict[str, dict[str, Any]]:
    """Return the paper's Table 1 as {platform: {difficulty: cell}}; "none" and "all" come last in both.

    Each problem is in one row and one column besides "all", unless all problems share one platform or difficulty.
    """
    platforms = np.array([problem.platform or NONE for problem in problems])  # (problems,)
    levels = np.array([band or NONE for band in bands(problems)])  # (problems,)
    others = sorted(set(map(str, platforms)) - {NONE, *PLATFORMS})
    ordered = [name for name in in_order(map(str, levels)) if name != NONE]
    rows = {name: platforms == name for name in (*PLATFORMS, *others, NONE) if name in platforms}
    columns = {name: levels == name for name in (*ordered, NONE) if name in levels}
    rows, columns = ({} if set(names) == {NONE} else names for names in (rows, columns))
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
    """Return the mean diversity D of the groups with known tokens, cut at the limit; None without a group of two."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.problem_id, []).append(sample)
    known = [group for group in groups.values() if len(group) > 1 and all(s.ids or s.tokens == 0 for s in group)]
    if not known:
        return None
    from ..grpo.diversity import group_diversity  # loads torch, which files of completions do not need

    return _mean(group_diversity([sample.ids[: limit or None] for sample in group]) for group in known)


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return sum(values) / len(values) if values else None


def _refused(verdict: str) -> bool:
    return verdict not in (ACCEPTED, FAULT)


def _case(mark: Mark, message: str) -> dict[str, str]:
    return {"id": mark.id, "problem_id": mark.problem_id, "strategy": mark.strategy, "message": message}


# ---- two evaluations


def compare(before: Tries | Sequence[Tries], after: Tries | Sequence[Tries], *, seed: int = 0) -> dict[str, Any]:
    """Compare two evaluations, each {problem: 0 or 1 for each try}. The result is ready for JSON, in shares of 1.

    A side may be a list of evaluations. The numbers of tries may differ. A problem without any try in one of a side's
    evaluations counts as missing on that side.
    """
    sides = [[side] if isinstance(side, Mapping) else list(side) for side in (before, after)]
    judged = [_judged(side) for side in sides]
    both = [name for name in judged[0] if name in judged[1]]
    if len(both) < 2:
        counts = " and ".join(str(len(names)) for names in judged)
        raise EvaluationError(
            f"the two have {len(both)} judged problems in common, of {counts}, and it takes two "
            "to tell a difference from chance; compare evaluations of the same suite, release and dates"
        )
    groups = [np.array([[np.mean(each[name]) for name in both] for each in side]) for side in sides]
    scores = np.array([group.mean(0) for group in groups])  # (2, problems)
    change = (scores[1] - scores[0]).round(12)  # (problems,); means of several that are equal can differ in rounding
    low, high = bootstrap(change, RESAMPLES, seed)
    p = sign_flip_p(change, seed=seed)
    if max(map(len, groups)) > 1:
        means = crossed_means(groups, RESAMPLES, seed)
        drawn = means[1] - means[0]  # (RESAMPLES,)
        low, high = middle(drawn)
        beyond = min((drawn <= 0).sum(), (drawn >= 0).sum())
        p = max(p, min(1.0, 2 * float(beyond + 1) / (RESAMPLES + 1)))
    order = np.argsort(-np.abs(change), kind="stable")
    moved = [{"id": both[n], "before": float(scores[0, n]), "after": float(scores[1, n])} for n in order]
    result = {
        "problems": len(both),
        "before": float(scores[0].mean()),
        "after": float(scores[1].mean()),
        "before_each": [float(mean) for mean in groups[0].mean(1)],
        "after_each": [float(mean) for mean in groups[1].mean(1)],
        "difference": float(change.mean()),
        "low": low,
        "high": high,
        "p": p,
        "won": [each for each, n in zip(moved, order, strict=True) if change[n] > 0],
        "lost": [each for each, n in zip(moved, order, strict=True) if change[n] < 0],
        "equal": int((change == 0).sum()),
        "only_before": [name for name in judged[0] if name not in judged[1]],
        "only_after": [name for name in judged[1] if name not in judged[0]],
    }
    return {**result, "verdict": _verdict(result)}


def _judged(side: Sequence[Tries]) -> dict[str, None]:
    """Return the problems that every evaluation of a side has a try at, in the order of the first."""
    if not side:
        raise EvaluationError("one side has no evaluation; name at least one on each")
    return {name: None for name in side[0] if all(len(each.get(name, ())) for each in side)}


def sign_flip_p(change: Floats, draws: int = DRAWS, seed: int = 0) -> float:
    """Return the two-sided p-value of `change`  # (n,): the share of sign flips whose sum lies as far from 0."""
    sizes = np.abs(change[change != 0])  # a difference of 0 has no sign to flip
    bound = abs(change.sum()) - 1e-9  # equal sums, added up in another order, are equal
    if len(sizes) <= ENUMERATED:
        signs = np.array(list(itertools.product((-1, 1), repeat=len(sizes))))  # (2 ** n, n)
        return float((np.abs(signs @ sizes) >= bound).mean())
    distinct, counts = np.unique(sizes, return_counts=True)  # (d,), (d,)
    # among problems with the same size of difference, only the number of positive signs matters
    positive = np.random.default_rng(seed).binomial(counts, 0.5, size=(draws, len(counts)))
    sums = (2 * positive - counts) @ distinct  # (draws,)
    return float(((np.abs(sums) >= bound).sum() + 1) / (draws + 1))  # the real order is one of them


def _verdict(result: Mapping[str, Any]) -> str:
    difference, low, high = (f"{100 * result[name]:+.1f}" for name in ("difference", "low", "high"))
    p = f"p = {result['p']:.3f}" if result["p"] >= 0.001 else "p < 0.001"
    judgement = "more" if result["p"] < LEVEL else "not more"
    return f"the difference is {difference} points ({low} to {high}), {p}; that is {judgement} than chance would give"
