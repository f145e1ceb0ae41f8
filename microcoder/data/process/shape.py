"""The shape of a record: every field has the type that the schema says, so that no other step needs to ask.

Drops: broken_record.
"""

from __future__ import annotations

from typing import Any

from ...schema import Compare, Problem, Test
from ..record import Dropped, Record

_TEXT = ("id", "kind", "title", "statement", "starter_code", "entry_point", "setup", "difficulty", "source", "platform",
         "url", "date", "language", "licence")  # fmt: skip
_LISTS: dict[str, type] = {"tests": Test, "asserts": str, "tags": str, "solutions": dict, "lineage": str}
_NUMBERS = ("time_limit_s", "memory_mb", "difficulty_score")


def check(record: Record) -> Record:
    if not isinstance(record, Record) or not isinstance(record.problem, Problem) or not isinstance(record.notes, dict):
        raise Dropped("broken_record", f"not a record of a problem but {type(record).__name__}")
    problem = record.problem
    for name in _TEXT:
        _need(isinstance(getattr(problem, name), str), name, getattr(problem, name), "text")
    for name, kind in _LISTS.items():
        value = getattr(problem, name)
        whole = isinstance(value, list) and all(isinstance(item, kind) for item in value)
        _need(whole, name, value, f"a list of {kind.__name__}")
    for test in problem.tests:
        for value in (test.input, test.output):
            _need(isinstance(value, str), "tests", value, "text")
    for solution in problem.solutions:
        _need(all(isinstance(value, str) for pair in solution.items() for value in pair), "solutions", solution, "text")
    for name in _NUMBERS:
        value = getattr(problem, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and -1e18 < value < 1e18
        _need(value is None or number, name, value, "a number")
    _need(isinstance(problem.compare, Compare), "compare", problem.compare, "a Compare")
    return record


def _need(right: bool, name: str, value: Any, wanted: str) -> None:
    if not right:
        raise Dropped("broken_record", f"{name} is not {wanted} but {type(value).__name__}")
