"""The inputs that a stdin problem allows: a layout from its statement and its tests, values within its constraints.

    space = stdin_space(problem, references)

1. The layout comes from the format or the prose of the statement's Input section; all existing tests must fit it.
2. Bounds come from the constraints. A value that nothing bounds stays within the hull of the existing tests.
3. Guarantees in words (distinct, a tree, the sum over all test cases) are kept to. Where one is not understood, inputs
   are not drawn freely: `draw` and `near` then only leave out, repeat and reorder whole test cases of existing inputs,
   or leave out rows where all that is not understood is that rows differ.
"""

from __future__ import annotations

import random
import re

from ....schema import Problem
from ..reading.headings import plain, relating, sections, sentences
from ..space import Candidate, NoSpace
from .draws import ELEMENTS, Draw, Hull
from .edits import changed
from .fit import fitted
from .limits import StatedLimits, environment, places
from .promises import guarantees
from .shape import Block, InputLine, Layout, Misfit, Retry, Scope, counted, scopes
from .words import letter_count, ranges

TRIES = 30
_CASES = re.compile(r"\b(?:test ?cases?|data ?sets?|scenarios?|instances?)\b|number of cases|each case\b", re.I)
_DIFFERENT = re.compile(r"\bno two\b|\b(?:distinct|unique)\b|more than once|\bis different from\b", re.I)
LONGEST = 1 << 20  # characters of an existing test that is learnt from


def stdin_space(problem: Problem, references: list[str] | None = None) -> StdinSpace:
    """The space of a stdin problem; NoSpace with the reason where there is none."""
    inputs = sorted({test.input for test in problem.tests}, key=len)
    if not inputs:
        raise NoSpace("there are no tests to learn a layout from")
    known = [text for text in inputs if len(text) <= LONGEST] or inputs[:1]
    told, limits = sections(problem.statement)
    layout = fitted(told or problem.statement, known, plain(f"{told}\n{limits}"))
    return StdinSpace(layout, plain(told), plain(limits), known)


class StdinSpace:
    """The inputs that a layout and the constraints of its fields allow."""

    def __init__(self, layout: Layout, told: str, constraints: str, inputs: list[str]) -> None:
        self.layout, self.inputs = layout, inputs
        self.unread: list[str] = []
        prose = sentences(told)
        bullets = [re.sub(r"^[-*•] ", "", " ".join(line.split())) for line in constraints.split("\n") if line.strip()]
        texts = [*prose, *bullets]
        spots = list(places(layout.body))
        long, length = letter_count(told, spots)
        related = {text: [*relating(text), *ranges(text, spots)] for text in texts}
        if long:  # "a line of n letters": n is the length of the line
            related = {
                text: [re.sub(rf"(?<![\w|]){long}(?![\w|])", length, part) for part in parts]
                for text, parts in related.items()
            }
        self.limits = StatedLimits(layout, related)
        samples = [layout.read(text) for text in inputs]
        self.hull = Hull()
        for scope in samples:
            environment(scope, layout.body)
            for place in self.limits.places:
                for one in scopes(scope, place.path):
                    if place.field.name in one:
                        self.hull.add(place, one[place.field.name])
        for scope in samples:
            for rule in list(self.limits.broken(scope)):
                self.limits.drop(rule.text)
        self.known = guarantees(self.limits, texts, set(bullets), samples)
        for scope in samples:
            if fault := self._fault(scope):
                raise NoSpace(f"the layout of the statement does not fit the tests: {fault}")
        self.hull.learn(self.limits.places, samples)
        for place, words in self.hull.words.items():  # nothing is known of these: no new ones are made up
            known = place in self.known.alphabet or place in self.known.choices or place.field.length is not None
            if place.field.kind == "word" and not known:
                self.known.choices[place] = sorted(words)
                self.hull.used.add(place.field.name)
        self.unread += self.known.unread
        self.restricted = bool(self.known.unread)
        self.is_cases = bool(_CASES.search(told))
        self.cases = self._cases()
        self.samples = samples
        if self.restricted and self.cases is None:
            raise NoSpace(f"a guarantee is not understood: {self.unread[0][:200]}")
        self.bounded_by = "constraints"
        probe = random.Random(1)
        if not self.restricted and not any(self.draw(probe, size) for size in (0.1, 0.3, 0.3)):
            raise NoSpace("no input could be drawn that keeps to the constraints")
        if self.hull.used or self.restricted:
            self.bounded_by = "hull"
            self.unread += [f"no bounds for {name}" for name in sorted(self.hull.used)]

    def _cases(self) -> Block | None:
        """The block of test cases, where the whole input is one."""
        body = self.layout.body
        if (
            len(body) == 2
            and isinstance(body[0], InputLine)
            and isinstance(body[1], Block)
            and len(body[0].fields) == 1
        ):
            if body[1].count.text.strip() == body[0].fields[0].name:
                return body[1] if self.is_cases or self._only_different() else None
        return None

    def _only_different(self) -> bool:
        """Whether all that is not understood is that rows differ: then some of the rows of an input are an input."""
        return all(_DIFFERENT.search(one) and not re.search(r"order|sorted", one) for one in self.unread)

    # --- the four questions

    def fault(self, input: str) -> str:
        try:
            scope = self.layout.read(input)
        except Misfit as error:
            return str(error)
        environment(scope, self.layout.body)
        return self._fault(scope)

    def _fault(self, scope: Scope) -> str:
        for place in self.limits.places:
            field = place.field
            if field.kind != "word":
                continue
            allowed = set(self.known.alphabet.get(place, ""))
            for one in scopes(scope, place.path):
                if field.name not in one:
                    continue
                words = one[field.name] if isinstance(one[field.name], list) else [one[field.name]]
                for word in words:
                    if field.length is not None and counted(field.length, one) != len(word):
                        return f"{field.name} is not as long as {field.length.text}"
                    if allowed and not set(word) <= allowed:
                        return f"{field.name} has a letter that is not allowed"
                    if field.spaces and " ".join(word.split()) != word and place not in self.hull.loose:
                        return f"{field.name} has spaces at its ends, or several in a row"
        for rule in self.limits.broken(scope):
            return f"against {rule.text[:120]}"
        return self.known.fault(scope)

    def size_of(self, input: str) -> float:
        return min(1.0, len(input.split()) / ELEMENTS)

    def draw(self, rng: random.Random, size: float) -> Candidate | None:
        seed = rng.getrandbits(32)
        own = random.Random(seed)
        if self.restricted:
            return self._regrouped(rng.choice(self.inputs), own, seed)
        for _ in range(TRIES):
            making = Draw(self.layout, self.limits, self.known, self.hull, own, size)
            try:
                text = self.layout.write(making.scope())
            except (Retry, Misfit, RecursionError):
                continue
            if not self.fault(text):
                by = "small" if size < 0.35 else "random" if size < 0.8 else "limit"
                return Candidate(text, f"{by}, {making.mood}", seed)
        return None

    def near(self, input: str, rng: random.Random) -> Candidate | None:
        seed = rng.getrandbits(32)
        own = random.Random(seed)
        if self.restricted:
            return self._regrouped(input, own, seed)
        for _ in range(TRIES):
            try:
                scope = self.layout.read(input)
                environment(scope, self.layout.body)
                making = Draw(self.layout, self.limits, self.known, self.hull, own, 0.2)
                by = changed(scope, making)
                making.mend(scope)
                text = self.layout.write(scope)
            except (Misfit, Retry):
                continue
            if by and text.split() != input.split() and not self.fault(text) and self._in_hull(text):
                return Candidate(text, f"mutated: {by}", seed)
        return None

    def _in_hull(self, text: str) -> bool:
        """Whether the fields that nothing bounds stay within the hull of the existing tests."""
        scope, hull = self.layout.read(text), Hull()
        environment(scope, self.layout.body)
        for place in self.limits.places:
            if place.field.name in self.hull.used:
                for one in scopes(scope, place.path):
                    if place.field.name in one:
                        hull.add(place, one[place.field.name])
                        if not self.hull.keeps(place, one):
                            return False
        return all(self.hull.low[p] <= hull.low[p] and hull.high[p] <= self.hull.high[p] for p in hull.low)

    def _regrouped(self, input: str, rng: random.Random, seed: int) -> Candidate | None:
        """Some of the test cases of existing inputs, in another order."""
        if self.cases is None:
            return None
        try:
            scope = self.layout.read(input)
            other = self.layout.read(rng.choice(self.inputs))
        except Misfit:
            return None
        pool = [*scope[self.cases.key], *(other[self.cases.key] if self.is_cases else ())]
        for _ in range(TRIES if pool else 0):
            chosen = rng.sample(pool, rng.randint(1, min(len(pool), 8)))
            if not self.is_cases:
                chosen = [row for row in pool if any(row is one for one in chosen)]
            line = self.layout.body[0]
            assert isinstance(line, InputLine)
            scope[line.fields[0].name] = len(chosen)
            scope[self.cases.key] = chosen
            text = self.layout.write(scope)
            if text.split() != input.split() and not self.fault(text):
                return Candidate(text, "mutated: test cases", seed)
        return None
