"""What a statement allows for the values of a layout: relations as checks and as bounds, and facts.

    StatedLimits(layout, texts)  every relation of the text that speaks of fields of the layout
    limits.broken(scope)         the relations that the values break
    limits.bounds(place, env)    what is left for one value, given those that are there

A scope's environment holds its own values, those around it, and for each block a list for each field in it: so `L_i`
is an element of a list where the block is seen from outside, and `l` is a number where it is seen from within.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from ..reading.relations import GLOBALS, OPPOSITE, Checker, Relation, compiled, narrowed, relations, value
from .shape import Block, Field, InputLine, Layout, Node, OneOf, Scope, scopes, spelled

Path = tuple[str, ...]
Env = dict[str, Any]
ENDLESS = float("inf")
Term: TypeAlias = tuple[str, Any, str, Any]  # (operator, a number, a name, code): one of the last three


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """Where a field stands: the blocks around it, and its name in an environment."""

    name: str
    path: Path
    field: Field


@dataclass(slots=True)
class Condition:
    """A relation that can be checked in every scope at the end of a path."""

    home: Path
    checker: Checker
    text: str


def places(nodes: tuple[Node, ...], path: Path = ()) -> Iterator[Spot]:
    for node in nodes:
        if isinstance(node, Block):
            yield from places(node.body, (*path, node.key))
        else:
            seen = set()
            for line in (node,) if isinstance(node, InputLine) else node.lines:
                for field in line.fields:
                    if field.kind != "tag" and field.name not in seen:
                        seen.add(field.name)
                        yield Spot(spelled(field.name), path, field)


def environment(scope: Scope, nodes: tuple[Node, ...], around: Env | None = None) -> Env:
    """The environment of a scope; those of its blocks are made on the way and kept in `scope.env`."""
    env: Env = dict(around or {})
    scope.env = env
    for node in nodes:
        if isinstance(node, Block):
            children = scope[node.key]
            for child in children:
                environment(child, node.body, env)
            gather(env, node, children)
        elif isinstance(node, InputLine):
            for field in node.fields:
                if field.kind != "tag":
                    env[spelled(field.name)] = scope[field.name]
        else:
            for field in node.lines[scope[node.key]].fields:
                if field.kind != "tag":
                    env[spelled(field.name)] = scope[field.name]
    return env


def gather(env: Env, block: Block, children: list[Scope]) -> None:
    """Put the columns of a block into the environment around it."""
    choice = any(isinstance(node, OneOf) for node in block.body)
    for place in places(block.body):
        if place.name not in env or isinstance(env[place.name], list):
            if choice:
                env[place.name] = [child.env[place.name] for child in children if place.field.name in child]
            else:
                env[place.name] = [child.env[place.name] for child in children]


class StatedLimits:
    """The relations that a text states about the fields of a layout."""

    def __init__(self, layout: Layout, texts: dict[str, list[str]]) -> None:
        self.layout = layout
        self.places = list(places(layout.body))
        self.names: dict[str, list[Spot]] = {}
        for place in self.places:
            self.names.setdefault(place.name, []).append(place)
        self.homes = sorted({place.path[:n] for place in self.places for n in range(len(place.path) + 1)}, key=len)
        self.rules: list[Condition] = []
        self.about: dict[Spot, list[Relation]] = {place: [] for place in self.places}
        self._known: dict[tuple[Spot, str], tuple[list[Term], list[Term], list[Relation]]] = {}
        self.read: set[str] = set()  # the texts that gave a relation
        for text, parts in texts.items():
            for part in parts:
                for relation in relations(self.prepared(part)):
                    for one in self._spread(relation):
                        if self._add(one):
                            self.read.add(text)

    def prepared(self, text: str) -> str:
        """The text with the names of fields as environments have them."""
        for place in self.places:
            base, _, sub = place.field.name.partition("_")
            if sub:
                own = re.escape(sub)
                pattern = rf"(?<![A-Za-z]){re.escape(base)}_(?:\{{\s?{own}\s?\}}|{own}(?!\w))"
                text = re.sub(pattern, spelled(place.field.name), text)
        text = re.sub(r"(?<![A-Za-z_\\])([A-Za-z]\w{0,2})_\{([^{},]{1,12}), ?([^{},]{1,12})\}", r"\1[\2][\3]", text)
        text = re.sub(
            r"(?<![A-Za-z_\\])([A-Za-z][A-Za-z]{0,7})_(?:\{([^{}]{1,12})\}|([A-Za-z0-9])(?!\w))",
            lambda m: f"{m[1]}[{m[2] or m[3]}]",
            text,
        )
        text = re.sub(r"(?<![\w\]])[A-Za-z]{2,3}(?![\w\[])", self._product, text)
        before = "|".join(re.escape(name) for name in self.names)
        return re.sub(rf"(?<![A-Za-z_\]])({before})\(", r"\1*(", text)  # N(N - 1)

    def _product(self, found: re.Match[str]) -> str:
        """HW is H times W, where both are fields and HW is none."""
        if found[0] in self.names or not all(letter in self.names for letter in found[0]):
            return found[0]
        return "*".join(found[0])

    def _spread(self, relation: Relation) -> list[Relation]:
        """x_i, where there are x_1 and x_2 as fields of their own, is each of them."""
        for side in (relation.left, relation.right):
            for base in {
                n.value.id
                for n in ast.walk(_tree(side))
                if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
            }:
                own = [name for name in self.names if re.fullmatch(rf"{re.escape(base)}Q\w+", name)]
                if base not in self.names and own:
                    pattern = re.compile(rf"\b{base}\[\w+\]")
                    sides = [(pattern.sub(name, relation.left), pattern.sub(name, relation.right)) for name in own]
                    return [Relation(left, relation.op, right, relation.text) for left, right in sides]
        return [relation]

    def _add(self, relation: Relation) -> bool:
        relation = self._numbers(relation)
        used = _used(relation.left)
        for name, depths in _used(relation.right).items():
            used[name] = used.get(name, set()) | depths
        known = {name: depths for name, depths in used.items() if name in self.names}
        if not known or any(name not in self.names and 0 not in depths for name, depths in used.items()):
            return False
        added = False
        taken: list[Path] = []
        for home in self.homes:
            chosen = {name: self._at(name, home, depths) for name, depths in known.items()}
            if any(place is None for place in chosen.values()):
                continue
            deepest = max((place.path for place in chosen.values() if place), key=len)
            if deepest[: len(home)] != home or any(home[: len(t)] == t and deepest == t for t in taken):
                continue
            try:
                rebased = self._rebased(relation, {n: p for n, p in chosen.items() if p})
                self.rules.append(Condition(home, Checker(rebased, set(known)), relation.text))
            except (ValueError, SyntaxError, RecursionError):
                continue
            taken.append(deepest)
            added = True
            for place in {p for p in chosen.values() if p}:
                self.about[place] += _alone(relation, place, home, chosen)
        return added

    def _at(self, name: str, home: Path, depths: set[int]) -> Spot | None:
        for place in self.names[name]:
            own = int(place.field.count is not None)
            if place.path[: len(home)] == home:
                dims = len(place.path) - len(home) + own
            elif home[: len(place.path)] == place.path:
                dims = own
            else:
                continue
            if depths == {dims}:
                return place
        return None

    def _numbers(self, relation: Relation) -> Relation:
        """|x| of a number is its absolute value."""

        def fixed(source: str) -> str:
            tree = _tree(source)
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id == "len"
                    and node.args
                ):
                    inner = node.args[0]
                    base: ast.AST = inner
                    while isinstance(base, ast.Subscript):
                        base = base.value
                    name = base.id if isinstance(base, ast.Name) else ""
                    at = self.names.get(name, [])
                    if (
                        at
                        and all(p.field.kind != "word" for p in at)
                        and (isinstance(inner, ast.Subscript) or at[0].field.count is None)
                    ):
                        node.func.id = "abs"
            return ast.unparse(tree)

        return Relation(fixed(relation.left), relation.op, fixed(relation.right), relation.text)

    def _rebased(self, relation: Relation, chosen: dict[str, Spot]) -> Relation:
        """Lists begin at 0: constant indices move, and an index that is used as a number moves back."""
        starts: dict[str, int] = {}
        for side in (relation.left, relation.right):
            for node in ast.walk(_tree(side)):
                if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in chosen:
                    start = chosen[node.value.id].field.start
                    for inner in ast.walk(node.slice):
                        if isinstance(inner, ast.Name) and inner.id not in chosen:
                            starts.setdefault(inner.id, start)

        class Moved(ast.NodeTransformer):
            def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
                value = self.visit(node.value)
                where = node.slice
                base = node.value.id if isinstance(node.value, ast.Name) else ""
                if isinstance(where, ast.Constant) and isinstance(where.value, int) and base in chosen:
                    where = ast.Constant(max(0, where.value - chosen[base].field.start))
                elif any(isinstance(n, ast.Name) and n.id in chosen for n in ast.walk(where)):
                    start = chosen[base].field.start if base in chosen else 1
                    where = ast.BinOp(where, ast.Sub(), ast.Constant(start))
                return ast.Subscript(value, where, ast.Load())

            def visit_Name(self, node: ast.Name) -> ast.AST:
                if starts.get(node.id):
                    return ast.BinOp(node, ast.Add(), ast.Constant(starts[node.id]))
                return node

        def moved(source: str) -> str:
            return ast.unparse(ast.fix_missing_locations(Moved().visit(_tree(source))))

        return Relation(moved(relation.left), relation.op, moved(relation.right), relation.text)

    def drop(self, text: str) -> None:
        """Forget the relations of a text: an existing test breaks them."""
        self.rules = [rule for rule in self.rules if rule.text != text]
        for place in self.about:
            self.about[place] = [relation for relation in self.about[place] if relation.text != text]
        self._known.clear()

    def broken(self, scope: Scope) -> Iterator[Condition]:
        """The rules that values break. `environment` was called for the scope."""
        for rule in self.rules:
            for one in scopes(scope, rule.home):
                try:
                    if not rule.checker.holds(one.env):
                        yield rule
                        break
                except (NameError, KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError):
                    continue  # it says nothing about such values

    def _terms(self, place: Spot, quantity: str) -> tuple[list[Term], list[Term], list[Relation]]:
        """The relations of a quantity, and of its absolute value, whose terms are still to be worked out."""
        if (key := (place, quantity)) not in self._known:
            about = [r for r in self.about[place] if r.left == quantity]
            sizes = [r for r in self.about[place] if r.left == f"abs({quantity})"]
            far = [r for r in about if "// max(1," in r.right or r.right in self.names]
            self._known[key] = [_term(r) for r in about], [_term(r) for r in sizes], far
        return self._known[key]

    def bounds(self, place: Spot, env: Env, depth: int = 0, quantity: str = "") -> tuple[float, float, list[Any]]:
        """(lowest, highest, forbidden) for a value, or for `quantity`, such as len(s)."""
        terms, sizes, about = self._terms(place, quantity or place.name)
        low, high, unequal = _narrowed(terms, env)
        most = _narrowed(sizes, env)[1] if sizes else ENDLESS
        low, high = max(low, -most), min(high, most)
        if depth < 3:
            for relation in about:
                other = relation.right
                if "// max(1," in other and (missing := set(_used(other)) & set(self.names) - set(env)):
                    least = {name: self.bounds(self.names[name][0], env, depth + 1)[0] for name in missing}
                    if -ENDLESS not in least.values():
                        high = min(high, narrowed(-ENDLESS, ENDLESS, [relation], {**env, **least})[1])
                elif other in self.names and other not in env:
                    far_low, far_high, _ = self.bounds(self.names[other][0], env, depth + 1)
                    if relation.op in ("<=", "<"):
                        high = min(high, far_high - (relation.op == "<"))
                    elif relation.op in (">=", ">"):
                        low = max(low, far_low + (relation.op == ">"))
        return low, high, unequal


def _term(relation: Relation) -> Term:
    """The right side of a relation: a number, a name, or code."""
    source = relation.right
    try:
        return relation.op, value(source, {}), "", None
    except Exception:  # it has names
        return (relation.op, None, source, None) if source.isidentifier() else (relation.op, None, "", compiled(source))


def _narrowed(terms: list[Term], env: Env) -> tuple[float, float, list[Any]]:
    """Bounds of whole numbers. A term that has no value yet says nothing."""
    low, high, unequal = -ENDLESS, ENDLESS, []
    for op, constant, name, code in terms:
        other = env.get(name) if name else constant
        if code is not None:
            try:
                other = eval(code, GLOBALS, env)
            except Exception:
                continue
        if isinstance(other, str) and re.fullmatch(r"-?\d+", other):
            other = int(other)
        if not isinstance(other, (int, float)) or isinstance(other, bool):
            continue
        whole = math.floor(other) if math.isfinite(other) else other
        if op == "<=":
            high = min(high, whole)
        elif op == "<":
            high = min(high, whole - 1 if whole == other else whole)
        elif op == ">=":
            low = max(low, whole if whole == other else whole + 1)
        elif op == ">":
            low = max(low, whole + 1)
        elif op == "==":
            low, high = max(low, whole), min(high, whole)
        elif op == "!=":
            unequal.append(other)
    return low, high, unequal


@lru_cache(4096)
def _parse(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def _tree(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def _used(source: str) -> dict[str, set[int]]:
    """How many subscripts each name has."""
    found: dict[str, set[int]] = {}

    def visit(node: ast.AST, depth: int) -> None:
        if isinstance(node, ast.Subscript):
            visit(node.value, depth + 1)
            visit(node.slice, 0)
        elif isinstance(node, ast.Name):
            found.setdefault(node.id, set()).add(depth)
        elif isinstance(node, ast.Call):
            for part in node.args:
                visit(part, 0)
        else:
            for inner in ast.iter_child_nodes(node):
                visit(inner, 0)

    visit(_parse(source), 0)
    return found


def _alone(relation: Relation, place: Spot, home: Path, chosen: dict[str, Spot | None]) -> list[Relation]:
    """The relation with the place alone on its left, seen from the scope of the place; at most two."""
    found = []
    for left, op, right in (
        (relation.left, relation.op, relation.right),
        (relation.right, OPPOSITE[relation.op], relation.left),
    ):
        tree = _tree(left)
        inner = tree.args[0] if isinstance(tree, ast.Call) and len(tree.args) == 1 else tree
        index = ""
        shift = 0
        base: ast.AST = inner
        while isinstance(base, ast.Subscript):
            where = base.slice
            if (
                isinstance(where, ast.BinOp)
                and isinstance(where.left, ast.Name)
                and isinstance(where.right, ast.Constant)
            ):
                shift = _offset(where)
                where = where.left
            if not isinstance(where, ast.Name):
                break
            index = where.id
            base = base.value
        product = _divided(tree, place, right, op)
        if product:
            found.append(Relation(place.name, product[0], product[1], relation.text))
            continue
        if not isinstance(base, ast.Name) or base.id != place.name:
            continue
        own = place.name if not isinstance(tree, ast.Call) else f"{ast.unparse(tree.func)}({place.name})"
        found.append(Relation(own, op, _within(right, place, index, shift, chosen), relation.text))
    return found


def _offset(where: ast.BinOp) -> int:
    """The 1 of i + 1, the -1 of i - 1."""
    number = where.right.value if isinstance(where.right, ast.Constant) else 0
    found = number if isinstance(number, int) else 0
    return found if isinstance(where.op, ast.Add) else -found


def _divided(tree: ast.expr, place: Spot, right: str, op: str) -> tuple[str, str] | None:
    """n * m <= K leaves K // m for n."""
    if op in ("<=", "<") and isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        for one, other in ((tree.left, tree.right), (tree.right, tree.left)):
            if isinstance(one, ast.Name) and one.id == place.name:
                return "<=", f"({right}) // max(1, {ast.unparse(other)})"
    return None


def _within(source: str, place: Spot, index: str, shift: int, chosen: dict[str, Spot | None]) -> str:
    """A term as the scope of the place sees it: other fields of the same row are plain values."""

    class Seen(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            other = chosen.get(base)
            if (
                other is None
                or place.field.count is not None
                or other.path != place.path
                or other.field.count is not None
            ):
                return node
            where, offset = node.slice, 0
            if isinstance(where, ast.BinOp) and isinstance(where.right, ast.Constant):
                offset = _offset(where)
                where = where.left
            if not isinstance(where, ast.Name) or where.id != index:
                return node
            if offset == shift:
                return ast.Name(base, ast.Load())
            return ast.Name(f"{base}__prev" if offset == shift - 1 else f"{base}__unknown", ast.Load())

    return ast.unparse(ast.fix_missing_locations(Seen().visit(_tree(source))))
