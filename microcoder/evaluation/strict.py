"""All of a file's problems or none: a score over fewer problems is another score."""

from __future__ import annotations

from collections.abc import Iterable

from ..data.record import DataError, Record
from ..data.sources import Unreadable
from ..schema import Problem, SchemaError
from .records import BenchError


def all_of(records: Iterable[Record | Unreadable], path: str, remedy: str) -> list[Problem]:
    """The problems; one that cannot be read or judged, or is there twice, is an error with its place and a remedy."""
    found: dict[str, Problem] = {}
    try:
        for record in records:
            if isinstance(record, Unreadable):
                raise BenchError(f"{path}: {record.where}: {record.reason} ({record.detail}); {remedy}")
            problem = record.problem
            problem.check(f"{path}: problem {problem.id!r}")
            if problem.id in found:
                raise BenchError(f"{path}: problem {problem.id!r} is there twice, so it would count twice; {remedy}")
            found[problem.id] = problem
    except (DataError, SchemaError) as error:
        raise BenchError(str(error)) from None
    return list(found.values())
