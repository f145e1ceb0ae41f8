"""The laziest wrong program: one answer, whatever it is asked. Tests that all expect the same accept it."""

from __future__ import annotations

import ast
import json

from ...judge.asserts import probes
from ...schema import Problem

GUESSABLE = 60  # characters; a single test with a longer answer is no guess


def constant_answer(problem: Problem) -> tuple[str, str] | None:
    """(the one answer that all tests expect, a program that always gives it); None where they expect several."""
    expected = _expected(problem)
    if len(set(expected)) != 1 or (len(expected) == 1 and len(expected[0]) > GUESSABLE):
        return None
    answer = _expression(expected[0]) if problem.kind == "function" else expected[0]
    if problem.kind == "stdin":
        return answer, f"print({answer!r})"
    owner, _, name = problem.entry_point.rpartition(".")
    if not name:
        return None
    if owner:
        return answer, f"class {owner}:\n    def {name}(self, *args, **named):\n        return {answer}"
    return answer, f"def {name}(*args, **named):\n    return {answer}"


def _expected(problem: Problem) -> list[str]:
    """What each test expects, as it is written. Empty if that cannot be told of every test."""
    if problem.kind != "assert":
        return [test.output.strip() for test in problem.tests]
    try:
        found = probes(problem.asserts, problem.entry_point, problem.setup)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    plain = {"truth": "True", "false": "False"}
    known = [plain.get(probe.op, probe.expected) for probe in found if probe.op in ("==", "is", *plain)]
    return known if len(known) == len(found) else []


def _expression(text: str) -> str:
    """JSON, or whatever else a test's output can be, as a Python expression."""
    try:
        return repr(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return repr(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return repr(text)
