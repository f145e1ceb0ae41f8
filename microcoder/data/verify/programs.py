"""The settings of verification, and what a record brings to be judged: its problem and its sorted solutions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from ...schema import ACCEPTED, Problem, Verdict
from ..record import Dropped, Record, expected, is_python, usable


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of `verify`."""

    solutions: int = 8  # at most so many right ones are run, and as many wrong ones
    runs: int = 2  # of each right one
    chance_runs: int = 6  # of a right one that mentions a source of chance
    patience_s: float = 10.0  # CPU seconds that a right one may take for a test
    agree: float = 2 / 3  # the share of solutions that must agree where there is no expected output
    mutants: int = 24  # at most; 0: strength is not measured
    alive: float = 0.35  # the share of mutants that may be accepted
    least: int = 6  # with fewer mutants nothing is said
    mutants_s: float = 60.0  # CPU seconds for a problem's mutants; where the reference is slow there are fewer of them
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
    """Without those that differ from an earlier one in comments and layout alone."""
    found: dict[str, dict[str, str]] = {}
    for solution in solutions:
        try:
            key = ast.dump(ast.parse(solution["code"]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            key = solution["code"]
        found.setdefault(key, solution)
    return list(found.values())


def judged(problem: Problem, time_limit_s: float | None) -> Problem:
    """Return the problem with what the judge needs and no more, and another time limit."""
    return replace(problem, time_limit_s=time_limit_s, statement="", solutions=[], lineage=[], tags=[])


def check_sound(record: Record) -> None:
    """Raise Dropped unless the judge can be given the problem at all."""
    problem = record.problem
    try:
        problem.check()
        texts = [getattr(problem, name) for name in _TEXTS] + [s for t in problem.tests for s in (t.input, t.output)]
        if not all(isinstance(text, str) for text in [*texts, *problem.asserts]):
            raise TypeError("id, entry_point, setup and the tests must be text")
        if not isinstance(problem.solutions, list) or not isinstance(problem.tags, list):
            raise TypeError("solutions and tags must be lists")
        problem.fingerprint()
    except Exception as error:  # whatever can be wrong with foreign data: SchemaError, TypeError, AttributeError
        raise Dropped("cannot_be_judged", f"{error}") from None


def said(verdict: Verdict) -> str:
    """A verdict in words: `wrong_answer on test 3: ...`."""
    found = f"on {verdict.message}" if verdict.message.startswith("test ") else verdict.message
    return f"{verdict.verdict} {found}".strip()[:300]
