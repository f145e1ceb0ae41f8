"""What a statement says of its problem besides the task goes into the problem's fields: limits, tags, code to complete.

The lines are taken out of the text. A field that is filled already stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from ..record import Record
from .samples import Part, blocks

_LIMIT = re.compile(r"(?:cpu )?(time|memory) ?limit(?: per test(?: ?case)?)? ?[:*_]{0,4} ?(.{0,40})")
_BETWEEN = re.compile(r" ?[/|,;][ *_]{0,4}(?=(?:time|memory) ?limit)")  # "Time limit: 2 sec / Memory limit: 256 MB"
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?([a-z]{1,12})\.?", re.I)
_NANOS = re.compile(r"\{'seconds': (\d{1,9}), 'nanos': (\d{1,9})\}")
_SECONDS = {"ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0}
_MEGABYTES = {
    "b": 2**-20, "byte": 2**-20, "kb": 2**-10, "kib": 2**-10, "kilobyte": 2**-10,
    "mb": 1, "mib": 1, "megabyte": 1, "gb": 2**10, "gib": 2**10, "gigabyte": 2**10,
}  # fmt: skip
_COMPLETE = re.compile(r"(?:please )?complete the following (?:python )?code(?: precisely)?", re.I)
_FENCED = re.compile(r"\s*(?:`{3,}|~{3,})[^\n]*\n(.*?)\n?[ ]*(?:`{3,}|~{3,})\s*", re.S)


def lift(record: Record) -> Record:
    problem = record.problem
    parts = _without_starter(record, blocks(problem.statement))
    statement = "".join(_without_limits(record, part.text) if part.kind == "prose" else part.text for part in parts)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: limits, tags or starter code taken out of the text")
    return record


def bare(line: str) -> str:
    """A line without what only sets it off: marks of headings, of emphasis, of lists."""
    return line.strip(" \t#*_>|-•:")


def _without_starter(record: Record, parts: Sequence[Part]) -> Sequence[Part]:
    """Without "Please complete the following python code precisely" and the code, once that is the starter code."""
    problem = record.problem
    for n, (asked, code) in enumerate(pairwise(parts)):
        *before, last = asked.text.rstrip().rsplit("\n", 1)
        fenced = _FENCED.fullmatch(code.text)
        if code.kind == "code" and fenced and _COMPLETE.fullmatch(bare(last)):
            if problem.starter_code.split() not in ([], fenced[1].split()):
                break
            problem.starter_code = problem.starter_code or fenced[1]
            return [*parts[:n], Part(asked.kind, "".join(line + "\n" for line in before)), *parts[n + 2 :]]
    return parts


def _without_limits(record: Record, text: str) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    n = 0
    while n < len(lines):
        line = bare(lines[n]).lower()
        limit = _LIMIT.fullmatch(line[:100])
        several = [_LIMIT.fullmatch(bare(part)) for part in _BETWEEN.split(line[:200])] if "limit" in line else [None]
        if all(each and _set_limit(record, each[1], each[2]) for each in several):
            n += 1
            continue
        if line == "tags" or (limit and not limit[2]):  # what they are stands on the next line
            following = next((m for m in range(n + 1, len(lines)) if lines[m].strip()), n)
            value = lines[following]
            if _set_limit(record, limit[1], bare(value)) if limit else _set_tags(record, value):
                n = following + 1
                continue
        kept.append(lines[n])
        n += 1
    return "\n".join(kept)


def _set_limit(record: Record, what: str, amount: str) -> bool:
    """Whether it could be read."""
    problem, value = record.problem, _amount(amount, _SECONDS if what == "time" else _MEGABYTES)
    if not value:
        return False
    if what == "time" and problem.time_limit_s is None:
        problem.time_limit_s = value
    elif what == "memory" and problem.memory_mb is None:
        problem.memory_mb = max(1, round(value))
    return True


def _amount(text: str, units: dict[str, float]) -> float:
    if nanos := _NANOS.fullmatch(text):
        return int(nanos[1]) + int(nanos[2]) / 1e9
    match = _AMOUNT.fullmatch(text)
    if not match:
        return 0.0
    unit = match[2].lower()
    return round(float(match[1]) * units.get(unit, units.get(unit.removesuffix("s"), 0.0)), 6)


def _set_tags(record: Record, line: str) -> bool:
    """Tags written as a list of Python's."""
    try:
        tags = ast.literal_eval(line.strip()) if len(line) < 2_000 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return False
    record.problem.tags = record.problem.tags or tags
    return True
