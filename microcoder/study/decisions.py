"""Decide claims from effects, by a rule that was written before any run.

A test: one-sided t tests over the seeds, whose spread is blended with that of the study's other arms (effects.py).

`more` by b: p_for rejects "the effect is 0 or less", p_against rejects "the effect is b or more". `less` is the mirror
image. `same` within b: p_for rejects both "-b or less" and "b or more" (the larger p counts); p_against rejects
"between -b and b" (the data choose the side, so the p values of both sides are added).

A claim: all tests must hold, so the largest p counts for it. One failing test is enough, so the smallest p counts
against it, times the number of tests (Bonferroni). Over all claims that were run the share of false verdicts is limited
to 5% (Benjamini-Hochberg), for and against separately.

    not run        an arm is missing, or fewer than two seeds have numbers in all arms
    not testable   a gate of the study that concerns the claim does not hold, or was not recorded
    contradicted   p_against is significant; this has priority over p_for
    supported      p_for is significant, and every estimate reaches b (same: every interval lies within b)
    undecided      otherwise

A gate is a bound on a statistic of one arm, in the mean over its seeds: where it does not hold, the effect of a claim
could not appear. A claim that is not testable counts neither for nor against, and makes no other claim harder.

If all seeds agree to the last digit, a t test knows no noise (accuracies of few problems do agree sometimes). Then only
the signs count: p = 1 / 2 ** seeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .effects import Effect, moderated, paired, slope_weights, spread, tail, trend, weight_of_others
from .plan import Claim, ClaimTest, Gate

LEVEL = 0.05
ROUNDING = 1e-9  # 0.3 - 0.25 is a little less than 0.05 in floating point, but counts as five points
SUPPORTED, CONTRADICTED, UNDECIDED, NOT_TESTABLE, NOT_RUN = VERDICTS = (
    "supported", "contradicted", "undecided", "not testable", "not run",
)  # fmt: skip
Values = Callable[[str, str, str], Mapping[int, float]]  # (study, arm, statistic) -> {seed: number}
Arms = Mapping[str, Sequence[str]]  # study -> its arms


@dataclass(frozen=True, slots=True)
class CheckedGate:
    gate: Gate
    found: float  # mean over the seeds; NaN: not recorded

    @property
    def holds(self) -> bool:
        return self.gate.at_least - ROUNDING <= self.found <= self.gate.at_most + ROUNDING


@dataclass(frozen=True, slots=True)
class ClaimDecision:
    """The verdict on a claim, with the numbers behind it."""

    claim: Claim
    verdict: str
    p_for: float | None  # before Benjamini-Hochberg; None if it was not run or is not testable
    p_against: float | None
    tests: list[tuple[ClaimTest, Effect]]
    words: str
    gates: tuple[CheckedGate, ...] = ()  # those that concern it

    @property
    def tested(self) -> bool:
        """Whether its tests were decided: it was run, and every gate holds."""
        return self.verdict not in (NOT_RUN, NOT_TESTABLE)


def check(gates: Sequence[Gate], study: str, values: Values) -> list[CheckedGate]:
    """Measure the gates of a study."""
    found = []
    for gate in gates:
        numbers = [x for x in values(study, gate.of, gate.statistic).values() if math.isfinite(x)]
        found.append(CheckedGate(gate, math.fsum(numbers) / len(numbers) if numbers else math.nan))
    return found


def decide(
    claims: Sequence[Claim],
    values: Values,
    arms: Arms | None = None,
    weight: float | None = None,
    gates: Mapping[str, Sequence[Gate]] | None = None,
) -> tuple[list[ClaimDecision], float]:
    """Decide each claim, in order. Also return the weight of other arms in the spread of an effect.

    values: returns an empty mapping for an arm that was not run.
    arms: all arms of each study, if there are more than its claims name.
    weight: a fixed weight of other arms instead of an estimate; 0: each test has only its own spread.
    gates: those of each study, if it has any.
    """
    numbers = functools.cache(values)  # computed once for all claims that share it
    effects, weight = _effects(claims, numbers, arms or {}, weight)
    found = [[(test, effects[claim.study, test]) for test in claim.tests] for claim in claims]
    made = [n for n, tests in enumerate(found) if all(len(effect.values) > 1 for _, effect in tests)]
    checked = {study: check(each, study, numbers) for study, each in (gates or {}).items()}
    concerned = [tuple(c for c in checked.get(each.study, ()) if c.gate.concerns(each)) for each in claims]
    run = [n for n in made if all(each.holds for each in concerned[n])]
    ps = {n: claim_p_values(found[n]) for n in run}
    backed = dict(zip(run, surviving([ps[n][0] for n in run]), strict=True))
    refuted = dict(zip(run, surviving([ps[n][1] for n in run]), strict=True))
    decisions = []
    for n, (claim, tests) in enumerate(zip(claims, found, strict=True)):
        if n not in ps:
            verdict = NOT_TESTABLE if n in made else NOT_RUN
        elif refuted[n]:
            verdict = CONTRADICTED
        else:
            reached = all(reaches(test, effect) for test, effect in tests)
            verdict = SUPPORTED if backed[n] and reached else UNDECIDED
        p_for, p_against = ps.get(n, (None, None))
        missing = [arm for test in claim.tests for arm in test.arms if not numbers(claim.study, arm, test.statistic)]
        words = "; ".join(describe(test, effect) for test, effect in tests)
        if missing:
            words = f"study {claim.study!r} has no runs of {', '.join(dict.fromkeys(missing))}"
        elif verdict == NOT_TESTABLE:
            words = "; ".join(describe_gate(each) for each in concerned[n] if not each.holds)
        decisions.append(ClaimDecision(claim, verdict, p_for, p_against, tests, words, concerned[n]))
    return decisions, weight


def _effects(
    claims: Sequence[Claim], values: Values, arms: Arms, weight: float | None
) -> tuple[dict[tuple[str, ClaimTest], Effect], float]:
    """Compute the effect of each test with its blended spread, and the weight of other arms in that."""
    tests = [(claim.study, test) for claim in claims for test in claim.tests]
    asked: dict[str, dict[str, None]] = {study: dict.fromkeys(arms.get(study, ())) for study, _ in tests}
    for study, test in tests:
        asked[study] |= dict.fromkeys(test.arms)
    plain, spreads = {}, {}
    for study, test in tests:
        numbers = {arm: values(study, arm, test.statistic) for arm in asked[study]}
        mine = [numbers[arm] for arm in test.arms]
        weights = slope_weights(len(mine)) if test.over else [1.0, -1.0][: len(mine)]
        plain[study, test] = trend(mine) if test.over else paired(*mine)
        spreads[study, test] = spread(plain[study, test], dict(zip(test.arms, weights, strict=True)), numbers)
    if weight is None:
        weight = weight_of_others([each for each in spreads.values() if each])
    return {key: moderated(effect, spreads[key], weight) for key, effect in plain.items()}, weight


def claim_p_values(tests: Sequence[tuple[ClaimTest, Effect]]) -> tuple[float, float]:
    """Combine the p values of a claim's tests: p_for, p_against."""
    each = [p_values(test, effect) for test, effect in tests]
    return max(p for p, _ in each), min(1.0, len(each) * min(p for _, p in each))


def p_values(test: ClaimTest, effect: Effect) -> tuple[float, float]:
    """Compute p_for and p_against of one test, whose effect has two seeds or more."""
    if test.expect == "same":
        size = abs(effect.estimate)
        return _p(effect, test.by - size), min(1.0, _p(effect, size - test.by) + _p(effect, size + test.by))
    gain = effect.estimate if test.expect == "more" else -effect.estimate
    return _p(effect, gain), _p(effect, test.by - gain)


def reaches(test: ClaimTest, effect: Effect) -> bool:
    """Whether the effect is as large as the test demands."""
    if test.expect == "same":
        bound = test.by + ROUNDING
        return effect.low is not None and effect.high is not None and -bound <= effect.low <= effect.high <= bound
    gain = effect.estimate if test.expect == "more" else -effect.estimate
    return gain >= test.by - ROUNDING


def surviving(ps: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Select by Benjamini and Hochberg: every p up to the largest that is at most level * rank / number of p values."""
    below = [p for rank, p in enumerate(sorted(ps), 1) if p <= level * rank / len(ps)]
    return [bool(below) and p <= below[-1] for p in ps]


def describe_gate(checked: CheckedGate) -> str:
    """Describe a gate with its number: `mean(no_signal_share) of none: 0.71, needed at most 0.5`."""
    gate = checked.gate
    bounds = [f"at least {gate.at_least:g}"] * math.isfinite(gate.at_least)
    bounds += [f"at most {gate.at_most:g}"] * math.isfinite(gate.at_most)
    found = "not recorded" if math.isnan(checked.found) else f"{checked.found:.3g}"
    return f"{gate.statistic} of {gate.of}: {found}, needed {' and '.join(bounds)}"


def describe(test: ClaimTest, effect: Effect) -> str:
    """Describe the numbers of a test: `last(reward), a - b: +0.034 (0.010 to 0.058), 5 seeds, expected ...`."""
    arms = f"slope over {', '.join(test.over)}" if test.over else " - ".join(test.arms)
    seeds = f"{len(effect.values)} seed{'s' * (len(effect.values) != 1)}"
    seeds += f" ({effect.left_out} left out)" if effect.left_out else ""
    if effect.low is None or effect.high is None:
        return f"{test.statistic}, {arms}: {seeds}, but an interval needs two"
    width = (effect.high - effect.low) / 2 or abs(effect.estimate) or 1.0
    digits = max(0, 1 - math.floor(math.log10(width)))  # two significant digits of the interval
    numbers = f"{effect.estimate:+.{digits}f} ({effect.low:.{digits}f} to {effect.high:.{digits}f})"
    by = f"{test.by:g}"
    expected = {"more": f"at least +{by}", "less": f"at most -{by}", "same": f"within {by} of 0"}[test.expect]
    if test.by == 0:
        expected = f"{test.expect} than 0"
    return f"{test.statistic}, {arms}: {numbers}, {seeds}, expected {expected}"


def _p(effect: Effect, beyond: float) -> float:
    """Return the one-sided p for a bound that the estimate exceeds by `beyond`."""
    if effect.error <= 1e-9 * max(map(abs, effect.values)):  # they agree, except for rounding
        return 0.5 ** len(effect.values) if beyond > ROUNDING else 1.0
    return tail(beyond / effect.error, effect.freedom)
