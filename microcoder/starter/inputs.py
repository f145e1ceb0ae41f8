"""Values to test programs with: a few edge cases for each type, then an endless mixture."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

from .operations import PARAMETERS, Value

EDGES: dict[str, list[Value]] = {
    "int": [0, 1, -7, 10, 99],
    "text": ["", "a", "see  the tree", "Noon", "7 or 42"],
    "numbers": [[], [5], [-3, -3], [4, 4, 9, 0], [10, 7, -2, 10, 3]],
    "words": [[], ["a"], ["tin", "tin"], ["Ira", "net", "list", "o"]],
}
_BOUNDS = [value for value in PARAMETERS["m"] if isinstance(value, int)]
_LETTERS = "aabceeiilnnoorsstttux"
_CHARACTERS = _LETTERS + "AEST   12357"


def inputs(type_name: str, rng: random.Random) -> Iterator[Value]:
    """The edge cases, then values drawn without end. Numbers are small, lists and texts short."""
    draw = _DRAWS[type_name]
    return itertools.chain(EDGES[type_name], (draw(rng) for _ in itertools.repeat(None)))


def _number(rng: random.Random) -> int:
    """Mostly near 0; often one of the bounds, since a slip there shows at the bound itself only."""
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
