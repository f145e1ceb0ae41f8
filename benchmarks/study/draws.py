"""The verdicts on every test of the paper's claims over draws of seeds: what is false, and what is found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from microcoder.study.decisions import CONTRADICTED, LEVEL, SUPPORTED, UNDECIDED, ClaimDecision, decide, reaches
from microcoder.study.measures import parse
from microcoder.study.plan import ORDER, Claim, ClaimTest, find_study, read_claims, read_toml
from microcoder.study.results import StudyRuns

GAINED = ("reward", "accuracy", "accuracy_also", "test_accuracy", "test_accuracy_also")  # the more the better
LATER = ("last", "mean", "peak", "slope", "growth")
TOGETHER = attrgetter("verdict")
Verdict = Callable[[ClaimDecision], str]
Numbers = dict[tuple[str, str], dict[int, float]]  # (arm, statistic) -> seed -> value


def tests_of_the_paper() -> list[ClaimTest]:
    """Each test of the 34 claims once, without its arms."""
    found = []
    for name in ORDER:
        data = read_toml(find_study(name))
        claims = read_claims(data, name, [arm["name"] for arm in data["arms"]], name)
        found += [ClaimTest(test.statistic, test.expect, test.by) for claim in claims for test in claim.tests]
    return list(dict.fromkeys(found))


def is_gain(statistic: str) -> bool:
    """Whether rewards that teach something make it larger: an accuracy or reward later on, less one at the start."""
    signs = {1: LATER, -1: ("first",)}
    return all(metric in GAINED and function in signs[sign] for sign, function, metric in parse(statistic))


def is_false(verdict: str, test: ClaimTest) -> bool:
    """Whether a verdict is wrong where there is no effect."""
    if verdict == SUPPORTED:
        return test.expect != "same"
    return verdict == CONTRADICTED and (test.expect == "same" or test.by == 0)


def rates(study: StudyRuns, size: int, draws: int, weight: float | None = None) -> dict[str, Any]:
    """What becomes of every test over draws of `size` seeds, ready for JSON. weight: of other arms, see `decide`."""
    arms = {name: study.arms[name] for name in ("real", "shuffled")}
    seeds = sorted(arms["real"].runs.keys() & arms["shuffled"].runs.keys())
    if len(seeds) < 2 * size:
        sys.exit(f"{len(seeds)} seeds are finished in both arms, and a draw takes {2 * size}; raise --seeds")
    every = tests_of_the_paper()
    numbers: Numbers = {(arm, test.statistic): arms[arm].values(test.statistic) for arm in arms for test in every}
    lacking = sorted({statistic for (_, statistic), of in numbers.items() if not np.isfinite([*of.values()]).all()})
    tests = [test for test in every if test.statistic not in lacking]
    gains = list(dict.fromkeys(replace(test, expect="more") for test in tests if is_gain(test.statistic)))
    null, planted = _claims("null", tests, "real-1"), _claims("planted", gains, "shuffled-0")
    rng = np.random.default_rng(0)
    groups = [_groups(rng.permutation(seeds).tolist(), size) for _ in range(draws)]
    drawn = [draw(null, planted, numbers, each, weight) for each in groups]
    false, found, shares = (np.array(part) for part in zip(*drawn, strict=True))  # (draws, 2, tests) twice, (draws,)

    def rows(tests: list[ClaimTest], hits: Any) -> list[dict[str, Any]]:
        return [
            {"statistic": test.statistic, "expect": test.expect, "by": test.by, "alone": alone, "together": together}
            for test, alone, together in zip(tests, *hits.mean(axis=0).tolist(), strict=True)
        ]

    return {
        "size": size,
        "draws": draws,
        "seeds": len(seeds),
        "null": rows(tests, false),
        "planted": rows(gains, found),
        "any_false": float(false[:, 1].any(axis=1).mean()),
        "false_among_findings": float(shares.mean()),
        "not_recorded": lacking,
    }


def _claims(study: str, tests: list[ClaimTest], against: str) -> list[Claim]:
    return [Claim(n, "", study, (replace(test, of="real-0", against=against),)) for n, test in enumerate(tests)]


def _groups(seeds: list[int], size: int) -> list[list[int]]:
    return [seeds[start : start + size] for start in range(0, len(seeds) - size + 1, size)]


def draw(
    null: list[Claim], planted: list[Claim], numbers: Numbers, groups: list[list[int]], weight: float | None
) -> tuple[list[list[bool]], list[list[bool]], float]:
    """Which null tests came out false, and which planted ones were found, alone and together; false among findings."""
    chosen = {f"{of}-{n}": (of, group) for n, group in enumerate(groups) for of in ("real", "shuffled")}

    def values(_: str, arm: str, statistic: str) -> dict[int, float]:
        of, mine = chosen[arm]
        return {n: numbers[of, statistic][seed] for n, seed in enumerate(mine)}

    def false(decisions: list[ClaimDecision], verdict: Verdict) -> list[bool]:
        return [is_false(verdict(each), each.claim.tests[0]) for each in decisions if each.claim.study == "null"]

    def found(decisions: list[ClaimDecision], verdict: Verdict) -> list[bool]:
        return [verdict(each) == SUPPORTED for each in decisions if each.claim.study == "planted"]

    arms = {"null": list(chosen), "planted": list(chosen)}
    nothing, _ = decide(null, values, arms, weight)
    both, _ = decide([*null, *planted], values, arms, weight)
    findings = sum(each.verdict in (SUPPORTED, CONTRADICTED) for each in both)
    share = sum(false(both, TOGETHER)) / max(1, findings)
    false_ones = [false(nothing, alone), false(nothing, TOGETHER)]
    return false_ones, [found(both, alone), found(both, TOGETHER)], share


def alone(decision: ClaimDecision) -> str:
    """The verdict if this had been the only test."""
    if (decision.p_against or 0.0) <= LEVEL:
        return CONTRADICTED
    holds = (decision.p_for or 0.0) <= LEVEL and all(reaches(*each) for each in decision.tests)
    return SUPPORTED if holds else UNDECIDED
