"""Runs -> what a report says: every claim decided at each scale, and a row of numbers for every arm.

The false discoveries of a scale are controlled over all of its claims. A claim with several tests is shown by the one
that decided it: the one that speaks least for it, or, where it is contradicted, most against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..claims import Claim, ClaimTest
from ..deciding import CONTRADICTED, NOT_RUN, Decision, decide, p_values
from ..effects import Effect, paired
from .gathering import ArmRuns, ScaleRuns

COLUMNS = {  # of an arm's row
    "accuracy_before": "first(test_accuracy)",
    "accuracy_after": "last(test_accuracy)",
    "length": "last(length_mean)",
    "diversity": "last(diversity)",
    "truncated_share": "last(truncated_share)",
    "masked_share": "mean(masked_share)",
    "reward": "last(reward)",
    "step_s": "mean(step_s)",
}
Key = tuple[str, int]  # study and number of a claim


@dataclass(frozen=True)
class Decided:
    """A scale with its decisions; the p values of each claim are adjusted for the number of claims."""

    runs: ScaleRuns
    decisions: dict[Key, Decision]
    adjusted: dict[Key, tuple[float, float]]  # for and against; claims that were not run have none
    weight: float  # how much other arms count in the spread of an effect

    @property
    def name(self) -> str:
        return self.runs.name


def decide_scale(scale: ScaleRuns) -> Decided:
    claims = [claim for study in scale.studies.values() for claim in study.claims]
    keys = [(claim.study, claim.number) for claim in claims]
    arms = {name: list(study.arms) for name, study in scale.studies.items()}
    found, weight = decide(claims, scale.values, arms)
    decisions = dict(zip(keys, found, strict=True))
    run = {key: decision for key, decision in decisions.items() if decision.verdict != NOT_RUN}
    holds = adjust([decision.p_for or 0.0 for decision in run.values()])
    fails = adjust([decision.p_against or 0.0 for decision in run.values()])
    adjusted = dict(zip(run, zip(holds, fails, strict=True), strict=True))
    return Decided(scale, decisions, adjusted, weight)


def adjust(ps: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p values: those that survive at a level are at most that level."""
    found, lowest = [1.0] * len(ps), 1.0
    for rank, place in zip(range(len(ps), 0, -1), sorted(range(len(ps)), key=lambda n: -ps[n]), strict=True):
        lowest = found[place] = min(lowest, ps[place] * len(ps) / rank)
    return found


def deciding_test(decision: Decision) -> tuple[ClaimTest, Effect]:
    """Of a claim that was run."""
    if decision.verdict == CONTRADICTED:
        return min(decision.tests, key=lambda each: p_values(*each)[1])
    return max(decision.tests, key=lambda each: p_values(*each)[0])


def arm_row(arm: ArmRuns) -> dict[str, Effect]:
    return {name: paired(arm.values(statistic)) for name, statistic in COLUMNS.items()}


def forest_rows(decided: Decided) -> list[dict[str, Any]]:
    """The effect behind each verdict in standard deviations between seeds; positive is what was claimed.

    Studies without any run are left out.
    """
    rows = []
    for decision in decided.decisions.values():
        claim = decision.claim
        study = decided.runs.studies[claim.study]
        if not study.was_run:
            continue
        row: dict[str, Any] = {"aspect": study.title, "label": f"{claim.number}. {claim.text}"}
        row |= {"verdict": decision.verdict, "estimate": None, "low": None, "high": None}
        if decision.verdict != NOT_RUN:
            test, effect = deciding_test(decision)
            row["label"] += " (claimed: no difference)" * (test.expect == "same")
            turn = (-1 if test.expect == "less" else 1) / _spread(decided.runs, claim, test, effect)
            numbers = [turn * x for x in (effect.estimate, effect.low, effect.high) if x is not None]
            row |= {"estimate": numbers[0], "low": min(numbers), "high": max(numbers)}
        rows.append(row)
    return rows


def _spread(scale: ScaleRuns, claim: Claim, test: ClaimTest, effect: Effect) -> float:
    """The standard deviation of the statistic between seeds, pooled over the test's arms."""
    arms = [scale.values(claim.study, arm, test.statistic) for arm in test.arms]
    spread = math.sqrt(np.mean([np.var([arm[seed] for seed in effect.seeds], ddof=1) for arm in arms]))
    size = abs(effect.estimate)
    return spread if spread > 1e-9 * size else size or 1.0  # seeds that all agree have no spread
