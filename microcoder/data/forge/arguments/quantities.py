"""The quantities of a function's parameters, numbers and lengths, and the order in which to choose them.

A quantity is a term in the normal form of relations.py: `k`, `len(nums)`, `len(grid[grid__0])`, `nums[nums__0]`,
`edges[edges__0][1]`. Relations are brought to these names: `n` of `n == nums.length` is replaced by len(nums), the
columns of `edges[i] = [ai, bi]` by edges[edges__0][0] and [1], every index by the name of the list that it runs over.

What relations do not bound is bounded by the hull of the existing tests.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..reading import relations as rel
from ..reading.relations import Checker, Relation
from .shapes import SEQUENCES, Shape

NODES = ("tree", "links")
_SIZED = re.compile(r"\b([A-Za-z]\w*) (?:array |list |string |matrix )?of (?:length|size) ([A-Za-z])\b(?! ?x)")
_GRID = re.compile(r"\b([A-Za-z])\s?x\s?([A-Za-z])\b[^.\n]{0,40}?\b([A-Za-z]\w+)\b")


class Sized:
    """A list of which only the length is known, and the length of its lists."""

    __slots__ = ("count", "inner")

    def __init__(self, count: float, inner: Any = None):
        self.count, self.inner = count, inner

    def __len__(self) -> int:
        return int(min(self.count, 2**62))

    def __getitem__(self, n: int) -> Any:
        return self.inner

    def __iter__(self) -> Any:  # without this, Python would ask for items without end
        raise TypeError("only the length is known")


@dataclass(slots=True)
class Quantities:
    """All relations about each quantity, and which of them the constraints do not bound."""

    about: dict[str, list[Relation]] = field(default_factory=dict)
    checkers: list[Checker] = field(default_factory=list)
    hulled: list[str] = field(default_factory=list)  # quantities with a side that only the hull bounds
    fixed: dict[str, tuple[float, float]] = field(default_factory=dict)  # bounds without any other quantity
    unread: list[str] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)  # terms for names that are no parameters

    def add(self, relation: Relation, known: set[str]) -> bool:
        """Take a relation in, if its names are known."""
        try:
            checker = Checker(relation, known)
        except (ValueError, SyntaxError):
            return False
        self.checkers.append(checker)
        for one in _ways(relation):
            self.about.setdefault(one.left, []).append(one)
        return True

    def drop(self, checker: Checker) -> None:
        self.checkers.remove(checker)
        gone = checker.relation
        for one in _ways(gone):
            self.about[one.left] = [kept for kept in self.about[one.left] if kept != one]

    def limits(self, quantity: str, low: rel.Values, high: rel.Values) -> tuple[float, float, list[Any]]:
        """Bounds of a quantity, where others have at least the values of `low` and at most those of `high`."""
        found = self.about.get(quantity, [])
        a, _, unequal = rel.narrowed(-math.inf, math.inf, [r for r in found if r.op in (">=", ">", "==", "!=")], low)
        _, b, _ = rel.narrowed(-math.inf, math.inf, [r for r in found if r.op in ("<=", "<", "==")], high)
        return a, b, unequal


def _ways(relation: Relation) -> list[Relation]:
    """The relation as one about its left side, its right side, and about the parts of a sum or a product."""
    out = []
    for one in (relation, relation.turned()):
        out.append(one)
        tree = ast.parse(one.left, mode="eval").body
        if not isinstance(tree, ast.BinOp) or one.op == "!=":
            continue
        a, b, e = ast.unparse(tree.left), ast.unparse(tree.right), f"({one.right})"
        match tree.op:
            case ast.Add():
                out += [Relation(a, one.op, f"{e} - ({b})", one.text), Relation(b, one.op, f"{e} - ({a})", one.text)]
            case ast.Sub():
                out.append(Relation(a, one.op, f"{e} + ({b})", one.text))
                out.append(Relation(b, rel.OPPOSITE[one.op], f"({a}) - {e}", one.text))
            case ast.Mult():  # of positive numbers
                for part, by in ((a, b), (b, a)):
                    down = {"<=": f"{e} // ({by})", "<": f"({e} - 1) // ({by})", "==": f"{e} // ({by})"}
                    up = {">=": f"({e} + ({by}) - 1) // ({by})", ">": f"{e} // ({by}) + 1"}
                    op = {"<": "<=", ">": ">="}.get(one.op, one.op)
                    out.append(Relation(part, op, {**down, **up}[one.op], one.text))
    return [_own_index(one) for one in out if not one.left.lstrip("-").isdigit()]


def _own_index(relation: Relation) -> Relation:
    """The relation with the index of the list on its left: `a[b__0] < b[b__0]` is about a[a__0]."""
    match = re.fullmatch(r"(?:len\()?(\w+)\[(\w+)__0\].*", relation.left)
    if match is None or match.group(1) == match.group(2):
        return relation
    new = {f"{match.group(2)}__0": f"{match.group(1)}__0"}
    return Relation(rel.renamed(relation.left, new), relation.op, rel.renamed(relation.right, new), relation.text)


def with_powers(relation: Relation) -> Relation | None:
    """The relation with the power that a number may have been (109: 10 ** 9, 27: 2 ** 7, 2n: 2 ** n); None if it has
    no such."""
    sides = [
        re.sub(r"(?<![\w.*])(10|2)([3-9]|[1-6]\d)(?![\w.])(?! \*\*)", r"\1 ** \2", side)
        for side in (relation.left, relation.right)
    ]
    sides = [re.sub(r"(?<![\w.*] )(?<![\w.*])2 \* ([A-Za-z]\w*)(?![\w\[(.])", r"2 ** \1", side) for side in sides]
    if sides == [relation.left, relation.right]:
        return None
    return Relation(sides[0], relation.op, sides[1], relation.text)


def bring(
    found: Sequence[Relation], shapes: Mapping[str, Shape], columns: Mapping[str, tuple[str, int]], statement: str,
    flat: Mapping[str, str] | None = None,
) -> Quantities:  # fmt: skip
    """Bring relations to the names of quantities. `flat`: terms for names of the places of a list, row -> start[0]."""
    out = Quantities()
    known = set(shapes)
    places = {
        name: f"{parameter}[{parameter}__0][{n}]" for name, (parameter, n) in columns.items() if name not in known
    }
    places.update({name: term for name, term in (flat or {}).items() if name not in known and name not in places})
    places.update(_lost_subscripts(found, shapes, places))
    nodes = [name for name, shape in shapes.items() if shape.kind in NODES]
    counted = [one for one in found if one.op == "==" and "nodes_count" in (one.left, one.right) and len(nodes) == 1]
    counted = [
        Relation(one.left if one.left != "nodes_count" else one.right, "==", f"count({nodes[0]})", one.text)
        for one in counted
    ]
    all_relations = [*found, *_sizes(statement, shapes), *counted]
    replaced = [
        Relation(rel.renamed(one.left, places), one.op, rel.renamed(one.right, places), one.text)
        for one in all_relations
    ]
    for name in (name for name, shape in shapes.items() if shape.kind == "int"):  # the length of a number
        replaced = [Relation(_digits(one.left, name), one.op, _digits(one.right, name), one.text) for one in replaced]
    symbols = {**_other_case(replaced, known), **_symbols(replaced, known)}
    symbols.update(_sides(replaced, shapes, symbols))
    symbols.update(_squares(replaced, known, symbols))
    out.symbols = symbols
    for n, one in enumerate(replaced):
        left, right = (rel.renamed(side, symbols) for side in (one.left, one.right))
        if left == right:
            continue
        left, right = _of_every_row(left, right), _of_every_row(right, left)
        new = _indexed(Relation(left, one.op, right, one.text), known)
        if new is None or not out.add(new, known):
            if n < len(found) and not re.search(r"Node_val|nodes_|_val\b|total_length", left + right):
                out.unread.append(one.text)
    return out


def _of_every_row(side: str, other: str) -> str:
    """len(grid[0]), which stands for the width of a grid, as the length of each row."""
    match = re.fullmatch(r"len\((\w+)\[0\]\)", side)
    return f"len({match.group(1)}[{match.group(1)}__0])" if match and f"{match.group(1)}[" not in other else side


def _digits(side: str, name: str) -> str:
    return side.replace(f"len({name})", f"digits({name})")


def _lost_subscripts(
    found: Sequence[Relation], shapes: Mapping[str, Shape], places: Mapping[str, str]
) -> dict[str, str]:
    """numsi, which was nums with a subscript: nums[i]."""
    free = {name for one in found for side in (one.left, one.right) for name in rel.names(side)}
    return {
        name: f"{name[:-1]}[i]"
        for name in free - set(shapes) - set(places)
        if name.endswith("i") and name[:-1] in shapes and shapes[name[:-1]].kind in SEQUENCES
    }


def _sides(found: Sequence[Relation], shapes: Mapping[str, Shape], known: Mapping[str, str]) -> dict[str, str]:
    """The sides of the only table there is: rows and cols, or m and n, where nothing else is said of either."""
    tables = [
        name for name, s in shapes.items() if s.kind in SEQUENCES and s.item and s.item.kind in (*SEQUENCES, "str")
    ]
    free = {name for one in found for side in (one.left, one.right) for name in _free(side, set(shapes))} - set(known)
    out: dict[str, str] = {}
    for high, wide in (("row", "col"), ("row", "cols"), ("rows", "cols"), ("rows", "columns"), ("m", "n")):
        if len(tables) == 1 and {high, wide} <= free and shapes[tables[0]].longest > 0:
            out.update({high: f"len({tables[0]})", wide: f"len({tables[0]}[0])"})
    return out


def _squares(found: Sequence[Relation], known: set[str], symbols: Mapping[str, str]) -> dict[str, str]:
    """n2, which was n with an exponent."""
    free = {name for one in found for side in (one.left, one.right) for name in rel.names(side)} - known - set(symbols)
    bases = {name: symbols.get(name[:-1], name[:-1]) for name in free if re.fullmatch(r"[a-z]2", name)}
    return {name: f"({base}) ** 2" for name, base in bases.items() if name[0] in known or name[0] in symbols}


def _other_case(found: Sequence[Relation], known: set[str]) -> dict[str, str]:
    """Parameters that the constraints write in another case: K for k."""
    free = {name for one in found for side in (one.left, one.right) for name in _free(side, known)}
    same = {name: [one for one in known if one.lower() == name.lower()] for name in free}
    return {name: ones[0] for name, ones in same.items() if len(ones) == 1}


def _sizes(statement: str, shapes: Mapping[str, Shape]) -> list[Relation]:
    """`nums of length n`, `an m x n matrix grid` in the text of the statement."""
    out = []
    for name, size in _SIZED.findall(statement):
        if name in shapes and shapes[name].kind in (*SEQUENCES, "str") and size != name:
            out.append(Relation(size, "==", f"len({name})", f"{name} of length {size}"))
    for high, wide, name in _GRID.findall(statement):
        if name in shapes and shapes[name].kind in SEQUENCES and shapes[name].item and high != "x":
            text = f"{high} x {wide} {name}"
            out.append(Relation(high, "==", f"len({name})", text))
            out.append(Relation(wide, "==", f"len({name}[i])", text))
    return out


def _free(source: str, known: set[str]) -> set[str]:
    """Names that are neither known nor an index."""
    tree = ast.parse(source, mode="eval")
    indices = {
        n for node in ast.walk(tree) if isinstance(node, ast.Subscript) for n in rel.names(ast.unparse(node.slice))
    }
    return rel.names(source) - known - indices


def _symbols(found: Sequence[Relation], known: set[str]) -> dict[str, str]:
    """Terms for names that are no parameters: n of `n == nums.length` or of `nums.length == 2 * n`."""
    symbols: dict[str, str] = {}
    for _ in range(4):
        for relation in found:
            if relation.op != "==":
                continue
            for one in (relation, relation.turned()):
                free = _free(one.left, known) - set(symbols)
                right = rel.renamed(one.right, symbols)
                if len(free) != 1 or _free(right, known) or not rel.names(right) & known:
                    continue
                name = free.pop()
                solved = _solved(one.left, name, right)
                if solved is not None and name not in symbols:
                    tree = ast.parse(solved, mode="eval")
                    indices = {
                        n
                        for node in ast.walk(tree)
                        if isinstance(node, ast.Subscript)
                        for n in rel.names(ast.unparse(node.slice))
                    }
                    symbols[name] = rel.renamed(solved, dict.fromkeys(indices - known, "0"))
    return symbols


def _solved(left: str, name: str, right: str) -> str | None:
    """What `name` is where left == right."""
    if left == name:
        return right
    match ast.parse(left, mode="eval").body:
        case ast.BinOp(left=ast.Constant(value=int(c)), op=ast.Mult(), right=ast.Name(id=one)) if one == name:
            return f"({right}) // {c}"
        case ast.BinOp(left=ast.Name(id=one), op=ast.Mult(), right=ast.Constant(value=int(c))) if one == name:
            return f"({right}) // {c}"
        case ast.BinOp(left=ast.Name(id=one), op=ast.Sub(), right=ast.Constant(value=int(c))) if one == name:
            return f"({right}) + {c}"
        case ast.BinOp(left=ast.Name(id=one), op=ast.Add(), right=ast.Constant(value=int(c))) if one == name:
            return f"({right}) - {c}"
    return None


def _indexed(relation: Relation, known: set[str]) -> Relation | None:
    """The relation with every index named after the list that it runs over."""
    found = rel.loops([relation.left, relation.right], known)
    if found is None:
        return None
    new: dict[str, str] = {}
    for loop in found:
        root = re.match(r"\w+", loop.over)
        name = f"{root.group() if root else 'x'}__{loop.over.count('[')}"
        if name in new.values():
            return relation
        new[loop.name] = name
    return Relation(rel.renamed(relation.left, new), relation.op, rel.renamed(relation.right, new), relation.text)


def globals_in(source: str, quantities: Sequence[str]) -> set[str]:
    """Which quantities a term is made of."""
    tree = ast.parse(source, mode="eval")
    parts = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    return {one for one in quantities if one in parts}


def in_order(quantities: Sequence[str], about: Mapping[str, Sequence[Relation]]) -> list[str]:
    """The quantities, each after those that bound it from above or that it equals."""
    needs: dict[str, set[str]] = {}
    for n, one in enumerate(quantities):
        needs[one] = set()
        for relation in about.get(one, []):
            others = globals_in(relation.right, quantities) - {one}
            if relation.op in ("<=", "<"):
                needs[one] |= others
            elif relation.op == "==" and (relation.right not in quantities or quantities.index(relation.right) < n):
                needs[one] |= others
    out: list[str] = []
    while len(out) < len(quantities):
        waiting = [one for one in quantities if one not in out]
        ready = [one for one in waiting if not needs[one] & set(waiting)]
        out.append((ready or waiting)[0])
    return out
