"""Draws arguments of a function: first the lengths and sizes, then what the lists hold, last the other numbers.

Lengths follow from the size that is asked for; numbers that bound others (n nodes, m rows) are lengths too. The last
numbers are often taken from the lists (an element, a sum of two, the length), because there programs go wrong.
"""

from __future__ import annotations

import math
import random
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from . import domains
from .domains import Rng
from .properties import Place, Property, leaves
from .quantities import NODES, Quantities, Sized, globals_in, in_order
from .relations import Relation, names, narrowed
from .shapes import SEQUENCES, Shape

MOST = 200_000  # values in one argument
_HULL = "the hull of the tests"


class Drawer:
    """Draws values that mostly keep to the constraints; the caller checks them."""

    def __init__(
        self,
        shapes: dict[str, Shape],
        quantities: Quantities,
        properties: list[Property],
        relations: Sequence[Relation],
        examples: Sequence[dict[str, Any]],
    ):
        self.shapes, self.quantities, self.examples = shapes, quantities, examples
        self.properties = list(properties)
        self.hulled: list[str] = []
        self.nodes = self._node_limits(relations)
        self.rows = {name: width for name, shape in shapes.items() if (width := self._width(name, shape))}
        self.choices = {(s.parameter, s.column): p.value for p in properties if p.name == "choices" for s in p.places}
        self.texts = {(s.parameter, s.column): p.value for p in properties if p.name == "alphabet" for s in p.places}
        self.distinct = {(s.parameter, s.depth) for p in properties if p.name == "distinct" for s in p.places}
        self.strictly = {
            (s.parameter, s.depth) for p in properties if p.name == "sorted" and "strictly" in p.value for s in p.places
        }
        self.distinct |= self.strictly
        self.steps = self._steps(properties)
        self.lengths = [q for name, shape in shapes.items() for q in _lengths(name, shape)]
        self.numbers = [name for name, shape in shapes.items() if shape.kind == "int"]
        self._bound_by_hull()
        everything = [*self.lengths, *self.numbers]
        used = {
            one
            for quantity, found in quantities.about.items()
            for relation in found
            for one in globals_in(relation.right, everything)
            if quantity != relation.right and relation.op != "!=" and quantity not in self.numbers
        }
        if any(p.name in ("tree", "connected", "acyclic") for p in properties) and "n" in self.numbers:
            used.add("n")
        self.first = in_order([q for q in everything if q in self.lengths or q in used], quantities.about)
        self.late = in_order([q for q in self.numbers if q not in self.first], quantities.about)
        self.fixed = self._fixed()
        self.known: dict[str, tuple[float, float, list[Any]]] = {}  # of this draw
        self.parts: dict[str, tuple[list[Relation], list[Relation]]] = {}
        self.even_rows = {name for name in shapes if self._rectangular(name)}

    # --- what bounds what

    def _width(self, name: str, shape: Shape) -> int:
        """How many columns the rows of a table have; 0 for everything else."""
        inner = shape.item
        if shape.kind not in SEQUENCES or inner is None or inner.kind not in SEQUENCES:
            return 0
        if inner.items:
            return len(inner.items)
        about = self.quantities.about
        columns = [n for n in range(8) if f"{name}[{name}__0][{n}]" in about]
        low, high, _ = self.quantities.limits(f"len({name}[{name}__0])", {}, {})
        if low == high and 0 < low <= 8:
            return int(low)
        same = inner.shortest == inner.longest
        if (
            same
            and inner.longest <= 8
            and (columns or (inner.longest <= 4 and f"len({name}[{name}__0])" not in about and shape.longest > 1))
        ):
            return inner.longest
        return 0

    def _node_limits(self, relations: Sequence[Relation]) -> dict[str, dict[str, tuple[float, float]]]:
        """Bounds of how many nodes trees and linked lists have, of their values, of their depth."""
        about: dict[str, list[Relation]] = {}
        for one in relations:
            for way in (one, one.turned()):
                about.setdefault(way.left, []).append(way)

        def limits(name: str) -> tuple[float, float]:
            low, high, _ = narrowed(-math.inf, math.inf, about.get(name, []), {})
            for relation in about.get(name, []):  # "the number of nodes is n", "1 <= Node.val <= n"
                if relation.right in about and relation.right.isidentifier() and relation.right not in self.shapes:
                    a, b, _ = narrowed(-math.inf, math.inf, about[relation.right], {})
                    if relation.op in ("==", ">="):
                        low = max(low, a)
                    if relation.op in ("==", "<="):
                        high = min(high, b)
            return low, high

        out = {}
        for name, shape in self.shapes.items():
            if shape.kind not in NODES:
                continue
            own = f"{name}_val" if f"{name}_val" in about else "Node_val"
            count, value = limits("nodes_count"), limits(own)
            inner = shape.item
            if not math.isfinite(count[0]) or not math.isfinite(count[1]):
                self.hulled.append(name)
                low = 0 if shape.shortest == 0 else 1
                count = (max(count[0], low), min(count[1], max(shape.longest, 1)))
            if inner is not None and (not math.isfinite(value[0]) or not math.isfinite(value[1])):
                self.hulled.append(f"{name}.val")
                value = (max(value[0], min(inner.low, inner.high)), min(value[1], max(inner.low, inner.high)))
            seen = [[one for one in e[name] if one is not None] for e in self.examples]
            if all(count[0] <= len(one) <= count[1] for one in seen) and all(
                value[0] <= x <= value[1] for one in seen for x in one if isinstance(x, (int, float))
            ):
                out[name] = {"count": count, "value": value, "depth": limits("nodes_depth")}
            else:
                longest = max(map(len, seen))
                flat = [x for one in seen for x in one if isinstance(x, (int, float))] or [0]
                out[name] = {"count": (1, longest), "value": (min(flat), max(flat)), "depth": (0, math.inf)}
                self.hulled.append(name)
        return out

    def node_fault(self, values: Mapping[str, Any]) -> str:
        """What a tree or a linked list breaks; "" if nothing."""
        for name, limits in self.nodes.items():
            held = [one for one in values[name] if one is not None] if values[name] else []
            if not limits["count"][0] <= len(held) <= limits["count"][1]:
                return f"{name} has {len(held)} nodes"
            low, high = limits["value"]
            if any(isinstance(one, (int, float)) and not low <= one <= high for one in held):
                return f"{name} has a value outside of {low} to {high}"
            if (
                limits["depth"][1] < len(held)
                and self.shapes[name].kind == "tree"
                and domains.depth(values[name]) > limits["depth"][1]
            ):
                return f"{name} is deeper than {limits['depth'][1]}"
        return ""

    def _steps(self, properties: Sequence[Property]) -> dict[str, tuple[int, int]]:
        """Quantities that must be even, odd or multiples: (step, rest)."""
        out: dict[str, tuple[int, int]] = {}
        for one in properties:
            for spot in one.places:
                if one.name in ("even", "multiple") and spot.depth == 0 and spot.column is None:
                    name = f"len({spot.parameter})" if spot.length else spot.parameter
                    step = 2 if one.name == "even" else one.value
                    if isinstance(step, int) and step > 0:
                        out[name] = (step, one.value if one.name == "even" else 0)
        return out

    def _bound_by_hull(self) -> None:
        """Add the hull as relations where the constraints leave a side open, and alphabets where none is told."""
        known = set(self.shapes)
        for quantity, shape, is_length in self._places():
            found = self.quantities.about.get(quantity, []) + (
                self.quantities.about.get(re.sub(r"\[\d+\]$", f"[{quantity.split('[')[0]}__1]", quantity), [])
            )
            has_low = any(r.op in (">=", ">", "==") for r in found)
            has_high = any(r.op in ("<=", "<", "==") for r in found)
            if has_low and has_high:
                continue
            column = int(quantity[quantity.rfind("[") + 1 : -1]) if re.search(r"\[\d+\]$", quantity) else None
            spot = (quantity.split("[")[0], column)
            if not is_length and (spot in self.choices or (spot[0], None) in self.choices):
                continue
            low, high = _hull(shape, is_length, "[" in quantity or len(self.examples) > 1)
            if low > high:
                continue
            self.hulled.append(quantity)
            if not has_low:
                self.quantities.add(Relation(quantity, ">=", repr(low), f"{quantity} >= {low} ({_HULL})"), known)
            if not has_high:
                self.quantities.add(Relation(quantity, "<=", repr(high), f"{quantity} <= {high} ({_HULL})"), known)
        for name, shape in self.shapes.items():
            columns = shape.item.items if shape.item is not None else ()
            for column, part in enumerate(columns):
                self._bound_text(name, column, part)
            if not columns:
                self._bound_text(name, None, shape)

    def _bound_text(self, name: str, column: int | None, shape: Shape) -> None:
        texts = [part for part in shape.walk() if part.kind == "str"]
        if texts and not any(
            spot in table for table in (self.texts, self.choices) for spot in ((name, None), (name, column))
        ):
            allowed = widened(set().union(*(part.chars for part in texts)))
            self.texts[name, column] = allowed
            self.hulled.append(f"the characters of {name}")

            def holds(values: dict[str, Any]) -> bool:
                found = [row[column] for row in values[name]] if column is not None else [values[name]]
                return all(set(allowed).issuperset(one) for one in leaves(found) if isinstance(one, str))

            self.properties.append(
                Property("alphabet", f"the characters of {name} ({_HULL})", holds, places=(Place(name, 0, column),))
            )
        mixed = [part for part in shape.walk() if part.kind in ("mixed", "none")]
        if mixed:
            self.hulled.append(f"the values of {name}")

    def _places(self) -> list[tuple[str, Shape, bool]]:
        """(quantity, shape, is a length) of everything that has numbers or lengths."""
        out: list[tuple[str, Shape, bool]] = []

        def walk(source: str, shape: Shape, name: str, depth: int) -> None:
            if shape.kind in ("int", "float"):
                out.append((source, shape, False))
            elif shape.kind == "str":
                out.append((f"len({source})", shape, True))
            elif shape.kind in SEQUENCES:
                out.append((f"len({source})", shape, True))
                width = self.rows.get(name, 0)
                if depth == 1 and width:
                    for n in range(width):
                        part = shape.items[n] if shape.items else shape.item
                        if part is not None:
                            walk(f"{source}[{n}]", _column(part, self.examples, name, n), name, 2)
                elif shape.items:
                    for n, part in enumerate(shape.items):
                        walk(f"{source}[{n}]", part, name, depth + 1)
                elif shape.item is not None:
                    walk(f"{source}[{name}__{depth}]", shape.item, name, depth + 1)

        for name, shape in self.shapes.items():
            walk(name, shape, name, 0)
        return out

    def _fixed(self) -> dict[str, tuple[float, float]]:
        """Bounds of lengths and numbers, whatever the others are."""
        fixed: dict[str, tuple[float, float]] = {}
        for one in [*self.first, *self.late]:
            low, high, _ = self.quantities.limits(one, {}, {})
            fixed[one] = (max(low, 0) if one in self.lengths else low, high)
        for _ in range(4):
            lows, highs = (self._stand_ins({q: pair[side] for q, pair in fixed.items()}) for side in (0, 1))
            for one, (low, high) in fixed.items():
                a, b, _ = self.quantities.limits(one, lows, highs)
                fixed[one] = (max(low, a), min(high, b))
        return {
            q: (low if math.isfinite(low) else 0, high if math.isfinite(high) else 100)
            for q, (low, high) in fixed.items()
        }

    def _stand_ins(self, chosen: Mapping[str, float]) -> dict[str, Any]:
        """Values of which only lengths are known."""
        out: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            if shape.kind == "int" and math.isfinite(chosen.get(name, math.inf)):
                out[name] = chosen[name]
            elif f"len({name})" in chosen and math.isfinite(chosen[f"len({name})"]):
                inner = chosen.get(f"len({name}[{name}__0])")
                out[name] = Sized(
                    chosen[f"len({name})"], Sized(inner) if inner is not None and math.isfinite(inner) else None
                )
        return out

    # --- drawing

    def draw(self, rng: Rng, size: float) -> dict[str, Any] | None:
        """Arguments by name; None where the lengths fit no bounds."""
        chosen: dict[str, float] = {}
        self.known = {}
        total = max(30, int(MOST * size))
        for quantity in self.first:
            value = self._length(rng, quantity, chosen, size, total)
            if value is None:
                return None
            chosen[quantity] = value
        values = self._stand_ins(chosen)
        for name in self._by_need():
            if name in chosen and self.shapes[name].kind == "int":
                values[name] = int(chosen[name])
            elif name not in self.late:
                values[name] = self._value(rng, name, name, self.shapes[name], 0, size, values, chosen)
        for name in self.late:
            found = self._late(rng, name, values, size)
            if found is None:
                return None
            values[name] = found
        for one in self.properties:
            one.mend(rng, values)
        return {name: values[name] for name in self.shapes}

    def _by_need(self) -> list[str]:
        """Parameters, each after those whose values bound its own."""
        order = list(self.shapes)
        for name in list(order):
            for quantity, found in self.quantities.about.items():
                if not quantity.startswith(f"{name}["):
                    continue
                for relation in found:
                    for other in names(relation.right) & set(order):
                        if other != name and f"{other}[" in relation.right and order.index(other) > order.index(name):
                            order.remove(name)
                            order.insert(order.index(other) + 1, name)
        return order

    def _length(self, rng: Rng, quantity: str, chosen: dict[str, float], size: float, total: int) -> int | None:
        lows = self._stand_ins({**{q: pair[0] for q, pair in self.fixed.items()}, **chosen})
        highs = self._stand_ins({**{q: pair[1] for q, pair in self.fixed.items()}, **chosen})
        low, high, unequal = self.quantities.limits(quantity, lows, highs)
        low, high = max(low, self.fixed[quantity][0]), min(high, self.fixed[quantity][1])
        if low > high:
            return None
        if quantity.count("[") or "len(" not in quantity:
            outer = max(
                (chosen[q] for q in chosen if q.startswith("len(") and q[4:-1] == quantity[4:].split("[")[0]), default=1
            )
            high = min(high, max(low, total // max(1, outer)))
        width = self.rows.get(quantity[4:-1], 1) if quantity.startswith("len(") else 1
        high = min(high, max(low, total // (2 * width) if width > 1 else total))
        step, rest = self.steps.get(quantity, (1, 0))
        for _ in range(8):
            value = length(rng, int(low), int(high), size)
            value -= (value - rest) % step
            if value < low:
                value += step
            if low <= value <= high and value not in unequal:
                return value
        return None

    def _late(self, rng: Rng, name: str, values: dict[str, Any], size: float) -> int | None:
        """A number that bounds no other: often one that has to do with the lists."""
        if (name, None) in self.choices:
            return rng.choice(self.choices[name, None])
        low, high, unequal = self.quantities.limits(name, values, values)
        low = low if math.isfinite(low) else self.fixed[name][0]
        high = high if math.isfinite(high) else self.fixed[name][1]
        if low > high:
            return None
        step, rest = self.steps.get(name, (1, 0))
        for _ in range(8):
            value = domains.integer(rng, int(low), int(high), size)
            if rng.random() < 0.5:
                value = _related(rng, values, name, value)
            value -= (value - rest) % step
            if low <= value <= high and value not in unequal:
                return value
        return int(low)

    def _value(
        self,
        rng: Rng,
        name: str,
        source: str,
        shape: Shape,
        depth: int,
        size: float,
        values: dict[str, Any],
        chosen: Mapping[str, float],
    ) -> Any:
        if shape.optional and rng.random() < 0.1:
            return None
        column = int(source[source.rfind("[") + 1 : -1]) if re.search(r"\[\d+\]$", source) else None
        allowed = self.choices.get((name, column)) or (self.choices.get((name, None)) if column is None else None)
        match shape.kind:
            case "int":
                return rng.choice(allowed) if allowed else self._integer(rng, source, values, size)
            case "float":
                low, high, _ = self.quantities.limits(source, values, values)
                low, high = max(low, min(shape.low, low if math.isfinite(low) else shape.low)), high
                places = max((len(str(one).partition(".")[2]) for one in shape.pool), default=1)
                low, high = (low if math.isfinite(low) else -100.0), (high if math.isfinite(high) else 100.0)
                return domains.decimals(rng, 1, low, high, min(places, 6))[0]
            case "bool":
                return rng.random() < 0.5
            case "str":
                if allowed and all(isinstance(one, str) for one in allowed):
                    return rng.choice(allowed)
                return self._text(rng, name, column, source, size, values, chosen, depth)
            case "tree" | "links":
                return self._linked(rng, name, shape, size)
            case "list" | "tuple" | "set":
                return self._list(rng, name, source, shape, depth, size, values, chosen)
            case "dict":
                example = rng.choice(shape.pool) if shape.pool else {}
                pairs = list(example.items()) if isinstance(example, dict) else [list(one) for one in example]
                new = [
                    [
                        key,
                        self._value(rng, name, "", shape.item, 9, size, values, chosen)
                        if shape.item and shape.item.kind in ("int", "bool") and shape.item.pool and rng.random() < 0.5
                        else one,
                    ]
                    for key, one in pairs
                ]
                return dict(new) if isinstance(example, dict) else new
        return rng.choice(shape.pool) if shape.pool else None

    def _limits(self, source: str, values: dict[str, Any]) -> tuple[float, float, list[Any]]:
        """Bounds of an element or a column; what is the same for all elements is worked out once in a draw."""
        if source not in self.parts:
            name = source.removeprefix("len(").partition("[")[0].rstrip(")")
            found = list(self.quantities.about.get(source, []))
            if re.search(r"\[\d+\]$", source):  # a column: what holds for all columns holds too
                found += self.quantities.about.get(re.sub(r"\[\d+\]$", f"[{name}__1]", source), [])
            own = [one for one in found if re.search(rf"\b{name}(?:__\d)?\b", one.right)]
            self.parts[source] = ([one for one in found if one not in own], own)
        same, own = self.parts[source]
        if source not in self.known:
            self.known[source] = narrowed(-math.inf, math.inf, same, values)
        if not own:
            return self.known[source]
        low, high, unequal = self.known[source]
        low, high, more = narrowed(low, high, own, values)
        return low, high, unequal + more

    def _integer(self, rng: Rng, source: str, values: dict[str, Any], size: float) -> int:
        low, high, unequal = self._limits(source, values)
        low, high = (low if math.isfinite(low) else -100), (high if math.isfinite(high) else 100)
        value = domains.integer(rng, int(low), int(max(low, high)), size)
        for _ in range(4):
            if value not in unequal:
                break
            value = rng.randint(int(low), int(max(low, high)))
        return value

    def _list(
        self,
        rng: Rng,
        name: str,
        source: str,
        shape: Shape,
        depth: int,
        size: float,
        values: dict[str, Any],
        chosen: Mapping[str, float],
    ) -> list[Any]:
        quantity = f"len({source})"
        if quantity in chosen and (depth == 0 or name in self.even_rows or rng.random() < 0.2):
            count = int(chosen[quantity])
        else:
            low, high, _ = self._limits(quantity, values) if depth else self.quantities.limits(quantity, values, values)
            top = chosen.get(quantity, high)
            count = rng.randint(int(max(0, low)), int(max(low, min(high, top, MOST)))) if math.isfinite(low) else 0
        item = shape.item
        if depth == 0 and name in self.rows:
            return self._table(rng, name, shape, count, size, values, chosen)
        if shape.items:
            return [
                self._value(rng, name, f"{source}[{n}]", one, depth + 1, size, values, chosen)
                for n, one in enumerate(shape.items)
            ]
        if item is None:
            return []
        inner = f"{source}[{name}__{depth}]"
        allowed = self.choices.get((name, None))
        if item.kind == "mixed" and any(shape.pool):
            one = rng.choice([one for one in shape.pool if one])
            return [rng.choice(one) for _ in range(count)]
        if item.kind == "int" and not allowed:
            return self._integers(
                rng, name, inner, count, depth, size, values, (name, depth) in self.distinct or shape.kind == "set"
            )
        if allowed and item.kind != "list":
            part = rng.sample(allowed, rng.randint(1, len(allowed))) if rng.random() < 0.4 else allowed
            return [rng.choice(part) for _ in range(count)]
        out: list[Any] = []
        seen: set[str] = set()
        for n in range(count):
            values[f"{name}__{depth}"] = n
            for _ in range(6):
                new = self._value(rng, name, inner, item, depth + 1, size, values, chosen)
                if out and item.kind == "str" and rng.random() < 0.35:
                    new = self._alike(rng, name, rng.choice(out), new)
                elif out and rng.random() < 0.1 and name not in self.even_rows:
                    new = rng.choice(out)
                if (name, depth) not in self.distinct and shape.kind != "set":
                    break
                if repr(new) not in seen:
                    break
            out.append(new)
            seen.add(repr(new))
        values.pop(f"{name}__{depth}", None)
        return out

    def _rectangular(self, name: str) -> bool:
        shape = self.shapes[name]
        if shape.kind not in SEQUENCES:
            return False
        return (
            all(len({len(row) for row in e[name] if isinstance(row, (list, str))}) <= 1 for e in self.examples)
            and shape.longest > 1
        )

    def _integers(
        self,
        rng: Rng,
        name: str,
        source: str,
        count: int,
        depth: int,
        size: float,
        values: dict[str, Any],
        different: bool,
    ) -> list[int]:
        index = f"{name}__{depth}"
        about = self.quantities.about.get(source, [])
        if any(index in relation.right for relation in about):
            out: list[int] = []
            before = values.get(name)
            for n in range(count):
                values[index] = n
                if depth == 0:
                    values[name] = out
                out.append(self._integer(rng, source, values, size))
            values.pop(index, None)
            if depth == 0:
                values[name] = before
            return out
        low, high, unequal = self._limits(source, values)
        a, b = int(low) if math.isfinite(low) else -100, int(high) if math.isfinite(high) else 100
        if a > b:
            return []
        new = domains.distinct(rng, count, a, b, size) if different else None
        if new is None:
            new = domains.integers(rng, count, a, b, size)
        if unequal:
            others = [one for one in (a, b, 1, -1, 2) if a <= one <= b and one not in unequal]
            new = [rng.choice(others) if one in unequal and others else one for one in new]
        return new

    def _table(
        self,
        rng: Rng,
        name: str,
        shape: Shape,
        count: int,
        size: float,
        values: dict[str, Any],
        chosen: Mapping[str, float],
    ) -> list[Any]:
        """Rows whose places are drawn one after the other."""
        inner, width = shape.item, self.rows[name]
        rows: list[Any] = []
        seen: set[Any] = set()
        before = values.get(name)
        values[name] = rows
        small = rng.random() < 0.4
        for n in range(count):
            values[f"{name}__0"] = n
            for _ in range(6):
                row: list[Any] = []
                rows.append(row)
                for column in range(width):
                    part = inner.items[column] if inner and inner.items else inner.item if inner else None
                    if part is not None:
                        row.append(
                            self._value(
                                rng,
                                name,
                                f"{name}[{name}__0][{column}]",
                                part,
                                2,
                                size * (0.3 if small else 1),
                                values,
                                chosen,
                            )
                        )
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

    def _text(
        self,
        rng: Rng,
        name: str,
        column: int | None,
        source: str,
        size: float,
        values: dict[str, Any],
        chosen: Mapping[str, float],
        depth: int,
    ) -> str:
        quantity = f"len({source})"
        alphabet = self.texts.get((name, column)) or self.texts.get((name, None)) or string.ascii_lowercase
        if quantity in chosen and (depth == 0 or name in self.even_rows):
            count = int(chosen[quantity])
        else:
            low, high, _ = self._limits(quantity, values)
            high = min(high, max(low, chosen.get(quantity, high)))
            count = length(rng, int(max(0, low)), int(max(0, low, min(high, MOST))), size) if math.isfinite(low) else 3
        if depth == 0 and rng.random() < 0.4:
            others = [one for other, one in values.items() if isinstance(one, str) and other != name and one]
            if others:
                new = _from_other(rng, rng.choice(others), count)
                if set(alphabet).issuperset(new):
                    return new
        if " " in alphabet and len(alphabet) > 3 and rng.random() < 0.7:
            parts = [domains.text(rng, rng.randint(1, 5), alphabet.replace(" ", "")) for _ in range(count // 3 + 1)]
            return (" ".join(parts))[:count].ljust(count, alphabet[-1])
        if (name, depth) in self.distinct and count <= len(alphabet):
            return "".join(rng.sample(alphabet, count))
        return domains.text(rng, count, alphabet, size)

    def _alike(self, rng: Rng, name: str, old: str, new: str) -> str:
        """A string that has to do with another one: equal, longer, shorter, turned round or shuffled."""
        if not isinstance(old, str) or not isinstance(new, str):
            return new
        match rng.randrange(6) if name not in self.even_rows else rng.choice([0, 3, 4, 5]):
            case 0:
                return old
            case 1:
                return old + new[:1]
            case 2:
                return old[:-1] or old
            case 3:
                return old[::-1]
            case 4:
                return "".join(rng.sample(old, len(old)))
        at = rng.randrange(len(old)) if old else 0
        return old[:at] + new[:1] + old[at + 1 :]

    def _linked(self, rng: Rng, name: str, shape: Shape, size: float) -> list[Any]:
        limits = self.nodes[name]
        low, high = limits["count"]
        count = length(rng, int(low), int(min(high, MOST)), size)
        a, b = limits["value"]
        different = (name, 0) in self.distinct
        allowed = self.choices.get((name, None))
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
        return domains.levels(rng, held, int(min(deepest, 900)))

    # --- size

    def size_of(self, values: Mapping[str, Any]) -> float:
        """The largest length compared with what is allowed, on a scale of logarithms."""
        best = 0.0
        for name, shape in self.shapes.items():
            if shape.kind in NODES:
                pairs = [(len(values[name] or []), self.nodes[name]["count"][1])]
            else:
                pairs = [
                    (len(values[name]), self.fixed[q][1])
                    for q in (f"len({name})",)
                    if q in self.fixed and values[name] is not None
                ]
                if name in self.fixed and shape.kind == "int" and name in self.first:
                    pairs.append((abs(values[name]), self.fixed[name][1]))
            best = max([best, *(math.log1p(max(0, have)) / math.log1p(max(1, most)) for have, most in pairs)])
        if not self.lengths and not self.nodes:
            best = max(
                (math.log1p(abs(values[q])) / math.log1p(max(1, abs(self.fixed[q][1]))) for q in self.late), default=0.0
            )
        return min(1.0, best)


def _lengths(name: str, shape: Shape) -> list[str]:
    if shape.kind == "str":
        return [f"len({name})"]
    if shape.kind not in SEQUENCES:
        return []
    inner = shape.item is not None and shape.item.kind in (*SEQUENCES, "str")
    return [f"len({name})", *([f"len({name}[{name}__0])"] if inner else [])]


def _column(part: Shape, examples: Sequence[Mapping[str, Any]], name: str, n: int) -> Shape:
    """The shape of one column, with what the tests have in it."""
    if part.kind not in ("int", "float"):
        return part
    seen = [row[n] for example in examples for row in example[name] if isinstance(row, list) and len(row) > n]
    numbers = [one for one in seen if isinstance(one, (int, float))]
    return Shape(part.kind, low=min(numbers, default=part.low), high=max(numbers, default=part.high), pool=part.pool)


def _hull(shape: Shape, is_length: bool, within: bool) -> tuple[float, float]:
    """What the tests allow: from their least to their largest, and small numbers below that down to 1."""
    low, high = (shape.shortest, shape.longest) if is_length else (shape.low, shape.high)
    if is_length and within and low == high and low < 10:  # of all rows, or of all tests
        return low, high
    return (1 if 1 < low <= 10 and shape.kind != "float" else low), high


def widened(chars: set[str]) -> str:
    """All characters of the classes that some belong to: lower case, upper case, digits; others as they are."""
    out = set(chars)
    for group in (string.ascii_lowercase, string.ascii_uppercase):
        if len(chars & set(group)) > 3:
            out |= set(group)
    if len(chars & set(string.digits)) > 2:
        out |= set(string.digits)
    return "".join(sorted(out))


def length(rng: Rng, low: int, high: int, size: float) -> int:
    """A length for a size from 0 (the least) to 1 (the most)."""
    if high <= low:
        return low
    room = high - low
    if size >= 0.9:
        return high - (rng.randint(0, room // 10) if rng.random() < 0.5 else 0)
    reach = min(room, max(2 + 14 * size, room**size))
    return low + rng.randint(0, max(1, int(reach)))


def _from_other(rng: random.Random, other: str, count: int) -> str:
    """A string made of another: a part of it, the same, shuffled, or with a change."""
    match rng.randrange(5):
        case 0:
            start = rng.randint(0, max(0, len(other) - count))
            return other[start : start + count].ljust(count, other[0])[:count]
        case 1:
            return other
        case 2:
            return "".join(rng.sample(other, len(other)))
        case 3:
            at = rng.randrange(len(other))
            return other[:at] + rng.choice(other) + other[at + 1 :]
    return "".join(rng.choice(other) for _ in range(count))


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
