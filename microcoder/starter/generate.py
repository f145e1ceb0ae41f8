"""Problems to train and test on, and text to train a small model on beforehand."""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import get_args

from ..schema import Problem
from .build import build
from .drafts import DEPTHS, Draft, Split, drafts
from .operations import Operation

PATIENCE = 400  # drafts in a row that give nothing new before a depth counts as exhausted


class StarterError(ValueError):
    """A request that cannot be met; the message says why and what to type instead."""


def problems(split: Split, count: int, seed: int = 0, depths: Sequence[int] = DEPTHS) -> list[Problem]:
    """`count` different problems: no two have both the same composition and the same arguments.

    The depths take turns, and one that has no more problems leaves its turns to the others: depth 1 has a few hundred
    and none in `test`. A larger `count` gives the same problems first.
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
    """Problems of `train` without tests, each with an answer as a model might write it, mistakes included.

    `habits` says how often each mistake is made. Three answers in ten have a comment before every step, two have it
    before about half of them, the others have none. Nothing is run, so some of these problems are such as `problems`
    would refuse: their steps cancel, or do not matter.
    """
    _check("train", depths)
    rng = random.Random(f"corpus {seed}")
    streams = [drafts("train", rng, depth) for depth in depths]
    return (_sample(next(rng.choice(streams)), rng) for _ in range(count))


@functools.cache
def habits(operation: Operation) -> tuple[float, ...]:
    """How often the corpus has each code of an operation: the right one first, then its slips.

    Authors slip now and then everywhere; but a third of the operations most of them misremember, all in the same way.
    So a model of the corpus cannot be right merely by writing what is likeliest: it has to explore and be corrected.
    """
    slips = len(operation.codes) - 1
    if int.from_bytes(hashlib.sha256(operation.name.encode()).digest()[:8], "big") % 3:
        return (0.92, *(0.08 / slips,) * slips)
    return (0.35, 0.55, *(0.10 / (slips - 1),) * (slips - 1)) if slips > 1 else (0.4, 0.6)


def answer(draft: Draft, rng: random.Random, comments: float = 0.0) -> str:
    """A fenced program out of habit; each step has a comment with probability `comments`."""
    variants = [
        rng.choices(range(len(step.operation.codes)), habits(step.operation))[0] for step in draft.steps
    ]
    return f"```python\n{draft.program(variants, [rng.random() < comments for _ in draft.steps])}```"


def _sample(draft: Draft, rng: random.Random) -> tuple[Problem, str]:
    return draft.problem(), answer(draft, rng, rng.choices((1.0, 0.5, 0.0), (0.3, 0.2, 0.5))[0])


def _stream(split: Split, depth: int, rng: random.Random) -> Iterator[Problem]:
    """Different problems of one depth, until no more are found."""
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
