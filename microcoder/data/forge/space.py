"""The inputs that a problem allows: what every generator of inputs shares.

Candidate   an input that was made, and by what
Space       draws inputs, changes inputs, and tells whether an input keeps to the constraints
NoSpace     the reason why no inputs can be made for a problem
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input for a program, and where it comes from."""

    input: str  # as in Test.input: the text of stdin, or a JSON list of arguments (function and assert problems)
    by: str  # the generator: "small", "random", "limit", "mutated: duplicates", "example"
    seed: int = 0


class Space(Protocol):
    """The inputs that a problem allows. `draw` and `near` only return inputs that have no fault."""

    bounded_by: str  # "constraints", or "hull" (of the existing tests) where no constraints can be read
    unread: list[str]  # what could not be read, in words, for the report

    def draw(self, rng: random.Random, size: float) -> Candidate | None:
        """A new input; size 0 is the smallest, 1 is at the limits. None where several tries gave nothing."""
        ...

    def near(self, input: str, rng: random.Random) -> Candidate | None:
        """A valid input with a small change: size, extremes, duplicates, order, signs, empty."""
        ...

    def fault(self, input: str) -> str:
        """The constraint that an input breaks, in words; "" if it breaks none."""
        ...

    def size_of(self, input: str) -> float:
        """How large an input is, from 0 to 1 (at the limits)."""
        ...


@runtime_checkable
class Calls(Protocol):
    """What the space of an assert problem has besides."""

    def call(self, input: str) -> str:
        """The call of the problem's function with this input, as Python source."""
        ...


class NoSpace(Exception):
    """No inputs can be made for a problem; the message says why, in words for the report."""
