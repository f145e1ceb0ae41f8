"""Assert tests taken apart: what is asked of the candidate, and what is expected of the answer.

`assert f(x) == v` runs only `f(x)` in the candidate's process; `v` stays outside and the comparison happens there, so
an object that claims to equal everything, a patched `sorted` or a hunt through the frames finds nothing to use. The
same is done for `is`, `in`, `!=`, `<` and its kin, `math.isclose`, `abs(a - b) < eps`, bare calls and `not`, for
statements in a row and for a HumanEval `check(candidate)` made of them. Any other assertion (`isinstance(f(x), int)`,
`f(x) == 1 or f(x) == 2`) keeps its calls inside and is evaluated outside on the plain values that they returned. Of the
statements before an assertion the candidate's process runs those that the question needs, so a variable that holds the
expected value is not there to be read. What remains (asserts in a loop) runs inside and says so.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Set
from dataclasses import dataclass, field

_MODULES = {"math", "collections", "itertools", "functools", "re", "random", "string", "datetime", "heapq", "copy"}
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
# LeetCodeDataset's helpers: they build and compare linked lists and trees.
_NODE_HELPERS = {"list_node", "tree_node", "is_same_list", "is_same_tree"}


ANSWERS = "_answers"


@dataclass(slots=True)
class Probe:
    """One question to the candidate and what is expected.

    `before` and `ask` run in the candidate's process; `expected` (and `rel`, `abs`) are expressions for outside, with
    `outside` run before them. op: one of Python's comparison operators, "contains" (the answer is the container),
    "close" (math.isclose), "near" (abs(a - b) < eps), "truth", "false", "pair" (two answers must be equal), "rest" (the
    answers, as a tuple called ANSWERS, go into the expression `expected`), or "inside" (the assertion ran in the
    candidate's process; passing means that it ended without an exception).
    """

    op: str
    before: str
    ask: str
    expected: str = ""
    outside: str = ""
    tolerance: dict[str, str] = field(default_factory=dict)
    alias: str = ""
    text: str = ""  # the assertion as it was written
    everything: str = ""  # all statements before it: what it needs where it can only run inside after all


def probes(asserts: list[str], entry: str, setup: str) -> list[Probe]:
    """Take all the asserts of a problem apart. SyntaxError if a statement is no Python."""
    known = _names_bound(ast.parse(setup).body) if setup else set()
    out: list[Probe] = []
    trees = [ast.parse(text) for text in asserts]
    entry = entry or _first_called(trees)
    for tree in trees:
        check = next((s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "check"), None)
        if check is None:
            out += _Reader(entry, known, "").read(tree.body)
            continue
        alias = check.args.args[0].arg if check.args.args else ""
        around = [s for s in tree.body if s is not check and not _calls(s, "check")]
        reader = _Reader(entry, known, alias)
        for statement in around:
            reader.note(statement)
        out += reader.read(check.body)
    return out


class _Reader:
    """Reads statements in order, keeping apart what depends on the candidate."""

    def __init__(self, entry: str, known: set[str], alias: str) -> None:
        self.known = set(known) | set(dir(builtins)) | _NODE_HELPERS
        self.known -= {entry.rpartition(".")[2], alias}
        self.alias = alias
        self.variables: set[str] = set()  # bound by assignment so far: what a call may change
        self.before: list[ast.stmt] = []  # all statements so far, and the calls of the asserts that may matter later
        self.outside: list[ast.stmt] = []  # those that do not depend on the candidate

    def read(self, body: list[ast.stmt]) -> list[Probe]:
        if any(not isinstance(s, ast.Assert) and _has_assert(s) for s in body):
            return [self.inside(body)]
        out = []
        for statement in body:
            if isinstance(statement, ast.Assert):
                out += self.convert(statement.test, ast.unparse(statement.test))
                if self.variables & _names_loaded(statement.test) and self.depends(statement.test):
                    self.note(ast.Expr(statement.test))  # it may have changed what a later assert looks at
            else:
                self.note(statement)
        return out

    def note(self, statement: ast.stmt) -> None:
        self.before.append(statement)
        bound = _names_bound([statement])
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            self.variables |= bound
        if self.depends(statement, bound):
            self.known -= bound | (self.variables & _names_loaded(statement))
        else:
            self.known |= bound
            self.outside.append(statement)

    def depends(self, node: ast.AST, also: Set[str] = frozenset()) -> bool:
        """Whether anything in `node` may come from the candidate: any name that nothing else explains does."""
        local = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        local |= {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)} | also
        loaded = _names_loaded(node)
        for name in sorted(loaded & _MODULES - self.known - local):  # a module that the tests forgot to import
            self.note(ast.parse(f"import {name}").body[0])
        return bool(loaded - self.known - local)

    def needed(self, ask: ast.expr) -> str:
        """The statements so far, less what `ask` does not lead back to: other variables, and what is done with them."""
        self.depends(ask)  # imports the modules it mentions
        wanted, kept = _names_loaded(ask), []
        for statement in reversed(self.before):
            binds, uses = _names_bound([statement]), _names_loaded(statement)
            touched = binds | (uses & self.variables)
            if touched and not touched & wanted and not isinstance(statement, (ast.Import, ast.ImportFrom)):
                continue
            kept.append(statement)
            wanted |= uses
        return _source(kept[::-1])

    def inside(self, body: list[ast.stmt]) -> Probe:
        source = _source(self.before + body)
        return Probe("inside", source, "True", alias=self.alias, text="the tests as a whole")

    def probe(self, op: str, ask: ast.expr, text: str, expected: ast.expr | None = None, **tolerance: str) -> Probe:
        return Probe(
            op, self.needed(ask), ast.unparse(ask), "" if expected is None else ast.unparse(expected),
            _source(self.outside), tolerance, self.alias, text, _source(self.before),
        )  # fmt: skip

    def convert(self, test: ast.expr, text: str) -> list[Probe]:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return [p for part in test.values for p in self.convert(part, text)]
        if isinstance(test, ast.Constant) and test.value:
            return []  # `assert True` asks nothing
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return [self.comparison(test.left, _OPERATORS[type(test.ops[0])], test.comparators[0], text)]
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and self.is_question(test.operand):
            return [self.probe("false", test.operand, text)]
        if isinstance(test, ast.Call):
            name = ast.unparse(test.func)
            if name in ("math.isclose", "isclose", "np.isclose", "numpy.isclose") and len(test.args) >= 2:
                return [self.closeness(test, name, text)]
            if name in ("is_same_list", "is_same_tree") and len(test.args) == 2:
                return [self.comparison(test.args[0], "==", test.args[1], text)]
        if self.is_question(test):
            return [self.probe("truth", test, text)]
        return [self.whole(test, text)]

    def whole(self, test: ast.expr, text: str) -> Probe:
        """Not one of the simple forms: the calls go inside, the rest stays outside; if that fails, all goes inside."""
        calls = _Calls(self)
        rest = calls.visit(copy.deepcopy(test))
        if calls.found and not self.depends(rest, {ANSWERS}):
            return self.probe("rest", ast.Tuple(elts=calls.found, ctx=ast.Load()), text, rest)
        statement = ast.Assert(test=test, msg=None)
        return Probe("inside", _source([*self.before, statement]), "True", alias=self.alias, text=text)

    def is_question(self, node: ast.expr) -> bool:
        """A plain call of the candidate (or a name that holds its answer): its value can be taken outside."""
        if isinstance(node, ast.Call):
            return isinstance(node.func, (ast.Name, ast.Attribute)) and self.depends(node.func)
        return isinstance(node, (ast.Name, ast.Subscript)) and self.depends(node)

    def comparison(self, left: ast.expr, op: str, right: ast.expr, text: str) -> Probe:
        near = self.nearness(left, op, right, text)
        if near is not None:
            return near
        on_left, on_right = self.depends(left), self.depends(right)
        if on_left and not on_right:
            return self.probe(op, left, text, right)
        if on_right and not on_left:
            if op in ("in", "not in"):
                return self.probe("contains" if op == "in" else "lacks", right, text, left)
            return self.probe(_FLIPPED.get(op, op), right, text, left)
        if on_left and op == "==":
            return self.probe("pair", ast.Tuple(elts=[left, right], ctx=ast.Load()), text)
        return self.whole(ast.Compare(left, [_operator(op)], [right]), text)

    def nearness(self, left: ast.expr, op: str, right: ast.expr, text: str) -> Probe | None:
        """abs(answer - expected) < eps, with math.fabs for abs and either order."""
        if op not in ("<", "<=") or not isinstance(left, ast.Call) or len(left.args) != 1 or self.depends(right):
            return None
        if ast.unparse(left.func) not in ("abs", "math.fabs", "fabs"):
            return None
        inner = left.args[0]
        if not (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)):
            return None
        for answer, expected in ((inner.left, inner.right), (inner.right, inner.left)):
            if self.depends(answer) and not self.depends(expected):
                return self.probe("near", answer, text, expected, abs=ast.unparse(right), strict=str(op == "<"))
        return None

    def closeness(self, call: ast.Call, name: str, text: str) -> Probe:
        for answer, expected in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            given = {k.arg: k.value for k in call.keywords if k.arg}
            parts = [*given.values(), *call.args[2:]]
            if self.depends(answer) and not self.depends(expected) and not any(self.depends(p) for p in parts):
                numpy = name.startswith("n")
                rel = given.get("rtol" if numpy else "rel_tol")
                abs_ = given.get("atol" if numpy else "abs_tol")
                if len(call.args) > 2:
                    break
                return self.probe(
                    "close", answer, text, expected,
                    rel=ast.unparse(rel) if rel else ("1e-5" if numpy else "1e-9"),
                    abs=ast.unparse(abs_) if abs_ else ("1e-8" if numpy else "0.0"),
                )  # fmt: skip
        return self.whole(call, text)


class _Calls(ast.NodeTransformer):
    """Puts ANSWERS[n] in the place of every call of the candidate."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.found: list[ast.expr] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not self.reader.is_question(node):
            return self.generic_visit(node)
        self.found.append(node)
        place = ast.Constant(len(self.found) - 1)
        return ast.Subscript(ast.Name(ANSWERS, ast.Load()), place, ast.Load())

    def leave_alone(self, node: ast.AST) -> ast.AST:
        return node  # a call in a loop of its own depends on the loop's variable

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = leave_alone


def _first_called(trees: list[ast.Module]) -> str:
    """The function under test, where the problem does not name it: it may be called like a built-in one."""
    calls = [n for t in trees for n in ast.walk(t) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    names = [n.func.id for n in calls if isinstance(n.func, ast.Name)]
    return next((n for n in names if not hasattr(builtins, n)), names[0] if names else "")


def _operator(op: str) -> ast.cmpop:
    return next(kind() for kind, name in _OPERATORS.items() if name == op)


def _source(statements: list[ast.stmt]) -> str:
    return "\n".join(ast.unparse(s) for s in statements)


def _names_bound(statements: list[ast.stmt]) -> set[str]:
    """Names that the statements bind at their own level (and, generously, inside)."""
    out: set[str] = set()
    for node in (n for s in statements for n in ast.walk(s)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            out.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            out |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    return out


def _names_loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _has_assert(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Assert) for n in ast.walk(node))


def _calls(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id == name
    )
