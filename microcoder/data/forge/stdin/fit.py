"""The layout of the statement that fits the existing tests: what its fields are, and which counts announce lengths."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import islice

from ..reading.terms import Expression, expression
from ..space import NoSpace
from .formats import NoFormat, format_layout
from .limits import places
from .prose import prose_layouts
from .shape import Block, Field, InputLine, Layout, Misfit, Node, Scope, counted, scopes


def fitted(told: str, inputs: list[str], text: str) -> Layout:
    """The first layout that `told` may mean and that all inputs fit; NoSpace where there is none.

    `text`: what the statement says of the input and of its constraints, plain.
    """
    why = "the statement has no section on its input" if not told.strip() else "no layout was found in the statement"
    for layout in _candidates(told):
        for flat in (False, True):
            one = dataclasses.replace(layout, flat=flat)
            try:
                typed = _typed(one, [one.read(found) for found in inputs], text)
                for found in inputs:
                    if flat and _breaks(typed.write(typed.read(found))) != _breaks(found):
                        raise Misfit("the lines of a test are others than those of the statement")
                    typed.read(found)
                return typed
            except Misfit as error:
                if not flat:
                    why = f"the layout of the statement does not fit the tests: {error}"
            if _has_rest(layout.body):
                break
    raise NoSpace(why)


def _breaks(text: str) -> list[int]:
    """How many words each line has."""
    return [len(line.split()) for line in text.split("\n") if line.strip()]


def _candidates(told: str) -> Iterator[Layout]:
    try:
        layout = format_layout(told)
        yield layout
        yield Layout(_glued(layout.body))
    except NoFormat:
        pass
    found = list(islice(prose_layouts(told), 400))
    yield from found
    fixed = [Layout(body) for layout in found if (body := _with_known_counts(layout.body)) != layout.body]
    yield from fixed
    if re.search(r"(?<!by )(?<!by single )\b(?:spaces|whitespace)\b", told):  # lines of text
        for layout in [*fixed, *found]:
            body = _mapped(layout.body, lambda f, alone: dataclasses.replace(f, spaces=True) if _text(f, alone) else f)
            if body != layout.body:
                yield Layout(body)


def _with_known_counts(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The layout with N for a_1 ... a_n, and without the lengths of words that no field gives."""
    names = {place.field.name for place in places(nodes)}

    def change(field: Field, _: bool) -> Field:
        single = field.length.single if field.length else None
        length = None if single and "".join(single) == single[0] and single[0] not in names else field.length
        return dataclasses.replace(field, count=_cased(field.count, names), length=length)

    return tuple(_mapped(nodes, change))


def _cased(count: Expression | None, names: set[str]) -> Expression | None:
    """A count by a name that is no field, in the other case if that is one."""
    single = count.single if count else None
    if count is None or not single or single[1] or single[0] in names or single[0].swapcase() not in names:
        return count
    return expression(single[0].swapcase())


def _text(field: Field, alone: bool) -> bool:
    return alone and field.count is None and field.length is None and field.kind == "auto"


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
        elif isinstance(node, InputLine):
            found.append(InputLine(tuple(change(f, len(node.fields) == 1) for f in node.fields)))
        else:
            lines = tuple(InputLine(tuple(change(f, False) for f in line.fields)) for line in node.lines)
            found.append(dataclasses.replace(node, lines=lines))
    return tuple(found)


def _has_rest(nodes: tuple[Node, ...]) -> bool:
    return any(place.field.kind == "rest" for place in places(nodes))


def _typed(layout: Layout, samples: list[Scope], text: str) -> Layout:
    """The layout with the kinds of its fields, and lengths that counts announce."""
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
        if all(isinstance(v, int) for v in flat) and not stringy and not field.spaces:
            kind = "int"
        elif (
            not stringy
            and not field.spaces
            and flat
            and all(isinstance(v, int) or re.fullmatch(r"-?\d{1,18}\.\d{1,18}", v) for v in flat)
        ):
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
