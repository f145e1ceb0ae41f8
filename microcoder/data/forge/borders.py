"""Borders: neighbouring inputs with different answers, for programs that are only wrong close to such a change.

    "yes" for 12 7 5, "no" for 12 8 5: a program that takes 3.14 for pi may differ at one of the two, and nowhere else

Two inputs of the same form with different answers are mixed number by number until the answer changes; then the number
that changes it is halved. Only inputs of few numbers are tried, and only where few different answers are given: where
every input has an answer of its own there are no borders. An answer that a single point has (two numbers are equal) is
left out: right programs that round in other ways may differ there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

MOST_NUMBERS = 8  # of an input
LANES = 64  # borders that are looked for at once
ROUNDS = 40  # halvings
MOST_FORMS = 2

Form: TypeAlias = tuple[str, ...]  # what stands around the numbers
Row: TypeAlias = list[tuple[list[int], str]]  # numbers, and the answer to them
Ask: TypeAlias = Callable[[list[str]], list[str | None]]  # the answers to inputs; None where there is none


def borders(known: Sequence[tuple[str, str]], ask: Ask, valid: Callable[[str], bool], rng: random.Random) -> list[str]:
    """Inputs on both sides of borders, from known inputs with their answers."""
    forms: dict[Form, Row] = {}
    for given, answer in known:
        parts = re.split(r"(-?\b\d+\b)", given)
        if 3 <= len(parts) <= 2 * MOST_NUMBERS + 1 and all(len(word) < 19 for word in parts[1::2]):
            forms.setdefault(tuple(parts[::2]), []).append(([int(word) for word in parts[1::2]], answer))
    rows = [(form, row) for form, row in forms.items() if 1 < len({a for _, a in row}) <= max(2, len(row) // 4)]
    lanes: list[_Lane] = []
    for form, row in rows[:MOST_FORMS]:
        row = [*row, *_spread(form, row, ask, valid, rng)]
        for _ in range(4 * LANES):
            one, other = rng.sample(row, 2)
            if one[1] != other[1] and len(lanes) < LANES:
                lanes.append(_Lane(form, *one, *other))
    _narrow(lanes, lambda lane: lane.mixed(), ask, valid)
    for _ in range(ROUNDS):
        if not _narrow(lanes, lambda lane: lane.halved(), ask, valid):
            break
    done = [lane for lane in lanes if lane.done]
    beyond = [text for lane in done for text in (lane.text(lane.before), lane.text(lane.after)) if valid(text)]
    answers = dict(zip(beyond, ask(beyond), strict=True)) if beyond else {}
    ends = [text for lane in done for text in lane.firm(answers)]
    return list(dict.fromkeys(ends))


def _spread(form: Form, row: Row, ask: Ask, valid: Callable[[str], bool], rng: random.Random) -> Row:
    """More inputs of a form with their answers: numbers anywhere between the smallest and the largest of each place."""
    ends = [(min(column), max(column)) for column in zip(*(numbers for numbers, _ in row), strict=True)]
    made = [[rng.randint(low, high) for low, high in ends] for _ in range(2 * LANES)]
    made = [numbers for numbers in made if valid(_written(form, numbers))]
    answers = ask([_written(form, numbers) for numbers in made]) if made else []
    return [(numbers, answer) for numbers, answer in zip(made, answers, strict=True) if answer is not None]


def _written(form: Form, numbers: list[int]) -> str:
    return form[0] + "".join(f"{number}{part}" for number, part in zip(numbers, form[1:], strict=True))


class _Lane:
    """Two inputs between which the answer changes."""

    def __init__(self, form: Form, one: list[int], answer: str, other: list[int], changed: str) -> None:
        self.form, self.one, self.answer, self.other, self.changed = form, one, answer, other, changed
        self.dead = False

    @property
    def done(self) -> bool:
        return not self.dead and sum(abs(a - b) for a, b in zip(self.one, self.other, strict=True)) == 1

    def text(self, numbers: list[int]) -> str:
        return _written(self.form, numbers)

    @property
    def before(self) -> list[int]:
        return [2 * a - b for a, b in zip(self.one, self.other, strict=True)]

    @property
    def after(self) -> list[int]:
        return [2 * b - a for a, b in zip(self.one, self.other, strict=True)]

    def firm(self, answers: Mapping[str, str | None]) -> list[str]:
        """The two, without one whose answer is given at this point alone: there rounding may decide."""
        sides = (self.one, self.before, self.answer), (self.other, self.after, self.changed)
        return [self.text(side) for side, beyond, answer in sides if answers.get(self.text(beyond)) == answer]

    def mixed(self) -> list[list[int]]:
        """From one input to the other, a number at a time."""
        return [self.other[:n] + self.one[n:] for n in range(1, len(self.one))]

    def halved(self) -> list[list[int]]:
        middle = [(a + b) // 2 for a, b in zip(self.one, self.other, strict=True)]
        return [] if self.dead or self.done else [middle]

    def take(self, steps: list[list[int]], answers: list[str | None]) -> None:
        """Go on between the two steps where the answer changes first."""
        for step, answer in zip(steps, answers, strict=True):
            if answer is None:
                self.dead = True
                return
            if answer != self.answer:
                self.other, self.changed = step, answer
                return
            self.one = step


def _narrow(
    lanes: list[_Lane], steps: Callable[[_Lane], list[list[int]]], ask: Ask, valid: Callable[[str], bool]
) -> bool:
    """Move all lanes on by one question; whether there was any."""
    asked: dict[str, str | None] = {}
    planned = [(lane, steps(lane)) for lane in lanes if not lane.dead]
    for lane, moves in planned:
        texts = [lane.text(move) for move in moves]
        if all(valid(text) for text in texts):
            asked.update(dict.fromkeys(texts))
        else:
            lane.dead = True
    if not asked:
        return False
    asked.update(zip(asked, ask(list(asked)), strict=True))
    for lane, moves in planned:
        if moves and not lane.dead:
            lane.take(moves, [asked[lane.text(move)] for move in moves])
    return True
