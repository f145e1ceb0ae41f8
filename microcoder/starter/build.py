"""From a draft to a problem: tests that notice every slip, or None where the draft asks for nothing worth asking.

Programs run in this process, as compiled steps, because they are our own. A change is a program with one thing wrong:
a step with a slip, or a stretch of steps left out. A draft is refused when

- leaving out any stretch that could be left out changes no answer: the steps cancel, or do not matter;
- fewer than two slips change an answer (a slip that changes none is no mistake here, and is left out);
- the tests cannot notice every change, or their answers are nearly all the same.

The inputs depend on the statement only, so a statement has the same tests whatever seed it was drawn with.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import NamedTuple

from ..schema import ACCEPTED, Problem, Test
from .drafts import Draft
from .inputs import inputs
from .operations import Value

TESTS = 6
CANDIDATES = 30  # inputs to choose the tests from
FURTHER = 100  # inputs tried on a slip that no candidate notices, before it counts as no mistake
ANSWERS = 3  # different answers that the tests must have
WRONG = 4  # wrong solutions to keep
LARGEST, LONGEST = 10**9, 40


class Change(NamedTuple):
    """Steps `start` to `end` replaced: by a variant of the one step, or by nothing."""

    start: int
    end: int
    variant: int | None


class Candidate(NamedTuple):
    trace: list[Value]  # the input, and what each step makes of it
    notices: int  # bit n: change n gives another answer


def build(draft: Draft) -> Problem | None:
    """The problem with its tests and solutions, or None."""
    rng = random.Random(draft.statement)
    source = inputs(draft.takes, rng)
    skips, slips = changes(draft)
    traces = [t for value in itertools.islice(source, CANDIDATES) if (t := trace(draft, value)) is not None]
    if not all(any(noticed(draft, t, [skip]) for t in traces) for skip in skips):
        return None
    candidates = [Candidate(t, noticed(draft, t, skips + slips)) for t in traces]
    missing = [slip for n, slip in enumerate(slips, len(skips)) if not _union(candidates) >> n & 1]
    for value in itertools.islice(source, FURTHER if missing else 0):
        found = trace(draft, value)
        if found is not None and (bits := noticed(draft, found, missing)):
            candidates.append(Candidate(found, noticed(draft, found, skips + slips)))
            missing = [slip for n, slip in enumerate(missing) if not bits >> n & 1]
            if not missing:
                break
    seen = _union(candidates)
    real = [slip for n, slip in enumerate(slips, len(skips)) if seen >> n & 1]
    tests = choose(candidates, seen)
    if len(real) < 2 or len({repr(test.trace[-1]) for test in tests}) < ANSWERS:
        return None
    wrong = rng.sample(real, min(WRONG, len(real)))
    return draft.problem(
        [_test(draft, test.trace) for test in tests],
        [_solution(draft), *(_solution(draft, slip) for slip in wrong)],
    )


def changes(draft: Draft) -> tuple[list[Change], list[Change]]:
    """The stretches whose loss leaves a program of the right types, and the slips of each step."""
    types = [step.operation.takes for step in draft.steps] + [draft.gives]
    stretches = itertools.combinations(range(len(types)), 2)
    skips = [Change(start, end, None) for start, end in stretches if types[start] == types[end]]
    slips = [
        Change(n, n + 1, variant)
        for n, step in enumerate(draft.steps)
        for variant in range(1, len(step.operation.codes))
    ]
    return skips, slips


def trace(draft: Draft, value: Value) -> list[Value] | None:
    """What the value becomes step by step, or None if it grows too large."""
    values = [value]
    for operation, arguments, _ in draft.steps:
        value = operation.functions[0](value, *arguments)
        if not _small(value):
            return None
        values.append(value)
    return values


def noticed(draft: Draft, values: list[Value], changes: Sequence[Change]) -> int:
    """The changes that give another answer than the last value of the trace, as bits."""
    # Where text is printed, the spaces in it may be compared loosely, so they must not be all that differs.
    loosely = draft.kind == "stdin" and draft.gives in ("text", "words")
    right = values[-1]
    bits = 0
    for n, (start, end, variant) in enumerate(changes):
        value = values[start]
        if variant is not None:
            operation, arguments, _ = draft.steps[start]
            value = operation.functions[variant](value, *arguments)
        if value != values[end]:
            for operation, arguments, _ in draft.steps[end:]:
                value = operation.functions[0](value, *arguments)
            if value != right and not (loosely and _printed(value).split() == _printed(right).split()):
                bits |= 1 << n
    return bits


def choose(candidates: Sequence[Candidate], changes: int) -> list[Candidate]:
    """TESTS of them that together notice all the changes, or none if they cannot.

    Room that is left goes to the first one, the empty input, then to answers that are not there yet.
    """
    chosen: list[Candidate] = []
    while changes and len(chosen) < TESTS:
        best = max(candidates, key=lambda candidate: (candidate.notices & changes).bit_count())
        chosen.append(best)
        changes &= ~best.notices
    for any_answer in (False, True):
        for candidate in [*candidates[:1], *reversed(candidates)]:  # drawn inputs before the other edge cases
            new = any_answer or all(candidate.trace[-1] != other.trace[-1] for other in chosen)
            if new and len(chosen) < TESTS and candidate not in chosen:
                chosen.append(candidate)
    return [] if changes else chosen


def _union(candidates: Sequence[Candidate]) -> int:
    bits = 0
    for candidate in candidates:
        bits |= candidate.notices
    return bits


def _small(value: Value) -> bool:
    if isinstance(value, int):
        return abs(value) < LARGEST
    return len(value) <= LONGEST and (isinstance(value, str) or all(map(_small, value)))


def _printed(value: Value) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _test(draft: Draft, values: list[Value]) -> Test:
    if draft.kind == "stdin":
        return Test(_printed(values[0]) + "\n", _printed(values[-1]) + "\n")
    return Test(json.dumps([values[0]]), json.dumps(values[-1]))


def _solution(draft: Draft, slip: Change | None = None) -> dict[str, str]:
    variants = [slip.variant or 0 if slip and slip.start == n else 0 for n in range(len(draft.steps))]
    return {"code": draft.program(variants), "language": "python", "verdict": "wrong_answer" if slip else ACCEPTED}
