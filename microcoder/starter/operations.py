"""Values to test programs with: a few edge cases for each type, then an endless mixture."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        """Write the arguments into the code; variant 0 is right."""
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
    """Give the edge cases of a type, then draw values without end. Numbers are small, lists and texts short."""
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
