"""Faults of rows, before there is a problem: what cannot be read, and what must not be unpacked."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

from benchmarks.faults.run import Draw, Kind, untouched
from benchmarks.faults.tests import asserted, stdin
from microcoder.schema import Problem


def mbpp_line(problem: Problem, faulty: bool) -> str:
    """A row of MBPP; with the fault it is cut off, lacks a column, or has a value of another type."""
    row: dict[str, Any] = {"task_id": problem.id.rpartition("/")[2], "text": problem.statement}
    row |= {"code": problem.solutions[0]["code"], "test_list": problem.asserts}
    draw = Draw(problem.id)
    if faulty and draw.random() < 0.3:
        line = json.dumps(row)
        return line[: draw.randrange(2, len(line) - 1)]
    if faulty:
        damage: list[tuple[str, Any]] = [("text", None), ("code", None), ("test_list", 3), ("test_list", ["assert ("])]
        name, value = draw.choice([*damage, ("text", ["a", "list"]), ("code", {"python": "pass"})])
        row[name] = value
    return json.dumps(row)


class _Calls:
    """Pickled, it is a call that unpickling would make."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


def packed_line(problem: Problem, faulty: bool) -> str:
    """A row of LiveCodeBench with packed tests; with the fault, unpacking them would call something."""
    tests = json.dumps([{"input": t.input, "output": t.output, "testtype": "stdin"} for t in problem.tests])
    content: Any = tests
    if faulty:
        draw = Draw(problem.id)
        call = draw.choice([_Calls(print, "called"), _Calls(getattr, "", "join"), _Calls(eval, "1"), print, Draw])
        content = draw.choice([call, [tests, call], {"tests": tests, "more": call}])
    data = base64.b64encode(zlib.compress(pickle.dumps(content, protocol=Draw(problem.id).choice([2, 4])))).decode()
    row = {"question_id": problem.id, "question_content": problem.statement, "public_test_cases": "[]"}
    return json.dumps({**row, "private_test_cases": data, "platform": "", "metadata": "{}"})


_UNREADABLE = ("unreadable_row", "missing_column", "unreadable_tests")
KINDS = [
    Kind("row unreadable", untouched, _UNREADABLE, among=asserted, line=mbpp_line, layout="mbpp", upto="collect"),
    Kind("pickle that calls", untouched, ("unsafe_pickle",), among=stdin, line=packed_line, layout="livecodebench",
         upto="collect"),
]  # fmt: skip
