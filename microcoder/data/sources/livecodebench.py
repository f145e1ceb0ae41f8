"""LiveCodeBench, code_generation and code_generation_lite: its private tests may be base64 of zlib of a pickle."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schema import Problem
from ..record import Dropped, Record
from .cases import add_cases
from .faults import Unreadable
from .pickles import decompress, unpickle
from .reading import Row, day, decoded, read_rows, text
from .sites import codeforces_url

COLUMNS = ({"question_content", "public_test_cases", "private_test_cases"},)


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("livecodebench", build, path, limit)


def build(row: Row) -> Record:
    site, ident = text(row, "platform", default=""), text(row, "question_id")
    title = text(row, "question_title", default="")
    metadata = decoded(row.get("metadata"), "the metadata")
    problem = Problem(
        id=ident,
        title=title,
        statement=text(row, "question_content"),
        starter_code=text(row, "starter_code", default=""),
        difficulty=text(row, "difficulty", default="").lower(),
        platform=site,
        url=_url(site, ident, title, text(row, "contest_id", default="")),
        date=day(row.get("contest_date")),
    )
    public, private = decoded(row.get("public_test_cases"), "the public tests"), _private(row.get("private_test_cases"))
    tests = [*(public or []), *(private or [])]
    for number, test in enumerate(tests):
        if isinstance(test, dict) and test.get("output") is None:
            raise Dropped("unreadable_tests", f"test {number} has no output: {test!r:.80}")
    add_cases(problem, tests, metadata.get("func_name") or "" if isinstance(metadata, dict) else "")
    return Record(problem)


def _private(value: Any) -> Any:
    """JSON text, or that text packed."""
    if not isinstance(value, str) or value.lstrip()[:1] in ("", "["):
        return decoded(value, "the private tests")
    try:
        packed = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Dropped("unreadable_tests", f"the private tests are neither JSON nor base64: {value[:60]!r}") from None
    content = unpickle(decompress(packed))
    if not isinstance(content, str):
        raise Dropped("unreadable_tests", f"the private tests unpack to {type(content).__name__}, not to JSON text")
    return decoded(content, "the private tests")


def _url(site: str, ident: str, title: str, contest: str) -> str:
    if site == "codeforces":
        return codeforces_url(*ident.partition("_")[::2])
    if site == "atcoder" and contest:
        return f"https://atcoder.jp/contests/{contest}/tasks/{ident}"
    slug = re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", title)  # LeetCode's titles are the names in its addresses
    return f"https://leetcode.com/problems/{title}/" if site == "leetcode" and slug else ""
