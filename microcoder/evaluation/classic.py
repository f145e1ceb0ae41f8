"""HumanEval and MBPP, whole or not at all.

1. HumanEval's starter code is its raw prompt, which its own runner puts before a completion.
2. MBPP is its test part, tasks 11 to 510; its challenge tests do not count.
3. A setup of MBPP that builds on the answer's own class (367 is the one in the test part) goes into the assert, where
   the judge can run it: one assert, so that a prompt shows it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..data.record import Record
from ..data.sources import Unreadable, humaneval, mbpp
from ..data.sources.fields import Build, Row, attempt, text
from ..data.sources.rows import rows
from ..schema import Problem
from .records import BenchError
from .strict import all_of

HUBS = {
    "humaneval": ("openai/openai_humaneval", "openai_humaneval/test-00000-of-00001.parquet"),
    "mbpp": ("google-research-datasets/mbpp", "full/test-00000-of-00001.parquet"),
}
COUNTS = {"humaneval": 164, "mbpp": 500}
MBPP_TEST = range(11, 511)


def read(name: str, path: Path, unchecked: bool = False) -> list[Problem]:
    """`name` is humaneval or mbpp; `path` any file with the data set's columns."""
    records = _records(name, path, _humaneval if name == "humaneval" else _mbpp)
    problems = all_of(records, str(path), "download the file again")
    if name == "mbpp":
        problems = [problem for problem in problems if _number(problem, path) in MBPP_TEST]
    if len(problems) != COUNTS[name] and not unchecked:
        part = f" with ids {MBPP_TEST[0]} to {MBPP_TEST[-1]}" if name == "mbpp" else ""
        raise BenchError(
            f"{path} has {len(problems)} problems{part}, but {name} has {COUNTS[name]}; download "
            f"{HUBS[name][1]} of {HUBS[name][0]} again; or, for a file of your own making, add --unchecked"
        )
    return problems


def _records(name: str, path: Path, build: Build) -> Iterator[Record | Unreadable]:
    for place, row in rows(path):
        record = row if isinstance(row, Unreadable) else attempt(name, place, build, row)
        if isinstance(record, Record):
            record.problem.id = record.problem.id.replace("humaneval/", "HumanEval/")
            record.problem.lineage = []
        yield record


def _humaneval(row: Row) -> Record:
    record = humaneval.build(row)
    record.problem.starter_code = text(row, "prompt")
    return record


def _mbpp(row: Row) -> Record:
    record = mbpp.build({**row, "challenge_test_list": [], "test_setup_code": ""})
    setup = text(row, "test_setup_code", default="").replace("\r\n", "\n").strip()
    if setup:
        record.problem.asserts = ["\n".join([setup, *record.problem.asserts])]
    return record


def _number(problem: Problem, path: Path) -> int:
    number = problem.id.removeprefix("mbpp/")
    if not number.isdecimal():
        raise BenchError(f"{path}: {problem.id} is no task of mbpp, whose ids are numbers; download the file again")
    return int(number)
