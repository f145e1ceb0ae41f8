"""Mutants: a right program with one small mistake each, which good tests should notice.

    operator   + - * // % & | << >>, < <=, == !=, in, and / or
    bound      range(n) -> range(n - 1), range(1, n); x[i:j] -> x[i + 1:j], x[i:j - 1]
    constant   one more, one less; True for False
    condition  negated, always, never
    return     another constant, a list without its first or last element (where the program prints: what it prints)
    deletion   a statement gone

A mutant that is equivalent to the original says nothing about the tests, and neither does one that fails on every
input. Such mutants cannot be found in general; those that the code itself shows are left out:

1. Code that the tests never enter: functions that nothing mentions, a demonstration at the end of the module, default
   arguments, decorators, annotations, `assert` and `raise`.
2. `<` for `<=` in `if a > best: best = a` and similar code, where equal values give the same state.
3. Numbers that are not calculated with: over 1,000, or powers such as 10 ** 9 (infinities, moduli); a list longer than
   necessary; limits of the interpreter.
4. `+` between strings or lists, and the deletion of a name's only assignment: every input fails without them.
5. `break`, which mostly saves time; `while` made endless.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

KINDS = ("operator", "bound", "constant", "condition", "return", "deletion")
MOST_CODE = 50_000  # characters; a longer program is mostly a table
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KEPT = (  # never deleted: then every input would fail, or none, or a changed condition does the same
    *DEFINITIONS, ast.Global, ast.Nonlocal, ast.Pass, ast.Return, ast.Break, ast.If, ast.While, ast.Try, ast.With,
)  # fmt: skip
_UNTOUCHED = (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)
_INTERPRETER = {"setrecursionlimit", "stack_size", "set_int_max_str_digits"}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
Place = tuple[ast.AST, str, int | None]  # (parent node, field, index in a list)


LARGEST = 1000  # programs seldom calculate with larger constants
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_LISTS = (ast.List, ast.ListComp, ast.Tuple)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one mistake."""

    kind: str
    line: int  # of the original program
    change: str  # "`a < b` -> `a <= b`"
    code: str

    def __str__(self) -> str:
        return f"{self.change} on line {self.line}"


def mutants(code: str, *, entry_point: str = "", prints: bool = False, most: int = 24) -> list[Mutant]:
    """Return at most `most` mutants, always the same ones, spread over kinds and lines; [] for code that is no Python.

    entry_point   the function or method that the tests call
    prints        the whole program is tested: it reads and prints
    """
    if len(code) > MOST_CODE:
        return []
    try:
        tree = ast.parse(code)
        return _chosen(tree, list(Finder(tree, entry_point, prints).sites()), most)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def digest(code: str) -> str:
    """A short name of a mutant's program."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _chosen(tree: ast.Module, sites: list[Site], most: int) -> list[Mutant]:
    """Choose mutants of all kinds in turn; programs with the same source count once."""
    kinds = [_spread([site for site in sites if site.kind == kind]) for kind in KINDS]
    seen, out = {ast.unparse(tree)}, list[Mutant]()
    for site in (site for turn in zip_longest(*kinds) for site in turn if site is not None):
        if len(out) >= most:
            break
        shown = None if isinstance(site.new, (ast.expr, ast.stmt)) else site.owner  # an operator alone is hard to read
        before = "" if shown is None else _short(shown)
        old = site.swap(site.new)
        text, after = ast.unparse(tree), _short(site.new if shown is None else shown)
        site.swap(old)
        if text not in seen:
            seen.add(text)
            out.append(Mutant(site.kind, site.line, f"`{before or _short(old)}` -> `{after}`", text))
    return out


def _spread(sites: list[Site]) -> list[Site]:
    """Order the sites so that the first n are spread evenly, for any n: by multiples of the golden ratio, modulo 1."""
    return [sites[n] for n in sorted(range(len(sites)), key=lambda n: n * 0.6180339887498949 % 1)]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


# --- places where a mistake can be made


@dataclass(slots=True)
class Site:
    """A place in the tree and its replacement."""

    kind: str
    line: int
    owner: Any
    field: str
    index: int | None
    new: ast.AST

    def swap(self, node: ast.AST) -> ast.AST:
        """Put `node` at the place and return the old node."""
        old: ast.AST
        if self.index is None:
            old = getattr(self.owner, self.field)
            setattr(self.owner, self.field, node)
        else:
            items = getattr(self.owner, self.field)
            old, items[self.index] = items[self.index], node
        return old


class Finder:
    """Find sites: walk through the code that the tests can reach, in the order of the program."""

    def __init__(self, tree: ast.Module, entry_point: str, prints: bool) -> None:
        self.tree, self.prints = tree, prints
        self.reached = reached(tree, entry_point, prints)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self.assigned = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        self.used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self.sizes = {id(node) for node in sizes(tree)}
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
            yield from (self.site("return", (node, "value", None), new) for new in answers(node.value))
        elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            yield self.site("operator", (node, "op", None), OPERATORS[type(node.op)]())
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
        if id(node) in self.sizes or large(node):
            return
        self.line = node.lineno
        if isinstance(node, ast.Constant):
            yield from (self.site("constant", place, new) for new in constants(node))
        elif isinstance(node, (ast.BinOp, ast.BoolOp)):
            if type(node.op) in OPERATORS and not of_sequences(node):
                yield self.site("operator", (node, "op", None), OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Compare):
            for n, op in enumerate(node.ops):
                if ordered or not isinstance(op, _ORDER):
                    yield self.site("operator", (node, "ops", n), OPERATORS[type(op)]())
        elif isinstance(node, ast.IfExp):
            yield from self.condition((node, "test", None), node.test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "range":
                yield from (self.site("bound", place, new) for new in ranges(node))
            elif node.func.id == "print" and self.prints and len(node.args) == 1:
                yield from (self.site("return", (node, "args", 0), new) for new in answers(node.args[0]))
        elif isinstance(node, ast.Slice):
            yield from (self.site("bound", place, new) for new in slices(node))
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
    """Return the names in the targets of an assignment, including a in a[i] and a.b."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _of_interpreter(node: ast.stmt) -> bool:
    """Whether a statement sets a limit of the interpreter, such as sys.setrecursionlimit(...)."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    function = node.value.func
    return getattr(function, "attr", getattr(function, "id", "")) in _INTERPRETER


def _same_when_equal(node: ast.AST) -> bool:
    """Whether both branches give the same for equal values: `if a > b: b = a`, `a if a > b else b`."""
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


# --- code that the tests can reach


def reached(tree: ast.Module, entry_point: str, prints: bool) -> set[str]:
    """Return the functions and classes that tests can reach: the entry point, names in the module's body, and so on.

    Without an entry point, and if nothing is printed, every definition counts.
    """
    bodies: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS):
            bodies.setdefault(node.name, []).append(node)
    run = [s for s in tree.body if not isinstance(s, DEFINITIONS) and (prints or not demonstration(s))]
    waiting = [name for statement in run for name in _mentioned(statement)]
    waiting += entry_point.split(".") if entry_point or prints else list(bodies)
    out: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in out:
            out.add(name)
            waiting += [other for body in bodies[name] for other in _mentioned(body)]
    return out


def demonstration(statement: ast.stmt) -> bool:
    """Whether a top-level statement is only a demonstration: a call whose value is unused, or the main block."""
    if isinstance(statement, ast.If):
        return is_main(statement.test)
    return isinstance(statement, ast.Expr)


def is_main(test: ast.expr) -> bool:
    """Whether an expression is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Yield the names in a body, without those inside its definitions, except Python's hooks (such as `__init__`)."""
    waiting = [node] if not isinstance(node, DEFINITIONS) else list(ast.iter_child_nodes(node))
    while waiting:
        part = waiting.pop()
        if isinstance(part, DEFINITIONS):
            if part.name.startswith("__"):
                yield part.name
            continue
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        waiting += ast.iter_child_nodes(part)


def constants(node: ast.Constant) -> Iterator[ast.expr]:
    """Yield the constant minus one and plus one, or the other truth value."""
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield from (ast.Constant(node.value + step) for step in (-1, 1))


def large(node: ast.expr) -> bool:
    """Whether a number is a bound or a modulus, such as 10001, 10 ** 9 + 7, 1 << 30."""
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
    """Whether one side is clearly a list or text, for which no other operator works."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(side, _LISTS) or _text(side) for side in sides)


def ranges(call: ast.Call) -> Iterator[ast.expr]:
    """Yield ranges that begin one later or end one earlier. `constants` changes constant ends."""
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
    """Return other values to return, of the same type as far as the expression shows it."""
    if isinstance(value, ast.Constant):
        return [] if isinstance(value.value, (int, float)) else [ast.Constant(0)]  # `constants` changes numbers
    if isinstance(value, (ast.Compare, ast.BoolOp)) or isinstance(getattr(value, "op", None), ast.Not):
        return [ast.Constant(True), ast.Constant(False)]
    if isinstance(value, _LISTS):
        if not getattr(value, "elts", True):  # empty, so it cannot be shorter
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
