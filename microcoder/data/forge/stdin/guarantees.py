"""What a statement guarantees about an input in words: distinct, a permutation, sorted, a tree, a sum over all cases.

A guarantee is kept where every existing test keeps to it; one that a test breaks was misread. A sentence that promises
something unknown is listed in `unread`: then inputs cannot be drawn freely.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

from ..reading.headings import ALL_DIFFERENT
from ..reading.relations import value
from .edges import Edges, edge_fault
from .limits import Path, Spot
from .shape import Scope, scopes

RISKY = re.compile(
    (r"guarant|\bvalid\b|\bdistinct\b|\bdifferent\b|\bunique\b|permutation"
r"|\bsorted\b|increasing|decreasing|ascending|descending|no two|at most once"
r"|"
    r"exactly once|satisf|divisor|divisible|multiple of|\bprime\b|palindrom"
r"|balanced|\bconnected\b|reachable|\bcan reach\b|"
    r"\btree\b|no (?:multiple|self|loops)|simple|disjoint|intersect|always"
r"|coprime|consistent|appears?|at least one|perfect|convex|collinear"
r"|not all|form an?\b|"
    r"\bdoes not contain\b|\bdo not\b|contradict|possible to|bipartite|acyclic"
r"|\bcycle|correct|there (?:is|are) (?:at least|exactly|no)|power of"
r"|\bodd\b|\beven\b|equal to"),
    re.I,
)  # fmt: skip
# What a sentence about a line may demand of its texts, of which no reader knows anything, and of values besides RISKY
OF_TEXTS = re.compile(
    r"\bpalindrom|\b(?:regular|balanced|correct) (?:bracket|parenthes)|\bco-?prime\b|\brelatively prime\b|"
    r"\bpower of (?:two|three|ten|\d)|\banagram|\bpermutation of (?:the )?(?:string|word|letters|characters)",
    re.I,
)
_OF_VALUES = re.compile(
    r"\b(?:no two|at least one|none of|neighbou?ring|adjacent (?:characters|letters|elements|ones)|parity|"
    r"composite|leap|as many|mod|(?:start|begin)(?:s|ning|ing)? with)\b",
    re.I,
)
_TOLD = re.compile(
    r"(?:\s[—–]\s|\s-\s(?=[a-z]{2})|, which\b|,? (?:the (?:number|size|length) of|denoting|signifying|representing|"
    r"where [^.]{1,12}? (?:is|are|denotes?|represents?|means) (?:the|equal|-?\d))\b)"
    r".*?(?=$|\bThe (?:first|second|third|next)\b)"
)
_ASIDE = re.compile(r"^note\b|\b(?:may|might)\b", re.I)


def demands(sentence: str, letters: bool) -> bool:
    """Whether a sentence about a line demands something of its values besides telling what they are.

    letters   of the sentence is understood which letters a text may have
    """
    if not re.search(r"\b(?:lines?|contains?)\b", sentence) or _ASIDE.search(sentence):
        return False
    head = re.sub(r"\bsatisf\w+ (?=\S+ [≤<])", "", ALL_DIFFERENT.sub("", _TOLD.sub("", sentence)))
    return bool(_OF_VALUES.search(head) or (not letters and RISKY.search(head)))


@dataclass(slots=True)
class Sum:
    """A limit for the sum of a term over all scopes at the end of a path."""

    path: Path
    term: str
    most: int
    text: str

    def total(self, scope: Scope) -> int:
        return int(sum(value(self.term, one.env) for one in scopes(scope, self.path)))


class Need(Protocol):
    """A guarantee that values can be mended to keep."""

    def kept(self, scope: Scope) -> bool: ...

    def mend(self, scope: Scope, rng: random.Random) -> None: ...


@dataclass(frozen=True, slots=True)
class Parents:
    """A list of the parents of the vertices 2, 3, ... of a tree with the root 1."""

    place: Spot

    def kept(self, scope: Scope) -> bool:
        return all(map(self._rooted, arrays(self.place, scope)))

    def _rooted(self, parents: list[int]) -> bool:
        root = {1}  # the vertices from which a way up is known to end at 1
        for vertex in range(2, len(parents) + 2):
            way: dict[int, None] = {}
            while vertex not in root:
                if vertex in way or not 2 <= vertex <= len(parents) + 1:
                    return False
                way[vertex] = None
                vertex = parents[vertex - 2]
            root.update(way)
        return True

    def mend(self, scope: Scope, rng: random.Random) -> None:
        for parents in arrays(self.place, scope):
            if not self._rooted(parents):
                order = [1, *rng.sample(range(2, len(parents) + 2), len(parents))]
                for n, vertex in enumerate(order[1:], 1):
                    parents[vertex - 2] = order[rng.randrange(n)]


@dataclass(slots=True)
class Guarantees:
    """All that was understood, and what was not."""

    distinct: list[Spot] = field(default_factory=list)
    permutation: list[Spot] = field(default_factory=list)
    rising: dict[Spot, str] = field(default_factory=dict)  # "<", "<=", ">", ">="
    together: list[tuple[Spot, ...]] = field(default_factory=list)  # columns whose rows are distinct
    edges: list[Edges] = field(default_factory=list)
    sums: list[Sum] = field(default_factory=list)
    alphabet: dict[Spot, str] = field(default_factory=dict)
    choices: dict[Spot, list[str]] = field(default_factory=dict)
    primes: set[str] = field(default_factory=set)
    tests: list[tuple[str, Callable[[Scope], bool]]] = field(default_factory=list)  # (what, whether values pass)
    needs: list[Need] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def fault(self, scope: Scope) -> str:
        """The guarantee that values break. `environment` was called for the scope."""
        for one in self.sums:
            if one.total(scope) > one.most:
                return f"the sum of {one.term} is over {one.most}"
        for what, test in self.tests:
            if not test(scope):
                return what
        if not all(need.kept(scope) for need in self.needs):
            return "a letter stands too often, too seldom or at the wrong place, or parents make no tree"
        for place in self.distinct:
            if any(len(set(values)) < len(values) for values in arrays(place, scope)):
                return f"{place.field.name}: not distinct"
        for place in self.permutation:
            if any(not is_permutation(values) for values in arrays(place, scope)):
                return f"{place.field.name}: no permutation"
        for place, order in self.rising.items():
            if any(not is_ordered(values, order) for values in arrays(place, scope)):
                return f"{place.field.name}: not in order"
        for row in self.together:
            for columns in zip(*(arrays(place, scope) for place in row), strict=True):
                if len(set(zip(*columns, strict=False))) < len(columns[0]):
                    return f"{', '.join(place.field.name for place in row)}: not distinct"
        for edges in self.edges:
            for values in zip(*(arrays(place, scope) for place in edges.ends), strict=True):
                if fault := edge_fault(edges, *values):
                    return fault
        return ""


def arrays(place: Spot, scope: Scope) -> Iterator[list[Any]]:
    """Every list that a place stands for: an array on a line, or the column of a block."""
    if place.field.count is not None:
        yield from (one[place.field.name] for one in scopes(scope, place.path))
    elif place.path:
        for one in scopes(scope, place.path[:-1]):
            yield [child[place.field.name] for child in one[place.path[-1]] if place.field.name in child]


def is_permutation(values: list[Any]) -> bool:
    return not values or (
        min(values) in (0, 1) and sorted(values) == list(range(min(values), min(values) + len(values)))
    )


def is_ordered(values: list[Any], order: str) -> bool:
    pairs = list(pairwise(values))
    return {
        "<": lambda: all(a < b for a, b in pairs), "≤": lambda: all(a <= b for a, b in pairs),
        ">": lambda: all(a > b for a, b in pairs), "≥": lambda: all(a >= b for a, b in pairs),
    }[order]()  # fmt: skip


def is_prime(number: int) -> bool:
    """Whether a number is a prime, by Miller and Rabin's test with bases that are enough up to 10^24."""
    if number < 2:
        return False
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if any(number % p == 0 for p in small):
        return number in small
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in small:
        power = pow(base, odd, number)
        if power not in (1, number - 1) and not any(
            (power := power * power % number) == number - 1 for _ in range(twos - 1)
        ):
            return False
    return True
