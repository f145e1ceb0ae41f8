"""A draft: a type-correct sequence of operations with their arguments and wording, but no tests yet.

Drawing one costs microseconds, so text to train a model on is made of drafts; `build` turns one into a problem.

The split is by composition, the tuple of the operations' names: a fixed hash sends a fifth of them to `test`, so no
composition is in both, whatever the seed. A composition of one operation is always in `train`: the test split asks
whether known steps can be put together in new ways, so every step has to be known.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..schema import Problem, Test
from .operations import PARAMETERS, VARIABLES, Operation, operations, taking

Split = Literal["train", "test"]
DEPTHS = (1, 2, 3, 4, 5, 6)
LABELS = {1: "easy", 2: "easy", 3: "medium", 4: "medium", 5: "hard", 6: "hard"}
STDIN_SHARE = 0.18  # of the problems that do not take words
_NOUNS = {
    "int": "an integer n",
    "text": "a string s",
    "numbers": "a list of integers xs",
    "words": "a list of words ws",
}
_LINES = {"int": "an integer n", "text": "a line of text s", "numbers": "a line of integers xs"}
_READS = {"int": "int(input())", "text": "input()", "numbers": "[int(x) for x in input().split()]"}


class DraftStep(NamedTuple):
    operation: Operation
    arguments: tuple[int | str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A task without tests: the kind of problem, and the steps that solve it."""

    kind: Literal["function", "stdin"]
    steps: tuple[DraftStep, ...]

    @property
    def takes(self) -> str:
        return self.steps[0].operation.takes

    @property
    def gives(self) -> str:
        return self.steps[-1].operation.gives

    @property
    def composition(self) -> tuple[str, ...]:
        return tuple(step.operation.name for step in self.steps)

    @property
    def arguments(self) -> tuple[tuple[int | str, ...], ...]:
        return tuple(step.arguments for step in self.steps)

    @property
    def statement(self) -> str:
        if self.kind == "function":
            head = f"Write solve({VARIABLES[self.takes]}) for {_NOUNS[self.takes]}. Return the result of:"
        else:
            spaces = ", separated by spaces," if self.gives in ("numbers", "words") else ""
            head = f"Read {_LINES[self.takes]}. Print{spaces} the result of:"
        return "\n- ".join([head, *(step.says for step in self.steps)])

    def program(self, variants: Sequence[int] = (), comments: Sequence[bool] = ()) -> str:
        """Write a complete program. `variants`: the code of each step (0: right); `comments`: steps with a comment."""
        lines: list[str] = []
        for n, (operation, arguments, says) in enumerate(self.steps):
            if comments and comments[n]:
                lines.append(f"# {says}")
            lines += operation.text(variants[n] if variants else 0, arguments).split("\n")
        source, result = VARIABLES[self.takes], VARIABLES[self.gives]
        if self.kind == "function":
            return "\n    ".join([f"def solve({source}):", *lines, f"return {result}"]) + "\n"
        star = "*" if self.gives in ("numbers", "words") else ""
        return "\n".join([f"{source} = {_READS[self.takes]}", *lines, f"print({star}{result})"]) + "\n"

    def problem(self, tests: Sequence[Test] = (), solutions: Sequence[dict[str, str]] = ()) -> Problem:
        """Make a Problem. Without tests it has all that a prompt needs. The id is a digest of the statement."""
        statement, depth = self.statement, len(self.steps)
        return Problem(
            id="starter/" + hashlib.sha256(statement.encode()).hexdigest()[:16],
            kind=self.kind,
            statement=statement,
            entry_point="solve" if self.kind == "function" else "",
            tests=list(tests),
            time_limit_s=1.0,
            difficulty=LABELS[depth],
            difficulty_score=depth,
            source="starter",
            language="en",
            licence="Apache-2.0",
            tags=[*dict.fromkeys(step.operation.family for step in self.steps), f"depth:{depth}"],
            solutions=list(solutions),
            lineage=list(self.composition),
        )


def split_of(composition: tuple[str, ...]) -> Split:
    """The split of a composition: a fixed hash of its names, the same for every seed."""
    digest = hashlib.sha256(" ".join(composition).encode()).digest()
    return "test" if len(composition) > 1 and int.from_bytes(digest[:8], "big") % 5 == 0 else "train"


def draw(rng: random.Random, depth: int) -> Draft:
    """Draw a draft of either split. No operation occurs twice; each takes the type that the one before it gives."""
    chosen: list[Operation] = []
    steps = []
    for _ in range(depth):
        fitting = taking(chosen[-1].gives) if chosen else tuple(operations().values())
        chosen.append(rng.choice([operation for operation in fitting if operation not in chosen]))
        arguments = tuple(rng.choice(PARAMETERS[name]) for name in chosen[-1].parameters)
        says = rng.choice(chosen[-1].says).format(**dict(zip(chosen[-1].parameters, arguments, strict=True)))
        steps.append(DraftStep(chosen[-1], arguments, says))
    stdin = chosen[0].takes in _READS and rng.random() < STDIN_SHARE
    return Draft("stdin" if stdin else "function", tuple(steps))


def drafts(split: Split, rng: random.Random, depth: int) -> Iterator[Draft]:
    """Draw drafts of one split and depth, without end."""
    while True:
        draft = draw(rng, depth)
        if split_of(draft.composition) == split:
            yield draft
