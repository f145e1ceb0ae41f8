"""Facts about how often values occur, and about the run of a list, tied to parameters: twice each but for one, a
majority, at least one of a kind, a mountain, sorted and rotated."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..reading.facts import StatedFact
from .places import Made, Place, Property, Values, at, leaves
from .shapes import SEQUENCES, Shape

CELLS = 4  # different values that the cells of a grid have, at most


def _lists(spots: Sequence[Place], shapes: Mapping[str, Shape], kinds: Sequence[str] = ("int",)) -> list[str]:
    """Flat lists that a fact speaks of; the only one there is, if it names none."""
    flat = [
        name for name, shape in shapes.items()
        if shape.kind == "list" and shape.item is not None and shape.item.kind in kinds
    ]  # fmt: skip
    named = [spot.parameter for spot in spots if not spot.length and spot.parameter in flat]
    return list(dict.fromkeys(named)) or (flat if len(flat) == 1 else [])


def _times(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """Each value occurs so many times, but for some that occur once."""
    times, singles = fact.value
    strings = [spot.parameter for spot in spots if shapes[spot.parameter].kind == "str"]
    for name in strings or _lists(spots, shapes):

        def holds(values: Values, name: str = name) -> bool:
            counts = list(Counter(values[name]).values())
            return counts.count(1) == singles and counts.count(times) == len(counts) - singles

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            found = list(dict.fromkeys(values[name]))
            kept = found[: max(1, singles + max(0, len(values[name]) - singles) // times)]
            new = kept[:singles] + times * kept[singles:]
            rng.shuffle(new)
            values[name] = "".join(new) if isinstance(values[name], str) else new

        yield Property("times", fact.text, holds, mend)


def _majority(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """One value has more than half of the places."""
    for name in _lists(spots, shapes):

        def holds(values: Values, name: str = name) -> bool:
            return 2 * max(Counter(values[name]).values(), default=0) > len(values[name])

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            new = values[name]
            if new:
                most, least = rng.choice(new), len(new) // 2 + 1
                for n in rng.sample(range(len(new)), rng.choice([least, least, rng.randint(least, len(new))])):
                    new[n] = most

        yield Property("majority", fact.text, holds, mend)


def _frequency(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """No value occurs more often."""
    for name in _lists(spots, shapes):

        def holds(values: Values, name: str = name) -> bool:
            return max(Counter(values[name]).values(), default=0) <= fact.value

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            seen: Counter[Any] = Counter()
            new = []
            for one in values[name]:
                seen[one] += 1
                if seen[one] <= fact.value:
                    new.append(one)
            values[name] = new

        yield Property("frequency", fact.text, holds, mend)


def _at_least(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """So many cells of a kind. Which kind is left open, so each that all tests have so often is kept as often."""
    grids = [
        name for name, shape in shapes.items()
        if shape.kind == "list" and shape.pool and len({repr(one) for one in leaves(shape.pool)}) <= CELLS
    ]  # fmt: skip
    named = [spot.parameter for spot in spots if spot.parameter in grids]
    for name in named or (grids if len(grids) == 1 else []):
        counts = [Counter(map(repr, leaves(one))) for one in shapes[name].pool]
        kept = [one for one in counts[0] if all(count[one] >= fact.value for count in counts)]
        if not kept:
            continue

        def holds(values: Values, name: str = name, kept: Sequence[str] = kept) -> bool:
            count = Counter(map(repr, leaves(values[name])))
            return all(count[one] >= fact.value for one in kept)

        yield Property("at_least", fact.text, holds)


def _different_letters(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """No character twice in a text, or in any text of a list."""
    for name in dict.fromkeys(spot.parameter for spot in spots):
        shape = shapes[name]
        if shape.kind != "str" and not (shape.kind == "list" and shape.item is not None and shape.item.kind == "str"):
            continue

        def holds(values: Values, name: str = name) -> bool:
            texts = [values[name]] if isinstance(values[name], str) else values[name]
            return all(len(set(one)) == len(one) for one in texts)

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            value = values[name]
            values[name] = _once(value) if isinstance(value, str) else list(map(_once, value))

        yield Property("different_letters", fact.text, holds, mend)


def _once(text: str) -> str:
    return "".join(dict.fromkeys(text))


def _mirrored(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A text whose letters make a palindrome in some order."""
    for name in dict.fromkeys(spot.parameter for spot in spots if shapes[spot.parameter].kind == "str"):

        def holds(values: Values, name: str = name) -> bool:
            return sum(count % 2 for count in Counter(values[name]).values()) <= 1

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            text = values[name]
            new = list(text[: len(text) // 2] * 2 + text[len(text) // 2 : len(text) // 2 + len(text) % 2])
            rng.shuffle(new)
            values[name] = "".join(new)

        yield Property("mirrored", fact.text, holds, mend)


def _not_member(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A value that a list does not have."""
    inside = str(fact.value)
    for spot in spots:
        if inside not in shapes or inside == spot.parameter or spot.length or shapes[inside].kind not in SEQUENCES:
            continue

        def holds(values: Values, spot: Place = spot) -> bool:
            return not any(one in values[inside] for one in at(values, spot))

        def mend(rng: random.Random, values: Values, spot: Place = spot) -> None:
            held = at(values, spot)
            values[inside] = [one for one in values[inside] if one not in held]

        yield Property("not_member", fact.text, holds, mend)


# --- the run of a list


def _mountain(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for name in _lists(spots, shapes):
        yield Property("mountain", fact.text, partial(_is_mountain, name), partial(_pile_up, name))


def _is_mountain(name: str, values: Values) -> bool:
    held = values[name]
    top = held.index(max(held))
    rises, falls = itertools.pairwise(held[: top + 1]), itertools.pairwise(held[top:])
    return 0 < top < len(held) - 1 and all(a < b for a, b in rises) and all(a > b for a, b in falls)


def _pile_up(name: str, rng: random.Random, values: Values) -> None:
    held = values[name]
    if len(held) > 2 and not _is_mountain(name, values):
        low, high = min(held), max(held)
        top = rng.choice([1, len(held) - 2, rng.randint(1, len(held) - 2)])
        longer = max(top, len(held) - 1 - top)
        pool = range(low, max(high, low + longer) + 1)
        left, right = (sorted(rng.sample(pool[:-1], count)) for count in (top, len(held) - 1 - top))
        values[name] = [*left, pool[-1], *right[::-1]]


def _rotated(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for name in _lists(spots, shapes):
        yield Property("rotated", fact.text, partial(_is_rotated, name), partial(_rotate, name))


def _is_rotated(name: str, values: Values) -> bool:
    held = values[name]
    return sum(a > b for a, b in zip(held, [*held[1:], *held[:1]], strict=True)) <= 1


def _rotate(name: str, rng: random.Random, values: Values) -> None:
    held = sorted(values[name])
    cut = rng.randint(0, len(held))
    values[name] = held[cut:] + held[:cut]


# --- shapes of tables


def symmetric(table: str, diagonal: int | None, text: str) -> Property:
    """A table that is the same along both sides of its diagonal, which may be given."""

    def holds(values: Values) -> bool:
        rows = values[table]
        return all(rows[i][j] == rows[j][i] for i in range(len(rows)) for j in range(i))

    def mend(rng: random.Random, values: Values) -> None:
        rows = values[table]
        if any(len(row) != len(rows) for row in rows):
            return
        for i, row in enumerate(rows):
            for j in range(i):
                row[j] = rows[j][i]
            if diagonal is not None:
                row[i] = diagonal

    return Property("symmetric", text, holds, mend)


MAKERS = {
    "times": _times,
    "majority": _majority,
    "frequency": _frequency,
    "at_least": _at_least,
    "different_letters": _different_letters,
    "mirrored": _mirrored,
    "not_member": _not_member,
    "mountain": _mountain,
    "rotated": _rotated,
}
