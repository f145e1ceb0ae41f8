"""MicroCoder's own files: ids, sources and lineage are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...files import FileError, read_problems
from ...schema import Problem
from ..record import Record
from .rows import SourceError, Unreadable, data_files

COLUMNS = ({"id", "tests"}, {"id", "asserts"})
FIELDS = {field.name for field in dataclasses.fields(Problem)}


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    path = Path(path)
    if not path.exists():
        raise SourceError(f"there is no file or folder {path}")
    return islice((record for file in data_files(path) for record in _file(file)), limit)


def _file(file: Path) -> Iterator[Record | Unreadable]:
    try:
        for number, found in enumerate(read_problems(file), 1):
            if isinstance(found, Problem):
                found.lineage.append(f"collect: microcoder {file.name}:{number}")
                yield Record(found)
            else:
                yield Unreadable(f"{file.name}:{found.line}", "unreadable_row", found.reason)
    except FileError as error:
        yield Unreadable(f"{file.name}:1", "unreadable_file", str(error))
