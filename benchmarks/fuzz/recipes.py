"""Hostile bytes as small data: a recipe is JSON that expands to megabytes and shrinks by halves.

    ["[", ["9,", 1000000], "9]"]                          a text, or [text, times]; in place of a text, a recipe
    [["%d,", 1000, 0, 2305843009213693951]]               [text, times, start, step]: the text with each number in turn

Texts are Latin-1, one character a byte, so a recipe can spell any bytes. A case is a JSON object whose lists may hold
recipes; what is found wrong with one is looked for again in simpler ones, until none of them shows it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

Recipe = list[Any]
Case = dict[str, Any]


class Malformed(ValueError):
    """No recipe, or one of too many bytes."""


def expand(recipe: Recipe, most: int) -> bytes:
    """The bytes; Malformed if there would be more than `most`."""
    parts: list[bytes] = []
    size = 0
    for piece in recipe:
        part = _piece(piece, most - size)
        size += len(part)
        if size > most:
            raise Malformed(f"over {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _piece(piece: Any, most: int) -> bytes:
    if isinstance(piece, str):
        return piece.encode("latin-1")
    match piece:
        case [(str() | list()) as what, int(times)] if times >= 0:
            once = what.encode("latin-1") if isinstance(what, str) else expand(what, most)
            if len(once) * times > most:
                raise Malformed(f"over {most} bytes")
            return once * times
        case [str(text), int(times), int(start), int(step)] if 0 <= times <= most:
            pattern = text.encode("latin-1")
            try:
                return b"".join([pattern % (start + n * step) for n in range(times)])
            except (TypeError, ValueError, OverflowError) as error:
                raise Malformed(str(error)) from None
    raise Malformed(f"no piece of a recipe: {piece!r:.80}")


def as_python(recipe: Recipe) -> str:
    """A Python expression for the same bytes, for programs that write them."""
    parts = []
    for piece in recipe:
        if isinstance(piece, str):
            parts.append(repr(piece.encode("latin-1")))
        elif len(piece) == 2:
            what = repr(piece[0].encode("latin-1")) if isinstance(piece[0], str) else f"({as_python(piece[0])})"
            parts.append(f"{what}*{piece[1]}")
        else:
            text, times, start, step = piece
            parts.append(f"b''.join({text.encode('latin-1')!r} % ({start}+n*{step}) for n in range({times}))")
    return "+".join(parts) or "b''"


def mutated(draw: random.Random, recipe: Recipe) -> Recipe:
    """Nearly the same: pieces cut, doubled, swapped, put in, or with other bytes in them."""
    out = list(recipe)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(out)) if out else 0
        way = draw.randrange(6)
        if way == 0 and out:
            del out[at]
        elif way == 1 and out:
            out.insert(at, out[draw.randrange(len(out))])
        elif way == 2:
            out.insert(
                at, draw.choice(("\0", " ", "\n", "9", "-", "\xff", "[", "}", '"', ",", "e9", "\\", "\xed\xa0\x80"))
            )
        elif way == 3 and out and isinstance(out[at], list):
            out[at] = [out[at][0], max(0, out[at][1] + draw.choice((-1, 1, out[at][1]))), *out[at][2:]]
        elif out and isinstance(out[at], str) and out[at]:
            text = out[at]
            cut = draw.randrange(len(text))
            new = chr(draw.randrange(256)) if way == 4 else ""
            out[at] = text[:cut] + new + text[cut + 1 :]
    return out


def shrunk(case: Case, fields: tuple[str, ...], shows: Callable[[Case], bool], seconds: float = 20.0) -> Case:
    """The simplest case found, within so many seconds, that still `shows` what is wrong with this one."""
    end, found = time.monotonic() + seconds, case
    smaller = True
    while smaller:
        smaller = False
        for name in fields:
            for value in _simpler(found.get(name)):
                if time.monotonic() > end:
                    return found
                tried = {**found, name: value}
                if shows(tried):
                    found, smaller = tried, True
                    break
    return found


def _simpler(value: Any) -> Iterator[Any]:
    """Simpler values, the simplest first; a list that stands for something else may become malformed."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int) and abs(value) > 1:
        yield from (1, value // 2, value - value // 8) if value > 8 else (value - 1,)
    elif isinstance(value, str) and value:
        half = len(value) // 2
        yield from (value[half:], value[:half], value[1:], value[:-1]) if half else ("",)
    elif isinstance(value, list):
        half = len(value) // 2
        if half > 1:
            yield from (value[half:], value[:half])
        for n in range(len(value)):
            yield value[:n] + value[n + 1 :]
        for n, item in enumerate(value):
            yield from ([*value[:n], other, *value[n + 1 :]] for other in _simpler(item))
    elif isinstance(value, dict):
        for name in value:
            yield {k: v for k, v in value.items() if k != name}
        for name, item in value.items():
            yield from ({**value, name: other} for other in _simpler(item))
