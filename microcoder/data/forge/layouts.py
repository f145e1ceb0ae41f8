"""The inputs that a stdin problem allows: a layout from its statement and its tests, values within its constraints.

    space = stdin_space(problem, references)

1. The layout comes from the format or the prose of the statement's Input section; all existing tests must fit it.
2. Bounds come from the constraints. A value that nothing bounds stays within the hull of the existing tests.
3. Guarantees in words (distinct, a tree, the sum over all test cases) are kept to. Where one is not understood, inputs
   are not drawn freely: `draw` and `near` then only leave out, repeat and reorder whole test cases of existing inputs.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from itertools import islice

from ...schema import Problem
from .draws import ELEMENTS, Draw, Hull, Retry
from .formats import NoFormat, format_layout
from .guarantees import guarantees
from .headings import plain, sections, sentences
from .limits import Limits, environment, places
from .prose import prose_layouts
from .shape import Block, Expression, Field, Layout, Line, Misfit, Node, Scope, counted, expression, scopes
from .space import Candidate, NoSpace

TRIES = 30
LONGEST = 1 << 20  # characters of an existing test that is learnt from


def stdin_space(problem: Problem, references: list[str] | None = None) -> StdinSpace:
    """The space of a stdin problem; NoSpace with the reason where there is none."""
    inputs = sorted({test.input for test in problem.tests}, key=len)
    if not inputs:
        raise NoSpace("there are no tests to learn a layout from")
    known = [text for text in inputs if len(text) <= LONGEST] or inputs[:1]
    told, limits = sections(problem.statement)
    layout = _layout(told or problem.statement, known)
    return StdinSpace(layout, plain(told), plain(limits), known)


def _layout(told: str, inputs: list[str]) -> Layout:
    why = "the statement has no section on its input" if not told.strip() else "no layout was found in the statement"
    for layout in _candidates(told):
        for flat in (False, True):
            one = dataclasses.replace(layout, flat=flat)
            try:
                typed = _typed(one, [one.read(text) for text in inputs], told)
                for text in inputs:
                    typed.read(text)
                return typed
            except Misfit as error:
                if not flat:
                    why = f"the layout of the statement does not fit the tests: {error}"
            if _has_rest(layout.body):
                break
    raise NoSpace(why)


def _candidates(told: str) -> Iterator[Layout]:
    try:
        layout = format_layout(told)
        yield layout
        yield Layout(_glued(layout.body))
    except NoFormat:
        pass
    yield from islice(prose_layouts(told), 400)


def _glued(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The layout with lines of one array as words."""
    return _mapped(
        nodes, lambda f, alone: dataclasses.replace(f, count=None, length=f.count) if f.count and alone else f
    )


def _mapped(nodes, change):  # type: ignore[no-untyped-def]
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            found.append(dataclasses.replace(node, body=_mapped(node.body, change)))
        elif isinstance(node, Line):
            found.append(Line(tuple(change(f, len(node.fields) == 1) for f in node.fields)))
        else:
            lines = tuple(Line(tuple(change(f, False) for f in line.fields)) for line in node.lines)
            found.append(dataclasses.replace(node, lines=lines))
    return tuple(found)


def _has_rest(nodes: tuple[Node, ...]) -> bool:
    return any(place.field.kind == "rest" for place in places(nodes))


def _typed(layout: Layout, samples: list[Scope], told: str) -> Layout:
    """The layout with the kinds of its fields, and lengths that counts announce."""
    text = plain(told)
    kinds: dict[str, Field] = {}
    for place in places(layout.body):
        field = place.field
        values = [one[field.name] for scope in samples for one in scopes(scope, place.path) if field.name in one]
        flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
        if field.kind == "rest":
            known = _announced([(one, len(one[field.name])) for s in samples for one in scopes(s, place.path)], layout)
            if known is None:
                raise Misfit(f"nothing says how many values {field.name} has")
            kinds[field.name] = dataclasses.replace(field, kind="int", count=known)
            continue
        name = re.escape(field.name)
        stringy = field.length is not None or bool(
            re.search(
                (
                    rf"(?:strings?|words?|characters?) {name}(?:_\w|_\{{\w\}})?(?![\w])|(?<!\w){name}(?:_\w)? (?:is"
                    r"|are) (?:an? )?(?:\w+ )?strings?\b"
                ),
                text,
            )
        )
        if all(isinstance(v, int) for v in flat) and not stringy:
            kind = "int"
        elif not stringy and flat and all(isinstance(v, int) or re.fullmatch(r"-?\d{1,18}\.\d{1,18}", v) for v in flat):
            kind = "real"
        else:
            kind = "word"
        old = kinds.get(field.name)
        if old is not None and old.kind != kind:
            kind = "word"
        length = field.length
        if kind == "word" and length is None and field.count is None:
            lengths = [
                (one, len(str(one[field.name]))) for s in samples for one in scopes(s, place.path) if field.name in one
            ]
            length = _announced(lengths, layout, text)
        kinds[field.name] = dataclasses.replace(field, kind=kind, length=length)
    body = _mapped(layout.body, lambda field, _: _as_known(field, kinds))
    typed = dataclasses.replace(layout, body=body)
    for place in places(typed.body):
        if place.field.length is not None:
            for scope in samples:
                for one in scopes(scope, place.path):
                    found = one.get(place.field.name, [])
                    for word in found if isinstance(found, list) else [found]:
                        if counted(place.field.length, one) != len(str(word)):
                            raise Misfit(f"{place.field.name} is not as long as {place.field.length.text}")
    return typed


def _as_known(field: Field, kinds: dict[str, Field]) -> Field:
    if field.kind == "tag":
        return field
    known = kinds[field.name]
    count = known.count if field.kind == "rest" else field.count
    return dataclasses.replace(field, kind=known.kind, length=known.length, count=count)


def _announced(lengths: list[tuple[Scope, int]], layout: Layout, text: str = "") -> Expression | None:
    """The value that every length is equal to, if there is one. Lengths that are all alike prove nothing."""
    names: list[str] = []
    for scope, _ in lengths[:1]:
        at: Scope | None = scope
        while at is not None:
            names += [name for name, value in at.items() if isinstance(value, int) and not name.startswith("#")]
            at = at.parent
    for name in names:
        for factor in ("", "2*"):
            count = expression(f"{factor}{name}")
            try:
                if all(counted(count, scope) == length for scope, length in lengths):
                    told = re.search(
                        rf"length (?:of )?{re.escape(factor[:1])}{re.escape(name)}\b|length-{re.escape(name)}\b", text
                    )
                    if len({length for _, length in lengths}) > 1 or told:
                        return count
            except Misfit:
                continue
    return None


class StdinSpace:
    """The inputs that a layout and the constraints of its fields allow."""

    def __init__(self, layout: Layout, told: str, constraints: str, inputs: list[str]) -> None:
        self.layout, self.inputs = layout, inputs
        self.unread: list[str] = []
        prose = sentences(told)
        bullets = [re.sub(r"^[-*•] ", "", " ".join(line.split())) for line in constraints.split("\n") if line.strip()]
        texts = [*prose, *bullets]
        self.limits = Limits(layout, {text: _relating(text) for text in texts})
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
        self.unread += self.known.unread
        self.restricted = bool(self.known.unread)
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
        if len(body) == 2 and isinstance(body[0], Line) and isinstance(body[1], Block) and len(body[0].fields) == 1:
            if body[1].count.text.strip() == body[0].fields[0].name:
                return body[1]
        return None

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
                by = self._changed(scope, own)
                text = self.layout.write(scope)
            except (Misfit, Retry):
                continue
            if by and text.split() != input.split() and not self.fault(text) and self._in_hull(text):
                return Candidate(text, f"mutated: {by}", seed)
        return None

    def _in_hull(self, text: str) -> bool:
        """Whether the fields that nothing bounds stay within the hull of the existing tests."""
        scope, hull = self.layout.read(text), Hull()
        for place in self.limits.places:
            if place.field.name in self.hull.used:
                for one in scopes(scope, place.path):
                    if place.field.name in one:
                        hull.add(place, one[place.field.name])
        return all(self.hull.low[p] <= hull.low[p] and hull.high[p] <= self.hull.high[p] for p in hull.low)

    # --- small changes

    def _regrouped(self, input: str, rng: random.Random, seed: int) -> Candidate | None:
        """Some of the test cases of existing inputs, in another order."""
        if self.cases is None:
            return None
        try:
            scope = self.layout.read(input)
            other = self.layout.read(rng.choice(self.inputs))
        except Misfit:
            return None
        pool = [*scope[self.cases.key], *other[self.cases.key]]
        for _ in range(TRIES):
            chosen = rng.sample(pool, rng.randint(1, min(len(pool), 8)))
            line = self.layout.body[0]
            assert isinstance(line, Line)
            scope[line.fields[0].name] = len(chosen)
            scope[self.cases.key] = chosen
            text = self.layout.write(scope)
            if text.split() != input.split() and not self.fault(text):
                return Candidate(text, "mutated: test cases", seed)
        return None

    def _changed(self, scope: Scope, rng: random.Random) -> str:
        """Change something in place; what was done, "" for nothing."""
        place = rng.choice(self.limits.places)
        found = [one for one in scopes(scope, place.path) if place.field.name in one]
        if not found:
            return ""
        one = rng.choice(found)
        name, value = place.field.name, one[place.field.name]
        making = Draw(self.layout, self.limits, self.known, self.hull, rng, 0.2)
        if isinstance(value, list) and len(value) > 1 and rng.random() < 0.6:
            kind = rng.choice(("order", "reverse", "duplicates", "equal", "swap"))
            if kind == "order":
                value.sort()
            elif kind == "reverse":
                value.reverse()
            elif kind == "duplicates":
                value[rng.randrange(len(value))] = rng.choice(value)
            elif kind == "equal":
                value[:] = [rng.choice(value)] * len(value)
            else:
                a, b = rng.sample(range(len(value)), 2)
                value[a], value[b] = value[b], value[a]
            return kind
        if isinstance(value, list):
            if not value:
                return ""
            at = rng.randrange(len(value))
            value[at] = self._other(making, place, value[at], one)
            return "one value"
        if place.name in making.counts:
            return self._resized(scope, place.field.name, one, making, rng)
        one[name] = self._other(making, place, value, one)
        return "one value"

    def _other(self, making: Draw, place, value, one: Scope):  # type: ignore[no-untyped-def]
        rng = making.rng
        if place.field.kind == "word":
            if place in self.known.choices:
                return rng.choice(self.known.choices[place])
            letters = list(value)
            if not letters:
                return value
            at = rng.randrange(len(letters))
            kind = rng.random()
            if kind < 0.5:
                letters[at] = rng.choice(making.letters(place))
            elif kind < 0.75 and place.field.length is None:
                del letters[at]
            elif place.field.length is None:
                letters.insert(at, rng.choice(making.letters(place)))
            else:
                rng.shuffle(letters)
            return "".join(letters) or value
        if place.field.kind == "real":
            return rng.choice(list(self.hull.words[place])) if place in self.hull.words else value
        low, high, unequal = making.range(place, {k: v for k, v in one.env.items() if k != place.name})
        close = [v for v in (value - 1, value + 1, -value) if low <= v <= high]
        if close and rng.random() < 0.5:
            return rng.choice(close)
        return making.value(place, rng.choice(("wide", "small", "ends", "log")), low, high, unequal)

    def _resized(self, scope: Scope, name: str, one: Scope, making: Draw, rng: random.Random) -> str:
        """One more or one fewer of what a count announces."""
        value = one[name]
        grow = rng.random() < 0.5
        one[name] = value + 1 if grow else value - 1
        if one[name] < 0:
            return ""
        self._fit(self.layout.body, scope, (), making, rng)
        return "longer" if grow else "shorter"

    def _fit(
        self, nodes: tuple[Node, ...], scope: Scope, path: tuple[str, ...], making: Draw, rng: random.Random
    ) -> None:
        """Cut or fill up what the counts announce."""
        for node in nodes:
            if isinstance(node, Block):
                children, number = scope[node.key], counted(node.count, scope)
                while len(children) > number:
                    children.pop(rng.randrange(len(children)))
                while len(children) < number:
                    child = Scope(scope)
                    making.fill(node.body, child, (*path, node.key), dict(scope.env))
                    children.append(child)
                for child in children:
                    self._fit(node.body, child, (*path, node.key), making, rng)
                continue
            line = node if isinstance(node, Line) else node.lines[scope[node.key]]
            for field in line.fields:
                place = making.places.get((path, field.name))
                if place is None:
                    continue
                if isinstance(scope[field.name], list) and field.count is not None:
                    values, number = scope[field.name], counted(field.count, scope)
                    while len(values) > number:
                        values.pop(rng.randrange(len(values)))
                    if len(values) < number:
                        values += making.one(place, field, dict(scope.env), scope)[len(values) :]
                elif field.length is not None:
                    number = counted(field.length, scope)
                    if len(scope[field.name]) != number:
                        scope[field.name] = (scope[field.name] + making.word(place, dict(scope.env), scope))[:number]


_BETWEEN = re.compile(
    r"\b([A-Za-z](?:_\w|_\{[^{}]{1,6}\})?(?:(?:, | and |, and )[A-Za-z](?:_\w)?)*) (?:is"
    r"|are) (?:an? )?(?:\w+ )?integers? (?:between|from) (\S+) (?:and|to"
    r"|through) ([^\s,.]+)"
)
_MEMBER = re.compile(r"((?:[A-Za-z](?:_\w|_\{[^{}]{1,6}\})?(?:, )?)+) ?∈ ?\{(-?\d+(?:, ?-?\d+)*)\}")
_LENGTH = re.compile(
    r"\b([A-Za-z](?:_\w)?) (?:is|are) (?:an? )?(?:\w+ )?strings?[^.]{0,60}? (?:of length "
    r"|length )?(?:between|from|at least) (\S+?) (?:and|to) (?:at most )?([^\s,.]+)"
)


def _relating(sentence: str) -> list[str]:
    """The parts of a sentence that hold relations: what stands in brackets, the rest, and what it tells in words."""
    parts, rest, depth, start = [], "", 0, 0
    for n, letter in enumerate(sentence):
        depth += (letter == "(") - (letter == ")")
        if letter == "(" and depth == 1:
            rest, start = rest + sentence[start:n], n
        elif letter == ")" and depth == 0:
            inner = sentence[start + 1 : n]
            if re.search(r"[≤<≥>≠]", inner):
                parts.append(inner)
            else:
                rest += sentence[start : n + 1]
            start = n + 1
    rest += sentence[start:]
    if re.search(r"[≤<≥>≠]|\w\|? = ", rest):
        parts.append(re.split(r"[,;]? (?:for|where|such that)\b", rest)[0] if not parts else rest)
    if found := _BETWEEN.search(sentence):
        parts += [f"{found[2]} ≤ {name} ≤ {found[3]}" for name in re.split(r", and |, | and ", found[1])]
    if (found := _MEMBER.search(sentence)) and (numbers := sorted(map(int, re.findall(r"-?\d+", found[2])))):
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            parts += [f"{numbers[0]} ≤ {name} ≤ {numbers[-1]}" for name in re.split(r", ", found[1])]
    if found := _LENGTH.search(sentence):
        parts.append(f"{found[2]} ≤ |{found[1]}| ≤ {found[3]}")
    return parts
