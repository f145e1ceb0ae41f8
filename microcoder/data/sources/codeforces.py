"""Codeforces as collected by open-r1: statements in parts, official tests, checkers where answers vary. CC BY 4.0.

A checker is a program, `checker.py input correct_output output`, that prints 1 or 0; here it is wrapped in a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...schema import Compare, Problem
from ..record import Dropped, Record
from .cases import add_cases
from .fields import Row, codeforces_url, day, decoded, megabytes, read_rows, seconds, statement, text, words
from .rows import Unreadable

COLUMNS = ({"title", "description", "official_tests"},)
_CHECKER = """\
PROGRAM = {program!r}


def check(input, output, expected):
    import contextlib, io, os, sys, tempfile
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["checker.py"]
        for name, content in (("input", input), ("correct_output", expected), ("output", output)):
            sys.argv.append(os.path.join(folder, name))
            with open(sys.argv[-1], "w") as file:
                file.write(content)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(PROGRAM, "checker.py", "exec"), {{"__name__": "__main__"}})
        except SystemExit as end:
            if end.code:
                return False, "the checker exits with " + str(end.code)
    return said.getvalue().strip() == "1", said.getvalue().strip()[:200]
"""


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("codeforces", _build, path, limit)


def _build(row: Row) -> Record:
    if text(row, "interaction_format", default="").strip():
        raise Dropped("interactive", "the row has an interaction format")
    if text(row, "input_mode", default="stdio") not in ("stdio", ""):
        raise Dropped("reads_files", "the program has to read a file")
    contest, index = row.get("contest_id"), row.get("index")
    samples, checker = _samples(row.get("examples")), text(row, "generated_checker", default="")
    rating = row.get("rating")
    problem = Problem(
        id=text(row, "id", default=f"{contest}/{index}"),
        title=text(row, "title"),
        statement=statement(
            text(row, "description", default=""), text(row, "input_format", default=""),
            text(row, "output_format", default=""), samples, text(row, "note", default=""),
        ),
        time_limit_s=seconds(row.get("time_limit")),
        memory_mb=megabytes(row.get("memory_limit")),
        compare=Compare(checker=_CHECKER.format(program=checker) if checker.strip() else None),
        difficulty=f"{rating:.0f}" if rating else "",
        platform="codeforces",
        url=codeforces_url(contest, index),
        date=day(row.get("contest_start")),
        licence="CC-BY-4.0",
        tags=words(row.get("tags")),
    )  # fmt: skip
    official = decoded(row.get("official_tests"), "the tests")
    add_cases(problem, official or [{"input": before, "output": after} for before, after in samples])
    size = row.get("testset_size") or 0
    if len(problem.tests) < size:
        problem.lineage.append(f"collect: {len(problem.tests)} of its {size} tests are here")
    return Record(problem, {"rating": rating} if rating else {})


def _samples(value: Any) -> list[tuple[str, str]]:
    found = decoded(value, "the examples") or []
    return [(str(sample["input"]), str(sample["output"])) for sample in found]
