"""Statements that give their answer away are dropped: the reference, or most of it, stands in the text.

Lines are compared, white space aside: those that the reference runs, not its imports, headers and docstrings, which a
statement may well show. Of a longer program most lines have to be there: a formula of the task can be one of them.

Drops: gives_answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..record import Dropped, Record, references
from .format import parsed

LOOKED_AT = 3  # references
_HEADERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SAYS_LITTLE = frozenset("else: try: finally: pass break continue returnTrue returnFalse ) ] }".split())


def refuse(record: Record, *, share: float = 0.6, least: int = 8) -> Record:
    """Dropped if this share of a reference's lines stands in the statement, and they have so many characters."""
    problem = record.problem
    programs = references(problem)[:LOOKED_AT]
    shown = {_bare(line) for line in problem.statement.split("\n")} if programs else set()
    for code in programs:
        if sum(len(line) for line in map(_bare, code.split("\n")) if line in shown) < least:
            continue  # so it is with most of them, and nothing need be parsed
        lines = _lines(code)
        there = lines & shown
        if len(there) >= share * len(lines) and sum(map(len, there)) >= least:
            said = f"{len(there)} of {len(lines)} lines of a reference, such as {min(there)!r:.60}"
            raise Dropped("gives_answer", said)
    return record


def _lines(code: str) -> frozenset[str]:
    """The lines that do something."""
    tree = parsed(code)
    text = code.split("\n")
    found = {_bare(text[number - 1]) for node in tree.body for number in _numbers(node)} if tree else set()
    return frozenset(line for line in found if line and line[0] != "#") - _SAYS_LITTLE


def _numbers(node: ast.stmt) -> Iterator[int]:
    if isinstance(node, _HEADERS):
        for inner in node.body:
            yield from _numbers(inner)
    elif not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_text(node):
        yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bare(line: str) -> str:
    return "".join(line.split())
