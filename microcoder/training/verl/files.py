"""Problems -> the files that verl's processes read: the run's steps in order, the test problems, the problems' tests.

A row of Parquet names its problem; the tests stay in a file beside it, or every response would carry them along.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...files import write_problems
from ...prompts import messages
from ...schema import Problem

Split = tuple[Sequence[Problem], list[list[int]]]  # problems and their prompts


def write_files(folder: Path, train: Split, numbers: Sequence[int], test: Split, eval_limit: int) -> None:
    """`numbers`: the problem of each row of the run. A test's limit is `eval_limit` tokens; 0: that of the others."""
    folder.mkdir(exist_ok=True)
    _write(folder / "train.parquet", [_row(n, train, at) for n, at in enumerate(numbers)])
    rows = [_row(n, test, n, limit=eval_limit, test=True) for n in range(len(test[0]))]
    _write(folder / "test.parquet", rows or [_row(0, train, 0)])  # verl wants a row, and never asks for this one
    known = {problem.id: problem for problem in (*train[0], *test[0])}
    write_problems(folder / "problems.jsonl", known.values())


def _row(index: int, split: Split, at: int, limit: int = 0, test: bool = False) -> dict[str, Any]:
    problem, prompt = split[0][at], split[1][at]
    return {
        "data_source": "microcoder",
        "prompt": messages(problem),
        "reward_model": {"style": "rule", "ground_truth": problem.id},
        "extra_info": {"index": index, "problem": problem.id, "prompt_ids": prompt, "limit": limit, "test": test},
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)
