"""MicroCoder's own files: ids, sources and lineage are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...schema import Problem
from ..record import Record
from .rows import Unreadable, rows

COLUMNS = ({"id", "tests"}, {"id", "asserts"})
FIELDS = {field.name for field in dataclasses.fields(Problem)}


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    for where, row in islice(rows(path), limit):
        if isinstance(row, Unreadable):
            yield row
            continue
        try:
            problem = Problem.from_dict({name: value for name, value in row.items() if value != ""})  # as CSV has None
        except (ValueError, TypeError, AttributeError) as error:  # SchemaError is a ValueError
            yield Unreadable(where, "unreadable_row", str(error))
            continue
        problem.lineage.append(f"collect: microcoder {where}")
        yield Record(problem)
