"""Facts about numbers tied to parameters: even, powers, multiples, primes, "at least one that is 0"."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..reading.facts import StatedFact
from . import domains
from .places import Made, Place, Property, Values, at, depth_of
from .shapes import SEQUENCES, Shape


def _of_rest(spot: Place, step: int, rest: int, values: Values) -> bool:
    return all(one % step == rest for one in at(values, spot))


def _among(spot: Place, allowed: set[int], values: Values) -> bool:
    return all(one in allowed for one in at(values, spot))


def _even(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    odd = fact.value == "odd"
    for spot in spots:
        if spot.length or shapes[spot.parameter].kind == "int":
            yield Property(
                "even",
                fact.text,
                partial(_of_rest, spot, 2, int(odd)),
                places=(spot,),
                value=int(odd),
            )


def _power(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    powers = {fact.value**n for n in range(64)}
    for spot in spots:
        yield Property(
            "power",
            fact.text,
            partial(_among, spot, powers),
            places=(spot,),
            value=fact.value,
        )


def _multiple(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    of = str(fact.value)
    for spot in spots:
        if not (of.isdigit() or (of in shapes and shapes[of].kind == "int")):
            continue

        def holds(values: Values, spot: Place = spot) -> bool:
            by = int(of) if of.isdigit() else values[of]
            return by != 0 and all(one % by == 0 for one in at(values, spot))

        yield Property("multiple", fact.text, holds, places=(spot,), value=int(of) if of.isdigit() else of)


def _prime(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    for spot in spots:
        name = spot.parameter
        if spot.length or spot.column is not None or depth_of(shapes[name]) != spot.depth or spot.depth > 1:
            continue

        def mend(rng: random.Random, values: Values, name: str = name) -> None:
            value = values[name]
            values[name] = (
                list(map(domains.prime_below, value)) if isinstance(value, list) else domains.prime_below(value)
            )

        yield Property("prime", fact.text, partial(_all_prime, spot), mend, (spot,))


def _all_prime(spot: Place, values: Values) -> bool:
    return all(map(domains.is_prime, at(values, spot)))


def _exists(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    """At least one element for which something holds."""
    match = re.search(r"([=!<>]+) ?(-?\d+)$", str(fact.value))
    for spot in spots if match else ():
        if shapes[spot.parameter].kind not in SEQUENCES or spot.depth != depth_of(shapes[spot.parameter]) or not match:
            continue
        holds_for, number = _COMPARE[match[1]], int(match[2])

        def holds(values: Values, spot: Place = spot, test: Any = holds_for, number: int = number) -> bool:
            return any(test(one, number) for one in at(values, spot))

        def mend(rng: random.Random, values: Values, spot: Place = spot, number: int = number) -> None:
            rows = at(values, Place(spot.parameter, spot.depth - 1))
            row = rng.choice(rows) if rows else []
            if row and match[1] in ("==", "<=", ">="):
                row[rng.randrange(len(row))] = number

        yield Property("exists", fact.text, holds, mend)


_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt
}  # fmt: skip


def _same_digits(fact: StatedFact, spots: list[Place], shapes: Mapping[str, Shape]) -> Made:
    names = [spot.parameter for spot in spots if shapes[spot.parameter].kind == "int"]
    if len(names) < 2:
        return

    def holds(values: Values) -> bool:
        return len({len(str(abs(values[name]))) for name in names}) == 1

    def mend(rng: random.Random, values: Values) -> None:
        digits = len(str(abs(values[names[0]])))
        for name in names[1:]:
            values[name] = int(str(abs(values[name])).ljust(digits, rng.choice("0123456789"))[:digits])

    yield Property("same_digits", fact.text, holds, mend)


MAKERS = {
    "even": _even,
    "power": _power,
    "multiple": _multiple,
    "prime": _prime,
    "exists": _exists,
    "same_digits": _same_digits,
}
