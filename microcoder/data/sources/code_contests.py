"""CodeContests of DeepMind: public, private and generated tests, right and wrong solutions by language. CC BY 4.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schema import Problem
from ..record import Dropped, Record
from .cases import add_cases
from .fields import Row, add_solutions, codeforces_url, megabytes, read_rows, seconds, solution, text, words
from .rows import Unreadable

COLUMNS = ({"description", "public_tests", "private_tests"},)
_SITES = ("", "codechef", "codeforces", "hackerearth", "codejam", "atcoder", "aizu")
_LANGUAGES = ("", "python2", "c++", "python", "java")
_LANGUAGE_NAMES = {"PYTHON": "python2", "CPP": "c++", "PYTHON3": "python", "JAVA": "java"}
_LEVELS = ("", "easy", "medium", "hard", "harder", "hardest", "", *"abcdefghijklmnopqrstuv")


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("code_contests", _build, path, limit)


def _build(row: Row) -> Record:
    if files := text(row, "input_file", default="") or text(row, "output_file", default=""):
        raise Dropped("reads_files", f"the program has to use the file {files!r}")
    name, rating = text(row, "name"), row.get("cf_rating") or 0
    memory = row.get("memory_limit_bytes")
    problem = Problem(
        id=name,
        title=name.partition(". ")[2] or name,
        statement=text(row, "description"),
        time_limit_s=seconds(row.get("time_limit")),
        memory_mb=megabytes(f"{memory} bytes"),
        difficulty=str(rating or _named(row.get("difficulty"), _LEVELS, {})),
        platform=_named(row.get("source"), _SITES, {}),
        url=codeforces_url(row.get("cf_contest_id"), row.get("cf_index")),
        licence="CC-BY-4.0",
        tags=words(row.get("cf_tags")),
    )
    for part in ("public_tests", "private_tests", "generated_tests"):
        if row.get(part):
            add_cases(problem, row[part])
    found = [*_solutions(row, "solutions", "accepted"), *_solutions(row, "incorrect_solutions", "wrong_answer")]
    add_solutions(problem, found)
    return Record(problem, {"rating": rating} if rating else {})


def _solutions(row: Row, column: str, verdict: str) -> Iterator[dict[str, str]]:
    group = row.get(column) or {}
    codes, languages = group.get("solution") or [], group.get("language") or []
    for code, language in zip(codes, languages, strict=True):
        yield solution(code, _named(language, _LANGUAGES, _LANGUAGE_NAMES), verdict)


def _named(value: Any, by_number: tuple[str, ...], by_name: dict[str, str]) -> str:
    """Return an enumeration's member, which may come as a number or as its name."""
    if isinstance(value, int):
        return by_number[value] if 0 <= value < len(by_number) else ""
    name = str(value or "")
    return by_name.get(name, "" if name.startswith("UNKNOWN") else name.lower())
