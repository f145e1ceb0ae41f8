"""What a sentence says of whole words and of values that go by a word: copies, different letters, lengths, ranges.

    "a word written three times, where possibly one letter was changed"     "at most 15 distinct characters"
    "There are at most 100 characters in each of s and t."   "The names are of length at most 50."
    "The weight and the price are integers from 0 to 100."   "N does not end in 99."

`ranges` gives relations; the others are checks, with a way to mend values that were drawn without regard to them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial

from .guarantees import Guarantees
from .limits import Spot, StatedLimits
from .shape import Scope, listed, scopes

_NUMBERS = {"one": 1, "two": 2, "twice": 2, "three": 3, "thrice": 3, "four": 4, "five": 5}
_NUMBER = r"(?:one|two|three|four|five|\d{1,3})"
_COPIES = re.compile(
    r"\b(?:word|string|text|pattern)\b[^.]{0,30}\b(?:written|repeated|typed|copied)\b(?: out)?"
    rf" (?:exactly )?(?:(?P<once>twice|thrice)|(?P<times>{_NUMBER}) times)(?: in a row)?(?P<rest>[^.]*)\.?$"
)
_CHANGED = re.compile(
    rf"^,? ?(?:where|with|but|and)? ?(?:possibly|maybe|at most|up to)(?: exactly)? (?P<most>{_NUMBER})"
    r" (?:letter|character)s? (?:was|were|has been|have been|is|are)?"
    r" ?(?:changed|replaced|mistyped|altered)(?: (?:to|by|with|into) (?:some |any )?(?:other|another|different) ?\w*)?$"
)
_DIFFERENT = re.compile(
    rf"\b(?:at most|no more than) (?P<most>{_NUMBER}) (?:distinct|different|unique) (?:characters|letters|symbols)\b"
)
_ENDS_IN = re.compile(
    r"\b(?P<name>[A-Za-z]) (?:does|will|do) not end (?:in|with) (?:the digits? )?'?(?P<end>\d{1,6})\b"
)


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)


@dataclass(frozen=True, slots=True)
class Copies:
    """A word that is another one written several times, with at most so many letters changed."""

    place: Spot
    times: int
    changes: int

    def kept(self, scope: Scope) -> bool:
        return all(self._good(word) for one in scopes(scope, self.place.path) for word in _words(self.place, one))

    def _good(self, word: str) -> bool:
        long, rest = divmod(len(word), self.times)
        columns = [Counter(word[n::long]) for n in range(long)] if long else []
        wrong = sum(self.times - max(column.values()) for column in columns)
        return not rest and long > 0 and wrong <= self.changes

    def mend(self, scope: Scope, rng: random.Random) -> None:
        for one in scopes(scope, self.place.path):
            value = one.get(self.place.field.name)
            if not isinstance(value, str) or not value or self._good(value):
                continue
            letters = list(value[: max(1, len(value) // self.times)] * self.times)
            for _ in range(rng.randint(0, self.changes)):
                letters[rng.randrange(len(letters))] = rng.choice(value)
            one[self.place.field.name] = "".join(letters)


@dataclass(frozen=True, slots=True)
class FewLetters:
    """A word of at most so many different letters."""

    place: Spot
    most: int

    def kept(self, scope: Scope) -> bool:
        return all(
            len(set(word)) <= self.most for one in scopes(scope, self.place.path) for word in _words(self.place, one)
        )

    def mend(self, scope: Scope, rng: random.Random) -> None:
        for one in scopes(scope, self.place.path):
            value = one.get(self.place.field.name)
            if isinstance(value, str) and len(set(value)) > self.most:
                pool = rng.sample(sorted(set(value)), self.most)
                one[self.place.field.name] = "".join(c if c in pool else rng.choice(pool) for c in value)


def _words(place: Spot, one: Scope) -> list[str]:
    return [str(word) for word in listed(one[place.field.name])] if place.field.name in one else []


def read_words(sentence: str, limits: StatedLimits, found: Guarantees, samples: list[Scope]) -> bool:
    """Keep what a sentence says of whole words, where all samples keep to it; whether it was understood."""
    words = [place for place in limits.places if place.field.kind == "word"]
    understood = False
    if len(words) == 1 and words[0].field.count is None:
        needs: list[Copies | FewLetters] = []
        if said := _COPIES.search(sentence):
            changed = _CHANGED.search(said["rest"])
            if changed or not said["rest"].strip():
                times = _number(said["once"] or said["times"])
                needs.append(Copies(words[0], times, _number(changed["most"]) if changed else 0))
        if said := _DIFFERENT.search(sentence):
            needs.append(FewLetters(words[0], _number(said["most"])))
        for need in needs:
            if all(need.kept(scope) for scope in samples):
                found.needs.append(need)
                understood = True
    for name, end in _ENDS_IN.findall(sentence):
        for place in limits.names.get(name, []):
            test = partial(_ends_otherwise, place, end)
            if all(test(scope) for scope in samples):
                found.tests.append((sentence, test))
                understood = True
    return understood


def _ends_otherwise(place: Spot, end: str, scope: Scope) -> bool:
    return not any(word.endswith(end) for one in scopes(scope, place.path) for word in _words(place, one))


# --- relations told in words

_EACH_LONG = re.compile(
    r"\bat most (?P<most>\d+) (?:characters|letters|symbols) in (?:each|both|either) of (?P<names>[^.]{1,40})\.?$"
)
_LONG = re.compile(
    r"^(?:(?:All|Both|Each|The|Every)(?: of)?(?: the)? )?(?P<names>[A-Za-z][\w, ]{0,40}?)"
    r" (?:is|are|has|have|consists? of|will be)"
    r" (?:(?:of |a )?length (?:of )?)?(?P<how>at most|between (?P<least>\d+) and) (?P<most>\d+)"
    r"(?P<unit> (?:letters|characters|symbols)(?: long| in length)?)?\.?$"
)
_BETWEEN_LONG = re.compile(
    r"(?:\b(?:Both|The|All|Each) )?\b(?P<names>[A-Za-z]\w*(?:(?:, | and |, and )[A-Za-z]\w*)*)\b[^.]{0,80}"
    r"\b(?:is|are) between (?P<least>\d+) and"
    r" (?P<most>\d+) (?:letters|characters|symbols) long\.?$"
)
_VALUES = re.compile(
    r"^(?:The |Both |All )?(?P<names>[A-Za-z][\w, ]{0,60}?) (?:is|are) (?:an )?integers?,?"
    r" (?:from|between) (?P<least>-?\d+) (?:to|and|through) (?P<most>-?\d+)(?P<rest>[^.]*)\.?$"
)
_ALL = re.compile(
    r"^(?:The|All)(?: the)? (?:values|integers|numbers)(?: in the input)? (?:are|lie|will be)(?: always| all)?"
    r" between (?P<least>-?\d+) and (?P<most>-?\d+)(?:,? inclusive)?\.?$"
)
_OF_LETTERS = re.compile(
    r"\b(?:line|string|word|text)s? (?:consisting of|of|with|containing|contains|consists of) (?P<name>[A-Za-z])"
    r" (?:[A-Za-z-]+ ){0,4}?(?:letters|characters|symbols)\b"
)


def ranges(sentence: str, places: list[Spot]) -> list[str]:
    """Relations that a sentence tells in words about the values and the lengths of fields."""
    out: list[str] = []
    if said := _EACH_LONG.search(sentence) or _BETWEEN_LONG.search(sentence) or _LONG.search(sentence):
        groups = said.groupdict()
        words = [place for place in _named(said["names"], places) if place.field.kind == "word"]
        if words and (said.re is not _LONG or groups["unit"] or "length" in said[0]):
            least = groups.get("least") or "1"
            out += [f"{least} ≤ |{place.field.name}| ≤ {said['most']}" for place in words]
    if (said := _VALUES.search(sentence)) and not re.search("exclusive|strict", said["rest"]):
        numbers = _named(said["names"], places)
        if all(place.field.kind == "int" for place in numbers):
            out += [f"{said['least']} ≤ {place.field.name} ≤ {said['most']}" for place in numbers]
    if (said := _ALL.search(sentence)) and all(place.field.kind == "int" for place in places):
        out += [f"{said['least']} ≤ {place.field.name} ≤ {said['most']}" for place in places if not place.field.count]
    return out


def _named(text: str, places: list[Spot]) -> list[Spot]:
    """The fields that a list of names means, the plural of a name too; nothing where one is no field."""
    found: list[Spot] = []
    for name in re.split(r", and |, | and ", text):
        name = re.sub(r"^(?:the|both|each) ", "", name.strip(), flags=re.I)
        own = [p for p in places if p.field.name == name or (len(name) > 3 and f"{p.field.name}s" == name)]
        if not own:
            return []
        found += own
    return found


def letter_count(told: str, places: list[Spot]) -> tuple[str, str]:
    """(n, |s|) where the only word is said to have n letters and n is no field; ("", "") otherwise."""
    said = _OF_LETTERS.search(told)
    words = [place for place in places if place.field.kind == "word"]
    if not said or len(words) != 1 or words[0].field.count is not None or words[0].path:
        return "", ""
    if any(place.field.name == said["name"] for place in places) or words[0].field.length is not None:
        return "", ""
    return said["name"], f"|{words[0].field.name}|"
