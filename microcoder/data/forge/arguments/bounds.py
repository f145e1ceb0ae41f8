"""What bounds the arguments of a function: lengths, numbers, nodes, alphabets; the constraints first, then the hull.

`hulled` names what only the existing tests bound. `first` are the quantities to choose first (lengths, and numbers that
bound others), `late` the other numbers, `fixed` what each may be whatever the others are.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from ..reading.relations import Relation, names, narrowed
from . import trees
from .places import Place, Property, leaves
from .quantities import NODES, Quantities, Sized, globals_in, in_order
from .shapes import SEQUENCES, Shape

_HULL = "the hull of the tests"
AS_SHOWN = "in the tests"  # ends the text of a relation that only the tests show


class Bounds:
    """The bounds of all places where the arguments have numbers, lengths or texts."""

    def __init__(
        self,
        shapes: dict[str, Shape],
        quantities: Quantities,
        properties: list[Property],
        relations: Sequence[Relation],
        examples: Sequence[dict[str, Any]],
        told: bool = True,
    ):
        self.shapes, self.quantities, self.examples = shapes, quantities, examples
        self.told = told  # whether there is a section of constraints
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
        self.characters = self._characters()
        self._bound_parents()
        self._bound_by_hull()
        everything = [*self.lengths, *self.numbers]
        used = {
            one
            for quantity, found in quantities.about.items()
            for relation in found
            for one in globals_in(relation.right, everything)
            if quantity != relation.right
            and relation.op != "!="
            and quantity not in self.numbers
            and (names(quantity) or not quantities.limits(one, {}, {})[0] < 0)  # a negative number is no length
        }
        if any(p.name in ("tree", "connected", "acyclic") for p in properties) and "n" in self.numbers:
            used.add("n")
        self.first = in_order([q for q in everything if q in self.lengths or q in used], quantities.about)
        self.late = in_order([q for q in self.numbers if q not in self.first], quantities.about)
        self.fixed = self._fixed()
        self.even_rows = {name for name in shapes if self._rectangular(name)}

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

    def _characters(self) -> dict[str, dict[int, str]]:
        """What may stand at each place of a string, from relations such as 'a' <= s[0] <= 'h'; for all places
        ('a' <= s[i] <= 'e') it is an alphabet."""
        out: dict[str, dict[int, str]] = {}
        for quantity, found in self.quantities.about.items():
            match = re.fullmatch(r"(\w+)\[(\d+|(\w+)__0)\]", quantity)
            if not match or match[1] not in self.shapes or self.shapes[match[1]].kind != "str":
                continue
            ends = {r.op: r.right[1:-1] for r in found if re.fullmatch(r"'.'", r.right)}
            if set(ends) == {"<=", ">="}:
                allowed = "".join(map(chr, range(ord(ends[">="]), ord(ends["<="]) + 1)))
                if match[3]:
                    self.texts.setdefault((match[1], None), allowed)
                else:
                    out.setdefault(match[1], {})[int(match[2])] = allowed
        for name, places in out.items():
            if len(places) == self.shapes[name].shortest == self.shapes[name].longest:
                self.texts.setdefault((name, None), "".join(sorted(set("".join(places.values())))))
        return out

    def _bound_parents(self) -> None:
        """The parents of the nodes of a tree are nodes, and that of the root is -1."""
        for one in self.properties:
            for spot in one.places:
                if one.name == "tree" and spot.depth == 0 and self.shapes[spot.parameter].kind in SEQUENCES:
                    quantity, name = f"{spot.parameter}[{spot.parameter}__0]", spot.parameter
                    if not self.quantities.about.get(quantity):
                        self.quantities.add(Relation(quantity, ">=", "-1", one.text), set(self.shapes))
                        self.quantities.add(Relation(quantity, "<", f"len({name})", one.text), set(self.shapes))

    def _bound_by_hull(self) -> None:
        """Add the hull as relations where the constraints leave a side open, and alphabets where none is told."""
        known = set(self.shapes)
        for quantity, shape, is_length in self._places():
            found = self.quantities.about.get(quantity, []) + (
                self.quantities.about.get(re.sub(r"\[\d+\]$", f"[{quantity.split('[')[0]}__1]", quantity), [])
            )
            # "as long as each other" bounds neither
            found = [r for r in found if r.op != "==" or not r.text.endswith(AS_SHOWN)]
            has_low = any(r.op in (">=", ">", "==") for r in found)
            has_high = any(r.op in ("<=", "<", "==") for r in found)
            if (has_low and has_high) or self._placed(quantity):
                continue
            column = int(quantity[quantity.rfind("[") + 1 : -1]) if re.search(r"\[\d+\]$", quantity) else None
            spot = (quantity.split("[")[0], column)
            if not is_length and (spot in self.choices or (spot[0], None) in self.choices):
                continue
            low, high = _hull(shape, is_length, "[" in quantity or len(self.examples) > 1)
            if not self.told and low == 1 and (low < high if is_length and "[" not in quantity else not is_length):
                if not any(one.name == ("least" if is_length else "positive") for one in self.properties):
                    low = 0  # 0, "" and [] are almost always meant
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

    def _placed(self, quantity: str) -> bool:
        """Whether each place of a flat list has bounds of its own: start[0], start[1]."""
        match = re.fullmatch(r"(\w+)\[\1__0\]", quantity)
        if match is None:
            return False
        found = [self.quantities.about.get(f"{match[1]}[{n}]", []) for n in range(self.shapes[match[1]].longest)]
        ends = [{r.op for r in one} for one in found]
        return bool(ends) and all(one & {">=", ">", "=="} and one & {"<=", "<", "=="} for one in ends)

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
            lows, highs = (self.stand_ins({q: pair[side] for q, pair in fixed.items()}) for side in (0, 1))
            for one, (low, high) in fixed.items():
                a, b, _ = self.quantities.limits(one, lows, highs)
                fixed[one] = (max(low, a), min(high, b))
        return {
            q: (low if math.isfinite(low) else 0, high if math.isfinite(high) else 100)
            for q, (low, high) in fixed.items()
        }

    def stand_ins(self, chosen: Mapping[str, float]) -> dict[str, Any]:
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

    def _rectangular(self, name: str) -> bool:
        shape = self.shapes[name]
        if shape.kind not in SEQUENCES:
            return False
        return (
            all(len({len(row) for row in e[name] if isinstance(row, (list, str))}) <= 1 for e in self.examples)
            and shape.longest > 1
        )

    # --- whole inputs

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
                and trees.depth(values[name]) > limits["depth"][1]
            ):
                return f"{name} is deeper than {limits['depth'][1]}"
        return ""

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
