"""Read any table by a mapping: field of a problem -> column. `meta.level` is a nested value, `=MIT` the constant MIT.

    mapping = { id = "task.number", statement = "text", tests = "cases", licence = "=MIT", kind = "=function" }

Fields are those of Problem, and `inputs` and `outputs` for tests in two columns. Values may be JSON text. Without an
id, one is made from the content. Without a kind, it is `assert` if there are asserts, `function` if there is an entry
point. Arguments of a function are a JSON list or object, or one JSON value on each line.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from ...schema import KINDS, Compare, Kind, Problem, Test, nearest
from ..record import Dropped, Record
from .cases import add_cases
from .fields import (
    Row,
    add_solutions,
    content_id,
    day,
    decoded,
    megabytes,
    platform,
    programs,
    read_rows,
    seconds,
    solution,
    text,
    words,
)
from .rows import SourceError, Unreadable

FIELDS = {f.name for f in dataclasses.fields(Problem)} - {"lineage", "difficulty_score"} | {"inputs", "outputs"}
_TEXTS = "title statement starter_code entry_point setup difficulty source platform url language licence".split()


def read(
    path: str | Path, *, limit: int | None = None, mapping: Mapping[str, str] | None = None
) -> Iterator[Record | Unreadable]:
    if not mapping:
        raise SourceError('the generic reader needs a mapping, such as {statement = "text", tests = "cases"}')
    for field in mapping:
        if field not in FIELDS:
            hint = nearest(field, FIELDS) or f"; known are {', '.join(sorted(FIELDS))}"
            raise SourceError(f"mapping: a problem has no field {field!r}{hint}")
    return read_rows("generic", partial(_build, mapping=mapping), path, limit)


def _build(row: Row, mapping: Mapping[str, str]) -> Record:
    given = {field: _value(row, column) for field, column in mapping.items()}
    if all(value is None for field, value in given.items() if not mapping[field].startswith("=")):
        has = ", ".join(map(str, row))[:200]
        raise Dropped("missing_column", f"none of the mapped columns is there; the row has {has}")
    compare = decoded(given.get("compare"), "compare", "unreadable_row")
    problem = Problem(
        id=text(given, "id", default="") or content_id(row),
        asserts=_asserts(given.get("asserts")),
        time_limit_s=seconds(given.get("time_limit_s")),
        memory_mb=megabytes(given.get("memory_mb")),
        compare=Compare(**compare) if isinstance(compare, dict) else Compare(),
        date=day(given.get("date")),
        tags=words(given.get("tags")),
    )
    for name in _TEXTS:
        setattr(problem, name, text(given, name, default=""))
    problem.platform = problem.platform or platform(problem.url)
    add_solutions(problem, _solutions(given.get("solutions")))
    _add_tests(problem, given)
    kind = text(given, "kind", default="") or ("assert" if problem.asserts else problem.kind)
    if kind not in KINDS:
        raise Dropped("unreadable_row", f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    problem.kind = cast(Kind, kind)
    return Record(problem)


def _value(row: Row, column: str) -> Any:
    if column.startswith("="):
        return column[1:]
    if column in row:
        return row[column]
    value: Any = row
    for step in column.split("."):
        value = decoded(value, column, "unreadable_row")
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _asserts(value: Any) -> list[str]:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [value]
    found = decoded(value, "the asserts") or []
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise Dropped("unreadable_tests", f"asserts should be a list of statements but are {found!r:.80}")
    return found


def _solutions(value: Any) -> list[dict[str, str]]:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    value = [value] if isinstance(value, dict) else value
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        keys = ("code", "language", "verdict")
        found = [{key: str(one[key]) for key in keys if one.get(key)} for one in value if isinstance(one, dict)]
        return [solution(**one) for one in found if "code" in one]
    return [solution(code) for code in programs(value)]


def _add_tests(problem: Problem, given: dict[str, Any]) -> None:
    tests = decoded(given.get("tests"), "the tests")
    if tests is None and given.get("inputs") is not None:
        tests = {name: decoded(given.get(name), name) for name in ("inputs", "outputs")}
    function = problem.entry_point.rpartition(".")[2]
    if function and isinstance(tests, list) and all(map(_is_json_pair, tests)):  # our own form: JSON in, JSON out
        problem.kind, problem.tests = "function", [Test(test["input"], test["output"]) for test in tests]
    elif tests:
        entry = problem.entry_point
        add_cases(problem, tests, function)
        problem.entry_point = entry or problem.entry_point


def _is_json_pair(test: Any) -> bool:
    try:
        return isinstance(decoded(test["input"], ""), (list, dict)) and isinstance(test["output"], str)
    except (Dropped, TypeError, KeyError):
        return False
