"""Values to draw: numbers, strings, lists, brackets; and the tests for each. Trees and graphs are in trees.py.

Small values that tie, repeat, ascend or alternate tell more programs apart than large random ones, so every list is
drawn in a style of its own. Everything follows from the `rng` that is given.
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable, Sequence
from typing import Any

Rng = random.Random


# --- numbers


def integer(rng: Rng, low: int, high: int, size: float) -> int:
    """A number: mostly small or at an end, more often anywhere for larger sizes."""
    if low >= high:
        return low
    near = min(max(0, low), high)
    pick = rng.random()
    if pick < 0.5 - 0.3 * size:
        return min(high, near + rng.randint(0, 5))
    if pick < 0.65 - 0.3 * size:
        return rng.choice([low, min(high, low + 1), near, max(low, near - 1)])
    if pick < 0.75:
        return rng.randint(low, high) if size > 0.5 else rng.randint(max(low, near - 20), min(high, near + 20))
    if pick < 0.82:
        return rng.choice([high, high - 1, low])
    span = rng.uniform(0, 1)  # any order of magnitude
    if low < 0 and rng.random() < 0.4:
        return max(low, near - int(max(1, near - low) ** span))
    return min(high, near + int(max(1, high - near) ** span))


def window(rng: Rng, low: int, high: int, size: float) -> tuple[int, int]:
    """A part of a range: a few values at an end or around 0, a middling part, or all of it."""
    pick = rng.random()
    if high - low <= 2 or pick < 0.15 + 0.35 * size:
        return low, high
    width = rng.choice([1, 1, 2, 3, 4, 6, 9, 20, 100])
    anchor = min(max(0, low), high)
    if pick > 0.93:
        return max(low, high - width), high
    if pick > 0.88:
        return low, min(high, low + width)
    if low < 0 and pick > 0.55:
        half = max(1, width // 2)
        return max(low, anchor - half), min(high, anchor + half)
    return anchor, min(high, anchor + width)


def integers(rng: Rng, count: int, low: int, high: int, size: float = 0.3) -> list[int]:
    """A list of numbers in one of many styles."""
    if count <= 0:
        return []
    a, b = window(rng, low, high, size)
    style = rng.choice(
        ["random"] * 6
        + ["equal", "two", "ascending", "descending", "alternating", "runs", "outlier", "peak", "range", "halves"]
    )
    if style == "equal":
        return [rng.randint(a, b)] * count
    if style == "two":
        pair = [rng.randint(a, b), rng.randint(a, b)]
        return [rng.choice(pair) for _ in range(count)]
    if style == "alternating":
        pair = [rng.randint(a, b), rng.randint(a, b)]
        return [pair[n % 2] for n in range(count)]
    if style == "range":
        start = rng.randint(a, b)
        return [low + (start - low + n) % (high - low + 1) for n in range(count)]
    values = [rng.randint(a, b) for _ in range(count)]
    match style:
        case "ascending":
            values.sort()
        case "descending":
            values.sort(reverse=True)
        case "runs":
            at = 0
            while at < count:
                length = rng.randint(1, max(2, count // 3))
                values[at : at + length] = [values[at]] * len(values[at : at + length])
                at += length
        case "outlier":
            values[rng.randrange(count)] = rng.choice([low, high])
        case "peak":
            values.sort()
            values = values[::2] + values[1::2][::-1]
        case "halves":
            half = values[: (count + 1) // 2]
            values = (half + (half[::-1] if rng.random() < 0.5 else half))[:count]
    return values


def distinct(rng: Rng, count: int, low: int, high: int, size: float = 0.3) -> list[int] | None:
    """Different numbers in random order; None if there are not as many."""
    if high - low + 1 < count:
        return None
    a, b = window(rng, low, high, size)
    if b - a + 1 < count:
        a = min(a, high - count + 1)
        b = min(high, a + count + rng.choice([-1, 0, 1, count // 2, count * 3]))
        b = max(b, a + count - 1)
    values = rng.sample(range(a, b + 1), count)
    match rng.randrange(6):
        case 0:
            values.sort()
        case 1:
            values.sort(reverse=True)
    return values


def decimals(rng: Rng, count: int, low: float, high: float, places: int = 2) -> list[float]:
    """Decimal fractions with few places."""
    style = rng.random()
    if style < 0.15:
        return [round(rng.uniform(low, high), places)] * count
    pool = [round(rng.uniform(low, high), places) for _ in range(3)] if style < 0.4 else None
    return [rng.choice(pool) if pool else round(rng.uniform(low, high), places) for _ in range(count)]


def length(rng: Rng, low: int, high: int, size: float) -> int:
    """A length for a size from 0 (the least) to 1 (the most)."""
    if high <= low:
        return low
    room = high - low
    if size > 0.98:
        return high - (rng.randint(0, room // 10) if rng.random() < 0.5 else 0)
    reach = max(1, int(min(room, max(2 + 14 * size, room**size))))
    if size > 0.55:  # on the way to the limits: about as long as asked for
        return low + reach - (rng.randint(0, reach // 10) if rng.random() < 0.5 else 0)
    return low + rng.randint(0, reach)


def is_prime(number: int) -> bool:
    return number > 1 and all(number % by for by in (2, 3, 5, 7, 11, 13) if by < number) and _no_divisor(number)


def _no_divisor(number: int) -> bool:
    return all(number % by for by in range(17, int(number**0.5) + 1, 2))


def prime_below(number: int) -> int:
    """The largest prime up to a number; 2 if there is none."""
    while number > 2 and not is_prime(number):
        number -= 1
    return max(2, number)


# --- strings


def letters(rng: Rng, alphabet: str) -> str:
    """A part of an alphabet: often two or three letters."""
    if len(alphabet) <= 2 or rng.random() < 0.2:
        return alphabet
    count = min(len(alphabet), rng.choice([1, 2, 2, 2, 3, 3, 4, 6]))
    if rng.random() < 0.5:
        start = rng.choice([0, 0, 0, len(alphabet) - count, rng.randrange(len(alphabet) - count + 1)])
        return alphabet[start : start + count]
    return "".join(rng.sample(alphabet, count))


def text(rng: Rng, count: int, alphabet: str, size: float = 0.3) -> str:
    """A string in one of many styles."""
    if count <= 0 or not alphabet:
        return ""
    part = letters(rng, alphabet)
    plain = "".join(rng.choices(part, k=count))
    match rng.randrange(14):
        case 0:
            return rng.choice(part) * count
        case 1:
            return "".join(itertools.islice(itertools.cycle(part[:2]), count))
        case 2:
            return "".join(sorted(plain))
        case 3:
            return "".join(sorted(plain, reverse=True))
        case 4:
            half = plain[: (count + 1) // 2]
            return half + half[: count // 2][::-1]
        case 5:
            block = plain[: rng.randint(1, max(1, count // 2))]
            return (block * (count // len(block) + 1))[:count]
        case 6:
            return "".join(char * rng.randint(1, 3) for char in plain)[:count]
        case 7:
            whole = rng.choice(part) * count
            at = rng.randrange(count)
            return whole[:at] + rng.choice(alphabet) + whole[at + 1 :]
        case 8:
            return "".join(rng.choices(alphabet, k=count))
    return plain


def from_other(rng: Rng, other: str, count: int) -> str:
    """A string made of another: a part of it, the same, shuffled, or with a change."""
    match rng.randrange(5):
        case 0:
            start = rng.randint(0, max(0, len(other) - count))
            return other[start : start + count].ljust(count, other[0])[:count]
        case 1:
            return other
        case 2:
            return "".join(rng.sample(other, len(other)))
        case 3:
            at = rng.randrange(len(other))
            return other[:at] + rng.choice(other) + other[at + 1 :]
    return "".join(rng.choice(other) for _ in range(count))


def alike(rng: Rng, old: str, new: str, as_long: bool) -> str:
    """A string that has to do with another one: equal, longer, shorter, turned round or shuffled."""
    if not isinstance(old, str) or not isinstance(new, str):
        return new
    match rng.choice([0, 3, 4, 5]) if as_long else rng.randrange(6):
        case 0:
            return old
        case 1:
            return old + new[:1]
        case 2:
            return old[:-1] or old
        case 3:
            return old[::-1]
        case 4:
            return "".join(rng.sample(old, len(old)))
    at = rng.randrange(len(old)) if old else 0
    return old[:at] + new[:1] + old[at + 1 :]


def brackets(rng: Rng, count: int, kinds: str = "()") -> str:
    """A balanced string of brackets, of the even number of characters below `count + 1`."""
    pairs = [kinds[n : n + 2] for n in range(0, len(kinds) - 1, 2)] or ["()"]
    out: list[str] = []
    waiting: list[str] = []
    left = count // 2
    deep = rng.choice([0.3, 0.5, 0.8])
    while left or waiting:
        if left and (not waiting or rng.random() < deep):
            pair = rng.choice(pairs)
            out.append(pair[0])
            waiting.append(pair[1])
            left -= 1
        else:
            out.append(waiting.pop())
    return "".join(out)


def balanced(value: str) -> bool:
    """Whether brackets, if nothing else is looked at, open and close in order."""
    waiting = []
    closing = {"(": ")", "[": "]", "{": "}", "<": ">"}
    for char in value:
        if char in closing:
            waiting.append(closing[char])
        elif char in closing.values() and (not waiting or waiting.pop() != char):
            return False
    return not waiting


# --- order


def ordered(values: Sequence[Any], order: str, key: Callable[[Any], Any] | None = None) -> bool:
    """Whether a list is "ascending", "strictly ascending", "descending" or "strictly descending"."""
    keys = [key(one) for one in values] if key else list(values)
    if "descending" in order:
        keys.reverse()
    if "strictly" in order:
        return all(a < b for a, b in itertools.pairwise(keys))
    return all(a <= b for a, b in itertools.pairwise(keys))


def repeated(values: Sequence[Any]) -> bool:
    """Whether a value stands in a list twice."""
    keys = [_key(one) for one in values]
    return len(set(keys)) < len(keys)


def _key(value: Any) -> Any:
    return tuple(map(_key, value)) if isinstance(value, list) else (value, isinstance(value, bool))


PRINTABLE = "".join(sorted(set(string.printable) - set("\t\n\r\x0b\x0c")))
