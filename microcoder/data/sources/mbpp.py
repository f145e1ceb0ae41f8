"""MBPP, and its sanitized part: a sentence, a reference, and three asserts. CC BY 4.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...schema import Problem
from ..record import Dropped, Record
from .cases import called, definitions, header, needed
from .fields import Row, decoded, read_rows, solution, text
from .rows import Unreadable

COLUMNS = ({"task_id", "code", "test_list"},)


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("mbpp", build, path, limit)


def build(row: Row) -> Record:
    code = text(row, "code").replace("\r\n", "\n")
    asserts = _lines(row, "test_list") + _lines(row, "challenge_test_list")
    setup = "\n".join(filter(None, [*_lines(row, "test_imports"), text(row, "test_setup_code", default="")]))
    entry = called(asserts, code)
    shown = [*needed([setup, *asserts], code, entry), header(definitions(code)[entry])] if entry else []
    problem = Problem(
        id=text(row, "task_id").removeprefix("Mbpp/"),
        kind="assert",
        statement=text(row, "text", "prompt"),
        entry_point=entry,
        # The statement names neither the parameters nor the classes that the tests use for them (601: Pair).
        starter_code="\n\n".join(shown),
        asserts=asserts,
        setup=setup,
        licence="CC-BY-4.0",
        solutions=[solution(code)],
    )
    return Record(problem)


def _lines(row: Row, name: str) -> list[str]:
    value = decoded(row.get(name), name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise Dropped("unreadable_tests", f"{name!r} should be a list of statements but is {value!r:.80}")
    return value
