"""Filter problems by date and licence (here), text quality, relevance, duplicates and contamination.

A setting decides whether problems with an unknown date or licence are kept or dropped.

Reasons here: `outside_dates`, `licence`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from ..record import Dropped, Record

Unknown = Literal["keep", "drop"]
_DATE = re.compile(r"\s*(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")


def dates(record: Record, *, after: str = "2023-01-01", before: str = "", unknown: Unknown = "keep") -> Record:
    """Keep problems from `after` on and before `before`; "" means no limit. "2023-05" means its first day."""
    date = day(record.problem.date)
    if not date:
        if unknown == "drop":
            raise Dropped("outside_dates", f"no date is known (it says {record.problem.date!r})")
        return record
    for limit in (after, before):
        if limit and not day(limit):
            raise ValueError(f"{limit!r} is not a date; write it as 2023-01-01")
    if after and date < day(after):
        raise Dropped("outside_dates", f"{date} is before {after}")
    if before and date >= day(before):
        raise Dropped("outside_dates", f"{date} is not before {before}")
    return record


def licences(record: Record, *, allow: Sequence[str] = (), unknown: Unknown = "keep") -> Record:
    """Keep licences of `allow` in any spelling ("CC BY 4.0", "cc-by-4.0"); an empty `allow` allows all."""
    licence = record.problem.licence
    if not isinstance(licence, str) or not _bare(licence):
        if unknown == "drop":
            raise Dropped("licence", "none is known")
    elif allow and _bare(licence) not in {_bare(each) for each in allow}:
        raise Dropped("licence", f"{licence} is not one of {', '.join(allow)}")
    return record


def day(text: object) -> str:
    """Return a date as 2023-05-01, which can be compared; "" if the text is no date."""
    match = _DATE.match(text) if isinstance(text, str) else None
    if not match:
        return ""
    year, month, date = (int(part or 1) for part in match.groups())
    return f"{year:04}-{month:02}-{date:02}" if 1 <= month <= 12 and 1 <= date <= 31 else ""


def _bare(licence: str) -> str:
    words = re.sub(r"[^a-z0-9.]+", " ", licence.lower()).split()
    kept = [word.removesuffix(".0") for word in words if word not in ("the", "license", "licence", "version")]
    return re.sub(r"\bv(?=\d)", "", " ".join(kept)).replace(" ", "").replace(".", "")
