"""The operations, values to test programs with, and drafts.

A draft is a type-correct sequence of operations with their arguments and wording, but no tests yet.

Drawing one takes microseconds, so text to pretrain a model is made from drafts; `build` turns one into a problem.

The split is by composition, the tuple of the operations' names: a fixed hash puts a fifth of them into `test`, so no
composition is in both splits, whatever the seed. A composition of one operation is always in `train`: the test split
measures whether a model can combine known steps in new ways, so every step has to be known.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..schema import Problem, Test

VARIABLES = {"int": "n", "text": "s", "numbers": "xs", "words": "ws"}
PARAMETERS: dict[str, tuple[int | str, ...]] = {
    "k": (2, 3, 4, 5, 6, 7, 8, 9),  # an amount
    "m": (10, 15, 20, 25, 30, 40, 50),  # a bound
    "i": (2, 3, 4),  # a length
    "c": tuple("aeilnorst"),  # a letter
    "p": tuple("-+*#"),  # a sign
}
_FOLDER = Path(__file__).parent / "tables"
_PARAMETER = re.compile(r"{(\w+)}")
Value = Any  # int, str, list[int] or list[str]
EDGES: dict[str, list[Value]] = {
    "int": [0, 1, -7, 10, 99],
    "text": ["", "a", "see  the tree", "Noon", "7 or 42"],
    "numbers": [[], [5], [-3, -3], [4, 4, 9, 0], [10, 7, -2, 10, 3]],
    "words": [[], ["a"], ["tin", "tin"], ["Ira", "net", "list", "o"]],
}
_BOUNDS = [value for value in PARAMETERS["m"] if isinstance(value, int)]
_LETTERS = "aabceeiilnnoorsstttux"
_CHARACTERS = _LETTERS + "AEST   12357"


class OperationError(ValueError):
    """A table that does not describe an operation; the message says which, why, and what to write instead."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A step from a value of type `takes` to one of type `gives`."""

    name: str
    family: str
    takes: str
    gives: str
    says: tuple[str, ...]
    codes: tuple[str, ...]  # the right code, then one for each slip
    parameters: tuple[str, ...]
    functions: tuple[Callable[..., Value], ...]  # of each code: function(value, *arguments)

    def text(self, variant: int, arguments: tuple[int | str, ...]) -> str:
        """Return the code with the arguments filled in; variant 0 is right."""
        return self.codes[variant].format(**dict(zip(self.parameters, map(json.dumps, arguments), strict=True)))


@functools.cache
def operations() -> dict[str, Operation]:
    """Read every operation, by name."""
    found: dict[str, Operation] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise OperationError(f"{path.name}: {name} is also in {found[name].family}.toml; give it another name")
            found[name] = read(name, path.stem, table)
    return found


@functools.cache
def taking(type_name: str) -> tuple[Operation, ...]:
    """List the operations that take a value of this type."""
    return tuple(operation for operation in operations().values() if operation.takes == type_name)


def read(name: str, family: str, table: dict[str, Any]) -> Operation:
    """Read the operation that a table describes."""
    where = f"{family}.toml: {name}"
    if set(table) != {"type", "says", "code", "slips"}:
        raise OperationError(f"{where} has {', '.join(table)}; it must have type, says, code and slips")
    takes, _, gives = table["type"].partition(" -> ")
    if takes not in VARIABLES or gives not in VARIABLES:
        raise OperationError(f'{where}: type is {table["type"]!r}; write "A -> B", each of {", ".join(VARIABLES)}')
    code = table["code"].strip("\n")
    parameters = tuple(dict.fromkeys(_PARAMETER.findall(code)))
    for unknown in set(parameters) - set(PARAMETERS):
        raise OperationError(f"{where}: {{{unknown}}} is no parameter; choose one of {', '.join(PARAMETERS)}")
    for sentence in table["says"]:
        if set(_PARAMETER.findall(sentence)) != set(parameters):
            raise OperationError(f"{where}: {sentence!r} must name the parameters of the code: {parameters}")
    codes = [code]
    for old, new in table["slips"]:
        if code.count(old) != 1:
            raise OperationError(f"{where}: {old!r} occurs {code.count(old)} times in the code; quote more of it")
        codes.append(code.replace(old, new))
    functions = tuple(_function(c, takes, gives, parameters) for c in codes)
    return Operation(name, family, takes, gives, tuple(table["says"]), tuple(codes), parameters, functions)


def _function(code: str, takes: str, gives: str, parameters: tuple[str, ...]) -> Callable[..., Value]:
    """Compile the code once. Parameters become arguments named `arg_k`, which no code uses as a variable."""
    body = code.format(**{p: f"arg_{p}" for p in parameters}).replace("\n", "\n    ")
    head = ", ".join([VARIABLES[takes], *(f"arg_{p}" for p in parameters)])
    scope: dict[str, Any] = {}
    exec(f"def step({head}):\n    {body}\n    return {VARIABLES[gives]}", scope)
    step: Callable[..., Value] = scope["step"]
    return step


def inputs(type_name: str, rng: random.Random) -> Iterator[Value]:
    """Yield the edge cases of a type, then random values without end. Numbers are small, lists and texts short."""
    draw = _DRAWS[type_name]
    return itertools.chain(EDGES[type_name], (draw(rng) for _ in itertools.repeat(None)))


def _number(rng: random.Random) -> int:
    """Draw a number near 0, and often one of the bounds: a slip such as > for >= shows at the bound only."""
    reach = rng.choice((0, 12, 12, 60, 60, 999))
    return rng.randint(-reach, reach) if reach else rng.choice(_BOUNDS)


def _text(rng: random.Random) -> str:
    return "".join(rng.choices(_CHARACTERS, k=rng.randint(1, 12)))


def _numbers(rng: random.Random) -> list[int]:
    reach = rng.choice((9, 12, 30, 60))
    return [rng.randint(-reach // 2, reach) for _ in range(rng.randint(1, 8))]


def _words(rng: random.Random) -> list[str]:
    return ["".join(rng.choices(_LETTERS, k=rng.randint(1, 6))) for _ in range(rng.randint(1, 5))]


_DRAWS: dict[str, Callable[[random.Random], Value]] = {
    "int": _number,
    "text": _text,
    "numbers": _numbers,
    "words": _words,
}


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
    """Return the split of a composition by a fixed hash of its names, the same for every seed."""
    digest = hashlib.sha256(" ".join(composition).encode()).digest()
    return "test" if len(composition) > 1 and int.from_bytes(digest[:8], "big") % 5 == 0 else "train"


def draw(rng: random.Random, depth: int) -> Draft:
    """Draw a random draft of either split. No operation occurs twice; each takes the type that the one before gives."""
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
