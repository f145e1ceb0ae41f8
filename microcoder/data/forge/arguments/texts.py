"""Facts about texts tied to parameters: alphabets, zeros and spaces at the ends, brackets, palindromes, times."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..reading.facts import StatedFact
from . import domains
from .places import Made, Place, Property, Values, at, leaves
from .shapes import Shape


def alphabet(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    allowed = set(fact.value)
    for spot in spots:
        if spot.length or "str" not in {part.kind for part in shapes[spot.parameter].walk()}:
            continue

        def holds(values: Values, spot: Place = spot) -> bool:
            return all(allowed.issuperset(one) for one in leaves(at(values, spot)) if isinstance(one, str))

        yield Property("alphabet", fact.text, holds, places=(spot,), value=fact.value)


def _no_leading_zero(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    if not spots:
        spots = [Place(name) for name, shape in shapes.items() if shape.kind in ("str", "links") or
                 (shape.kind == "list" and shape.item and shape.item.kind in ("int", "str"))]  # fmt: skip

    def right(value: Any) -> bool:
        return len(value) <= 1 or value[0] not in ("0", 0)

    for spot in spots:
        shape = shapes[spot.parameter]
        strings = shape.kind == "list" and shape.item is not None and shape.item.kind == "str"
        if shape.kind not in ("str", "list", "links"):
            continue

        def holds(values: Values, spot: Place = spot, strings: bool = strings) -> bool:
            value = values[spot.parameter]
            return all(map(right, value)) if strings else right(value)

        def mend(rng: random.Random, values: Values, spot: Place = spot, strings: bool = strings) -> None:
            value, digit = values[spot.parameter], rng.randint(1, 9)
            if strings:
                values[spot.parameter] = [one if right(one) else str(digit) + one[1:] for one in value]
            elif not right(value):
                values[spot.parameter] = str(digit) + value[1:] if isinstance(value, str) else [digit, *value[1:]]

        yield Property("no_leading_zero", fact.text, holds, mend)


def _spaces(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    held = {
        name: shape.item if shape.kind == "list" and shape.item is not None else shape for name, shape in shapes.items()
    }
    names = {spot.parameter for spot in spots if held[spot.parameter].kind == "str"}
    names = names or {name for name, shape in held.items() if shape.kind == "str" and " " in shape.chars}
    single = fact.name == "single_space"

    def mended(text: str) -> str:
        new = " ".join(text.split()) if single else text.strip(" ")
        return new or next((char for char in text if char != " "), "a")

    for name in sorted(names):

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            values[name] = _replaced(values[name], mended)

        def holds(values: Values, name: str = name) -> bool:
            return all("  " not in one if single else one == one.strip(" ") for one in leaves(values[name]))

        yield Property(fact.name, fact.text, holds, mend)


def _balanced(name: str, values: Values) -> bool:
    return domains.balanced(values[name])


def _brackets(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots or [Place(name) for name, shape in shapes.items() if shape.kind == "str" and "(" in shape.chars]:
        name, shape = spot.parameter, shapes[spot.parameter]
        if shape.kind != "str":
            continue
        kinds = "".join(pair for pair in ("()", "[]", "{}") if pair[0] in shape.chars) or "()"
        only = shape.chars <= set("()[]{}")

        def mend(rng: random.Random, values: Values, name: str = name, kinds: str = kinds, only: bool = only) -> None:
            if only:
                values[name] = domains.brackets(rng, max(2, len(values[name])), kinds)
            else:
                places = [n for n, char in enumerate(values[name]) if char in kinds]
                chars = [char for n, char in enumerate(values[name]) if len(places) % 2 == 0 or n != places[-1]]
                new = iter(domains.brackets(rng, len(places), kinds))
                values[name] = "".join(next(new) if char in kinds else char for char in chars)

        yield Property("brackets", fact.text, partial(_balanced, name), mend)


def _reads_backwards(name: str, values: Values) -> bool:
    return bool(values[name] == values[name][::-1])


def _palindrome(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots:
        name = spot.parameter
        if shapes[name].kind == "str" and not spot.depth:

            def mend(rng: random.Random, values: Values, name: str = name) -> None:
                half = values[name][: (len(values[name]) + 1) // 2]
                values[name] = half + values[name][: len(values[name]) // 2][::-1]

            yield Property("palindrome", fact.text, partial(_reads_backwards, name), mend)


def _all_match(name: str, pattern: re.Pattern[str], values: Values) -> bool:
    return all(map(pattern.fullmatch, leaves(values[name])))


def _time(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    clock = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")
    for spot in spots:
        texts = [part for part in shapes[spot.parameter].walk() if part.kind == "str"]
        if texts and all(clock.fullmatch(one) for one in texts[0].pool):

            def mend(rng: random.Random, values: Values, name: str = spot.parameter) -> None:
                values[name] = _replaced(values[name], lambda _: f"{rng.randrange(24):02}:{rng.randrange(60):02}")

            yield Property("time", fact.text, partial(_all_match, spot.parameter, clock), mend, (spot,))


def _date(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """Dates such as 2012-01-05, within the years that the sentence gives or else those of the tests."""
    for spot in spots or [Place(name) for name, shape in shapes.items() if shape.kind == "str"]:
        texts = [part for part in shapes[spot.parameter].walk() if part.kind == "str"]
        days = [day for one in (texts[0].pool if texts else []) if (day := _day(one)) is not None]
        if not days or len(days) != len(texts[0].pool):
            continue
        years = [int(year) for year in re.findall(r"\b[12]\d{3}\b", str(fact.value))] or [day.year for day in days]
        first, last = min(years), max(years)

        def holds(values: Values, name: str = spot.parameter, first: int = first, last: int = last) -> bool:
            found = list(map(_day, leaves(values[name])))
            return all(day is not None and first <= day.year <= last for day in found)

        def mend(
            rng: random.Random, values: Values, name: str = spot.parameter, first: int = first, last: int = last
        ) -> None:
            a, b = datetime.date(first, 1, 1).toordinal(), datetime.date(last, 12, 31).toordinal()
            values[name] = _replaced(values[name], lambda _: _any_day(rng, a, b))

        yield Property("date", fact.text, holds, mend, (spot,))


def _day(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None


def _any_day(rng: random.Random, first: int, last: int) -> str:
    """A day between two; often one at the end of a month, of the range, or of a leap year's February."""
    day = datetime.date.fromordinal(rng.choice([first, last]) if rng.random() < 0.1 else rng.randint(first, last))
    match rng.randrange(5):
        case 0:
            day = day.replace(day=1)
        case 1:
            day = datetime.date.fromordinal(min(last, day.replace(day=28).toordinal() + rng.randrange(4)))
        case 2:
            day = datetime.date.fromordinal(min(last, day.replace(month=2, day=28).toordinal() + rng.randrange(2)))
    return day.isoformat()


def _replaced(value: Any, new: Callable[[str], str]) -> Any:
    return [_replaced(one, new) for one in value] if isinstance(value, list) else new(value)


def _few_letters(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """At most so many different characters in all texts of an argument together."""
    for spot in spots:
        if "str" not in {part.kind for part in shapes[spot.parameter].walk()}:
            continue

        def holds(values: Values, name: str = spot.parameter) -> bool:
            return len(set().union(*(set(one) for one in leaves(values[name]) if isinstance(one, str)))) <= fact.value

        def mend(rng: random.Random, values: Values, name: str = spot.parameter) -> None:
            found = sorted(set().union(*(set(one) for one in leaves(values[name]) if isinstance(one, str))))
            kept = rng.sample(found, min(len(found), fact.value))
            table = {ord(char): kept[n % len(kept)] for n, char in enumerate(found) if char not in kept}
            values[name] = _replaced(values[name], lambda text: text.translate(table))

        yield Property("few_letters", fact.text, holds, mend)


def _some_word(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A text that does not consist of spaces alone."""
    names = [name for name, shape in shapes.items() if shape.kind == "str"]
    names = [spot.parameter for spot in spots if spot.parameter in names] or (names if len(names) == 1 else [])
    for name in names:
        yield Property("some_word", fact.text, partial(_has_word, name))


def _has_word(name: str, values: Values) -> bool:
    return bool(values[name].strip())


def _same_length(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """A list whose texts or lists are all as long as the first."""
    held = {name: shape.item.kind for name, shape in shapes.items() if shape.kind == "list" and shape.item}
    names = [name for name, kind in held.items() if kind in ("str", "list")]
    names = [spot.parameter for spot in spots if spot.parameter in names] or (names if len(names) == 1 else [])
    for name in dict.fromkeys(names):

        def holds(values: Values, name: str = name) -> bool:
            return len(set(map(len, values[name]))) <= 1

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            if not holds(values, name):
                shortest = min(map(len, values[name]))
                values[name] = [one[:shortest] for one in values[name]]

        yield Property("same_length", fact.text, holds, mend)


def _no_runs(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """No character twice in a row, but for one that may be."""
    names = [name for name, shape in shapes.items() if shape.kind == "str"]
    names = [spot.parameter for spot in spots if spot.parameter in names] or (names if len(names) == 1 else [])
    run = re.compile(r"(.)\1+", re.S)
    for name in names:

        def holds(values: Values, name: str = name) -> bool:
            return all(found[1] == fact.value for found in run.finditer(values[name]))

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            values[name] = run.sub(lambda found: found[0] if found[1] == fact.value else found[1], values[name])

        yield Property("no_runs", fact.text, holds, mend)


MAKERS = {
    "no_runs": _no_runs,
    "some_word": _some_word,
    "same_length": _same_length,
    "date": _date,
    "few_letters": _few_letters,
    "alphabet": alphabet,
    "no_leading_zero": _no_leading_zero,
    "no_outer_space": _spaces,
    "single_space": _spaces,
    "brackets": _brackets,
    "palindrome": _palindrome,
    "time": _time,
}
