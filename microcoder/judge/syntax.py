"""Python's syntax, as far as tests are taken apart: what statements bind, use and change, and copies of expressions."""

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
