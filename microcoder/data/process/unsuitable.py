"""Drop unsuitable problems: interactive ones, and those whose statement contains the answer.

An interactive problem needs a judge that answers questions, which tests of inputs and outputs cannot do. It is
recognised by its words ("this is an interactive problem", a section "Interaction", an interactor, the tag), by a
request to flush the output, or by a protocol of "? x" for questions and "! x" for the answer.

A statement contains the answer if a reference, or most of it, is in the text. Lines are compared without white space:
only lines that the reference runs, not imports, headers and docstrings, which a statement may show. For a longer
program most lines have to be there, since a formula of the task can be one of them.

Drops: interactive, gives_answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..record import Dropped, Record, references
from .format import parsed

_HINT = re.compile(r"[Ii]nterac|INTERAC|flush|judg|grader|jury|[?] ")  # in every match below: a quick check
_SAID = re.compile(
    r"\binteractive (?:problem|task|version)s?\b|\b(?:problem|task) is interactive\b|\binteractors?\b"
    r"|^[\s#*_]{0,8}interaction(?: protocol)?[\s*_:]{0,8}$"
    r"|\binteract(?:s|ing)? with (?:the |our |a )?(?:judge|grader|jury|checker|testing system|judging program)"
    r"|\b(?:query|ask|queries to|questions to) the (?:judge|grader|jury|judging program)\b"
    r"|\bflush(?:ing)? (?:the |your )?(?:standard )?(?:output|stdout|stream)\b|\bfflush ?\(|\bstdout\.flush\b"
    r"|\bflush (?:after (?:each|every|printing)|\(?stdout)|\bforget to flush\b|\bcout\.flush\b",
    re.I | re.M,
)
_DENIED = re.compile(r"(?:\bnot\b|n't\b|no longer|unlike|\bnon-?|no need|without|avoid|instead of)[^.\n]{0,25}$", re.I)
_QUESTION = re.compile(r"""["'“`$(]\s?\?\s[\w$\\]""")
_ANSWER = re.compile(r"""["'“`$(]\s?!\s[\w$\\]""")
_ASKS = re.compile(r"\b(?:ask|asked|make|perform|print)\b[^.\n]{0,80}\b(?:quer(?:y|ies)|questions?)\b", re.I)


def refuse_interactive(record: Record) -> Record:
    """Drop an interactive problem."""
    problem = record.problem
    if any(tag.lower() in ("interactive", "*interactive") for tag in problem.tags):
        raise Dropped("interactive", "it is tagged so")
    if not _HINT.search(problem.statement):
        return record
    for match in _SAID.finditer(problem.statement):
        before = problem.statement[max(0, match.start() - 40) : match.start()]
        if not _DENIED.search(before) or "forget" in match.group().lower():
            raise Dropped("interactive", f"it says {' '.join(match.group().split())!r}")
    if all(pattern.search(problem.statement) for pattern in (_QUESTION, _ANSWER, _ASKS)):
        raise Dropped("interactive", 'questions begin with "?" and the answer with "!"')
    return record


# --- the answer in the statement

LOOKED_AT = 3  # references
_HEADERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SAYS_LITTLE = frozenset("else: try: finally: pass break continue returnTrue returnFalse ) ] }".split())


def refuse_answer(record: Record, *, share: float = 0.6, least: int = 8) -> Record:
    """Drop a problem if this share of a reference's lines stands in the statement, with so many characters."""
    problem = record.problem
    programs = references(problem)[:LOOKED_AT]
    shown = {_bare(line) for line in problem.statement.split("\n")} if programs else set()
    for code in programs:
        if sum(len(line) for line in map(_bare, code.split("\n")) if line in shown) < least:
            continue  # usually so, and then nothing has to be parsed
        lines = _lines(code)
        there = lines & shown
        if len(there) >= share * len(lines) and sum(map(len, there)) >= least:
            said = f"{len(there)} of {len(lines)} lines of a reference, such as {min(there)!r:.60}"
            raise Dropped("gives_answer", said)
    return record


def _lines(code: str) -> frozenset[str]:
    """Return the lines of a program that do something, without white space."""
    tree = parsed(code)
    text = code.split("\n")
    found = {_bare(text[number - 1]) for node in tree.body for number in _numbers(node)} if tree else set()
    return frozenset(line for line in found if line and line[0] != "#") - _SAYS_LITTLE


def _numbers(node: ast.stmt) -> Iterator[int]:
    if isinstance(node, _HEADERS):
        for inner in node.body:
            yield from _numbers(inner)
    elif not isinstance(node, (ast.Import, ast.ImportFrom)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _bare(line: str) -> str:
    return "".join(line.split())
