"""APPS: problems of several sites, by stdin or by function, with solutions as JSON text. MIT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...schema import Problem
from ..record import Record
from .cases import add_cases
from .fields import Row, add_solutions, platform, programs, read_rows, solution, text
from .rows import Unreadable

COLUMNS = ({"question", "input_output", "solutions"},)


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("apps", _build, path, limit)


def _build(row: Row) -> Record:
    return Record(problem_of(row, text(row, "problem_id", "id"), "MIT"))


def problem_of(row: Row, ident: str, licence: str) -> Problem:
    """Read a problem from the fields that APPS and TACO share."""
    url = text(row, "url", default="")
    problem = Problem(
        id=ident,
        statement=text(row, "question"),
        starter_code=text(row, "starter_code", default=""),
        difficulty=text(row, "difficulty", default="").lower(),
        platform=platform(url),
        url=url,
        licence=licence,
    )
    add_solutions(problem, [solution(code) for code in programs(row.get("solutions"))])
    add_cases(problem, row.get("input_output"))
    return problem
