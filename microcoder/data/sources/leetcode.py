"""LeetCodeDataset, up to v0.2.0 (with `meta`; MIT) and as on the hub since (Apache 2.0).

Tests that JSON can represent become tests of the function; those that build linked lists and trees stay asserts.
`question_id`, which rises with time, goes to the notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...schema import Problem
from ..record import Record
from .cases import check_body, function_tests, statements
from .fields import Row, day, read_rows, solution, text, words
from .rows import Unreadable

COLUMNS = ({"task_id", "completion", "entry_point", "test"},)
_REQUEST = "Please complete the following python code"


def read(path: str | Path, *, limit: int | None = None) -> Iterator[Record | Unreadable]:
    return read_rows("leetcode", _build, path, limit)


def _build(row: Row) -> Record:
    meta = row["meta"] if isinstance(row.get("meta"), dict) else {}
    slug, query = text(row, "task_id"), text(row, "query", default="")
    site = "leetcode.cn" if slug.endswith(("-lcci", "-lcof", "-lcof-ii")) else "leetcode.com"
    problem = Problem(
        id=slug,
        title=slug.replace("-", " ").title(),
        # `query` has neither the examples nor the constraints; `question_title`, despite its name, has both.
        statement=text({**meta, **row}, "problem_description", "question_title", default=query.partition(_REQUEST)[0]),
        starter_code=text({**meta, **row}, "starter_code", "lang_code", default=""),
        entry_point=text(row, "entry_point").replace("()", ""),
        difficulty=text({**meta, **row}, "difficulty", default="").lower(),
        platform="leetcode",
        url=f"https://{site}/problems/{slug}/",
        date=day(row.get("estimated_date")),
        licence="MIT" if meta else "Apache-2.0",
        tags=words(row.get("tags")),
        solutions=[solution(text(row, "completion"))],
    )
    _add_tests(problem, text(row, "test"), text(row, "entry_point"), text(row, "prompt", default=""))
    number = meta.get("question_id", row.get("question_id"))
    return Record(problem, {} if number is None else {"question_id": number})


def _add_tests(problem: Problem, program: str, call: str, setup: str) -> None:
    found = check_body(program)
    tests = function_tests(*found, problem.starter_code) if found else None
    if tests is not None:
        problem.kind, problem.tests = "function", tests
    else:
        problem.kind, problem.setup = "assert", setup
        problem.asserts = statements(*found, call) if found else [program]
