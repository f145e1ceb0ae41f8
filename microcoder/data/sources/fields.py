"""Convert a row's columns to a problem's fields: functions that all readers share, and the reasons of drops.

A reader's `build` turns one row into a record or raises Dropped; `attempt` turns that into an Unreadable.

    unreadable_file    damaged from here on, or not what its name says
    unreadable_row     not an object, or a value of a kind that means nothing here
    missing_column     a column without which there is no problem
    unreadable_tests   tests that cannot be decoded or understood
    unsafe_pickle      a pickle that asks for more than plain data
    interactive, custom_validator, reads_files, unsupported_type    the judge could not judge it rightly
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...schema import Problem
from ..record import Dropped, Record
from .rows import Row, Unreadable, rows

SOLUTIONS = 20  # kept for each verdict; some problems have thousands
LITERAL = 1 << 20  # most characters parsed as a Python literal, which takes a hundred times their memory
PYTHON = ("python", "")
Build = Callable[[Row], Record]


def read_rows(source: str, build: Build, path: str | Path, limit: int | None) -> Iterator[Record | Unreadable]:
    """Yield every row as a record, or as an Unreadable with the reason."""
    for where, row in islice(rows(path), limit):
        yield row if isinstance(row, Unreadable) else attempt(source, where, build, row)


def attempt(source: str, where: str, build: Callable[[Any], Record], row: Any) -> Record | Unreadable:
    """Build the record of one row. The native id becomes `<source>/<native id>`, and the lineage begins."""
    try:
        record = build(row)
    except Dropped as loss:
        return Unreadable(where, loss.reason, loss.detail)
    except Exception as error:  # foreign data may break any assumption; that must not end the run
        return Unreadable(where, "unreadable_row", f"{type(error).__name__}: {error}"[:300])
    problem = record.problem
    problem.source = problem.source or source
    problem.id = f"{problem.source}/{problem.id}"
    problem.lineage.insert(0, f"collect: {source} {where}")
    return record


def text(row: Row, *names: str, default: str | None = None) -> str:
    """Return the first of these columns that is not empty, as text; without a default, one of them is required."""
    for name in names:
        value = row.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise Dropped("unreadable_row", f"{name!r} should be text but is {type(value).__name__}")
        return str(value)
    if default is not None or any(row.get(name) == "" for name in names):
        return default or ""
    has = ", ".join(map(str, row))[:200] or "nothing"
    raise Dropped("missing_column", f"there is no {' or '.join(map(repr, names))}; the row has {has}")


def decoded(value: Any, what: str, reason: str = "unreadable_tests") -> Any:
    """Decode JSON text or a Python literal; return None for empty text, and other values unchanged."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        message = str(error)
    try:
        if len(value) <= LITERAL:
            return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise Dropped(reason, f"{what} cannot be decoded: {message}; it begins {value[:60]!r}")


def words(value: Any) -> list[str]:
    """Return tags from a list, a list written as text, or one word."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "("):
        value = decoded(value, "a list of tags", "unreadable_row")
    if isinstance(value, str):
        value = [value]
    return [str(word).strip() for word in value if str(word).strip()] if isinstance(value, (list, tuple)) else []


def day(value: Any) -> str:
    """Return a date as 2023-08-21, from text that begins so, a date, or seconds since 1970; else ""."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e11:
        value = datetime.fromtimestamp(value, UTC)
    found = re.match(r"\d{4}-\d\d-\d\d", value.isoformat() if isinstance(value, date) else str(value))
    return found.group() if found else ""


def solution(code: str, language: str = "python", verdict: str = "accepted") -> dict[str, str]:
    """Return a solution in the form of Problem.solutions; one that is only known to be wrong gets wrong_answer."""
    code = code.replace("\r\n", "\n")
    bare = code.strip()
    if bare.startswith("```") and bare.endswith("\n```"):
        code = bare.partition("\n")[2].removesuffix("```")
    return {"code": code, "language": language, "verdict": verdict}


def add_solutions(problem: Problem, found: list[dict[str, str]]) -> None:
    """Add at most SOLUTIONS of each verdict, Python first, and note in the lineage how many were left out."""
    for verdict in dict.fromkeys(one["verdict"] for one in found):
        alike = [one for one in found if one["verdict"] == verdict and one["code"].strip()]
        alike.sort(key=lambda one: one["language"] not in PYTHON)
        problem.solutions += alike[:SOLUTIONS]
        if len(alike) > SOLUTIONS:
            problem.lineage.append(f"collect: {SOLUTIONS} of {len(alike)} solutions kept ({verdict})")


def programs(value: Any) -> list[str]:
    """Read a column of solutions: one program, a list of them, or that list as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


# --- limits as people write them: 2, "2.0 seconds", "1000 ms", {"seconds": 2, "nanos": 0}, "256 megabytes"

_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "millisecond": 1e-3, "minute": 60.0}
_MEGABYTES = {
    "": 1.0, "mb": 1.0, "mib": 1.0, "megabyte": 1.0, "mebibyte": 1.0, "gb": 1024.0, "gib": 1024.0, "gigabyte": 1024.0,
    "kb": 1 / 1024, "kib": 1 / 1024, "kilobyte": 1 / 1024, "b": 1e-6, "byte": 1e-6,
}  # fmt: skip
_LONGEST, _LARGEST = 3600.0, 1 << 20  # beyond an hour or a terabyte a number means something else


def seconds(value: Any) -> float | None:
    """Return a time limit in seconds; None if there is none that can be used."""
    if isinstance(value, dict):
        whole, rest = value.get("seconds") or 0, value.get("nanos") or 0
        value = whole + rest * 1e-9 if isinstance(whole, (int, float)) and isinstance(rest, (int, float)) else None
    found = _measure(value, _SECONDS)
    return round(found, 3) if found is not None and 1e-3 <= found <= _LONGEST else None


def megabytes(value: Any) -> int | None:
    """Return a memory limit in MB; None if there is none that can be used."""
    found = _measure(value, _MEGABYTES)
    return max(1, round(found)) if found is not None and 0 < found <= _LARGEST else None


def _measure(value: Any, units: dict[str, float]) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 1e18 else None
    if not isinstance(value, str):
        return None
    match = re.match(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)", value)
    if match is None:
        return None
    unit = match.group(2).lower()
    scale = units.get(unit, units.get(unit.removesuffix("s")))
    return float(match.group(1)) * scale if scale is not None else None


# --- platforms by address, addresses by number, ids for rows that have none

_PLATFORMS = {
    "codeforces.com": "codeforces", "atcoder.jp": "atcoder", "leetcode.com": "leetcode", "leetcode.cn": "leetcode",
    "codechef.com": "codechef", "codewars.com": "codewars", "hackerrank.com": "hackerrank", "kattis.com": "kattis",
    "hackerearth.com": "hackerearth", "geeksforgeeks.org": "geeksforgeeks", "u-aizu.ac.jp": "aizu", "spoj.com": "spoj",
}  # fmt: skip


def platform(url: str) -> str:
    """Return the site's name; "" if it is not known."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return next((name for site, name in _PLATFORMS.items() if host == site or host.endswith(f".{site}")), "")


def codeforces_url(contest: Any, index: Any) -> str:
    """Return the address of a problem such as B of contest 1873; "" if either is not known."""
    known = str(contest or "").isdigit() and int(contest) > 0 and str(index or "").isalnum()
    return f"https://codeforces.com/problemset/problem/{contest}/{index}" if known else ""


def content_id(*parts: Any) -> str:
    """Return an id of twelve letters, a hash of a row's contents."""
    whole = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.sha256(whole).hexdigest()[:12]


# --- a statement made from parts in separate columns


def statement(
    description: str, given: str = "", asked: str = "", samples: Iterable[tuple[str, str]] = (), note: str = ""
) -> str:
    """Return a statement in Markdown: story, input, output, samples in fenced blocks, remarks."""
    parts = [description.strip()]
    parts += [f"## {name}\n\n{part.strip()}" for name, part in (("Input", given), ("Output", asked)) if part.strip()]
    parts += [
        f"## Example {number}\n\nInput\n\n{_block(before)}\n\nOutput\n\n{_block(after)}"
        for number, (before, after) in enumerate(samples, 1)
    ]
    parts += [f"## Note\n\n{note.strip()}"] if note.strip() else []
    return "\n\n".join(part for part in parts if part)


def _block(sample: str) -> str:
    fence = "```"
    while fence in sample:
        fence += "`"
    return "{0}\n{1}\n{0}".format(fence, sample.rstrip("\n"))
