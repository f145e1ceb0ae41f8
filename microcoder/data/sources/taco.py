"""TACO: the layout of APPS with names, tags, dates and limits, and without ids. Apache 2.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..record import Record
from .apps import problem_of
from .fields import Row, content_id, day, megabytes, read_rows, seconds, text, words
from .rows import Unreadable

COLUMNS = ({"question", "input_output", "raw_tags"}, {"question", "input_output", "skill_types"})


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("taco", _build, path, limit)


def _build(row: Row) -> Record:
    problem = problem_of(row, content_id(row.get("question"), row.get("input_output")), "Apache-2.0")
    problem.title = text(row, "name", default="")
    problem.platform = text(row, "source", default=problem.platform).lower()
    problem.difficulty = problem.difficulty.replace("unknown_difficulty", "")
    problem.date = day(row.get("date"))
    problem.time_limit_s, problem.memory_mb = seconds(row.get("time_limit")), megabytes(row.get("memory_limit"))
    problem.tags = list(dict.fromkeys(words(row.get("tags")) + words(row.get("raw_tags"))))
    return Record(problem)
