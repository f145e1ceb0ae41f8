"""Process: clean a problem, settle its format and check that it is complete; or drop it with a reason.

    record = process(record, most=15, endpoint=None)       # or raises Dropped

The steps are repeated until nothing changes, so text that was escaped twice, or was translated, is cleaned too, and
processing a processed record changes nothing. An option is passed to the step that has a keyword of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...schema import Compare, Problem, Test
from ..record import Dropped, Record
from . import boilerplate, completeness, encoding, format, formulas, images, language, markup, tests, unsuitable

__all__ = ["OPTIONS", "STEPS", "process"]

_TEXT = ("id", "kind", "title", "statement", "starter_code", "entry_point", "setup", "difficulty", "source", "platform",
         "url", "date", "language", "licence")  # fmt: skip
_LISTS: dict[str, type] = {"tests": Test, "asserts": str, "tags": str, "solutions": dict, "lineage": str}
_NUMBERS = ("time_limit_s", "memory_mb", "difficulty_score")


def check_shape(record: Record) -> Record:
    """Drop a record (broken_record) with a field of a wrong type, so that no other step has to check types."""
    if not isinstance(record, Record) or not isinstance(record.problem, Problem) or not isinstance(record.notes, dict):
        raise Dropped("broken_record", f"not a record of a problem but {type(record).__name__}")
    problem = record.problem
    for name in _TEXT:
        _need(isinstance(getattr(problem, name), str), name, getattr(problem, name), "text")
    for name, kind in _LISTS.items():
        value = getattr(problem, name)
        whole = isinstance(value, list) and all(isinstance(item, kind) for item in value)
        _need(whole, name, value, f"a list of {kind.__name__}")
    for test in problem.tests:
        for value in (test.input, test.output):
            _need(isinstance(value, str), "tests", value, "text")
    for solution in problem.solutions:
        _need(all(isinstance(value, str) for pair in solution.items() for value in pair), "solutions", solution, "text")
    for name in _NUMBERS:
        value = getattr(problem, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and -1e18 < value < 1e18
        _need(value is None or number, name, value, "a number")
    _need(isinstance(problem.compare, Compare), "compare", problem.compare, "a Compare")
    return record


def _need(right: bool, name: str, value: Any, wanted: str) -> None:
    if not right:
        raise Dropped("broken_record", f"{name} is not {wanted} but {type(value).__name__}")


STEPS: list[Callable[..., Record]] = [
    check_shape,
    encoding.repair,
    markup.convert,
    boilerplate.lift_facts,
    boilerplate.remove_noise,
    formulas.normalise_latex,
    images.remove,
    encoding.normalise_space,
    formulas.restore_exponents,
    unsuitable.refuse_interactive,
    unsuitable.refuse_answer,
    format.settle,
    tests.choose,
    completeness.parts,
    language.identify,
    language.translate,
    completeness.statement,
]
OPTIONS = {step: [name for name in inspect.signature(step).parameters if name != "record"] for step in STEPS}
ROUNDS = 8


def process(record: Record, **options: Any) -> Record:
    """Apply all steps to the record. A step that changes something adds to the lineage, which shows the change here."""
    known = {name for names in OPTIONS.values() for name in names}
    if unknown := options.keys() - known:
        raise TypeError(f"no step has the option {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    check_shape(record)
    before = list(record.problem.lineage)
    for _ in range(ROUNDS):
        length = len(record.problem.lineage)
        for step, names in OPTIONS.items():
            step(record, **{name: options[name] for name in names if name in options})
        if len(record.problem.lineage) == length:
            said = dict.fromkeys(record.problem.lineage[len(before) :])
            record.problem.lineage = before + [what for what in said if what not in before]
            return record
    raise Dropped("broken_text", f"still changing after {ROUNDS} rounds: {record.problem.lineage[-1]}")
