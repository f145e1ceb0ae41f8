"""Values beyond what the tests of a problem show: of the same types, otherwise anything.

No test may be made of them, since nothing says that the problem allows them. They only show which mutants can be told
from the reference at all: one that answers as the reference does even here is taken for equivalent (equivalents.py).
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import Any

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + "   \n"


def beyond(rng: random.Random, value: Any, constants: Sequence[int], words: Sequence[str]) -> Any:
    """Another value of the same type, or now and then the same."""
    if rng.random() < 0.15:
        return value
    match value:
        case bool():
            return rng.random() < 0.5
        case int():
            return _number(rng, value, constants)
        case float():
            return rng.choice([0.0, -value, 2 * value, value + 0.5, float(_number(rng, int(value), constants))])
        case str():
            return _text(rng, value, words)
        case list():
            return _list(rng, value, constants, words)
        case dict():
            return {key: beyond(rng, one, constants, words) for key, one in value.items() if rng.random() < 0.9}
    return value


def _number(rng: random.Random, value: int, constants: Sequence[int]) -> int:
    match rng.randrange(9):
        case 0:
            return rng.choice([0, 1, -1, 2, 3])
        case 1:
            return -value
        case 2:
            return value + rng.choice([-2, -1, 1, 2])
        case 3 if constants:
            return rng.choice(constants) + rng.choice([-1, 0, 0, 1])
        case 4:
            return value * rng.choice([2, 3, 10])
        case 5:
            return rng.randint(-20, 20)
        case 6:
            return int(2 ** rng.uniform(0, 40))
        case 7:
            return rng.randint(-1000, 1000)
    return rng.randint(0, max(10, 2 * abs(value)))


def _text(rng: random.Random, value: str, words: Sequence[str]) -> str:
    at = rng.randint(0, len(value))
    match rng.randrange(9):
        case 0 if words:
            return rng.choice(words)
        case 1 if words:
            return value[:at] + rng.choice(words) + value[at:]
        case 2:
            return value[:at] + rng.choice(CHARACTERS) + value[at:]
        case 3:
            return value[:at] + value[at + 1 :]
        case 4:
            return value[:at] + rng.choice(value or "a") + value[at + 1 :]
        case 5:
            return value[at:] + value[:at]
        case 6:
            return rng.choice([value.swapcase(), value[::-1], value * 2, value[:at], ""])
        case 7:
            return "".join(rng.choices(CHARACTERS, k=rng.randint(1, 14)))
    return value[:at] + rng.choice(CHARACTERS) + value[at + 1 :]


def _list(rng: random.Random, value: list[Any], constants: Sequence[int], words: Sequence[str]) -> list[Any]:
    new = list(value)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(new)) if new else 0
        match rng.randrange(7):
            case 0:
                del new[at : at + 1]
            case 1 if new:
                new.insert(at, new[rng.randrange(len(new))])
            case 2:
                rng.shuffle(new)
            case 3:
                new = new[:at]
            case 4:
                new.reverse()
            case _ if new:
                new[at] = beyond(rng, new[at], constants, words)
    return new
