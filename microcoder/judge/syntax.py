"""Python's syntax, as far as tests are taken apart: what statements bind, use and change, and which lead to which."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

SCOPES = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_EFFECTS = set(
    "next pop popleft popitem append appendleft add remove update insert extend clear send setdefault read readline "
    "random randint randrange choice choices sample shuffle uniform gauss seed rand randn integers".split()
)
_FAIL = set("exit quit sys.exit os._exit raises pytest.raises pytest.warns pytest.fail self.fail".split())
_OUTSIDE = ("os.", "shutil.", "tempfile.", "sqlite3.", "patch", "mock.patch", "unittest.mock.patch")
_OF_FILES = set(
    "open read_text read_bytes write_text write_bytes mkdir touch unlink to_csv exists isfile isdir".split()
)


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but constants and contexts: tests can hold lists of many thousand numbers."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                stack += [part for part in value if type(part) is not ast.Constant and isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.Constant | ast.expr_context):
                stack.append(value)


def copied(node: Node) -> Node:
    """Return a deep copy of a node; constants are shared."""
    found = copy.copy(node)
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            setattr(found, name, [_copied(part) for part in value])
        elif isinstance(value, ast.AST):
            setattr(found, name, _copied(value))
    return found


def _copied(part: Any) -> Any:
    return part if type(part) is ast.Constant or not isinstance(part, ast.AST) else copied(part)


def bound(node: ast.AST) -> set[str]:
    """Names that are bound anywhere in `node`, generously: in functions and comprehensions too."""
    out: set[str] = set()
    for part in parts(node):
        if isinstance(part, DEFINITIONS):
            out.add(part.name)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            out.add(part.id)
        elif isinstance(part, IMPORTS):
            out |= {(a.asname or a.name).partition(".")[0] for a in part.names}
        elif isinstance(part, ast.ExceptHandler) and part.name:
            out.add(part.name)
    return out


def binds(statement: ast.stmt) -> set[str]:
    """Names that a statement binds at its own level: those of a definition stay within it."""
    return {statement.name} if isinstance(statement, DEFINITIONS) else bound(statement)


def loaded(node: ast.AST) -> set[str]:
    """Names that `node` reads, those of `x += 1` and `del x` among them."""
    out: set[str] = set()
    for part in parts(node):
        if isinstance(part, ast.AugAssign):
            part = part.target
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            continue
        if isinstance(part, ast.Name):
            out.add(part.id)
    return out


def local(node: ast.AST) -> set[str]:
    """Names that `node` may mean as its own: parameters, variables of comprehensions and loops."""
    return bound(node) | {part.arg for part in parts(node) if isinstance(part, ast.arg)}


def has_assert(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Assert) or is_failure(part) for part in parts(node))


def is_failure(node: ast.AST) -> bool:
    """`assert False` and `raise AssertionError`."""
    match node:
        case ast.Assert(ast.Constant(value)):
            return not value
        case ast.Raise(ast.expr() as error):
            return ast.unparse(error).startswith("AssertionError")
    return False


def can_fail(node: ast.AST) -> bool:
    """Whether it says that a test failed: by an assert, an exception, an exit, or a call such as tc.assertEqual."""
    return any(isinstance(part, ast.Assert | ast.Raise) or _fails_by_call(part) for part in parts(node))


def _fails_by_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    called = ast.unparse(node.func)
    return called in _FAIL or called.rpartition(".")[2].lower().startswith("assert")


def is_case(node: ast.AST) -> bool:
    """A class of tests for unittest."""
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("TestCase") for base in node.bases)


def looks_outside(node: ast.AST) -> bool:
    """Whether a call in it is about files, the environment or a patch: what no value of the tests holds."""
    for part in parts(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name | ast.Attribute):
            called = ast.unparse(part.func)
            outside = called.startswith(_OUTSIDE) and not called.startswith("os.path.")
            if outside or called.rpartition(".")[2] in _OF_FILES:
                return True
    return False


def is_literal(node: ast.AST) -> bool:
    """Whether `node` is made of constants alone: it says what its value is."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(is_literal, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and is_literal(key) for key in node.keys) and all(map(is_literal, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return isinstance(node.operand, ast.Constant)
    return False


def root(node: ast.AST) -> str:
    """The name that a chain of attributes, indices and calls starts with: `s` of `s.rows[0].get(1)`."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""


def source(statements: Iterable[ast.stmt]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in statements)


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def name(ident: str) -> ast.Name:
    return ast.Name(ident, ast.Load())


def item(ident: str, index: int) -> ast.Subscript:
    return ast.Subscript(name(ident), ast.Constant(index), ast.Load())


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = isinstance(node.ctx, ast.Load) and node.id in self.names
        return copied(self.names[node.id]) if known else node


def replaced(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """`node` with expressions in the place of names; itself if it has none of them."""
    found = _Rename(names).visit(copied(node)) if names.keys() & loaded(node) else node
    assert isinstance(found, ast.expr)
    return found


def split(statement: ast.stmt) -> list[ast.stmt]:
    """`a, b = 1, f(2)` as two statements, where that means the same."""
    match statement:
        case ast.Assign([ast.Tuple(targets) | ast.List(targets)], ast.Tuple(values) | ast.List(values)):
            simple = all(isinstance(target, ast.Name) for target in targets)
            if simple and len(targets) == len(values) and not any(isinstance(v, ast.Starred) for v in values):
                if not bound(statement) & loaded(statement.value):
                    return [ast.Assign([t], v, lineno=0) for t, v in zip(targets, values, strict=True)]
    return [statement]


class Line:
    """A statement, what is asked of it again and again, and what is known of it in the candidate's process."""

    def __init__(self, statement: ast.stmt, given: dict[str, str] | None = None, tells: bool = False) -> None:
        self.statement = statement
        self.binds, self.uses, self.text = bound(statement), loaded(statement), source([statement])
        self.imports = isinstance(statement, IMPORTS)
        kinds = {type(part) for part in parts(statement)}
        late = kinds & {*DEFINITIONS, ast.Lambda}
        self.late = self.uses - local(statement) if late else set[str]()  # names that it looks up when it is called
        simple = isinstance(statement, ast.Assign | ast.AnnAssign)
        # Names whose objects it may change: what is called may change all that it is given.
        kept = (simple and ast.Call not in kinds) or isinstance(statement, (*DEFINITIONS, *IMPORTS))
        self.changes = changed(statement) if kept else self.uses
        names = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
        self.anew = names and ast.NamedExpr not in kinds  # what it binds was not before
        self.always = False  # it changes what no variable holds, such as sys.stdin
        self.given = given or {}  # name -> key of the fact that is its value
        self.tells = tells  # it may hold what is expected
        self.copied = False  # a line of ours as it stands, not its values
        self.stores = False  # it puts a value of ours where answers are: two answers that are compared may not be two
        self.due = False  # it may fail, and no probe runs it yet


class Lines:
    """Lines in order. A name that is bound anew is another variable than before: `n 3` is n as line 3 made it."""

    def __init__(self) -> None:
        self.read: list[tuple[Line, set[str], set[str]]] = []  # with the variables that it touches, or may change
        self.now: dict[str, str] = {}  # name -> variable
        self.late: set[str] = set()  # names that functions look up when they are called
        self.kin: dict[str, set[str]] = {}  # variables that lines have brought together: one may be a part of another

    def __iter__(self) -> Iterator[Line]:
        return (line for line, _, _ in self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __copy__(self) -> Lines:
        found = Lines()
        found.read, found.now, found.late, found.kin = list(self.read), dict(self.now), set(self.late), dict(self.kin)
        return found

    def add(self, line: Line) -> None:
        touched, changes = self._variables(line.uses), self._variables(line.changes)
        for ident in line.binds:
            if (line.anew and ident not in self.late) or ident not in self.now:
                self.now[ident] = f"{ident} {len(self.read)}"
        touched |= self._variables(line.binds)
        changes |= self._variables(line.binds & self.late)
        self.late |= line.late
        self.read.append((line, touched, changes))
        group = touched.union(*(self.kin.get(ident, ()) for ident in touched))
        if not line.imports and any(self.kin.get(ident) != group for ident in touched):
            self.kin |= dict.fromkeys(group, group)

    def leading_to(self, names: set[str]) -> list[Line]:
        """The lines that make these names, with all that may have changed one of their objects since."""
        wanted = self._variables(names)
        kin = wanted.union(*(self.kin.get(ident, ()) for ident in wanted))
        kept = []
        for line, touched, changes in reversed(self.read):
            if line.always or not touched or touched & wanted or changes & kin:
                kept.append(line)
                wanted |= touched
        return kept[::-1]

    def _variables(self, names: set[str]) -> set[str]:
        return {self.now[ident] for ident in names if ident in self.now}


def constants(node: ast.AST) -> set[object]:
    """The values in `node` that say something: no flags, small numbers or single letters."""
    found = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    texts = {value for value in found if isinstance(value, str | bytes) and len(value) > 1}
    return texts | {value for value in found if isinstance(value, int | float) and abs(value) > 9}


def has_effects(node: ast.AST) -> bool:
    """Whether evaluating it again may give something else."""
    called = [part.func for part in parts(node) if isinstance(part, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else root(func) for func in called}
    return bool(names & _EFFECTS)


def changed(statement: ast.stmt) -> set[str]:
    """Names whose objects a statement changes by itself: `xs.append(1)`, `xs[0] = 1`, `x.y = 1`."""
    out = set()
    for part in parts(statement):
        match part:
            case ast.Call(ast.Attribute(ast.Name(ident))):
                out.add(ident)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                out.add(root(part))
    return out
