"""Split one assertion: what the candidate's process evaluates, and what is compared outside."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .statements import MOST, OURS, SHARED, THEIRS, Fact, Hand, NotSeparable, Statements, Step
from .syntax import (
    SCOPES,
    Line,
    assign,
    bound,
    constants,
    copied,
    has_effects,
    is_literal,
    item,
    loaded,
    looks_outside,
    name,
    parts,
    replaced,
    source,
)

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "in": "contains", "not in": "lacks"}
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
    "contains" (the answer is the container), "lacks", "close" (math.isclose), "near" (abs(a - b) < eps), "truth",
    "false", "pair" (two answers must be equal), "raises" (`expected` is a list of names of exceptions), "runs" (it ends
    without one), "rest" (the answers, as a tuple called ANSWERS, go into the expression `expected`), or "inside" (the
    assertion ran in the candidate's process; passing means that it ended without an exception). `made`: what is
    compared, as an expression with ANSWERS in it, where it is not the answer itself. `rest` and `made` are evaluated
    outside, after the statements `outside`.
    """

    op: str
    before: str
    ask: str
    expected: str = ""
    fact: Fact | None = None
    made: str = ""
    outside: str = ""
    given: dict[str, str] = field(default_factory=dict)  # names, and keys of facts (in the end: values as JSON)
    tolerance: dict[str, str] = field(default_factory=dict)
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
        if loaded(test) & self.handles:
            return [self.inside([ast.Assert(test)], ast.unparse(test))]
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
            if called in ("math.isclose", "isclose", "np.isclose", "numpy.isclose") and len(test.args) == 2:
                return self.closeness(test, called, whole)
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
        if looks_outside(test):
            return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
        _, fact = self.fact(ast.Call(name("bool"), [test], []))
        if loaded(test) & self.lent() or (fact is not None and fact.text != "true"):
            return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
        return []

    def lent(self) -> set[str]:
        """Names that may share something with what the candidate was given: `row` after `row = grid[0]; f(grid)`."""
        out = self.shared | self.parts_lent
        for line in [*self.outside[::-1], *self.outside]:
            names = (line.binds | line.uses) & self.variables
            if names & out and not line.imports:
                out |= names
        return out

    def comparison(self, left: ast.expr, op: str, right: ast.expr, test: ast.expr, whole: ast.expr) -> list[Probe]:
        near = self.nearness(left, op, right, whole)
        if near is not None:
            return [near]
        sides = self.side(left), self.side(right)
        if sides[0] == sides[1]:
            if op == "==" and self.clean(left, True) and self.clean(right, True):
                return [self.probe("pair", ast.Tuple([left, right], ast.Load()), whole)]
            if op in ("is", "is not"):  # two things of the candidate's: only there is one the other
                return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
            return self.rest(test, whole)
        if sides[1] > sides[0]:
            left, right, op = right, left, _FLIPPED.get(op, op)
        again = SHARED in sides and THEIRS in sides
        fact = None if is_literal(right) else self.fact(right)[1]
        if fact is not None and (fact.faith == "failed" or '{"?"' in fact.text):  # no plain value to compare with
            if op in ("is", "is not") and self.clean(left):
                return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
            return self.rest(test, whole)
        if op in ("is", "is not") and fact is not None and fact.faith == "plain":  # which list it is, not what is in it
            return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
        if op in ("contains", "lacks") and self.is_object(left):  # a question to an object of the candidate's
            return [self.probe("truth" if op == "contains" else "false", ast.Compare(right, [ast.In()], [left]), whole)]
        truth = isinstance(right, ast.Constant) and isinstance(right.value, bool)
        if self.clean(left, methods=not truth):
            return [self.probe(op, left, whole, right, again=again)]
        try:
            asked, made = self.questions(left)
        except NotSeparable:
            return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
        return [self.probe(op, asked, whole, right, made=made, again=again)]

    def nearness(self, left: ast.expr, op: str, right: ast.expr, whole: ast.expr) -> Probe | None:
        """abs(answer - expected) < eps, with math.fabs for abs and either order."""
        match left:
            case ast.Call(func, [ast.BinOp(one, ast.Sub(), other)], []) if op in ("<", "<="):
                if ast.unparse(func) not in ("abs", "math.fabs", "fabs") or self.side(right) != OURS:
                    return None
                for answer, expected in ((one, other), (other, one)):
                    if self.clean(answer, True) and self.side(expected) == OURS:
                        tolerance = {"abs": ast.unparse(right), "strict": str(op == "<")}
                        return self.probe("near", answer, whole, expected, tolerance=tolerance)
        return None

    def closeness(self, call: ast.Call, called: str, whole: ast.expr) -> list[Probe]:
        given = {word.arg: word.value for word in call.keywords if word.arg}
        numpy = called.startswith("n")
        for answer, expected in (call.args, call.args[::-1]):
            if self.clean(answer, True) and not any(self.side(part) for part in (expected, *given.values())):
                rel, abs_ = given.get("rtol" if numpy else "rel_tol"), given.get("atol" if numpy else "abs_tol")
                tolerance = {
                    "rel": ast.unparse(rel) if rel else ("1e-5" if numpy else "1e-9"),
                    "abs": ast.unparse(abs_) if abs_ else ("1e-8" if numpy else "0.0"),
                }
                return [self.probe("close", answer, whole, expected, tolerance=tolerance)]
        return self.rest(call, whole)

    def rest(self, test: ast.expr, whole: ast.expr) -> list[Probe]:
        """Not one of the simple forms: the calls go inside, the rest stays outside; if that fails, all goes inside."""
        try:
            asked, made = self.questions(test)
        except NotSeparable:
            return [self.inside([ast.Assert(whole)], ast.unparse(whole))]
        return [self.probe("rest", asked, whole, made=made)]

    def questions(self, node: ast.expr) -> tuple[ast.expr, ast.expr]:
        """What is asked, as a tuple; and `node` with ANSWERS[n] in the place of each."""
        calls = _Questions(self)
        made = calls.visit(copied(node))
        assert isinstance(made, ast.expr)
        if not calls.found or loaded(made) & (self.theirs | self.shared):
            raise NotSeparable
        self.opaque |= any(self.has_no_plain_value(part) for part in calls.ours)
        return ast.Tuple(calls.found, ast.Load()), made

    def has_no_plain_value(self, node: ast.expr) -> bool:
        """Whether a value of ours is an object: what is compared with it is one too, and stays inside."""
        if is_literal(node) or has_effects(node):
            return False
        if isinstance(node, ast.Name) and node.id not in self.variables - self.imported:
            return False
        _, fact = self.fact(node)
        return fact is not None and (fact.faith == "failed" or '{"?"' in fact.text)

    def written_out(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[ast.expr]:
        """Return the elements of a comprehension over values of the tests."""
        own = set().union(*(bound(loop.target) for loop in node.generators))
        for loop in node.generators:
            if any(loaded(part) - own - self.ours for part in (loop.iter, *loop.ifs)) or loop.is_async:
                raise NotSeparable
        variables = sorted(own)
        values = ast.Tuple([name(v) for v in variables], ast.Load())
        rounds = self.rounds_of(ast.ListComp(values, [copied(loop) for loop in node.generators]))
        out = []
        for value in rounds:
            places = {v: ast.Subscript(value, ast.Constant(n), ast.Load()) for n, v in enumerate(variables)}
            out.append(replaced(node.elt, places))
        return out

    def rounds_of(self, loop: ast.expr) -> list[ast.expr]:
        """Return the items that a loop goes through, as expressions of the tests."""
        if self.side(loop) == THEIRS:
            raise NotSeparable
        values = self.new_name("loop")
        first = ast.parse(f"list(__import__('itertools').islice(_, {MOST + 1}))", mode="eval").body
        self.note(assign(values, replaced(first, {"_": loop})))
        count = self.known(ast.Call(name("len"), [name(values)], []))
        self.rounds += count if isinstance(count, int) else MOST + 1
        if self.rounds > MOST or not isinstance(count, int):
            raise NotSeparable
        return [item(values, n) for n in range(count)]

    # Probes

    def inside(self, body: list[ast.stmt], text: str = "the tests as a whole") -> Probe:
        lines = "\n".join([*self.everything, source(body)])
        self.unread.clear()
        for step in self.steps:
            step.due = False
        return Probe("inside", lines, "True", alias=self.alias, entry=self.entry, text=text)

    def probe(
        self, op: str, ask: ast.expr, whole: ast.expr, expected: ast.expr | None = None, made: ast.expr | None = None,
        tolerance: dict[str, str] | None = None, again: bool = False,
    ) -> Probe:  # fmt: skip
        hand = Hand(self)
        asked = hand.visit(copied(ask))
        assert isinstance(asked, ast.expr)
        steps = self.needed(asked)
        for step in steps:
            step.due = False
        text = ast.unparse(whole)
        probe = Probe(
            op, "\n".join(step.line.text for step in steps), ast.unparse(asked), alias=self.alias, entry=self.entry,
            text=text, tolerance=tolerance or {}, again=again,
        )  # fmt: skip
        outside: set[str] = set()
        for part in (expected, made):
            outside |= loaded(part) if part is not None else set()
        for step in self.steps:  # outside it is run too
            step.due &= not step.line.binds & outside
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
            step.tells or (both and step.stores) or (step.copied and _holds(step.line, names, said)) for step in steps
        )
        for step in steps:
            probe.given |= step.given
        probe.given |= hand.given
        itself = any(isinstance(part, ast.Name) and part.id not in self.variables for part in getattr(ask, "elts", ()))
        opaque, self.opaque = self.opaque, False
        if op in ("pair", "contains", "lacks") or again or itself or opaque or self.looks_at_objects(whole):
            probe.whole = "\n".join([*self.everything, f"assert {text}"])
        if loaded(asked) & self.variables and any(isinstance(n, ast.Call) for n in parts(asked)):
            # it may have changed what a later assert looks at
            self.steps.append(Step(Line(ast.Expr(asked)), hand.given))
            self.everything.append(ast.unparse(ask))
        return probe

    def looks_at_objects(self, test: ast.expr) -> bool:
        for node in parts(self.meaning(test)):
            match node:
                case ast.Call(ast.Name(ident)) if ident in _LOOKS_AT_OBJECTS:
                    return True
                case ast.Attribute(value) if self.side(value) == THEIRS:
                    return True
                case ast.Compare(left, _, [right]) if self.side(left) == THEIRS and self.side(right) == THEIRS:
                    return True
        return False


def _holds(line: Line, names: set[str], said: set[object]) -> bool:
    """Whether a line of ours may hold what is expected: it binds what that is made of, or has the same constants."""
    return not line.imports and bool(line.binds & names or constants(line.statement) & said)


class _Questions(ast.NodeTransformer):
    """Replace every expression that the candidate's process must evaluate by ANSWERS[n]."""

    def __init__(self, assertions: Assertions) -> None:
        self.all = assertions
        self.found: list[ast.expr] = []
        self.ours: list[ast.expr] = []

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        if self.all.side(node) == OURS:
            self.ours.append(node)
            return node
        if self.all.clean(node) and not isinstance(node, ast.FormattedValue | ast.Starred | ast.Slice):
            self.found.append(node)
            if self.all.side(node) == SHARED:
                self.ours.append(node)
            return item(ANSWERS, len(self.found) - 1)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.comprehension(node)
        if isinstance(node, SCOPES):
            raise NotSeparable
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # the method of an answer
            node.func.value = self.visit(node.func.value)  # type: ignore[assignment]
            node.args = [self.visit(arg) for arg in node.args]  # type: ignore[misc]
            node.keywords = [self.visit(word) for word in node.keywords]  # type: ignore[misc]
            return node
        return self.generic_visit(node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> ast.AST:
        own = set().union(*(bound(loop.target) for loop in node.generators))
        rest = [node.elt, *(p for loop in node.generators for p in (loop.iter, *loop.ifs))]
        rest.remove(node.generators[0].iter)
        if all(not loaded(part) - own - self.all.ours for part in rest):  # only what it goes through is the candidate's
            through = ast.Call(name("list"), [node.generators[0].iter], [])  # a generator has no other value
            node.generators[0].iter = self.visit(through)  # type: ignore[assignment]
            return node
        parts = [self.visit(part) for part in self.all.written_out(node)]
        out = ast.List(parts, ast.Load())  # type: ignore[arg-type]
        return ast.Call(name("set"), [out], []) if isinstance(node, ast.SetComp) else out


class _Walrus(ast.NodeTransformer):
    """`(y := f(x)) > 1` as `y = f(x)` and `y > 1`."""

    def __init__(self, assertions: Assertions) -> None:
        self.all = assertions

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        value = self.visit(node.value)
        self.all.note(assign(node.target.id, value))
        return name(node.target.id)

    def leave_alone(self, node: ast.AST) -> ast.AST:
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = leave_alone
