"""Readers of public data sets: one short reader for each layout.

for found in collect("mbpp", "mbpp.jsonl"):
    ...  # a Record, or an Unreadable with its place and reason
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ...schema import nearest
from ..record import Record
from . import (
    apps,
    code_contests,
    codeforces,
    deepcoder,
    evalplus,
    generic,
    humaneval,
    icpc,
    kodcode,
    leetcode,
    livecodebench,
    mbpp,
    microcoder,
    taco,
)
from .rows import SourceError, Unreadable, rows

__all__ = ["READERS", "SourceError", "Unreadable", "collect", "detect"]

Reader = Callable[..., Iterator[Record | Unreadable]]
_BY_COLUMNS: dict[str, Any] = {  # the first that fits counts: TACO has all the columns of APPS
    "evalplus": evalplus, "mbpp": mbpp, "humaneval": humaneval, "leetcode": leetcode, "taco": taco, "apps": apps,
    "code_contests": code_contests, "codeforces": codeforces, "livecodebench": livecodebench, "kodcode": kodcode,
    "deepcoder": deepcoder,
}  # fmt: skip
READERS: dict[str, Reader] = {
    **{name: module.read for name, module in _BY_COLUMNS.items()},
    "icpc": icpc.read,
    "generic": generic.read,
    "microcoder": microcoder.read,
}
PEEK = 20  # rows that are read to detect a layout


def detect(path: str | Path) -> str | None:
    """Return the name of the reader for a file, folder or hub id, by its columns; None if no layout fits."""
    if icpc.packages(Path(path)):
        return "icpc"
    for _, row in islice(rows(path), PEEK):
        if isinstance(row, dict):
            columns = row.keys()
            if columns <= microcoder.FIELDS and any(columns >= needed for needed in microcoder.COLUMNS):
                return "microcoder"
            for name, module in _BY_COLUMNS.items():
                if any(columns >= needed for needed in module.COLUMNS):
                    return name
            if any(columns >= needed for needed in microcoder.COLUMNS):  # our own layout, with further fields
                return "microcoder"
    return None


def collect(
    name: str, path: str | Path, *, mapping: Mapping[str, str] | None = None, source: str = "", limit: int | None = None
) -> Iterator[Record | Unreadable]:
    """Read all problems of one source, with unique ids; `source` is its name if not that of its layout.

    mapping   for the generic reader: field of a problem -> column
    limit     at most so many rows, to try things
    """
    if name not in READERS:
        hint = nearest(name, READERS) or f"; known are {', '.join(READERS)}"
        raise SourceError(f"there is no reader {name!r}{hint}")
    if mapping and name != "generic":
        raise SourceError(f"a mapping is for the generic reader; {name} knows its columns, so leave it out")
    options: dict[str, Any] = {"mapping": mapping} if name == "generic" else {}
    return _unique(READERS[name](path, limit=limit, **options), source)


def _unique(found: Iterator[Record | Unreadable], source: str) -> Iterator[Record | Unreadable]:
    """Make ids unique: the second problem with an id becomes `id#2`. The filter finds true duplicates."""
    seen: dict[str, int] = {}
    for record in found:
        if isinstance(record, Record):
            problem = record.problem
            if source:
                problem.id = f"{source}/{problem.id.removeprefix(f'{problem.source}/')}"
                problem.source = source
            problem.id = free(problem.id, seen)
        yield record


def free(ident: str, taken: dict[str, int]) -> str:
    """An id that is not taken, and is from now on: the one asked for, or with "#2", "#3" and so on."""
    found, n = ident, taken.get(ident, 1)
    while found in taken:
        n += 1
        found = f"{ident}#{n}"
    taken[found], taken[ident] = 1, n
    return found
