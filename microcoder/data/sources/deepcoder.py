"""DeepCoder-Preview: a problem's text and its tests, with or without solutions. MIT.

Its codeforces and code_contests parts end the text with tags and limits; they become fields. In these parts no row has
an id, so the content makes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ...schema import Problem
from ..record import Record
from .cases import add_cases
from .fields import (
    Row,
    add_solutions,
    content_id,
    decoded,
    megabytes,
    programs,
    read_rows,
    seconds,
    solution,
    text,
    words,
)
from .rows import Unreadable

COLUMNS = ({"problem", "tests"},)


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    site = "codeforces" if "codeforces" in Path(path).name else ""
    return read_rows("deepcoder", partial(_build, site=site), path, limit)


def _build(row: Row, site: str) -> Record:
    statement, ends = _apart(text(row, "problem"))
    metadata = decoded(row.get("metadata"), "the metadata")
    problem = Problem(
        id=content_id(row["problem"], row.get("tests")),
        statement=statement,
        starter_code=text(row, "starter_code", default=""),
        time_limit_s=seconds(ends.get("Time Limit")),
        memory_mb=megabytes(ends.get("Memory Limit")),
        platform=site,
        licence="MIT",
        tags=ends.get("Tags", []),
    )
    add_solutions(problem, [solution(code) for code in programs(row.get("solutions"))])
    add_cases(problem, row.get("tests"), metadata.get("func_name", "") if isinstance(metadata, dict) else "")
    return Record(problem)


def _apart(whole: str) -> tuple[str, dict[str, Any]]:
    """Split a text into the problem and the fields (tags, limits) of the lines at its end."""
    ends: dict[str, Any] = {}
    for name in ("Memory Limit", "Time Limit"):
        rest, found, value = whole.rpartition(f"\n{name}: ")
        if found and "\n" not in value.strip():
            whole, ends[name] = rest, value.strip()
    if ends.get("Time Limit", "").startswith("{"):
        ends["Time Limit"] = decoded(ends["Time Limit"], "the time limit")
    rest, found, value = whole.rpartition("\nTags:")
    if found and re.fullmatch(r"\s*\[[^\]]*\]\s*", value):
        whole, ends["Tags"] = rest, words(value)
    return whole.strip("\n"), ends
