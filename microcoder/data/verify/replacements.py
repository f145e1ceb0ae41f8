"""Replacements for parts of a program: other operators, constants, bounds and answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

LARGEST = 1000  # a constant beyond it is seldom a number to calculate with
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_LISTS = (ast.List, ast.ListComp, ast.Tuple)


def constants(node: ast.Constant) -> Iterator[ast.expr]:
    """Yield the constant less one and plus one, or the other truth value."""
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield from (ast.Constant(node.value + step) for step in (-1, 1))


def large(node: ast.expr) -> bool:
    """Whether it is a bound or a modulus, not a number to calculate with: 10001, 10 ** 9 + 7, 1 << 30."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and abs(node.value) > LARGEST
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, (ast.Pow, ast.LShift)):
        return isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    sides = (node.left, node.right)
    return any(map(large, sides)) and all(large(side) or isinstance(side, ast.Constant) for side in sides)


def sizes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that give the length of a list: `[0] * (n + 1)`, `[[] for _ in range(n + 1)]`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(side, ast.List):
                    yield from ast.walk(other)
        elif isinstance(node, ast.ListComp):
            used = {part.id for part in ast.walk(node.elt) if isinstance(part, ast.Name)}
            for part in node.generators:
                if isinstance(part.target, ast.Name) and part.target.id not in used:
                    yield from ast.walk(part.iter)


def of_sequences(node: ast.BinOp | ast.BoolOp) -> bool:
    """Whether a side is plainly a list or text, for which no other operator works."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(side, _LISTS) or _text(side) for side in sides)


def ranges(call: ast.Call) -> Iterator[ast.expr]:
    """Yield ranges that begin one later or end one earlier. Constant ends are left to `constants`."""
    args = call.args
    if len(args) == 1:
        yield ast.Call(call.func, [ast.Constant(1), *args], [])
    for n, step in ((0, -1),) if len(args) == 1 else ((0, 1), (1, -1)) if len(args) in (2, 3) else ():
        if not isinstance(args[n], ast.Constant):
            yield ast.Call(call.func, [*args[:n], _plus(args[n], step), *args[n + 1 :]], [])


def slices(node: ast.Slice) -> Iterator[ast.expr]:
    """Yield slices that begin one later or end one earlier."""
    if node.lower is not None and not isinstance(node.lower, ast.Constant):
        yield ast.Slice(_plus(node.lower, 1), node.upper, node.step)
    if node.upper is not None and not isinstance(node.upper, ast.Constant):
        yield ast.Slice(node.lower, _plus(node.upper, -1), node.step)


def answers(value: ast.expr) -> list[ast.expr]:
    """Other values to return, of the same type as far as the expression shows it."""
    if isinstance(value, ast.Constant):
        return [] if isinstance(value.value, (int, float)) else [ast.Constant(0)]  # numbers are left to the constants
    if isinstance(value, (ast.Compare, ast.BoolOp)) or isinstance(getattr(value, "op", None), ast.Not):
        return [ast.Constant(True), ast.Constant(False)]
    if isinstance(value, _LISTS):
        if not getattr(value, "elts", True):  # empty, and no shorter
            return [ast.Constant(0)]
        ends = ast.Slice(None, ast.Constant(-1)), ast.Slice(ast.Constant(1), None)
        return [ast.List([], ast.Load()), *(ast.Subscript(value, end, ast.Load()) for end in ends)]
    if _text(value):
        return [ast.Constant("")]
    if isinstance(value, ast.BinOp):
        return [ast.Constant(0)]
    return [ast.Constant(0), ast.List([], ast.Load())]


def _plus(node: ast.expr, step: int) -> ast.expr:
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(1))


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))
