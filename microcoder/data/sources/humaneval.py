"""HumanEval, or HumanEval+ in its columns: a function's header and docstring, and a check(candidate). MIT.

The docstring is the statement, the code before it the starter code, and the code before the function (imports and
helpers, which some tests call) the setup.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from ...schema import Problem
from ..record import Record
from .cases import parsed
from .fields import Row, read_rows, solution, text
from .rows import Unreadable

COLUMNS = ({"task_id", "prompt", "entry_point", "canonical_solution", "test"},)


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("humaneval", build, path, limit)


def build(row: Row) -> Record:
    prompt, entry, test = text(row, "prompt"), text(row, "entry_point"), text(row, "test")
    parsed(test, "the test")
    statement, starter, setup = parts(prompt, entry)
    problem = Problem(
        id=text(row, "task_id").removeprefix("HumanEval/"),
        kind="assert",
        statement=statement,
        starter_code=starter,
        entry_point=entry,
        asserts=[test],
        setup=setup,
        licence="MIT",
        solutions=[solution(prompt + text(row, "canonical_solution"))],
    )
    return Record(problem)


def parts(prompt: str, entry: str) -> tuple[str, str, str]:
    """Split a prompt into (docstring, code before it, code before the function); if impossible, the prompt alone."""
    functions = [node for node in parsed(prompt, "the prompt").body if isinstance(node, ast.FunctionDef)]
    for function in (node for node in functions if node.name == entry):
        for node in function.body:  # one of them has an import before its docstring
            match node:
                case ast.Expr(ast.Constant(str(docstring))) if node.lineno > function.lineno:
                    lines = prompt.split("\n")
                    before, around = lines[: node.lineno - 1], lines[: function.lineno - 1]
                    return cleandoc(docstring), "\n".join(before).strip("\n"), "\n".join(around).strip("\n")
    return prompt, "", ""
