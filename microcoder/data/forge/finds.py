"""Finds: inputs that the references label, with what they kill; the way to the largest, and the choice of a small set.

The small set kills as much as all finds do, by greedy cover; then it takes in inputs that differ from those it has, for
wrong programs that nobody has seen, and a few at the limits, for programs that are too slow.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .label import Labelled
from .space import Candidate

SMALL = 4_000  # characters: rivals only run on inputs up to this, large ones are for time
STEP = 0.05  # sizes that differ by no more than this are alike
BOLD = 3  # draws beyond the size at which the reference takes long
DRAW_S, LEAST_S = 0.5, 0.001  # seconds to draw a large input, about; less than this cannot be measured


@dataclass(slots=True)
class Find:
    """An input that the references label, and the rivals that it kills."""

    candidate: Candidate
    label: Labelled
    kills: set[int] = field(default_factory=set)  # numbers of rivals
    size: float = 0.0
    old: bool = False  # one of the tests that the problem came with
    limit: bool = False  # drawn as large as the references allow, to tell programs by their time


# --- the largest inputs


class Climb:
    """The way up to the largest inputs: which size to try next."""

    def __init__(self, longest: int, longest_s: float) -> None:
        self.aims = math.log(longest), math.log(0.7 * longest_s), math.log(DRAW_S)
        self.size, self.ceiling = 0.6, 1.01  # the size to try; the least that was too much
        self.bold = 0  # tries beyond the top: a reference may be quicker on an input of another kind
        self.steps: list[tuple[float, tuple[float, ...]]] = []  # sizes that went well; logarithms of what has an aim
        self.finds: list[tuple[float, Find]] = []

    @property
    def top(self) -> list[Find]:
        """What was found at the largest size that went well."""
        high = max((size for size, _ in self.finds), default=0.0)
        return [find for size, find in self.finds if size >= high - STEP]

    def done(self, wanted: int) -> bool:
        """Whether enough was found at the top; if so, and if time is what ends the way, go beyond it a few times."""
        if not self.finds:
            return self.size < 0.1
        high, now = self.steps[-1]
        if len(self.top) < wanted + 2 and not self.bold:
            return False
        if now[1] < self.aims[1] - 1 or high >= 1.0 or self.bold >= BOLD:
            return True
        self.bold += 1
        self.size = min(1.0, high + 0.08)
        return False

    def went_too_far(self) -> None:
        self.ceiling = min(self.ceiling, self.size)
        self._go()

    def went_well(self, find: Find, draw_s: float) -> None:
        self.finds.append((self.size, find))
        measured = len(find.candidate.input) + 1, max(find.label.cpu_s, LEAST_S), max(draw_s, LEAST_S)
        others = [step for step in self.steps if abs(step[0] - self.size) > 0.02]
        self.steps = sorted([*others, (self.size, tuple(map(math.log, measured)))])
        self._go()

    def _go(self) -> None:
        if not self.steps:
            self.size -= 0.15
            return
        (here, now), reach = self.steps[-1], 0.2
        if self.ceiling - here <= STEP:
            self.size = here
            return
        if len(self.steps) > 1:
            lower, then = self.steps[-2]
            growth = [max(0.1, (b - a) / (here - lower)) for a, b in zip(then, now, strict=True)]
            reach = min((aim - b) / rate for aim, b, rate in zip(self.aims, now, growth, strict=True))
        self.size = min(1.0, here + max(0.0, reach))
        if self.size >= self.ceiling:
            self.size = (here + self.ceiling) / 2


# --- the small set


def reduced(finds: Sequence[Find], most: int, large: int, room: int = 1 << 20) -> list[Find]:
    """A small set of new inputs that kills all that the whole does and that the old tests do not; then the diverse."""
    new = [find for find in finds if not find.old]
    chosen = largest(finds, min(large, most), room)
    new = [find for find in new if len(find.candidate.input) <= SMALL and not find.limit]
    covered = Counter(kill for find in finds if find.old for kill in find.kills)
    for depth in (1, 2, 3):  # each rival by one input, then by a second and a third where there are such
        while len(chosen) < (most if depth == 1 else 2 * most // 3):
            best = max(new, key=lambda find: _worth(find, covered, depth), default=None)
            if best is None or _worth(best, covered, depth)[0] == 0:
                break
            covered.update(best.kills)
            chosen.append(best)
            new.remove(best)
    groups: Counter[object] = Counter(mark for find in chosen for mark in _marks(find))
    while new and len(chosen) < most:
        best = min(new, key=lambda find: ([groups[mark] for mark in _marks(find)], -find.size))
        groups.update(_marks(best))
        chosen.append(best)
        new.remove(best)
    return chosen


def largest(finds: Sequence[Find], most: int, room: int) -> list[Find]:
    """Inputs at the limits: the one that holds most, then the longest of the others that find room with their answers.

    What an input holds is its length when compressed: a list of one number is long, and asks little of a program.
    Measured time would not do, since the same seed has to forge the same tests.
    """
    found = sorted((find for find in finds if find.limit), key=lambda find: -len(find.candidate.input))
    fullest = max(found, key=_content, default=None)
    found.sort(key=lambda find: find is not fullest)
    chosen: list[Find] = []
    for find in found:
        length = len(find.candidate.input) + len(find.label.output)
        if len(chosen) < most and (length <= room or not chosen):
            room -= length
            chosen.append(find)
    return chosen


def _content(find: Find) -> int:
    return len(zlib.compress(find.candidate.input.encode("utf-8", "replace"), 1))


def _worth(find: Find, covered: Counter[int], depth: int) -> tuple[int, int, int]:
    """Rivals that an input adds to those covered so often; then all that it kills; then how short it is."""
    return sum(covered[n] < depth for n in find.kills), len(find.kills), -len(find.candidate.input)


def _marks(find: Find) -> tuple[object, ...]:
    """What inputs should differ by, the most important first: kind of answer, generator and length, the answer."""
    output = find.label.output
    kind: object = output[0] if output[:1] in "-[{\"'(" else min(len(output), 3)
    if len(output) < 8 or output[:1] in "-":
        kind = (output[:1] if output[:1] in "-0TtFf" else kind, output in ("[]", '""', "0", "-1"))
    return kind, (find.candidate.by, min(len(find.candidate.input), SMALL).bit_length()), output
