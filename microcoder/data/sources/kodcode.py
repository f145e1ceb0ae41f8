"""KodCode: a question, a solution, and pytest functions, which become asserts where they are simple. CC BY-NC 4.0.

1. A test function without parameters or decorators gives its asserts one by one, or all its statements together if
   there are other statements among them.
2. `pytest.raises` becomes try and except, `pytest.approx(number)` becomes math.isclose with pytest's tolerances.
3. Tests that need pytest otherwise (fixtures, parameters, marks, classes of tests) are `unreadable_tests`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ...schema import Problem
from ..record import Dropped, Record
from .cases import definitions, header, parsed
from .fields import Row, content_id, read_rows, solution, text
from .rows import Unreadable

COLUMNS = ({"question", "solution", "test"},)
_HERE = "solution"  # the module that the tests import from


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("kodcode", _build, path, limit)


def _build(row: Row) -> Record:
    question, code, test = text(row, "question"), text(row, "solution"), text(row, "test")
    defined = definitions(code)
    asserts, setup, imported = _taken_apart(test)
    wanted = [name for name in defined if name in imported or "*" in imported]
    if not wanted:
        names = ", ".join(imported) or "nothing"
        raise Dropped("unreadable_tests", f"the tests import {names}, and the solution has none of it")
    only = wanted[0] if len(wanted) == 1 and not isinstance(defined[wanted[0]], ast.ClassDef) else ""
    problem = Problem(
        id=text(row, "question_id", default="") or content_id(question, test),
        kind="assert",
        statement=question,
        starter_code="\n\n".join(header(defined[name]) for name in wanted),
        entry_point=only,
        asserts=asserts,
        setup=setup,
        difficulty=text(row, "gpt_difficulty", default="").lower(),
        licence="CC-BY-NC-4.0",
        tags=[text(row, "subset", default="")] if row.get("subset") else [],
        solutions=[solution(code)],
    )
    return Record(problem)


def _taken_apart(test: str) -> tuple[list[str], str, list[str]]:
    """Return (asserts, code around the test functions, names imported from the solution)."""
    asserts: list[str] = []
    around: list[str] = []
    imported: list[str] = []
    for node in parsed(test, "the test").body:
        if isinstance(node, ast.ImportFrom) and node.module == _HERE:
            if any(name.asname for name in node.names):
                raise Dropped("unreadable_tests", "the tests give the solution's functions other names")
            imported += [name.name for name in node.names]
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            asserts += _asserts(node)
        elif ast.unparse(node) != "import pytest" and not _is_main(node):
            around.append(_plain(node))
    if not asserts:
        raise Dropped("unreadable_tests", "there is no test function")
    return asserts, "\n".join(around), imported


def _asserts(function: ast.FunctionDef) -> list[str]:
    if function.decorator_list or function.args.args or function.args.vararg or function.args.kwarg:
        raise Dropped("unreadable_tests", f"{function.name} needs pytest for its parameters or marks")
    if any(isinstance(node, (ast.Return, ast.Yield, ast.Global, ast.Nonlocal)) for node in ast.walk(function)):
        raise Dropped("unreadable_tests", f"{function.name} cannot be taken out of its function")
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    texts = [_plain(node) for node in body if not isinstance(node, ast.Pass)]
    return texts if all(isinstance(node, ast.Assert) for node in body) else ["\n".join(texts)]


def _plain(node: ast.stmt) -> str:
    """Rewrite a statement without pytest."""
    rest = ast.fix_missing_locations(_WithoutPytest().visit(node))
    for part in ast.walk(rest):
        names = [part.id] if isinstance(part, ast.Name) else [part.module] if isinstance(part, ast.ImportFrom) else []
        names += [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        if {"pytest", _HERE} & set(names):
            raise Dropped("unreadable_tests", f"it needs pytest or a module: {ast.unparse(rest)[:120]}")
    return ast.unparse(rest)


class _WithoutPytest(ast.NodeTransformer):
    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        match node.items:
            case [ast.withitem(ast.Call(func, [error], []), None)] if ast.unparse(func) == "pytest.raises":
                missing = ast.Assert(ast.Constant(False), ast.Constant(f"no {ast.unparse(error)}"))
                return ast.Try(node.body, [ast.ExceptHandler(error, None, [ast.Pass()])], [missing], [])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        match node:
            case ast.Compare(left, [ast.Eq()], [ast.Call(func, [number], words)]) if ast.unparse(
                func
            ) == "pytest.approx" and isinstance(number, (ast.Constant, ast.UnaryOp, ast.BinOp)):
                given = {word.arg: word.value for word in words}
                relative = ast.keyword("rel_tol", given.get("rel", ast.Constant(1e-6)))
                absolute = ast.keyword("abs_tol", given.get("abs", ast.Constant(1e-12)))
                return ast.Call(ast.parse("math.isclose", mode="eval").body, [left, number], [relative, absolute])
        return self.generic_visit(node)


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
