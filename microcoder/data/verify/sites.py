"""The places of a program where a small mistake can be made, and what can stand there instead (see mutations.py)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import others
from .reach import DEFINITIONS, demonstration, is_main, reached

_KEPT = (  # never deleted: without them every input fails, or none does, or a changed condition does the same
    *DEFINITIONS, ast.Global, ast.Nonlocal, ast.Pass, ast.Return, ast.Break, ast.If, ast.While, ast.Try, ast.With,
)  # fmt: skip
_UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)
_INTERPRETER = {"setrecursionlimit", "stack_size", "set_int_max_str_digits"}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
Place = tuple[ast.AST, str, int | None]  # the node that holds it, the field, the element of a list


@dataclass(slots=True)
class Site:
    """A place in the tree and what can stand there instead."""

    kind: str
    line: int
    owner: Any
    field: str
    index: int | None
    new: ast.AST

    def swap(self, node: ast.AST) -> ast.AST:
        """Put `node` there; returns what was there."""
        old: ast.AST
        if self.index is None:
            old = getattr(self.owner, self.field)
            setattr(self.owner, self.field, node)
        else:
            items = getattr(self.owner, self.field)
            old, items[self.index] = items[self.index], node
        return old


class Finder:
    """Walks through what the tests can come to, in the order of the program."""

    def __init__(self, tree: ast.Module, entry_point: str, prints: bool) -> None:
        self.tree, self.prints = tree, prints
        self.reached = reached(tree, entry_point, prints)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self.assigned = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        self.used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self.sizes = {id(node) for node in others.sizes(tree)}
        self.line = 1

    def sites(self) -> Iterator[Site]:
        for n, statement in enumerate(self.tree.body):
            if self.prints or not demonstration(statement):
                yield from self.statement((self.tree, "body", n), statement)

    def site(self, kind: str, place: Place, new: ast.AST) -> Site:
        return Site(kind, self.line, *place, new)

    def statement(self, place: Place, node: ast.stmt) -> Iterator[Site]:
        self.line = node.lineno
        if isinstance(node, DEFINITIONS):
            if node.name in self.reached:
                for n, inner in enumerate(node.body):
                    yield from self.statement((node, "body", n), inner)
            return
        if isinstance(node, _UNTOUCHED) or _of_interpreter(node) or self.never_used(node):
            return
        if self.worth_deleting(node):
            yield self.site("deletion", place, ast.Pass())
        if isinstance(node, (ast.If, ast.While)):
            yield from self.condition((node, "test", None), node.test, endless=isinstance(node, ast.While))
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from (self.site("return", (node, "value", None), new) for new in others.answers(node.value))
        elif isinstance(node, ast.AugAssign) and type(node.op) in others.OPERATORS:
            yield self.site("operator", (node, "op", None), others.OPERATORS[type(node.op)]())
        yield from self.children(node)

    def children(self, node: ast.AST) -> Iterator[Site]:
        same = _same_when_equal(node)
        for field, value in ast.iter_fields(node):
            if field == "annotation" or (field == "args" and isinstance(node, ast.Lambda)):
                continue
            for n, child in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(child, ast.stmt):
                    yield from self.statement((node, field, n), child)
                elif isinstance(child, ast.expr):
                    yield from self.expression((node, field, n), child, ordered=not (same and field == "test"))
                elif isinstance(child, ast.AST):
                    yield from self.children(child)

    def expression(self, place: Place, node: ast.expr, ordered: bool = True) -> Iterator[Site]:
        if id(node) in self.sizes or others.large(node):
            return
        self.line = node.lineno
        if isinstance(node, ast.Constant):
            yield from (self.site("constant", place, new) for new in others.constants(node))
        elif isinstance(node, (ast.BinOp, ast.BoolOp)):
            if type(node.op) in others.OPERATORS and not others.of_sequences(node):
                yield self.site("operator", (node, "op", None), others.OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Compare):
            for n, op in enumerate(node.ops):
                if ordered or not isinstance(op, _ORDER):
                    yield self.site("operator", (node, "ops", n), others.OPERATORS[type(op)]())
        elif isinstance(node, ast.IfExp):
            yield from self.condition((node, "test", None), node.test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "range":
                yield from (self.site("bound", place, new) for new in others.ranges(node))
            elif node.func.id == "print" and self.prints and len(node.args) == 1:
                yield from (self.site("return", (node, "args", 0), new) for new in others.answers(node.args[0]))
        elif isinstance(node, ast.Slice):
            yield from (self.site("bound", place, new) for new in others.slices(node))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for part in node.generators:
                for n, test in enumerate(part.ifs):
                    yield from self.condition((part, "ifs", n), test)
        yield from self.children(node)

    def condition(self, place: Place, test: ast.expr, endless: bool = False) -> Iterator[Site]:
        if isinstance(test, ast.Constant) or is_main(test):
            return
        yield self.site("condition", place, ast.UnaryOp(ast.Not(), test))
        yield self.site("condition", place, ast.Constant(False))
        if not endless:
            yield self.site("condition", place, ast.Constant(True))

    def worth_deleting(self, node: ast.stmt) -> bool:
        if isinstance(node, _KEPT) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return False
        return not any(self.assigned[name] == 1 for name in _named(node))

    def never_used(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.Assign) and not any(name in self.used for name in _named(node))


def _named(node: ast.stmt) -> list[str]:
    """The names in what an assignment assigns to, those of a[i] and a.b included."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _of_interpreter(node: ast.stmt) -> bool:
    """sys.setrecursionlimit(...) and its like."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    function = node.value.func
    return getattr(function, "attr", getattr(function, "id", "")) in _INTERPRETER


def _same_when_equal(node: ast.AST) -> bool:
    """`if a > b: b = a`, `a if a > b else b` and their like: for equal values it does not matter which way it goes."""
    test = getattr(node, "test", None)
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _ORDER)):
        return False
    pair: list[ast.expr | None] = []
    if isinstance(node, ast.IfExp):
        pair = [node.body, node.orelse]
    elif isinstance(node, ast.If) and len(node.body) == 1:
        then, otherwise = node.body[0], node.orelse
        if isinstance(then, ast.Assign) and not otherwise:
            pair = [*then.targets, then.value]
        elif isinstance(then, ast.Return) and len(otherwise) == 1 and isinstance(otherwise[0], ast.Return):
            pair = [then.value, otherwise[0].value]
    written = [ast.unparse(side) for side in pair if side is not None]
    return sorted(written) == sorted(map(ast.unparse, (test.left, *test.comparators)))
