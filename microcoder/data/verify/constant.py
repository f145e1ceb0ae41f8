"""The laziest wrong programs: one answer, whatever they are asked. Tests that all expect the same accept it.

So do asserts that look at no more than a type, or that there is an answer at all: where it cannot be told what they
expect, a few plain answers are tried.
"""

from __future__ import annotations

import ast
import json

from ...judge.asserts import probes
from ...schema import Problem

GUESSABLE = 60  # characters; a single test with a longer answer is no guess
PLAIN = ("0", "''", "[]", "True", "0.5")


def constant_answers(problem: Problem) -> list[tuple[str, str]]:
    """(an answer that all tests may expect, a program that always gives it) of each; none where they expect several."""
    expected = _expected(problem)
    answers: list[str] = []
    if expected is not None:
        if len(set(expected)) != 1 or (len(expected) == 1 and len(expected[0]) > GUESSABLE):
            return []
        answers = [_expression(expected[0]) if problem.kind == "function" else expected[0]]
    if problem.kind == "assert":  # `type(f(x)) is int` expects an int, but not of f
        answers += PLAIN
    return [(answer, _program(problem, answer)) for answer in answers if problem.kind == "stdin" or problem.entry_point]


def _program(problem: Problem, answer: str) -> str:
    if problem.kind == "stdin":
        return f"print({answer!r})"
    owner, _, name = problem.entry_point.rpartition(".")
    if owner:
        return f"class {owner}:\n    def {name}(self, *args, **named):\n        return {answer}"
    return f"def {name}(*args, **named):\n    return {answer}"


def _expected(problem: Problem) -> list[str] | None:
    """What each test expects, as it is written. None if that cannot be told of every test."""
    if problem.kind != "assert":
        return [test.output.strip() for test in problem.tests]
    try:
        found = probes(problem.asserts, problem.entry_point, problem.setup)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    plain = {"truth": "True", "false": "False"}
    known = [plain.get(probe.op, probe.expected) for probe in found if probe.op in ("==", "is", *plain)]
    return known if found and len(known) == len(found) else None


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
