"""Small changes of valid arguments: sizes, extremes, duplicates, order, signs, empty.

A list that loses or gains an element takes along the lists that must be as long, and the number that must be its
length. The caller checks what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from . import domains, trees
from .domains import Rng
from .drawer import Drawer, Drawn, Slot
from .shapes import SEQUENCES, Shape

Values = dict[str, Any]


def changed(rng: Rng, values: Values, shapes: Mapping[str, Shape], drawer: Drawer, but: Collection[str] = ()) -> str:
    """Change one thing in place, but none of these; the name of the change, or "" where nothing could be changed."""
    names = [name for name, shape in shapes.items() if shape.kind not in ("none", "mixed") and name not in but]
    if not names:
        return ""
    name = rng.choice(names)
    value, shape = values[name], shapes[name]
    if isinstance(value, bool):
        values[name] = not value
        return "turned"
    if shape.kind == "int" and isinstance(value, int):
        return _number(rng, values, name, drawer)
    if shape.kind == "float" and isinstance(value, (int, float)):
        values[name] = rng.choice(
            [shape.low, shape.high, round(rng.uniform(shape.low, shape.high), 2), float(round(value))]
        )
        return "extremes"
    if shape.kind == "str" and isinstance(value, str):
        places = drawer.bounds.characters.get(name, {})
        if places and rng.random() < 0.7:
            at = rng.choice([n for n in places if n < len(value)] or [0])
            values[name] = value[:at] + rng.choice(places.get(at, value[:1])) + value[at + 1 :]
            return "characters"
        values[name], how = _text(rng, value, drawer, name)
        _follow(values, name, drawer)
        return how
    if shape.kind == "tree" and isinstance(value, list):
        return _tree(rng, values, name, drawer)
    if isinstance(value, list):
        return _list(rng, values, name, shape, drawer)
    return ""


def _number(rng: Rng, values: Values, name: str, drawer: Drawer) -> str:
    low, high, _ = drawer.bounds.quantities.limits(name, values, values)
    low, high = (low if math.isfinite(low) else values[name] - 5), (high if math.isfinite(high) else values[name] + 5)
    how = rng.choice(["step", "step", "extremes", "random", *(["constant"] if drawer.constants else [])])
    if how == "extremes":
        values[name] = int(rng.choice([low, high]))
    elif how == "constant":
        values[name] = rng.choice(drawer.constants) + rng.choice([-1, 0, 1])
    elif how == "random":
        values[name] = domains.integer(rng, int(low), int(max(low, high)), 0.3)
    else:
        values[name] += rng.choice([-2, -1, 1, 2])
    return "extremes" if how == "extremes" else "numbers"


def _text(rng: Rng, value: str, drawer: Drawer, name: str) -> tuple[str, str]:
    alphabet = drawer.bounds.texts.get((name, None)) or "".join(sorted(set(value))) or "a"
    at = rng.randrange(len(value)) if value else 0
    match rng.randrange(9):
        case 0 | 1:
            return value[:at] + rng.choice(alphabet) + value[at + 1 :], "characters"
        case 2:
            return value[:at] + value[at + 1 :], "sizes"
        case 3:
            return value[:at] + (rng.choice(value) if value else rng.choice(alphabet)) + value[at:], "sizes"
        case 4:
            return value[:at] + value[at : at + 1] * 2 + value[at + 1 :], "duplicates"
        case 5:
            return value[::-1], "order"
        case 6:
            return "".join(rng.sample(value, len(value))), "order"
        case 7:
            return value[: rng.randint(0, len(value))], "sizes"
    other = rng.randrange(len(value)) if value else 0
    chars = list(value)
    if chars:
        chars[at], chars[other] = chars[other], chars[at]
    return "".join(chars), "order"


def _partners(values: Values, name: str, drawer: Drawer) -> list[str]:
    """Lists and strings that must be as long as this one."""
    found = {r.right for r in drawer.bounds.quantities.about.get(f"len({name})", []) if r.op == "=="}
    return [other for other in values if other != name and f"len({other})" in found]


def _follow(values: Values, name: str, drawer: Drawer) -> None:
    """Set the numbers that must be the length of this list."""
    for relation in drawer.bounds.quantities.about.get(f"len({name})", []):
        if relation.op == "==" and relation.right in values and isinstance(values[relation.right], int):
            values[relation.right] = len(values[name])


def _list(rng: Rng, values: Values, name: str, shape: Shape, drawer: Drawer) -> str:
    value = values[name]
    how = rng.choice(
        [
            "value",
            "value",
            "value",
            "delete",
            "insert",
            "duplicate",
            "swap",
            "reverse",
            "sort",
            "shuffle",
            "cut",
            "extreme",
            "inner",
            "copy",
        ]
    )
    if how in ("delete", "insert", "duplicate", "cut"):
        group = [name, *_partners(values, name, drawer)]
        if any(len(values[one]) != len(value) for one in group):
            group = [name]
        at = rng.randrange(len(value)) if value else 0
        keep = rng.randint(0, len(value))
        for one in group:
            old = values[one]
            if how == "delete":
                values[one] = old[:at] + old[at + 1 :]
            elif how == "cut":
                values[one] = old[:keep]
            else:
                new = (
                    old[at : at + 1]
                    if how == "duplicate" or isinstance(old, str)
                    else [_new(rng, one, drawer, values, old, at)]
                )
                values[one] = (
                    old[:at] + new + old[at:] if not isinstance(old, str) else old[:at] + "".join(new) + old[at:]
                )
            _follow(values, one, drawer)
        return "duplicates" if how == "duplicate" else "sizes"
    if not value:
        return ""
    at, other = rng.randrange(len(value)), rng.randrange(len(value))
    match how:
        case "swap":
            value[at], value[other] = value[other], value[at]
            return "order"
        case "reverse":
            value.reverse()
            return "order"
        case "shuffle":
            rng.shuffle(value)
            return "order"
        case "sort":
            try:
                value.sort(reverse=rng.random() < 0.3)
            except TypeError:
                return ""
            return "order"
        case "copy":
            value[at] = value[other]
            return "duplicates"
        case "extreme" if shape.item is not None and shape.item.kind == "int":
            low, high, _ = drawer.bounds.quantities.limits(f"{name}[{name}__0]", values, values)
            value[at] = int(rng.choice([low, high])) if math.isfinite(low) and math.isfinite(high) else value[at]
            return "extremes"
        case "inner" if isinstance(value[at], list) and value[at]:
            return _inner(rng, value[at])
    value[at] = _new(rng, name, drawer, values, value, at)
    return "values"


def _inner(rng: Rng, row: list[Any]) -> str:
    at, other = rng.randrange(len(row)), rng.randrange(len(row))
    match rng.randrange(5):
        case 0:
            row[at], row[other] = row[other], row[at]
            return "order"
        case 1:
            row[at] = row[other]
            return "duplicates"
        case 2:
            del row[at]
            return "sizes"
        case 3:
            row.insert(at, row[other])
            return "sizes"
    if type(row[at]) is int:
        row[at] += rng.choice([-1, 1])
    return "values"


def _new(rng: Rng, name: str, drawer: Drawer, values: Values, old: list[Any], at: int) -> Any:
    """Another element for a list: a number a step away, one of the others, or one that is drawn."""
    shape = drawer.bounds.shapes[name]
    pick = rng.random()
    if old and type(old[at]) is int and drawer.constants and rng.random() < 0.1:
        return rng.choice(drawer.constants) + rng.choice([-1, 0, 1])
    if old and type(old[at]) is int and pick < 0.5:
        return -old[at] if pick < 0.08 else old[at] + rng.choice([-2, -1, 1, 2])
    if old and isinstance(old[at], str) and pick < 0.6:
        return _text(rng, old[at], drawer, name)[0]
    if shape.item is None or shape.kind not in (*SEQUENCES, "links"):
        return rng.choice(old) if old else 0
    if shape.kind == "links":
        low, high = drawer.bounds.nodes[name]["value"]
        return domains.integer(rng, int(low), int(high), 0.2)
    draw = Drawn(rng, 0.2, {**values, f"{name}__0": at})
    if name in drawer.bounds.rows:
        row = list(rng.choice(old)) if old else None
        if row and pick < 0.7:
            column = rng.randrange(len(row))
            parts = shape.item.items or [shape.item.item] * len(row)
            part = parts[column]
            if part is not None:
                row[column] = drawer.value(draw, Slot(name, f"{name}[{name}__0][{column}]", part, 2))
            return row
        return drawer.table(draw, Slot(name, name, shape), 1)[0]
    if shape.item.kind in SEQUENCES and old:
        return list(rng.choice(old))
    return drawer.value(draw, Slot(name, f"{name}[{name}__0]", shape.item, 1))


def _tree(rng: Rng, values: Values, name: str, drawer: Drawer) -> str:
    value = values[name]
    places = [n for n, one in enumerate(value) if one is not None]
    low, high = drawer.bounds.nodes[name]["value"]
    how = rng.choice(["value", "value", "swap", "shape", "cut", "copy"])
    if not places:
        return ""
    at, other = rng.choice(places), rng.choice(places)
    match how:
        case "swap":
            value[at], value[other] = value[other], value[at]
            return "order"
        case "copy":
            value[at] = value[other]
            return "duplicates"
        case "shape":
            values[name] = trees.levels(rng, [value[n] for n in places])
            return "shape"
        case "cut":
            new = value[: places[rng.randrange(len(places))]]
            while new and new[-1] is None:
                new.pop()
            values[name] = new
            return "sizes"
    if isinstance(value[at], int):
        value[at] = rng.choice([value[at] + 1, value[at] - 1, domains.integer(rng, int(low), int(high), 0.2)])
    return "values"
