"""Draws arguments of a function: first the lengths and sizes, then what the lists hold, last the other numbers.

Lengths follow from the size that is asked for; numbers that bound others (n nodes, m rows) are lengths too. The last
numbers are often taken from the lists (an element, a sum of two, the length), because there programs go wrong.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..reading.relations import Relation, names, narrowed
from . import domains, trees
from .bounds import Bounds
from .domains import Rng
from .places import leaves
from .shapes import SEQUENCES, Shape

MOST = 200_000  # values in one argument


@dataclass(slots=True)
class Drawn:
    """One draw: the values and lengths so far."""

    rng: Rng
    size: float
    values: dict[str, Any] = field(default_factory=dict)
    chosen: Mapping[str, float] = field(default_factory=dict)  # lengths, and numbers that bound others
    known: dict[str, tuple[float, float, list[Any]]] = field(default_factory=dict)  # limits that are worked out


@dataclass(frozen=True, slots=True)
class Slot:
    """What is drawn: `source` is its term, `depth` how many subscripts that has."""

    name: str  # of the parameter
    source: str
    shape: Shape
    depth: int = 0

    def item(self, subscript: str | int, shape: Shape, depth: int | None = None) -> Slot:
        deeper = self.depth + 1 if depth is None else depth
        return Slot(self.name, f"{self.source}[{subscript}]", shape, deeper)

    @property
    def column(self) -> int | None:
        return int(self.source[self.source.rfind("[") + 1 : -1]) if re.search(r"\[\d+\]$", self.source) else None


class Drawer:
    """Draws values that mostly keep to the bounds; the caller checks them."""

    def __init__(self, bounds: Bounds, constants: Sequence[int] = ()):
        self.bounds = bounds
        self.constants = constants  # whole numbers that the references calculate with
        self.parts: dict[str, tuple[list[Relation], list[Relation]]] = {}

    def draw(self, rng: Rng, size: float) -> dict[str, Any] | None:
        """Arguments by name; None where the lengths fit no bounds."""
        bounds = self.bounds
        chosen: dict[str, float] = {}
        total = max(30, int(MOST * size))
        for quantity in bounds.first:
            value = self._length(rng, quantity, chosen, size, total)
            if value is None:
                return None
            chosen[quantity] = value
        draw = Drawn(rng, size, bounds.stand_ins(chosen), chosen)
        for name in self._by_need():
            if name in chosen and bounds.shapes[name].kind == "int":
                draw.values[name] = int(chosen[name])
            elif name not in bounds.late:
                draw.values[name] = self.value(draw, Slot(name, name, bounds.shapes[name]))
        for name in bounds.late:
            found = self._late(draw, name)
            if found is None:
                return None
            draw.values[name] = found
        self._weave(draw)
        for one in bounds.properties:
            one.mend(rng, draw.values)
        return {name: draw.values[name] for name in bounds.shapes}

    def _weave(self, draw: Drawn) -> None:
        """Now and then, make a text of the words of a list, or take the words of a list from another list."""
        rng, shapes, values = draw.rng, self.bounds.shapes, draw.values
        lists = [
            name for name, shape in shapes.items()
            if shape.kind in SEQUENCES and shape.item is not None and shape.item.kind == "str"
            and any(values[name])  # of empty words alone no text would ever be made
            and (name, None) not in self.bounds.choices
        ]  # fmt: skip
        texts = [name for name, shape in shapes.items() if shape.kind == "str" and values[name]]
        if not lists or rng.random() > 0.4:
            return
        source = rng.choice(lists)
        for name in texts:
            room = len(values[name])
            low, _, _ = self.bounds.quantities.limits(f"len({name})", values, values)
            woven = ""
            while len(woven) < room and len(new := woven + rng.choice(values[source])) <= room + 3:
                woven = new
            woven = woven[:room]
            if len(woven) >= max(1, low) and set(self.bounds.texts.get((name, None), woven)).issuperset(woven):
                values[name] = woven
        for name in lists:
            if name != source and rng.random() < 0.7:
                part = rng.choice([1, 2, len(values[source])])
                pool = [*values[name], *rng.sample(values[source], min(part, len(values[source]))) * 2]
                values[name] = [rng.choice(pool) for _ in values[name]]

    def _by_need(self) -> list[str]:
        """Parameters, each after those whose values bound its own."""
        order = list(self.bounds.shapes)
        for name in list(order):
            for quantity, found in self.bounds.quantities.about.items():
                if not quantity.startswith(f"{name}["):
                    continue
                for relation in found:
                    for other in names(relation.right) & set(order):
                        if other != name and f"{other}[" in relation.right and order.index(other) > order.index(name):
                            order.remove(name)
                            order.insert(order.index(other) + 1, name)
        return order

    # --- lengths and numbers

    def _length(self, rng: Rng, quantity: str, chosen: dict[str, float], size: float, total: int) -> int | None:
        bounds = self.bounds
        lows = bounds.stand_ins({**{q: pair[0] for q, pair in bounds.fixed.items()}, **chosen})
        highs = bounds.stand_ins({**{q: pair[1] for q, pair in bounds.fixed.items()}, **chosen})
        low, high, unequal = bounds.quantities.limits(quantity, lows, highs)
        low, high = max(low, bounds.fixed[quantity][0]), min(high, bounds.fixed[quantity][1])
        if low > high:
            return None
        if quantity.count("[") or "len(" not in quantity:
            outer = max(
                (chosen[q] for q in chosen if q.startswith("len(") and q[4:-1] == quantity[4:].split("[")[0]), default=1
            )
            all_of_it = bounds.quantities.limits(f"total({quantity[4:].split('[')[0]})", {}, {})[1]
            high = min(high, max(low, min(total, all_of_it) // max(1, outer)))
        width = bounds.rows.get(quantity[4:-1], 1) if quantity.startswith("len(") else 1
        high = min(high, max(low, total // (2 * width) if width > 1 else total))
        step, rest = bounds.steps.get(quantity, (1, 0))
        for _ in range(8):
            value = domains.length(rng, int(low), int(high), size)
            value -= (value - rest) % step
            if value < low:
                value += step
            if low <= value <= high and value not in unequal:
                return value
        return None

    def _late(self, draw: Drawn, name: str) -> int | None:
        """A number that bounds no other: often one that has to do with the lists."""
        bounds, rng = self.bounds, draw.rng
        if (name, None) in bounds.choices:
            return rng.choice(bounds.choices[name, None])
        low, high, unequal = bounds.quantities.limits(name, draw.values, draw.values)
        low = low if math.isfinite(low) else bounds.fixed[name][0]
        high = high if math.isfinite(high) else bounds.fixed[name][1]
        if low > high:
            return None
        step, rest = bounds.steps.get(name, (1, 0))
        for _ in range(8):
            value = domains.integer(rng, int(low), int(high), draw.size)
            if rng.random() < 0.5:
                value = _related(rng, draw.values, name, value)
            elif self.constants and rng.random() < 0.3:
                value = rng.choice(self.constants) + rng.choice([-1, 0, 0, 1])
            value -= (value - rest) % step
            if low <= value <= high and value not in unequal:
                return value
        return int(low)

    def _limits(self, draw: Drawn, source: str) -> tuple[float, float, list[Any]]:
        """Bounds of an element or a column; what is the same for all elements is worked out once in a draw."""
        if source not in self.parts:
            name = source.removeprefix("len(").partition("[")[0].rstrip(")")
            found = list(self.bounds.quantities.about.get(source, []))
            if re.search(r"\[\d+\]$", source):  # a column: what holds for all columns holds too
                every = f"[{name}__{source.count('[') - 1}]"
                found += self.bounds.quantities.about.get(re.sub(r"\[\d+\]$", every, source), [])
            own = [one for one in found if re.search(rf"\b{name}(?:__\d)?\b", one.right)]
            self.parts[source] = ([one for one in found if one not in own], own)
        same, own = self.parts[source]
        if source not in draw.known:
            draw.known[source] = narrowed(-math.inf, math.inf, same, draw.values)
        if not own:
            return draw.known[source]
        low, high, unequal = draw.known[source]
        low, high, more = narrowed(low, high, own, draw.values)
        return low, high, unequal + more

    def _integer(self, draw: Drawn, source: str) -> int:
        low, high, unequal = self._limits(draw, source)
        low, high = (low if math.isfinite(low) else -100), (high if math.isfinite(high) else 100)
        value = domains.integer(draw.rng, int(low), int(max(low, high)), draw.size)
        for _ in range(4):
            if value not in unequal:
                break
            value = draw.rng.randint(int(low), int(max(low, high)))
        return value

    # --- values

    def value(self, draw: Drawn, slot: Slot) -> Any:
        """A value for a slot."""
        rng, name, shape = draw.rng, slot.name, slot.shape
        if shape.optional and rng.random() < 0.1:
            return None
        choices = self.bounds.choices
        allowed = choices.get((name, slot.column)) or (choices.get((name, None)) if slot.column is None else None)
        match shape.kind:
            case "int":
                return rng.choice(allowed) if allowed else self._integer(draw, slot.source)
            case "float":
                low, high, _ = self.bounds.quantities.limits(slot.source, draw.values, draw.values)
                low, high = max(low, min(shape.low, low if math.isfinite(low) else shape.low)), high
                places = max((len(str(one).partition(".")[2]) for one in shape.pool), default=1)
                low, high = (low if math.isfinite(low) else -100.0), (high if math.isfinite(high) else 100.0)
                return domains.decimals(rng, 1, low, high, min(places, 6))[0]
            case "bool":
                return rng.random() < 0.5
            case "str":
                if allowed and all(isinstance(one, str) for one in allowed):
                    return rng.choice(allowed)
                return self._text(draw, slot)
            case "tree" | "links":
                return self._linked(draw, slot)
            case "list" | "tuple" | "set":
                return self._list(draw, slot)
            case "dict":
                return self._dict(draw, slot)
        return rng.choice(shape.pool) if shape.pool else None

    def _dict(self, draw: Drawn, slot: Slot) -> Any:
        """A dict of a test, some values of which are drawn anew."""
        rng, shape = draw.rng, slot.shape
        example = rng.choice(shape.pool) if shape.pool else {}
        pairs = list(example.items()) if isinstance(example, dict) else [list(one) for one in example]
        new = [
            [
                key,
                self.value(draw, Slot(slot.name, "", shape.item, 9))
                if shape.item and shape.item.kind in ("int", "bool") and shape.item.pool and rng.random() < 0.5
                else one,
            ]
            for key, one in pairs
        ]
        return dict(new) if isinstance(example, dict) else new

    def _list(self, draw: Drawn, slot: Slot) -> list[Any]:
        bounds, rng, values, chosen = self.bounds, draw.rng, draw.values, draw.chosen
        name, depth, shape = slot.name, slot.depth, slot.shape
        quantity = f"len({slot.source})"
        if quantity in chosen and (depth == 0 or name in bounds.even_rows or rng.random() < 0.2):
            count = int(chosen[quantity])
        else:
            low, high, _ = self._limits(draw, quantity) if depth else bounds.quantities.limits(quantity, values, values)
            top = chosen.get(quantity, high)
            count = rng.randint(int(max(0, low)), int(max(low, min(high, top, MOST)))) if math.isfinite(low) else 0
        item = shape.item
        if depth == 0 and name in bounds.rows:
            return self.table(draw, slot, count)
        if shape.items:
            return [self.value(draw, slot.item(n, one)) for n, one in enumerate(shape.items)]
        if item is None:
            return []
        inner = slot.item(f"{name}__{depth}", item)
        allowed = bounds.choices.get((name, None))
        if item.kind == "mixed" and any(shape.pool):
            one = rng.choice([one for one in shape.pool if one])
            return [rng.choice(one) for _ in range(count)]
        different = (name, depth) in bounds.distinct or shape.kind == "set"
        if item.kind == "int" and not allowed:
            return self._integers(draw, inner, count, different)
        if allowed and item.kind != "list":
            part = rng.sample(allowed, rng.randint(1, len(allowed))) if rng.random() < 0.4 else allowed
            return [rng.choice(part) for _ in range(count)]
        out: list[Any] = []
        seen: set[str] = set()
        for n in range(count):
            values[f"{name}__{depth}"] = n
            for _ in range(6):
                new = self.value(draw, inner)
                if out and item.kind == "str" and rng.random() < 0.35:
                    new = domains.alike(rng, rng.choice(out), new, name in bounds.even_rows)
                elif out and rng.random() < 0.1 and name not in bounds.even_rows:
                    new = rng.choice(out)
                if not different:
                    break
                if repr(new) not in seen:
                    break
            out.append(new)
            seen.add(repr(new))
        values.pop(f"{name}__{depth}", None)
        return out

    def _integers(self, draw: Drawn, slot: Slot, count: int, different: bool) -> list[int]:
        """The numbers of a list; `slot` is that of its elements."""
        rng, values, name, depth = draw.rng, draw.values, slot.name, slot.depth - 1
        index = f"{name}__{depth}"
        places = [f"{name}[{n}]" for n in range(count)] if depth == 0 and count <= 8 else []
        if any(one in self.bounds.quantities.about for one in places):
            return [self._integer(draw, one) for one in places]
        about = self.bounds.quantities.about.get(slot.source, [])
        if any(index in relation.right for relation in about):
            out: list[int] = []
            before = values.get(name)
            for n in range(count):
                values[index] = n
                if depth == 0:
                    values[name] = out
                out.append(self._integer(draw, slot.source))
            values.pop(index, None)
            if depth == 0:
                values[name] = before
            return out
        low, high, unequal = self._limits(draw, slot.source)
        a, b = int(low) if math.isfinite(low) else -100, int(high) if math.isfinite(high) else 100
        if a > b:
            return []
        most = self.bounds.quantities.limits(f"sum({name})", {}, {})[1] if depth == 0 and a >= 0 else math.inf
        if math.isfinite(most) and count * b > most:
            b = max(a, int(most) // max(1, count))
        new = domains.distinct(rng, count, a, b, draw.size) if different else None
        if new is None:
            new = domains.integers(rng, count, a, b, draw.size)
        if unequal:
            others = [one for one in (a, b, 1, -1, 2) if a <= one <= b and one not in unequal]
            new = [rng.choice(others) if one in unequal and others else one for one in new]
        return new

    def table(self, draw: Drawn, slot: Slot, count: int) -> list[Any]:
        """Rows whose places are drawn one after the other."""
        rng, values, name = draw.rng, draw.values, slot.name
        inner, width = slot.shape.item, self.bounds.rows[name]
        rows: list[Any] = []
        seen: set[Any] = set()
        before = values.get(name)
        values[name] = rows
        draw = replace(draw, size=draw.size * (0.3 if rng.random() < 0.4 else 1))
        for n in range(count):
            values[f"{name}__0"] = n
            for _ in range(6):
                row: list[Any] = []
                rows.append(row)
                for column in range(width):
                    part = inner.items[column] if inner and inner.items else inner.item if inner else None
                    if part is not None:
                        row.append(self.value(draw, Slot(name, f"{name}[{name}__0][{column}]", part, 2)))
                key = repr(row)
                if key not in seen or rng.random() < 0.2:
                    seen.add(key)
                    break
                rows.pop()
            else:
                rows.append(row)
        values.pop(f"{name}__0", None)
        values[name] = before
        return rows

    def _text(self, draw: Drawn, slot: Slot) -> str:
        text, places = self._any_text(draw, slot), self.bounds.characters.get(slot.name, {})
        if slot.depth == 0 and places:
            text = "".join(
                char if char in places.get(n, char) else draw.rng.choice(places[n]) for n, char in enumerate(text)
            )
        return text

    def _any_text(self, draw: Drawn, slot: Slot) -> str:
        bounds, rng, name = self.bounds, draw.rng, slot.name
        quantity = f"len({slot.source})"
        alphabet = bounds.texts.get((name, slot.column)) or bounds.texts.get((name, None)) or string.ascii_lowercase
        if quantity in draw.chosen and (slot.depth == 0 or name in bounds.even_rows):
            count = int(draw.chosen[quantity])
        else:
            low, high, _ = self._limits(draw, quantity)
            high = min(high, max(low, draw.chosen.get(quantity, high)))
            count = 3
            if math.isfinite(low):
                count = domains.length(rng, int(max(0, low)), int(max(0, low, min(high, MOST))), draw.size)
        if slot.depth == 0 and rng.random() < 0.4:
            others = [one for other, one in draw.values.items() if isinstance(one, str) and other != name and one]
            if others:
                new = domains.from_other(rng, rng.choice(others), count)
                if set(alphabet).issuperset(new):
                    return new
        if " " in alphabet and len(alphabet) > 3 and rng.random() < 0.7:
            parts = [domains.text(rng, rng.randint(1, 5), alphabet.replace(" ", "")) for _ in range(count // 3 + 1)]
            return (" ".join(parts))[:count].ljust(count, alphabet[-1])
        if (name, slot.depth) in bounds.distinct and count <= len(alphabet):
            return "".join(rng.sample(alphabet, count))
        return domains.text(rng, count, alphabet, draw.size)

    def _linked(self, draw: Drawn, slot: Slot) -> list[Any]:
        """The values of a tree or of a linked list."""
        rng, size, name, shape = draw.rng, draw.size, slot.name, slot.shape
        limits = self.bounds.nodes[name]
        low, high = limits["count"]
        count = domains.length(rng, int(low), int(min(high, MOST)), size)
        a, b = limits["value"]
        different = (name, 0) in self.bounds.distinct
        allowed = self.bounds.choices.get((name, None))
        if shape.item is None or shape.item.kind != "int":
            pool = shape.item.pool if shape.item else []
            held: list[Any] = [rng.choice(pool) for _ in range(count)] if pool else []
        elif allowed:
            held = [rng.choice(allowed) for _ in range(count)]
        else:
            held = (domains.distinct(rng, count, int(a), int(b), size) if different else None) or domains.integers(
                rng, count, int(a), int(b), size
            )
        if shape.kind == "links":
            return held
        deepest = limits["depth"][1]
        return trees.levels(rng, held, int(min(deepest, 900)))


def _related(rng: Rng, values: Mapping[str, Any], name: str, value: int) -> int:
    """A number from the other arguments: an element, a sum of two, a length."""
    lists = [one for other, one in values.items() if other != name and isinstance(one, list) and one]
    pools = [[x for x in leaves(one[:50]) if type(x) is int] for one in lists]
    pools = [pool for pool in pools if pool]
    if not pools:
        texts = [one for other, one in values.items() if other != name and isinstance(one, (str, list)) and one]
        return len(rng.choice(texts)) - rng.choice([0, 0, 1, 2]) if texts else value
    pool = rng.choice(pools)
    match rng.randrange(6):
        case 0:
            return rng.choice(pool)
        case 1:
            return rng.choice(pool) + rng.choice(pool)
        case 2:
            return sum(pool) // rng.choice([1, 2, 3])
        case 3:
            return rng.choice(pool) + rng.choice([-1, 1])
        case 4:
            return len(rng.choice(lists)) - rng.choice([0, 1])
    return abs(rng.choice(pool) - rng.choice(pool))
