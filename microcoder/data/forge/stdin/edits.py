"""Small changes of an existing input: order, duplicates, one value, one row more or less."""

from __future__ import annotations

from typing import Any

from .draws import Draw
from .limits import Spot
from .shape import Block, InputLine, Node, Scope, counted, scopes


def changed(scope: Scope, making: Draw) -> str:
    """Change one thing in place, or up to three; what was done, "" for nothing."""
    done = [_change(scope, making) for _ in range(making.rng.choice((1, 1, 1, 2, 3)))]
    return next(filter(None, done), "")


def _change(scope: Scope, making: Draw) -> str:
    rng = making.rng
    place = rng.choice(making.limits.places)
    found = [one for one in scopes(scope, place.path) if place.field.name in one]
    if not found:
        return ""
    one = rng.choice(found)
    name, value = place.field.name, one[place.field.name]
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
        value[at] = _other(making, place, value[at], one)
        return "one value"
    if place.name in making.counts:
        return _resized(scope, place.field.name, one, making)
    one[name] = _other(making, place, value, one)
    return "one value"


def _other(making: Draw, place: Spot, value: Any, one: Scope) -> Any:
    rng = making.rng
    if place.field.kind == "word":
        if place in making.known.choices:
            return rng.choice(making.known.choices[place])
        letters = list(value)
        if not letters:
            return value
        at, other = rng.randrange(len(letters)), rng.randrange(len(letters))
        free = ("shorter", "longer", "twice") if place.field.length is None else ()
        kind = rng.choice(("letter", "letter", "copy", "swap", "shuffle", *free))
        if kind == "letter":
            letters[at] = rng.choice(making.letters(place))
        elif kind == "copy":
            letters[at] = letters[other]
        elif kind == "swap":
            letters[at], letters[other] = letters[other], letters[at]
        elif kind == "shuffle":
            rng.shuffle(letters)
        elif kind == "shorter":
            del letters[at]
        else:
            letters.insert(at, rng.choice(making.letters(place)) if kind == "longer" else letters[at])
        return "".join(letters) or value
    if place.field.kind == "real":
        return rng.choice(list(making.hull.words[place])) if place in making.hull.words else value
    low, high, unequal = making.range(place, {k: v for k, v in one.env.items() if k != place.name})
    close = [v for v in (value - 1, value + 1, -value) if low <= v <= high]
    if close and rng.random() < 0.5:
        return rng.choice(close)
    return making.value(place, rng.choice(("wide", "small", "ends", "log")), low, high, unequal)


def _resized(scope: Scope, name: str, one: Scope, making: Draw) -> str:
    """One more or one fewer of what a count announces."""
    value = one[name]
    grow = making.rng.random() < 0.5
    one[name] = value + 1 if grow else value - 1
    if one[name] < 0:
        return ""
    _fit(making.layout.body, scope, (), making)
    return "longer" if grow else "shorter"


def _fit(nodes: tuple[Node, ...], scope: Scope, path: tuple[str, ...], making: Draw) -> None:
    """Cut or fill up what the counts announce."""
    rng = making.rng
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
                _fit(node.body, child, (*path, node.key), making)
            continue
        line = node if isinstance(node, InputLine) else node.lines[scope[node.key]]
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
