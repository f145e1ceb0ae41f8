"""Generate starter problems to train and test on, and text to pretrain a small model.

A draft becomes a problem with tests that notice every slip, or it is refused. Programs run in this process, as compiled
steps, because they are our own. A change is a program with one mistake: a step with a slip, or consecutive steps left
out. A draft is refused when

- some steps can be left out without changing any answer: they cancel, or do not matter;
- fewer than two slips change an answer (a slip that changes none is no mistake, and is left out);
- the tests cannot notice every change, or their answers are nearly all the same.

The inputs depend on the statement only, so a statement has the same tests whatever seed it was drawn with.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from ..schema import ACCEPTED, Problem, Test
from .drafts import DEPTHS, Draft, Operation, Split, Value, drafts, inputs

TESTS = 6
CANDIDATES = 30  # inputs to choose the tests from
FURTHER = 100  # inputs tried on a slip that no candidate notices, before it counts as no mistake
ANSWERS = 3  # different answers that the tests must have
WRONG = 4  # wrong solutions to keep
LARGEST, LONGEST = 10**9, 40
PATIENCE = 400  # drafts in a row that give nothing new before a depth counts as exhausted


class Change(NamedTuple):
    """A program with steps `start` to `end` replaced by a variant of one step, or left out."""

    start: int
    end: int
    variant: int | None


class TracedInput(NamedTuple):
    trace: list[Value]  # the input, and the value after each step
    notices: int  # bit n: change n gives another answer


def build(draft: Draft) -> Problem | None:
    """Make the problem of a draft, with tests and solutions; None if the draft is refused."""
    rng = random.Random(draft.statement)
    source = inputs(draft.takes, rng)
    skips, slips = changes(draft)
    traces = [t for value in itertools.islice(source, CANDIDATES) if (t := trace(draft, value)) is not None]
    if not all(any(noticed(draft, t, [skip]) for t in traces) for skip in skips):
        return None
    candidates = [TracedInput(t, noticed(draft, t, skips + slips)) for t in traces]
    missing = [slip for n, slip in enumerate(slips, len(skips)) if not _union(candidates) >> n & 1]
    for value in itertools.islice(source, FURTHER if missing else 0):
        found = trace(draft, value)
        if found is not None and (bits := noticed(draft, found, missing)):
            candidates.append(TracedInput(found, noticed(draft, found, skips + slips)))
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
    """List the consecutive steps that can be left out without a type error, and the slips of each step."""
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
    """Run the right program: return the value after each step, or None if one grows too large."""
    values = [value]
    for operation, arguments, _ in draft.steps:
        value = operation.functions[0](value, *arguments)
        if not _small(value):
            return None
        values.append(value)
    return values


def noticed(draft: Draft, values: list[Value], changes: Sequence[Change]) -> int:
    """Find the changes that give another answer than the right program, as bits."""
    # Spaces in printed text may be compared loosely, so answers must differ in more than spaces.
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


def choose(candidates: Sequence[TracedInput], changes: int) -> list[TracedInput]:
    """Choose TESTS inputs that together notice all the changes; none if they cannot.

    The remaining places go to the first input (the empty one), then to inputs with new answers.
    """
    chosen: list[TracedInput] = []
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


def _union(candidates: Sequence[TracedInput]) -> int:
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


class StarterError(ValueError):
    """A request that cannot be met; the message says why and what to type instead."""


def problems(split: Split, count: int, seed: int = 0, depths: Sequence[int] = DEPTHS) -> list[Problem]:
    """Generate `count` different problems: no two have both the same composition and the same arguments.

    The depths take turns; a depth without further problems is skipped: depth 1 has a few hundred, and none in `test`. A
    larger `count` gives the same problems first.
    """
    _check(split, depths)
    streams = {
        depth: _stream(split, depth, random.Random(f"{split} {seed} {depth}"))
        for depth in dict.fromkeys(depths)
        if (split, depth) != ("test", 1)
    }
    found: list[Problem] = []
    while streams and len(found) < count:
        for depth in tuple(streams):
            problem = next(streams[depth], None)
            if problem is None:
                del streams[depth]
            else:
                found.append(problem)
    if len(found) < count:
        raise StarterError(
            f"{count} {split} problems were asked for, but only {len(found)} could be drawn at depths {list(depths)}; "
            "ask for fewer, or add depths from 2 to 6"
        )
    return found[:count]


def corpus(count: int, seed: int = 0, depths: Sequence[int] = (1, 2, 3)) -> Iterator[tuple[Problem, str]]:
    """Generate problems of `train` without tests, each with an answer as a model might write it, mistakes included.

    `habits` gives the frequency of each mistake. Of ten answers, three have a comment before every step, two before
    about half of the steps, and five have none. No program is run, so `problems` would refuse some of these problems:
    their steps cancel, or do not matter.
    """
    _check("train", depths)
    rng = random.Random(f"corpus {seed}")
    streams = [drafts("train", rng, depth) for depth in depths]
    return (_sample(next(rng.choice(streams)), rng) for _ in range(count))


@functools.cache
def habits(operation: Operation) -> tuple[float, ...]:
    """Return the share of each code of an operation in the corpus: the right one first, then its slips.

    Every operation is sometimes wrong in the corpus. For a third of the operations one and the same mistake is more
    frequent than the right code. So a model of the corpus cannot be right by writing the likeliest code: it has to
    explore and be corrected.
    """
    slips = len(operation.codes) - 1
    if int.from_bytes(hashlib.sha256(operation.name.encode()).digest()[:8], "big") % 3:
        return (0.92, *(0.08 / slips,) * slips)
    return (0.35, 0.55, *(0.10 / (slips - 1),) * (slips - 1)) if slips > 1 else (0.4, 0.6)


def answer(draft: Draft, rng: random.Random, comments: float = 0.0) -> str:
    """Write a fenced program with mistakes by `habits`; each step has a comment with probability `comments`."""
    variants = [rng.choices(range(len(step.operation.codes)), habits(step.operation))[0] for step in draft.steps]
    return f"```python\n{draft.program(variants, [rng.random() < comments for _ in draft.steps])}```"


def _sample(draft: Draft, rng: random.Random) -> tuple[Problem, str]:
    return draft.problem(), answer(draft, rng, rng.choices((1.0, 0.5, 0.0), (0.3, 0.2, 0.5))[0])


def _stream(split: Split, depth: int, rng: random.Random) -> Iterator[Problem]:
    """Generate different problems of one depth, until no more are found."""
    tried = set()
    idle = 0
    for draft in drafts(split, rng, depth):
        key = draft.composition, draft.arguments
        problem = None if key in tried else build(draft)
        tried.add(key)
        idle = 0 if problem else idle + 1
        if problem:
            yield problem
        elif idle == PATIENCE:
            return


def _check(split: str, depths: Sequence[int]) -> None:
    if split not in get_args(Split):
        raise StarterError(f'split is {split!r}; it must be "train" or "test"')
    if not depths or not set(depths) <= set(DEPTHS):
        raise StarterError(f"depths are {list(depths)}; give one or more of {', '.join(map(str, DEPTHS))}")
