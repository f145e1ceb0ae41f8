"""What can be wrong with a source: a row (a value, counted and gone on from), or all of it (an exception)."""

from __future__ import annotations

from dataclasses import dataclass

from ..record import DataError


class SourceError(DataError):
    """A source that cannot be used at all; the message says why and what to type instead."""


@dataclass(slots=True)
class Unreadable:
    """A row that is no problem: `where` is `file:line`, `reason` one of few words, `detail` what was found."""

    where: str
    reason: str
    detail: str = ""
