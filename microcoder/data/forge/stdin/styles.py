"""Numbers and words in several styles: wide, small, at the ends of a range, all equal, few different ones.

Hull     the smallest and the largest that the existing tests have
Styles   draws numbers within bounds and words of given letters, each field in a style of its own
"""

from __future__ import annotations

import random
from itertools import takewhile
from typing import Any

from .guarantees import Guarantees, is_prime
from .limits import Spot
from .shape import Retry, Scope, listed, scopes

STYLES = ("wide", "small", "ends", "equal", "few", "log", "top")
FAR = 10**299  # no number is drawn that is farther from 0


class Hull:
    """The smallest and the largest of the values, lengths and letters that the existing tests have, for each place."""

    def __init__(self) -> None:
        self.low: dict[Spot, int] = {}
        self.high: dict[Spot, int] = {}
        self.words: dict[Spot, dict[str, int]] = {}
        self.used: set[str] = set()  # the fields that nothing else bounds
        self.under: dict[Spot, list[str]] = {}  # the numbers before it that a number is never above
        self.over: dict[Spot, list[str]] = {}  # those that it is never below
        self.unlike: dict[Spot, list[str]] = {}  # the values of its row that a value is never equal to
        self.loose: set[Spot] = set()  # texts with spaces at their ends, or several in a row
        self.refers: dict[Spot, Spot] = {}  # words that always stand in a list before them

    def add(self, place: Spot, found: Any) -> None:
        for one in found if isinstance(found, list) else [found]:
            if place.field.kind == "real":
                one = str(one)
            number = len(one) if isinstance(one, str) else one
            if place.field.spaces and " ".join(one.split()) != one:
                self.loose.add(place)
            self.low[place] = min(self.low.get(place, number), number)
            self.high[place] = max(self.high.get(place, number), number)
            if isinstance(one, str) and len(self.words.setdefault(place, {})) < 1000:
                self.words[place][one] = self.words[place].get(one, 0) + 1

    def learn(self, places: list[Spot], samples: list[Scope]) -> None:
        """How numbers and words compare with those before them, in all samples. `environment` was called for these."""
        for n, place in enumerate(places):
            if place.field.kind not in ("int", "word"):
                continue
            found = [(one, listed(one[place.field.name])) for s in samples for one in scopes(s, place.path)
                     if place.field.name in one]  # fmt: skip
            for other in places[:n]:
                if place.path and other.path == place.path and other.field.count is place.field.count is None:
                    rows = [one for one, _ in found if other.field.name in one]
                    if len(rows) > 2 and all(one[place.field.name] != one[other.field.name] for one in rows):
                        self.unlike.setdefault(place, []).append(other.name)
                if place.path[: len(other.path)] == other.path and other.field.kind == place.field.kind == "int":
                    if other.field.count is None:
                        pairs = [(v, one.env.get(other.name)) for one, values in found for v in values]
                        if all(isinstance(limit, int) for _, limit in pairs):
                            if all(v <= limit for v, limit in pairs):
                                self.under.setdefault(place, []).append(other.name)
                            if all(v >= limit for v, limit in pairs):
                                self.over.setdefault(place, []).append(other.name)
                elif other.field.kind == place.field.kind == "word":
                    pools = [self.pool(place, other, one) for one, _ in found]
                    if all(isinstance(pool, list) for pool in pools) and found:
                        if all(set(values) <= set(pool or ()) for (_, values), pool in zip(found, pools, strict=True)):
                            self.refers.setdefault(place, other)

    def pool(self, place: Spot, other: Spot, one: Scope) -> list[str] | None:
        """The list of words that another place stands for, as seen from the scope of a place; None if it is no list."""
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(place.path, other.path, strict=False)))
        at: Scope | None = one
        for _ in place.path[shared:]:
            at = at.parent if at is not None else None
        if at is None:
            return None
        found = at.get(other.field.name) if len(other.path) == shared else at.env.get(other.name)
        return found if isinstance(found, list) else None

    def keeps(self, place: Spot, one: Scope) -> bool:
        """Whether the values of a place compare as they do in all samples."""
        values = listed(one[place.field.name])
        if any(one.env.get(name) == values[0] for name in self.unlike.get(place, ())):
            return False
        if place in self.refers:
            return set(values) <= set(self.pool(place, self.refers[place], one) or ())
        return all(v <= one.env[name] for name in self.under.get(place, ()) for v in values) and all(
            v >= one.env[name] for name in self.over.get(place, ()) for v in values
        )


class Styles:
    """Values for the fields of one input."""

    def __init__(self, known: Guarantees, hull: Hull, rng: random.Random) -> None:
        self.known, self.hull, self.rng = known, hull, rng
        self.mood = rng.choice(("mixed", "mixed", "sparse", *STYLES))
        self.style: dict[Spot, str] = {}
        self.fixed: dict[Spot, list[int]] = {}

    def styled(self, place: Spot) -> str:
        if place not in self.style:
            mood = self.mood
            if mood == "sparse":  # most are small, some are anything
                mood = self.rng.choice(("small", "small", "mixed"))
            self.style[place] = self.rng.choice(STYLES) if mood == "mixed" else mood
        return self.style[place]

    def value(self, place: Spot, style: str, low: float, high: float, unequal: list[Any] | None = None) -> int:
        """A number from low to high."""
        rng, least, most = self.rng, int(max(low, -FAR)), int(min(high, FAR))
        for _ in range(20):
            if style == "wide" or least == most:
                found = rng.randint(least, most)
            elif style == "small":
                near = 0 if least < 0 < most else least
                found = rng.randint(max(least, near - 3), min(most, near + 4))
            elif style == "ends":
                found = rng.choice((least, most, min(most, least + 1), max(least, most - 1)))
            elif style in ("equal", "few"):
                held = self.fixed.setdefault(place, [])
                held[:] = [one for one in held if least <= one <= most]
                while len(held) < (1 if style == "equal" else 3):
                    held.append(self.value(place, rng.choice(("wide", "small", "ends", "log")), least, most))
                found = rng.choice(held)
            elif style == "log":
                found = min(most, least + int((most - least + 1) ** rng.random()) - 1)
            else:
                found = max(least, most - rng.randint(0, 3))
            if place.name in self.known.primes:
                found = next((n for n in range(found, most + 1) if is_prime(n)), found)
            if found not in (unequal or ()):
                return found
            style = "wide"
        raise Retry

    def values(self, place: Spot, style: str, low: float, high: float, unequal: list[Any], number: int) -> list[int]:
        """So many numbers from low to high."""
        least, most = int(max(low, -FAR)), int(min(high, FAR))
        if number < 50 or unequal or place.name in self.known.primes or most - least > 1 << 50 or least == most:
            return [self.value(place, style, low, high, unequal) for _ in range(number)]
        rng = self.rng
        if style == "ends":
            return rng.choices((least, most, least + 1, most - 1), k=number)
        if style in ("equal", "few"):
            self.value(place, style, low, high)
            return rng.choices(self.fixed[place], k=number)
        if style == "log":
            span, chance = most - least + 1, rng.random
            return [min(most, least + int(span ** chance()) - 1) for _ in range(number)]
        if style == "small":
            near = 0 if least < 0 < most else least
            least, most = max(least, near - 3), min(most, near + 4)
        elif style == "top":
            least = max(least, most - 3)
        span, chance = most - least + 1, rng.random
        return [least + int(span * chance()) for _ in range(number)]

    def real(self, place: Spot) -> str:
        """A number with decimals, within the hull of the existing tests."""
        words = list(self.hull.words[place])
        decimals = max(len(word.partition(".")[2]) for word in words)
        scaled = [round(float(word) * 10**decimals) for word in words]
        self.hull.used.add(place.field.name)
        found = self.rng.choice((self.rng.randint(min(scaled), max(scaled)), *self.rng.sample(scaled, 1)))
        return f"{found / 10**decimals:.{decimals}f}"

    def different(self, place: Spot, values: list[Any], low: float, high: float) -> list[Any]:
        if len(set(values)) == len(values):
            return values
        if values and isinstance(values[0], str):
            if place in self.known.choices:
                if len(self.known.choices[place]) < len(values):
                    raise Retry
                return self.rng.sample(self.known.choices[place], len(values))
            seen: set[str] = set()
            for n, one in enumerate(values):
                letters = list(one)
                for _ in range(50):
                    if "".join(letters) not in seen:
                        break
                    letters[self.rng.randrange(len(letters))] = self.rng.choice(self.letters(place))
                values[n] = "".join(letters)
                seen.add(values[n])
            return values
        if high - low + 1 < len(values):
            raise Retry
        if high - low < 4 * len(values):
            return self.rng.sample(range(int(low), int(high) + 1), len(values))
        taken: set[int] = set()
        for one in values:
            while one in taken:
                one = self.rng.randint(int(low), int(high)) if self.rng.random() < 0.5 else min(int(high), one + 1)
                if one in taken:
                    one = self.rng.randint(int(low), int(high))
            taken.add(one)
        found = list(taken)
        self.rng.shuffle(found)
        return found

    def letters(self, place: Spot) -> str:
        given = self.known.alphabet.get(place)
        if given is None:
            given = "".join(sorted(set("".join(self.hull.words.get(place, {"a": 1})))))
            self.hull.used.add(place.field.name)
        return given

    def spelt(self, place: Spot, long: int) -> str:
        """A word of so many letters."""
        rng = self.rng
        letters = self.letters(place)
        seen = sorted(set("".join(self.hull.words.get(place, {}))) & set(letters)) or list(letters)
        kind = rng.random()
        if kind < 0.4:
            pool = list(letters)
        elif kind < 0.65:
            pool = seen
        elif kind < 0.9:
            pool = rng.sample(list(letters), min(len(letters), 2))
        else:
            pool = [rng.choice(list(letters))]
        made = [rng.choice(pool) for _ in range(long)]
        if kind > 0.8 and long > 2:  # a period, or a palindrome
            period = rng.randint(1, min(3, long))
            made = (
                [made[n % period] for n in range(long)]
                if rng.random() < 0.5
                else made[: (long + 1) // 2] + made[: long // 2][::-1]
            )
        if place.field.spaces and place not in self.hull.loose:
            solid = [letter for letter in pool if letter != " "] or [letter for letter in letters if letter != " "]
            for n, letter in enumerate(made):
                if letter == " " and (n in (0, long - 1) or made[n - 1] == " "):
                    made[n] = rng.choice(solid)
        return "".join(made)
