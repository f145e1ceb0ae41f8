"""Split one assertion: what the candidate's process evaluates, and what is compared outside."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .statements import OURS, SHARED, THEIRS, Divide, Fact, Hand, NotSeparable, Statements
from .syntax import (
    SCOPES,
    Line,
    assign,
    constants,
    copied,
    has_effects,
    is_literal,
    item,
    loaded,
    looks_outside,
    name,
    parts,
    source,
)

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
# An assertion that calls one of these may be about an object itself; only then is it tried inside.
_LOOKS_AT_OBJECTS = {"isinstance", "issubclass", "callable", "hasattr", "getattr", "next", "iter", "type", "id"}
ANSWERS = "_answers"


@dataclass(slots=True)
class Probe:
    """An expression for the candidate's process to evaluate, and what is expected of its value.

    `before` and `ask` run in the candidate's process, with the values in `given`. `expected` is an expression of the
    problem's, and `fact` what is known of it, where it is no literal. op: one of Python's comparison operators,
    "truth", "false", "pair" (two answers must be equal), "raises" (`expected` is a list of names of exceptions), "runs"
    (it ends without one), "rest" (the answers, as a tuple called ANSWERS, go into the expression `expected`), or
    "inside" (the assertion ran in the candidate's process; passing means that it ended without an exception). `made`:
    what is compared, as an expression with ANSWERS in it, where it is not the answer itself. `rest` and `made` are
    evaluated outside, after the statements `outside`.
    """

    op: str
    before: str
    ask: str
    expected: str = ""
    fact: Fact | None = None
    made: str = ""
    outside: str = ""
    given: dict[str, str] = field(default_factory=dict)  # names, and keys of facts (in the end: values as JSON)
    alias: str = ""  # another name for the candidate's function
    entry: str = ""  # this function
    text: str = ""  # the assertion as it was written
    whole: str = ""  # the same after all statements before it, where it may run inside after all
    tells: bool = False  # what runs in the candidate's process may hold what is expected
    again: bool = False  # it was compared with something that the candidate may change: if it fails, it is run inside


class Assertions(Statements):
    entry = alias = ""
    opaque = False  # the next probe is about an object of ours

    def assertion(self, test: ast.expr) -> list[Probe]:
        """Return the probes that `assert test` is split into."""
        if any(isinstance(node, ast.NamedExpr) for node in parts(test)):
            test = _Walrus(self).visit(copied(test))
        return self.convert(test, test)

    def convert(self, test: ast.expr, whole: ast.expr) -> list[Probe]:
        test = self.meaning(test)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return [probe for part in test.values for probe in self.convert(part, whole)]
        if self.side(test) == OURS:
            return self.of_ours(test, whole)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self.comparison(test.left, _OPERATORS[type(test.ops[0])], test.comparators[0], test, whole)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and self.clean(test.operand):
            return [self.probe("false", test.operand, whole)]
        if isinstance(test, ast.Call):
            called = ast.unparse(test.func)
            if called in ("is_same_list", "is_same_tree") and len(test.args) == 2:
                return self.comparison(test.args[0], "==", test.args[1], test, whole)
            if called == "all" and len(test.args) == 1 and (parts := self.parts(test.args[0])) is not None:
                return [probe for part in parts for probe in self.convert(part, whole)]
        if self.clean(test):
            return [self.probe("truth", test, whole)]
        return self.rest(test, whole)

    def parts(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the elements that `all(...)` is called with, one by one."""
        if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return node.elts
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and not self.clean(node):
            try:
                return self.written_out(node)
            except NotSeparable:
                pass
        return None

    def of_ours(self, test: ast.expr, whole: ast.expr) -> list[Probe]:
        """Nothing of the candidate's: it holds already, unless it is about what the candidate may have changed."""
        if is_literal(test) and ast.literal_eval(test):
            return []  # `assert True` asks nothing
        _, fact = self.fact(ast.Call(name("bool"), [test], []))
        changed = looks_outside(test) or (self.lent and loaded(test) & self.variables)
        return self.alone(whole) if changed or (fact is not None and fact.text != "true") else []

    def comparison(self, left: ast.expr, op: str, right: ast.expr, test: ast.expr, whole: ast.expr) -> list[Probe]:
        sides = self.side(left), self.side(right)
        identity = op in ("is", "is not")
        if sides[0] == sides[1]:
            if op == "==" and self.clean(left, True) and self.clean(right, True):
                return [self.probe("pair", ast.Tuple([left, right], ast.Load()), whole)]
            return self.alone(whole) if identity else self.rest(test, whole)
        if sides[1] > sides[0]:
            if op in ("in", "not in"):
                if not self.is_object(right):
                    return self.rest(test, whole)
                question = ast.Compare(left, [ast.In()], [right])  # to an object of the candidate's
                return [self.probe("truth" if op == "in" else "false", question, whole)]
            left, right, op = right, left, _FLIPPED.get(op, op)
        again = SHARED in sides and THEIRS in sides
        fact = None if is_literal(right) else self.fact(right)[1]
        if fact is not None and not fact.is_value:
            return self.alone(whole) if identity and self.clean(left) else self.rest(test, whole)
        if identity and fact is not None and fact.faith == "plain":  # which list it is, not what is in it
            return self.alone(whole)
        truth = isinstance(right, ast.Constant) and isinstance(right.value, bool)
        if self.clean(left, methods=not truth):
            return [self.probe(op, left, whole, right, again=again)]
        try:
            asked, made = self.questions(left)
        except NotSeparable:
            return self.alone(whole)
        return [self.probe(op, asked, whole, right, made=made, again=again)]

    def rest(self, test: ast.expr, whole: ast.expr) -> list[Probe]:
        """Not one of the simple forms: the calls go inside, the rest stays outside; if that fails, all goes inside."""
        try:
            asked, made = self.questions(test)
        except NotSeparable:
            return self.alone(whole)
        return [self.probe("rest", asked, whole, made=made)]

    def questions(self, node: ast.expr) -> tuple[ast.expr, ast.expr]:
        """What is asked, as a tuple; and `node` with ANSWERS[n] in the place of each."""
        found: list[ast.expr] = []
        ours: list[ast.expr] = []

        def answer(part: ast.expr) -> ast.expr:
            found.append(part)
            if self.side(part) == SHARED:
                ours.append(part)
            return item(ANSWERS, len(found) - 1)

        def of_ours(part: ast.expr) -> ast.expr:
            ours.append(part)
            return part

        made = Divide(self, answer, of_ours).visit(copied(node))
        assert isinstance(made, ast.expr)
        if not found or loaded(made) & (self.theirs | self.shared):
            raise NotSeparable
        self.opaque |= any(self.has_no_plain_value(part) for part in ours)
        return ast.Tuple(found, ast.Load()), made

    def has_no_plain_value(self, node: ast.expr) -> bool:
        """Whether a value of ours is an object: what is compared with it is one too, and stays inside."""
        if is_literal(node) or has_effects(node):
            return False
        if isinstance(node, ast.Name) and node.id not in self.variables - self.imported:
            return False
        _, fact = self.fact(node)
        return fact is not None and not fact.is_value

    # Probes

    def alone(self, test: ast.expr) -> list[Probe]:
        return [self.inside([ast.Assert(test)], ast.unparse(test))]

    def inside(self, body: list[ast.stmt], text: str = "the tests as a whole") -> Probe:
        lines = "\n".join([*self.everything, source(body)])
        self.unread.clear()
        for step in self.steps:
            step.due = False
        return Probe("inside", lines, "True", alias=self.alias, entry=self.entry, text=text)

    def probe(
        self, op: str, ask: ast.expr, whole: ast.expr, expected: ast.expr | None = None, made: ast.expr | None = None,
        again: bool = False,
    ) -> Probe:  # fmt: skip
        hand = Hand(self)
        asked = hand.visit(copied(ask))
        assert isinstance(asked, ast.expr)
        steps = self.steps.leading_to(loaded(asked))
        for step in steps:
            step.due = False
        text = ast.unparse(whole)
        before = "\n".join(step.text for step in steps)
        probe = Probe(op, before, ast.unparse(asked), alias=self.alias, entry=self.entry, text=text, again=again)
        outside: set[str] = set()
        for part in (expected, made):
            outside |= loaded(part) if part is not None else set()
        for step in self.steps:  # outside it is run too
            step.due &= not step.binds & outside
        leading = self.slice(outside - {ANSWERS})
        if expected is not None:
            probe.expected = ast.unparse(expected)
            if not is_literal(expected):
                probe.fact = self.fact(expected)[1]
        if made is not None:
            probe.outside = "\n".join(line.text for line in leading)
            if op == "rest":
                probe.expected = ast.unparse(made)
            else:
                probe.made = ast.unparse(made)
        names = outside.union(*(line.binds for line in leading if not line.imports))
        both = op == "pair" or (op == "rest" and len(getattr(ask, "elts", ())) > 1)
        said = constants(expected) if expected is not None else set()
        probe.tells = any(
            step.tells or (both and step.stores) or (step.copied and _holds(step, names, said)) for step in steps
        )
        for step in steps:
            probe.given |= step.given
        probe.given |= hand.given
        itself = any(isinstance(part, ast.Name) and part.id not in self.variables for part in getattr(ask, "elts", ()))
        opaque, self.opaque = self.opaque, False
        if op == "pair" or again or itself or opaque or self.looks_at_objects(whole):
            probe.whole = "\n".join([*self.everything, f"assert {text}"])
        if loaded(asked) & self.variables and any(isinstance(n, ast.Call) for n in parts(asked)):
            # it may have changed what a later assert looks at
            self.steps.add(Line(ast.Expr(asked), hand.given))
            self.everything.append(ast.unparse(ask))
        return probe

    def looks_at_objects(self, test: ast.expr) -> bool:
        for node in parts(self.meaning(test)):
            match node:
                case ast.Call(ast.Name(ident)) if ident in _LOOKS_AT_OBJECTS:
                    return True
                case ast.Attribute(value) if self.side(value) == THEIRS:
                    return True
                case ast.Compare(left, [op], [right]) if self.side(right) == THEIRS:
                    if self.side(left) == THEIRS or isinstance(op, ast.In | ast.NotIn):
                        return True
        return False


def _holds(line: Line, names: set[str], said: set[object]) -> bool:
    """Whether a line of ours may hold what is expected: it binds what that is made of, or has the same constants."""
    return not line.imports and bool(line.binds & names or constants(line.statement) & said)


class _Walrus(ast.NodeTransformer):
    """`(y := f(x)) > 1` as `y = f(x)` and `y > 1`."""

    def __init__(self, assertions: Assertions) -> None:
        self.all = assertions

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        value = self.visit(node.value)
        self.all.note(assign(node.target.id, value))
        return name(node.target.id)
