"""Guarantees read from sentences: distinct, a permutation, sorted, a tree, a sum over all test cases, alphabets.

A guarantee is kept where every existing test keeps to it; one that a test breaks was misread. A sentence that promises
something unknown is listed in `unread`: then inputs cannot be drawn freely.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..reading.relations import expression, normal, value
from .edges import Edges, edge_fault
from .guarantees import OF_TEXTS, RISKY, Guarantees, Parents, Sum, arrays, demands, is_ordered, is_permutation, is_prime
from .letters import read_letters
from .limits import Path, Spot, StatedLimits
from .occurrences import read_occurrences
from .shape import Block, Node, OneOf, Scope, listed, scopes
from .words import read_words

_HARMLESS = re.compile(
    (r"^(?:all|every|each)?[^.]{0,40}(?:input|values?|numbers?)[^.]{0,30} (?:is"
r"|are) (?:all )?(?:an )?integers?\b|^[\w\s,.{}()|*+=_:^'-]{0,80}(?:is"
r"|are)(?: all)?(?: an?)? (?:positive |non-negative )?(?:integers?|strings?"
r"|characters?|lowercase|uppercase)[^≤<]{0,30}$|"
    r"may (?:contain|have|be|not)|might|not necessarily|can contain|answer"
r"|output|print|you (?:can|should|need|have|must)|it can be (?:shown"
r"|proved|proven)|note that|"
    r"number of test cases|multiple test cases|description|test cases? (?:follow"
r"|consist|contain)|(?:first|second|third|next|only|each|following) (?:\S+ ){0,3}lines?\b"
r"|in this (?:problem|version|subtask)|hack|input format|"
    r"^(?:the )?input (?:consists|contains|is|starts)|"
    r"independent|see the|solution|fits? in|contest|difference between the (?:easy|hard)"),
    re.I,
)  # fmt: skip
_AT_PLACE = re.compile(r"\b(?:first|last|second|third|subsequent|-th|middle) (?:characters?|letters?|digits?)\b")
_INTEGERS = re.compile(
    r"^[\w\s,.{}()|*+=^'-]{1,120}\b(?:is|are)(?: all)?(?: an?)? (?:positive |non-negative )?integers?\.?$", re.I
)
_END = (
    r"(?=\s(?:over|across|in|for|does|do|is|are|values?|among|doesn|will"
    r"|won|of all|summed|must|at most|≤|<)\b|\s?[≤<]|,|\sand\b|\snor\b|\s\("
    r"|$)"
)
_SUM = re.compile(rf"\bsum of (?:all |the |values of |values |all the )*(?P<what>[^.,;]{{1,40}}?){_END}", re.I)
_ALSO = re.compile(rf"\band (?:of |all |the |that of )*(?P<what>[A-Za-z|](?:[\w|_^*]{{0,6}})){_END}")
_AT_MOST = re.compile(
    (
        r"(?:exceeds?|at most|≤|bounded by|no more than|not greater than|less than or equal to"
        r"|not be greater than|no greater than|not larger than|less than|is up to)\s*(?P<most>\d[\d^* ()]*)"
    ),
    re.I,
)
_TUPLE = re.compile(
    r"\(([A-Za-z]+)(?:_\{?[a-z]\}?)?, ?([A-Za-z]+)(?:_\{?[a-z]\}?)?(?:, ?([A-Za-z]+)(?:_\{?[a-z]\}?)?)?\)"
)
_EITHER = re.compile(r"\b([A-Za-z]+)_\{?i\}? ≠ \1_\{?j\}? or ([A-Za-z]+)_\{?i\}? ≠ \2_\{?j\}?")
_TOTAL = re.compile(r"sum(?:_\{?[^{}≤]{0,16}\}?)?(?:\^\(?\w{1,6}\)?)? ?(\|?)([A-Za-z]+)_\{?i\}?\|? ≤ (\d[\d*^]*)")
_TYPE = re.compile(
    (
        r"at least one (?:query|operation|event)?[^.]{0,20}?\b(?:type|of the) ?(\w+)"
        r"|at least one (\w+)-type|at least one '?(\S)'? (?:query|operation)"
    ),
    re.I,
)
_NUMERALS = {"first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5"}
_PARITY = re.compile(
    r"(?<![A-Za-z])([A-Za-z]\w*)(?:_i)? (?:is|are)(?: guaranteed to be)?(?: an?| always)? (even|odd|prime)\b"
)
_KIND = re.compile(r"\b(even|odd|prime)\b(?= (?:\w+ )?(?:integers?|numbers?)\b|[,;.)]|$)")
_MULTIPLE = re.compile(r"(?<![A-Za-z])([A-Za-z]) is (?:an? )?(multiple of|divisible by|divisor of) ([A-Za-z]|\d+)\b")
_SAME_IN_BOTH = re.compile(r"^(?!.*\bno two\b.*\bno two\b).*\bno two\b(?:.*?\bthe same\b){2}(?!.*\bthe same\b)", re.I)
_UNEQUAL = re.compile(r"\b([A-Za-z]+)_\{?i\}? ≠ \1_\{?j\}?")
_SERIES = re.compile(r"\b([A-Za-z]+)_\{?[01]\}? ?([<≤>≥]) ?\1_\{?[12]\}?")


def guarantees(limits: StatedLimits, sentences: list[str], bullets: set[str], samples: list[Scope]) -> Guarantees:
    """Read sentences; keep what the samples keep to. `bullets`: sentences of a section that holds only constraints."""
    found = Guarantees()
    reader = _SentenceReader(limits, found, samples)
    last = ""
    for sentence in sentences:
        understood = reader.read(sentence, last)
        last = sentence
        if OF_TEXTS.search(sentence) or (not reader.understood and demands(sentence, letters=understood)):
            found.unread.append(sentence)
            continue
        if understood or sentence in limits.read or _INTEGERS.search(sentence) or sentence.endswith(":"):
            continue
        if (
            _HARMLESS.search(sentence)
            and not re.search(r"guarant|satisf|\bvalid\b|constraint on the input", sentence, re.I)
            and not (sentence in bullets and _AT_PLACE.search(sentence))
        ):
            continue
        if sentence in bullets or RISKY.search(sentence):
            found.unread.append(sentence)
    return found


class _SentenceReader:
    def __init__(self, limits: StatedLimits, found: Guarantees, samples: list[Scope]) -> None:
        self.limits, self.found, self.samples = limits, found, samples
        self.understood = False
        self.lists = [p for p in limits.places if p.field.count is not None or p.path]

    def named(self, sentence: str) -> list[Spot]:
        """The lists that a sentence names: a_i, a_1, or the bare name of an array."""
        text = self.limits.prepared(sentence)
        return [p for p in self.lists if re.search(rf"(?<![A-Za-z\\]){re.escape(p.name)}(?:_|\b)", text)]

    def kept(self, place: Spot, test: Any) -> bool:
        """Whether the lists of a place pass a test in all samples, and there is anything to tell by."""
        lists = [values for scope in self.samples for values in arrays(place, scope)]
        return bool(lists) and all(test(values) for values in lists)

    def read(self, sentence: str, last: str) -> bool:
        said = [self.sums(sentence, last), self.order(sentence), self.graph(sentence), self.permutation(sentence)]
        said += [self.numbers(sentence), self.types(sentence)]
        said.append(read_words(sentence, self.limits, self.found, self.samples))
        if not any(said):
            said.append(self.unequal(sentence))
        if not any(said):
            said.append(read_occurrences(sentence, self.limits, self.found, self.samples))
        self.understood = any(said)  # more than letters
        if not _AT_PLACE.search(sentence):
            said.append(read_letters(sentence, self.limits, self.found, self.samples))
        return any(said)

    def sums(self, sentence: str, last: str) -> bool:
        if re.search(r"same (?:is|holds|guarantee|applies|limit|condition)", sentence) and self.found.sums:
            for name in re.findall(r"\bfor ([A-Za-z]\w*)", sentence):
                self._sum(name, self.found.sums[-1].most, sentence)
            return True
        if total := _TOTAL.search(sentence):
            for place in self.lists:
                if place.name == total[2]:
                    term = f"sum(len(x) for x in {place.name})" if place.field.kind == "word" else f"sum({place.name})"
                    one = Sum(
                        place.path if place.field.count else place.path[:-1], term, self._number(total[3]), sentence
                    )
                    if all(one.total(scope) <= one.most for scope in self.samples):
                        self.found.sums.append(one)
                        return True
        most = list(_AT_MOST.finditer(sentence))
        if not most or not re.search(r"\b(?:sum|total)\b", sentence, re.I):
            return False
        understood = True
        sums = list(_SUM.finditer(sentence))
        for found in [*sums, *_ALSO.finditer(sentence)]:
            limit = next((m for m in most if m.start() >= found.end() - 2), most[-1])
            understood &= self._sum(found["what"], self._number(limit["most"]), sentence) or found.re is not _SUM
        if not sums or not understood:
            lists = [p for p in self.limits.places if p.field.length is not None or p.field.count is not None]
            for place in lists:
                self._sum(f"|{place.field.name}|", self._number(most[-1]["most"]), sentence, force=place)
            return bool(self.found.sums)
        return True

    def _number(self, text: str) -> int:
        source = expression(normal(text.strip()))
        return int(value(source, {})) if source else 0

    def _sum(self, what: str, most: int, sentence: str, force: Spot | None = None) -> bool:
        what = re.sub(r"_\{?[ij]\}?", "", what.strip())
        source = f"len({force.name})" if force else expression(normal(self.limits.prepared(what)))
        if not source or not most:
            return False
        names = {name for name in re.findall(r"[A-Za-z]\w*", source) if name not in ("len", "max", "min", "abs")}
        if not names and source:
            return False
        if not names <= set(self.limits.names):
            letters = [letter for name in names for letter in name]
            if not all(letter in self.limits.names for letter in letters):
                return False
            source, names = " * ".join(letters), set(letters)
        path = max((self.limits.names[name][0].path for name in names), key=len)
        single = self.limits.names[next(iter(names))][0]
        if len(names) == 1 and source in names and single.field.count is not None:
            source = f"sum({source})"
        if len(names) == 1 and source in names and single.field.kind == "word":
            source = f"len({source})"
        if not path:
            return False
        one = Sum(path, source, most, sentence)
        try:
            if all(one.total(scope) <= most for scope in self.samples):
                self.found.sums.append(one)
                return True
        except Exception:  # a term that has no value for these fields
            return False
        return False

    def test(self, what: str, test: Callable[[Scope], bool]) -> bool:
        """Keep a test that all samples pass."""
        if not all(test(scope) for scope in self.samples):
            return False
        self.found.tests.append((what, test))
        return True

    def numbers(self, sentence: str) -> bool:
        """N is even, M is a prime, n is a multiple of k."""
        understood = False
        for name, kind in _PARITY.findall(sentence):
            understood |= self.all_are(name, kind)
        if not understood and (kinds := set(_KIND.findall(sentence))) and len(kinds) == 1:  # "both are even"
            (kind,) = kinds
            text = self.limits.prepared(sentence)
            for name in self.limits.names:
                if re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", text):
                    understood |= self.all_are(name, kind)
        for left, how, right in _MULTIPLE.findall(sentence):
            if left in self.limits.names and (right in self.limits.names or right.isdigit()):
                term = f"{right} % {left}" if how == "divisor of" else f"{left} % {right}"
                places = [self.limits.names[name][0] for name in (left, right) if name in self.limits.names]
                path = max((place.path for place in places), key=len)
                understood |= self.test(sentence, partial(_all_zero, path, term))
        return understood

    def all_are(self, name: str, kind: str) -> bool:
        """Whether all values of a name are even, odd or prime, and so are to stay."""
        good = {"even": lambda v: v % 2 == 0, "odd": lambda v: v % 2 == 1, "prime": is_prime}[kind]
        places = [place for place in self.limits.names.get(name, []) if place.field.kind == "int"]
        kept = [self.test(f"{name} is not {kind}", partial(_all_are, place, good)) for place in places]
        if kind == "prime" and any(kept):
            self.found.primes.add(name)
        return any(kept)

    def types(self, sentence: str) -> bool:
        """At least one query of a type."""
        found = _TYPE.search(sentence)
        if not found:
            return False
        word = next(filter(None, found.groups())).lower()
        word = _NUMERALS.get(word, word)
        for path, choice in _choices(self.limits.layout.body):
            tags = [line.fields[0].name for line in choice.lines]
            if word in tags:
                at = tags.index(word)
                return self.test(sentence, partial(_has_line, path, choice.key, at))
        for place in self.lists:  # the type is the first field of a row
            if (
                place.path
                and place.field.kind == "int"
                and word.isdigit()
                and place.name in ("t", "T", "op", "c", "type", "q", "v1", "o")
            ):
                if self.test(sentence, partial(_has_value, place, int(word))):
                    return True
        return False

    def order(self, sentence: str) -> bool:
        series = _SERIES.search(sentence)
        if series:
            for place in self.lists:
                if place.name == series[1] and self.kept(place, lambda values: is_ordered(values, series[2])):
                    self.found.rising[place] = series[2]
                    return True
        step = re.search(r"\b([A-Za-z]+)_\{?i\}? ?([<≤>≥]) ?\1_\{? ?i ?\+ ?1 ?\}?", sentence)
        if step:
            for place in self.lists:
                if place.name == step[1] and self.kept(place, lambda values: is_ordered(values, step[2])):
                    self.found.rising[place] = step[2]
                    return True
        words = re.search(r"(strictly )?(non-?)?(increasing|ascending|decreasing|descending)|\bsorted\b", sentence)
        if not words or not re.search(r"order|sorted|guarant|increasing|decreasing", sentence):
            return False
        down = bool(words[3]) and words[3][0] == "d"
        down = not down if words[2] else down
        for order in (">", "≥") if down else ("<", "≤"):
            if words[2] and order in "<>":
                continue
            for place in self.named(sentence):
                if self.kept(place, lambda values, order=order: is_ordered(values, order)):
                    self.found.rising[place] = order
                    return True
        return False

    def permutation(self, sentence: str) -> bool:
        if not re.search(r"permutation", sentence, re.I):
            return False
        understood = False
        for place in self.named(sentence) or self.lists:
            if place.field.kind == "int" and place not in self.found.permutation and self.kept(place, is_permutation):
                self.found.permutation.append(place)
                understood = True
        return understood

    def unequal(self, sentence: str) -> bool:
        if rows := _TUPLE.search(sentence):
            row = tuple(p for name in rows.groups() if name for p in self.lists if p.name == name)
            if len(row) > 1 and re.search(r"distinct|≠|different|unique", sentence):
                return self._together(row)
        if either := _EITHER.search(sentence):
            return self._together(tuple(p for name in either.groups() for p in self.lists if p.name == name))
        if step := _UNEQUAL.search(sentence):
            places = [p for p in self.lists if p.name == step[1]]
        elif re.search(
            r"\b(?:distinct|unique|pairwise different|no two|at most once|exactly once)\b|all (?:\S+ ){0,3}different"
            r"|\bno \w+ (?:will |can |may )?(?:appears?|occurs?) (?:more than once|twice)",
            sentence,
            re.I,
        ):
            places = self.named(sentence)
            if not places and re.search(r"string|word|name", sentence, re.I):
                places = [p for p in self.lists if p.field.kind == "word"]
        else:
            return False
        if _SAME_IN_BOTH.search(sentence) and not re.search(
            r"\b(?:n?or|the same (?:holds|applies|goes|is))\b", sentence
        ):
            pairs = [row for row in self._pairs() if sum(p.path == row[0].path for p in self.limits.places) == 2]
            if len(pairs) == 1 and self._together(pairs[0]):
                return True
        if not places and re.search(
            r"pair|point|coordinate|cell|position|location|coin|tower|building|edge|bridge", sentence
        ):
            for row in self._pairs():
                if self._together(row):
                    return True
        understood = False
        for place in places:
            many = place.field.count is not None or place.path
            if many and self.kept(place, lambda values: len(set(values)) == len(values)):
                if any(len(v) > 1 for s in self.samples for v in arrays(place, s)):
                    self.found.distinct.append(place)
                    understood = True
        return understood or [place.field.kind for place in self.limits.places] == ["int"]  # one number is different

    def _together(self, row: tuple[Spot, ...]) -> bool:
        """Keep that rows of columns are distinct, if it is so in the samples."""
        if len(row) < 2 or len({place.path for place in row}) > 1 or any(not place.path for place in row):
            return False
        self.found.together.append(row)
        if any(self.found.fault(scope) for scope in self.samples):
            self.found.together.pop()
            return False
        return True

    def graph(self, sentence: str) -> bool:
        low = sentence.lower()
        tree = bool(re.search(r"\btree\b|\bparent of\b", low))
        connected = bool(re.search(r"\bconnected\b|reach any|path between (?:any|every|each)|from any \w+ to any", low))
        simple = bool(
            re.search(
                (
                    r"\bsimple\b|no (?:multiple edges|multi-?edges|self-?loops|loops|duplicate"
                    r"|parallel)|(?:not|n't) contain (?:any )?(?:self-?loops|multi|loops"
                    r"|duplicate|parallel)|neither self"
                ),
                low,
            )
        )
        if not (tree or connected or simple) or re.search(
            r"strongly|bipartite|cycle|binary tree|path graph|may contain", low
        ):
            return False
        if tree:
            for place in self.lists:
                parents = Parents(place)
                if place.field.count is not None and place.field.start == 2 and all(map(parents.kept, self.samples)):
                    self.found.needs.append(parents)
                    return True
        for pair in self._pairs():
            edges = Edges(pair[0].path, pair, tree, connected, simple or tree)
            known = next((e for e in self.found.edges if e.ends == pair), None)
            try:
                good = all(
                    not edge_fault(edges, *lists)
                    for scope in self.samples
                    for lists in zip(*(arrays(p, scope) for p in pair), strict=True)
                )
            except TypeError:
                continue
            if good:
                if known:
                    known.tree |= tree
                    known.connected |= connected
                    known.simple |= simple or tree
                else:
                    self.found.edges.append(edges)
                return True
        return False

    def _pairs(self) -> Iterator[tuple[Spot, Spot]]:
        rows: dict[Path, list[Spot]] = {}
        for place in self.limits.places:
            if place.path and place.field.count is None and place.field.kind == "int":
                rows.setdefault(place.path, []).append(place)
        for row in rows.values():
            if len(row) >= 2:
                yield row[0], row[1]


def _has_line(path: Path, key: str, line: int, scope: Scope) -> bool:
    return all(any(child.get(key) == line for child in one[path[-1]]) for one in scopes(scope, path[:-1]))


def _has_value(place: Spot, wanted: int, scope: Scope) -> bool:
    return all(wanted in values for values in arrays(place, scope))


def _all_are(place: Spot, good: Callable[[int], bool], scope: Scope) -> bool:
    found = [one[place.field.name] for one in scopes(scope, place.path) if place.field.name in one]
    return all(good(number) for value in found for number in listed(value))


def _all_zero(path: Path, term: str, scope: Scope) -> bool:
    return all(_zero(term, one.env) for one in scopes(scope, path))


def _zero(term: str, env: dict[str, Any]) -> bool:
    try:
        return not value(term, env)
    except Exception:  # a division by 0, or a name that is not there
        return False


def _choices(nodes: tuple[Node, ...], path: Path = ()) -> Iterator[tuple[Path, OneOf]]:
    for node in nodes:
        if isinstance(node, Block):
            yield from _choices(node.body, (*path, node.key))
        elif isinstance(node, OneOf) and path:
            yield path, node
