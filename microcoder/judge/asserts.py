"""Assert tests taken apart: what is asked of the candidate, and what is expected of the answer.

The design in one paragraph. A program of tests is read statement by statement, as Python would run it, but two
processes share the work. Every name is the tests' own, the candidate's, or shared (sides.py). Statements about what is
the tests' own run outside only. The others become lines for the candidate's process, which gets the values that they
need, and not where those come from (statements.py). An assertion becomes a probe: an expression for the candidate's
process, after the lines that lead to it (syntax.py), and what its answer is compared with outside (assertions.py). So
`assert f(x) == v` runs `f(x)` inside and nothing else: an object that claims to equal everything, a patched `sorted` or
a hunt through frames and globals finds nothing to use. Loops over what is known are written out, and functions of the
tests that assert, such as HumanEval's `check(candidate)`, are read where they are called. What the reading must know of
values is asked of a box without the candidate; then the program is read again, until nothing is missing. What has no
such reading (a `while` with asserts, two objects that are compared, files) raises NotSeparable: the statement, or the
whole program, runs inside, and the verdict says so. When in doubt a form runs inside; it is never dropped.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator

from ..schema import SchemaError
from .assertions import ANSWERS, Assertions, Probe
from .statements import MOST, OURS, THEIRS, Evaluate, Fact, NotSeparable
from .syntax import (
    DEFINITIONS,
    Line,
    assign,
    binds,
    bound,
    can_fail,
    copied,
    has_assert,
    is_case,
    is_failure,
    item,
    loaded,
    local,
    name,
    source,
)

__all__ = ["ANSWERS", "Probe", "count_tests", "first_tests", "probes"]
_PASSES = 8
_CANDIDATE = "_candidate"


def probes(asserts: list[str], entry: str, setup: str, evaluate: Evaluate | None = None) -> list[Probe]:
    """Take all the asserts of a problem apart. SyntaxError if a statement is no Python.

    evaluate: runs code of the problem's. Without it no loop is written out, and values other than literals are missing.
    """
    trees = [ast.parse(text) for text in asserts]
    entry = entry or _named_by_check(trees)
    if not entry and any(isinstance(s, ast.FunctionDef) and s.name == "check" for tree in trees for s in tree.body):
        raise SchemaError('the tests are a check(candidate), so "entry_point" must name the function, such as "add"')
    entry = entry or _first_called(trees)
    start = ast.parse(setup).body
    found = evaluate("", "list(globals())") if evaluate and setup else None
    ours = set(map(str, found)) if isinstance(found, list) else {n for s in start for n in bound(s)}
    return [probe for body in _programs(trees, ours) for probe in _read(*body, entry, start, ours, evaluate)]


def first_tests(asserts: list[str], setup: str, count: int) -> list[str]:
    """Return the entries of the asserts that hold the first tests: what prepares something for a test is none."""
    try:
        ours = {ident for statement in ast.parse(setup).body for ident in bound(statement)}
        trees = [ast.parse(text) for text in asserts]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return asserts[:count]
    return asserts[: max(n for n in range(len(trees) + 1) if len(list(_programs(trees[:n], ours))) <= count)]


def count_tests(asserts: list[str], entry: str, setup: str) -> int:
    """Count the tests in the asserts, a loop as one; 0 where they cannot be read."""
    try:
        return len(probes(asserts, entry, setup))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return 0


def _programs(trees: list[ast.Module], ours: set[str]) -> Iterator[tuple[list[ast.stmt], list[ast.stmt]]]:
    """Each entry of the asserts as a program, after the entries before it that prepare something for it.

    Those have no assert that runs: they set names (`stack = Stack()`), use names set so (`stack.push(1)`), or change
    what is outside (`sys.stdin = ...`). Yields the statements that an earlier program ran, and the others.
    """
    ran = 0  # of the statements before
    before: list[ast.stmt] = []
    names: set[str] = set()
    read = {ident for tree in trees for s in tree.body if _runs_by_itself(s) for ident in binds(s)}
    alone = False  # whether the last entries prepare something that no assert follows
    for tree in trees:
        sets = {ident for statement in tree.body for ident in binds(statement)}
        defines = all(isinstance(s, ast.FunctionDef) and not _runs_by_itself(s) for s in tree.body)
        runs = (has_assert(tree) or any(map(_runs_by_itself, tree.body))) and not defines
        if not sets and not runs and loaded(tree) & read:
            continue  # `check(add)`, whose asserts have been read
        changes = not can_fail(tree) and any(not isinstance(s, ast.Expr) or loaded(s) & ours for s in tree.body)
        if not runs and (sets or loaded(tree) & names or changes):
            before, names, alone = [*before, *tree.body], names | sets, True
        else:
            alone = False
            yield before[:ran], [*before[ran:], *tree.body]
            ran = len(before)
    if alone:
        yield before[:ran], before[ran:]


def _runs_by_itself(statement: ast.stmt) -> bool:
    """Whether it is a function of asserts that is run though nothing calls it: check(candidate), test_sum()."""
    if isinstance(statement, ast.ClassDef):
        return can_fail(statement) and (is_case(statement) or statement.name.startswith("Test"))
    if not isinstance(statement, ast.FunctionDef) or not can_fail(statement):
        return False
    takes = len(statement.args.args)
    return (statement.name == "check" and takes == 1) or (statement.name.startswith("test") and not takes)


def _call(statement: ast.FunctionDef | ast.ClassDef) -> ast.stmt:
    """A call of a function or a class of tests that is run though nothing calls it."""
    ident = statement.name
    if is_case(statement):
        text = f"__import__('unittest').defaultTestLoader.loadTestsFromTestCase({ident}).debug()"
    elif isinstance(statement, ast.ClassDef):
        text = (
            f"for _n in dir({ident}):\n    if _n.startswith('test'):\n        _t = {ident}()\n"
            "        getattr(_t, 'setup_method', int)()\n        getattr(_t, _n)()"
        )
    else:
        text = f"{ident}({_CANDIDATE if ident == 'check' else ''})"
    return ast.parse(text).body[0]


def _read(
    before: list[ast.stmt],
    body: list[ast.stmt],
    entry: str,
    start: list[ast.stmt],
    ours: set[str],
    evaluate: Evaluate | None,
) -> list[Probe]:
    """Read a program again and again, until all that it asked about values is known."""
    facts: dict[str, Fact] = {}
    for _ in range(_PASSES):
        reader = Reader(entry, start, ours, evaluate, facts)
        try:
            found = reader.program(before, body)
            if not reader.find_out():
                break
        except NotSeparable:
            return [Reader(entry, start, ours, None, {}).whole([*before, *body])]
    for probe in found:
        probe.given = {ident: facts[key].text if key in facts else "null" for ident, key in probe.given.items()}
    return found


class Reader(Assertions):
    """Read statements in order, and separate those that depend on the candidate."""

    def __init__(
        self, entry: str, start: list[ast.stmt], ours: set[str], evaluate: Evaluate | None, facts: dict[str, Fact]
    ) -> None:
        super().__init__({entry.rpartition(".")[2]}, ours, evaluate, facts)
        self.entry = entry
        self.functions: dict[str, ast.FunctionDef] = {}  # with asserts in them
        self.asserting: set[str] = set()  # what has asserts in it and cannot be looked into
        self.called: set[str] = set()
        self.out: list[Probe] = []
        for statement in start:  # helpers of the setup that call the candidate, or assert
            if isinstance(statement, ast.FunctionDef) and has_assert(statement):
                self.define(statement)
            elif isinstance(statement, ast.FunctionDef | ast.ClassDef) and self.side(statement) == THEIRS:
                self.theirs.add(statement.name)

    def program(self, before: list[ast.stmt], body: list[ast.stmt]) -> list[Probe]:
        """before: has been run by an earlier program, so what fails in it has failed there."""
        self.read(before)
        for step in self.steps:
            step.due = False
        self.unread, self.out, self.called = {}, [], set(self.functions)
        self.read(body)
        for ident, function in list(self.functions.items()):
            if ident not in self.called and _runs_by_itself(function):
                self.splice(function, ast.Call(name(ident), [], []))
        for kept in list(self.unread.values()):
            self.out += self.ends(kept)
        if any(step.due for step in self.steps):
            done = self.probe("runs", ast.Constant(None), ast.Constant("it ends without an exception"))
            done.before = "\n".join(step.text for step in self.steps)
            for step in self.steps:
                done.given |= step.given
                done.tells |= step.tells
            self.out.append(done)
        return self.out

    def whole(self, body: list[ast.stmt]) -> Probe:
        """A program that runs inside, with the calls of its tests that it leaves to those who run it."""
        tests = [s for s in body if isinstance(s, ast.FunctionDef | ast.ClassDef) and _runs_by_itself(s)]
        calls = [_call(statement) for statement in tests if not _used(statement, body)]
        self.alias = _CANDIDATE if any(_CANDIDATE in loaded(call) for call in calls) else ""
        return self.inside([*(s for s in body if not _is_main(s)), *calls])

    def ends(self, node: ast.expr) -> list[Probe]:
        """Evaluated outside, it fails or not; what it gives does not matter."""
        test = ast.Subscript(ast.List([node, ast.Constant(True)], ast.Load()), ast.Constant(1), ast.Load())
        return self.rest(test, test)

    def read(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Assert):
                for ident in sorted(loaded(statement) & self.functions.keys() - self.variables):
                    self.note(self.functions[ident])  # a function that asserts, and is an argument
                self.out += self.assertion(statement.test)
            elif isinstance(statement, ast.FunctionDef) and self.checks(statement):
                self.define(statement)
            elif isinstance(statement, ast.ClassDef) and _runs_by_itself(statement):
                raise NotSeparable
            elif isinstance(statement, ast.ClassDef) and self.checks(statement):
                self.asserting.add(statement.name)
                self.note(statement)
            elif _is_main(statement):
                pass  # its tests are run
            elif (call := self.call_of(statement)) is not None:
                self.splice(self.functions[ast.unparse(call.func)], call)
            elif isinstance(statement, ast.Expr) and self.asserts_by_call(statement.value):
                self.out += self.ends(statement.value)
            elif self.is_compound(statement):
                self.compound(statement)
            else:
                self.note(statement)

    def checks(self, statement: ast.stmt) -> bool:
        """Whether it may say that a test failed. An exception of a function of ours says that of its arguments."""
        if has_assert(statement) or _runs_by_itself(statement):
            return True
        if isinstance(statement, ast.ClassDef):
            return False
        return can_fail(statement) and self.side(statement) != OURS

    def asserts_by_call(self, node: ast.expr) -> bool:
        """np.testing.assert_allclose(f(x), [1, 2]) and its like: evaluated outside, it fails or not."""
        match node:
            case ast.Call(func) if "assert" in ast.unparse(func).lower():
                return self.side(func) == OURS and self.side(node) == THEIRS
        return False

    def define(self, function: ast.FunctionDef) -> None:
        """A function with asserts in it: a call of it is read as its statements, where that means the same."""
        args = function.args
        odd = (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Await)
        odd_args = args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs
        if function.decorator_list or odd_args or any(isinstance(node, odd) for node in ast.walk(function)):
            self.asserting.add(function.name)
            self.note(function)
        else:
            self.functions[function.name] = function
            self.everything.append(source([function]))

    def call_of(self, statement: ast.AST) -> ast.Call | None:
        match statement:
            case ast.Expr(ast.Call(ast.Name(ident), args, words) as call) if ident in self.functions:
                plain = all(word.arg for word in words) and not any(isinstance(arg, ast.Starred) for arg in args)
                return call if plain else None
        return None

    def splice(self, function: ast.FunctionDef, call: ast.Call) -> None:
        """The call of a function of the tests: its statements, after its parameters got their values."""
        self.called.add(function.name)
        self.rounds += 1
        if self.rounds > MOST:
            raise NotSeparable
        takes = [arg.arg for arg in function.args.args]
        if function.name == "check" and len(takes) == 1:  # of the candidate, whatever the call says
            self.alias = takes[0]
            self.theirs.add(self.alias)
            return self.read(function.body)
        values = dict(zip(takes[::-1], function.args.defaults[::-1], strict=False))
        values |= dict(zip(takes, call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
        if sorted(values) != sorted(takes) or len(call.args) > len(takes):
            raise NotSeparable
        for ident in takes:
            self.note(assign(ident, values[ident]))
        return self.read(function.body)

    def is_compound(self, statement: ast.stmt) -> bool:
        """Whether it must be looked into: asserts in it, or a loop that would tell the candidate what is expected."""
        if self.checks(statement) or loaded(statement) & (self.asserting | self.functions.keys()):
            return True
        return isinstance(statement, ast.For) and self.side(statement) == THEIRS != self.side(statement.iter)

    def compound(self, statement: ast.stmt) -> None:
        before = {key: value if key in ("facts", "asked") else copy.copy(value) for key, value in self.__dict__.items()}
        try:
            match statement:
                case ast.For(target, loop, body, []) if not _jumps(statement) and self.side(loop) != THEIRS:
                    for value in self.rounds_of(loop):
                        self.note(ast.Assign([target], value, lineno=0))
                        self.read(body)
                    return
                case ast.For(target, loop, body, []) if all(isinstance(part, ast.Assert) for part in body):
                    tests = [part.test for part in body if isinstance(part, ast.Assert)]
                    every = ast.GeneratorExp(
                        tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests),
                        [ast.comprehension(target, loop, [], 0)],
                    )
                    self.out += self.assertion(ast.Call(name("all"), [every], []))
                    return
                case ast.If(test, [failure], []) if _fails(failure) and self.side(test) != OURS:
                    self.out += self.assertion(_negated(test))
                    return
                case ast.If(test, body, orelse) if self.side(test) == OURS:
                    holds = self.known(ast.Call(name("bool"), [test], []))
                    return self.read(body if holds is True else orelse)
                case ast.With([ast.withitem(ast.Call(func, [error], []), None)], body) if _raises(func):
                    handler = ast.ExceptHandler(error, None, [ast.Pass()])
                    if self.raising(ast.Try(body, [handler], [ast.Assert(ast.Constant(False))], [])):
                        return
                case ast.Try() if self.raising(statement):
                    return
        except NotSeparable:
            pass
        self.__dict__.update(before)
        self.out.append(self.inside([statement], ast.unparse(statement)))
        self.everything.append(source([statement]))
        self.step(statement, tells=True)
        self.variables |= bound(statement)
        self.ours -= bound(statement)
        self.theirs |= bound(statement)

    def raising(self, statement: ast.Try) -> bool:
        """try: f(x); assert False; except E: pass (or the assert after else): which exception f raises is asked."""
        match statement:
            case ast.Try([asked], [handler], [failure], []):
                pass
            case ast.Try([asked, failure], [handler], [], []) if not _catches(handler.type, failure):
                pass
            case _:
                return False
        if not isinstance(asked, ast.Expr | ast.Assign) or not self.clean(asked.value, methods=True):
            return False
        if not _fails(failure) or handler.type is None or self.side(handler.type) != OURS:
            return False
        raised = self.new_name("raised")
        handed = self._handed(asked)
        lines = (
            f"try:\n    {handed.text}\n    {raised} = None\nexcept BaseException as _error:\n"
            f"    {raised} = ([_c.__name__ for _c in type(_error).__mro__], str(_error))"
        )
        self.steps.add(Line(ast.parse(lines).body[0], handed.given))
        self.variables.add(raised)
        self.theirs.add(raised)
        names = f"[c.__name__ for e in [{ast.unparse(handler.type)}] for c in (e if isinstance(e, tuple) else [e])]"
        caught = ast.parse(names, mode="eval").body
        self.out.append(self.probe("raises", name(raised), ast.Constant(ast.unparse(statement)), caught))
        self.everything.append(source([statement]))
        for inner in handler.body:
            if isinstance(inner, ast.Assert):
                test = _Message(handler.name or "", item(raised, 1)).visit(copied(inner.test))
                if handler.name in loaded(test):
                    raise NotSeparable
                self.out += self.assertion(test)
            elif not isinstance(inner, ast.Pass) and not (isinstance(inner, ast.Expr) and not loaded(inner)):
                raise NotSeparable
        return True


class _Message(ast.NodeTransformer):
    """Replace `str(error)` by the message that the candidate's process was asked for."""

    def __init__(self, error: str, message: ast.expr) -> None:
        self.error, self.message = error, message

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self.message if ast.unparse(node) == f"str({self.error})" else self.generic_visit(node)


def _used(test: ast.FunctionDef | ast.ClassDef, body: list[ast.stmt]) -> bool:
    """Whether the program runs these tests by itself."""
    return any(test.name in loaded(s) for s in body if not isinstance(s, DEFINITIONS) and "__name__" not in loaded(s))


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith(("unittest.main(", "pytest.main("))


def _fails(statement: ast.stmt) -> bool:
    return is_failure(statement) or (isinstance(statement, ast.Raise) and statement.exc is not None)


def _catches(caught: ast.expr | None, failure: ast.stmt) -> bool:
    """Whether the failure of a test may be taken for the exception that it expects, by their names."""
    error = failure.exc if isinstance(failure, ast.Raise) and failure.exc else name("AssertionError")
    error = error.func if isinstance(error, ast.Call) else error
    if caught is None or loaded(caught) & {"AssertionError", "Exception", "BaseException"}:
        return True
    return ast.unparse(error) not in ("AssertionError", "Exception")


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.Compare(left, [ast.NotEq()], right):
            return ast.Compare(left, [ast.Eq()], right)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
    return ast.UnaryOp(ast.Not(), test)


def _raises(func: ast.expr) -> bool:
    called = ast.unparse(func)
    return called in ("raises", "pytest.raises") or called.endswith(".assertRaises")


def _jumps(loop: ast.For) -> bool:
    return any(isinstance(node, ast.Break | ast.Continue | ast.Return) for node in ast.walk(loop))


def _first_called(trees: list[ast.Module]) -> str:
    """The function under test, where the problem does not name it: it may be called like a built-in one."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    known = {n for tree in trees for n in local(tree)} | set(dir(builtins))
    unknown = {n for tree in trees for n in loaded(tree)} - known
    return next((n for n in names if n in unknown), "" if unknown or not names else names[0])


def _named_by_check(trees: list[ast.Module]) -> str:
    """Return the function that the tests pass to `check`."""
    for statement in (s for tree in trees for s in tree.body):
        match statement:
            case ast.Expr(ast.Call(ast.Name("check"), [value], [])):
                return ast.unparse(value).replace("()", "")
            case ast.Expr(ast.Call(ast.Name("check"), [], [ast.keyword(_, value)])):
                return ast.unparse(value).replace("()", "")
    return ""
