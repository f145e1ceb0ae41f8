"""Settings of verification, and the programs of a record to judge: its solutions, sorted by expected verdict."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from ...schema import ACCEPTED, Problem, Verdict
from ..record import Dropped, Record, expected, is_python, usable


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of `verify`."""

    solutions: int = 8  # most right solutions to run, and most wrong ones
    runs: int = 2  # of each right solution
    chance_runs: int = 6  # of a right solution that mentions a source of randomness
    patience_s: float = 10.0  # CPU seconds that a right solution may take for a test
    agree: float = 2 / 3  # share of solutions that must agree if there is no expected output
    mutants: int = 24  # at most; 0: strength is not measured
    alive: float = 0.35  # the share of mutants that may be accepted
    least: int = 6  # with fewer mutants, strength is not decided
    mutants_s: float = 60.0  # CPU seconds for a problem's mutants; a slow reference gets fewer of them
    window: int = 0  # records in work at a time; 0: four for each worker of the judge


DEFAULTS = Options()
_TEXTS = ("id", "kind", "entry_point", "setup")


@dataclass(slots=True)
class Programs:
    """The Python solutions of a problem; the elements are those of `problem.solutions`."""

    right: list[dict[str, str]] = field(default_factory=list)  # no verdict, or accepted
    wrong: list[dict[str, str]] = field(default_factory=list)
    others: int = 0  # in other languages, with unknown verdicts, or without code: never run


def programs(record: Record) -> Programs:
    """Sort the solutions of a record by what is expected of them."""
    out = Programs(others=len(record.problem.solutions))
    for solution in usable(record.problem):
        verdict = expected(solution) if is_python(solution) else ""
        if verdict:
            (out.right if verdict == ACCEPTED else out.wrong).append(solution)
            out.others -= 1
    return out


def independent(solutions: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the solutions without those that differ from an earlier one only in comments and layout."""
    found: dict[str, dict[str, str]] = {}
    for solution in solutions:
        try:
            key = ast.dump(ast.parse(solution["code"]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            key = solution["code"]
        found.setdefault(key, solution)
    return list(found.values())


def judged(problem: Problem, time_limit_s: float | None) -> Problem:
    """Return the problem with only the fields that the judge needs, and another time limit for all of its tests."""
    tests = [test if test.time_limit_s is None else replace(test, time_limit_s=None) for test in problem.tests]
    return replace(problem, tests=tests, time_limit_s=time_limit_s, statement="", solutions=[], lineage=[], tags=[])


def check_sound(record: Record) -> None:
    """Raise Dropped if the judge cannot accept the problem."""
    problem = record.problem
    try:
        problem.check()
        texts = [getattr(problem, name) for name in _TEXTS] + [s for t in problem.tests for s in (t.input, t.output)]
        if not all(isinstance(text, str) for text in [*texts, *problem.asserts]):
            raise TypeError("id, entry_point, setup and the tests must be text")
        if not isinstance(problem.solutions, list) or not isinstance(problem.tags, list):
            raise TypeError("solutions and tags must be lists")
        problem.fingerprint()
    except Exception as error:  # foreign data can have any fault: SchemaError, TypeError, AttributeError
        raise Dropped("cannot_be_judged", f"{error}") from None


def said(verdict: Verdict) -> str:
    """Describe a verdict: `wrong_answer on test 3: ...`."""
    found = f"on {verdict.message}" if verdict.message.startswith("test ") else verdict.message
    return f"{verdict.verdict} {found}".strip()[:300]
