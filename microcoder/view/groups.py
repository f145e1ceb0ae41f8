"""What the model wrote: the steps of a run, the groups of a step, the samples of a group.

The results of `microcoder eval` are given in the same shape: a token limit is a step, the tries at a problem a group.
One step's file is read at a time. A damaged file gives what can be read of it and a word about the rest.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..files import json_line
from ..runs import Group, RunError, groups_of
from ..runs.disk import lines_of, opened
from ..runs.rollouts import BUDGET_S, is_text, unpacked
from ..schema import ACCEPTED
from .library import Entry, Missing, stamps
from .state import read_json

Rollout = dict[str, Any]
STEP = re.compile(r"(step|test)_(\d{1,9})\.jsonl\.gz")
NAME = re.compile(r"(.*)#(\d{1,9})(?:@(\d{1,12}))?", re.DOTALL)  # problem # number @ limit; without one: 0
REPORT = 1 << 20  # bytes of report.md that are shown
NUMBERS = ("step", "row", "sample", "reward", "advantage", "length", "temperature")
TEXTS = ("completion", "code", "verdict", "strategy", "message")
TRY_TEXTS = ("completion", "verdict", "message", "told")  # of a try that was followed by another
TRIES = 64  # of a rollout that are shown
_reading = threading.Lock()  # one file at a time, as each can be large


class StepRollouts:
    """What the file of one step holds. `statements` and `prompts` are of problems, by their ids."""

    def __init__(self, statements: dict[str, str], prompts: dict[str, str], rows: list[Rollout], fault: str) -> None:
        self.statements, self.prompts, self.rows, self.fault = statements, prompts, rows, fault

    def groups(self) -> list[Group]:
        return groups_of(self.rows)


def steps(folder: Entry, test: bool = False) -> list[int]:
    """The steps that have rollouts; with `test`, those with the answers of an evaluation."""
    where = folder.file("rollouts")
    return list(_steps(where, "test" if test else "step", stamps([where])))


def read_step(folder: Entry, step: int, test: bool = False) -> StepRollouts:
    path = folder.file("rollouts", f"{'test' if test else 'step'}_{step:05}.jsonl.gz")
    if not path.is_file():
        there = steps(folder, test)
        near = min(there, key=lambda other: abs(other - step), default=None)
        hint = f"; the nearest is step {near}" if near is not None else "; they are written as training goes on"
        raise Missing(f"{folder.name} holds no {'answers' if test else 'rollouts'} of step {step}{hint}")
    with _reading:
        return _read(path, stamps([path]))


def entries(folder: Entry) -> dict[int, dict[str, Any]]:
    """What the index says of each step, as far as it can be read."""
    path = folder.file("rollouts", "index.jsonl")
    return _entries(path, stamps([path]))


@lru_cache(maxsize=64)
def _steps(path: Path, kind: str, stamped: object) -> tuple[int, ...]:
    try:
        found = [STEP.fullmatch(entry.name) for entry in path.iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(match[2]) for match in found if match and match[1] == kind))


@lru_cache(maxsize=16)
def _entries(path: Path, stamped: object) -> dict[int, dict[str, Any]]:
    return {entry["step"]: entry for entry in records(path) if isinstance(entry.get("step"), int)}


@lru_cache(maxsize=2)
def _read(path: Path, stamped: object) -> StepRollouts:
    found = StepRollouts({}, {}, [], "")
    try:
        for line in unpacked(path, BUDGET_S):
            try:
                record = json.loads(line)
                problem = str(record["problem"])
            except (ValueError, KeyError, TypeError, RecursionError):
                found.fault = f"{path.name} holds lines that are no rollouts; they are left out"
                continue
            for kind, texts in (("statement", found.statements), ("prompt", found.prompts)):
                if kind in record:
                    texts.setdefault(problem, str(record[kind]))
            if not is_text(record):
                record.pop("prompt", None)  # it is the same for all samples of the problem
                found.rows.append(_row(record, problem))
    except RunError as error:
        found.fault = f"{error}; what follows is left out"
    except (OSError, EOFError, zlib.error) as error:
        found.fault = f"{path.name} is damaged ({error}); {len(found.rows)} rollouts could be read"
    found.fault = found.fault or ("" if found.rows else f"{path.name} holds no rollouts")
    return found


def _row(record: Rollout, problem: str) -> Rollout:
    """Replace what is no number among the numbers by None, and make texts of what should be text."""
    row = {**record, "problem": problem}
    for name in NUMBERS:
        value = row.get(name)
        if not isinstance(value, int | float) or not abs(value) < 1e15:
            row[name] = None
    for name in TEXTS:
        if not isinstance(row.get(name), str | None):
            row[name] = str(row[name])
    if "earlier" in row:
        tries = row["earlier"] if isinstance(row["earlier"], list) else []
        row["earlier"] = [_try(one) for one in tries[:TRIES] if isinstance(one, dict)]
    return row


def _try(record: dict[str, Any]) -> dict[str, Any]:
    length = record.get("length")
    texts = {name: str(record.get(name) or "") for name in TRY_TEXTS}
    return {
        **texts,
        "length": length if isinstance(length, int | float) and abs(length) < 1e15 else None,
        "truncated": bool(record.get("truncated")),
    }


def records(path: Path, of: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines, without torn or broken ones; none where there is no file.

    of   a problem: lines in which no text begins with its id are not parsed, which takes long where there are many
    """
    begins = {json_line({"": of})[5:-3], json.dumps(of).encode()[:-1]} if of else set()
    try:
        with opened(path) as file:
            for line in lines_of(file):
                if begins and not any(name in line for name in begins):
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict):
                    yield record
    except OSError:
        return


def bench_scores(folder: Entry) -> dict[str, Any]:
    try:
        return read_json(folder.file("scores.json"))
    except ValueError as error:
        return {"fault": f"scores.json cannot be read: {error}"}


def report(folder: Entry) -> str:
    try:
        with opened(folder.file("report.md")) as file:
            return file.read(REPORT).decode("utf-8", "replace")
    except OSError:
        return ""


def bench_limits(folder: Entry) -> list[tuple[int, list[Group]]]:
    """Return (limit, groups) for each limit, the smallest first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for (problem, _, limit), record in _verdicts(folder).items():
        found.setdefault(limit, []).append({"problem": problem, "verdict": record.get("verdict"), "length": 0})
    return [(limit, groups_of(rows)) for limit, rows in sorted(found.items())]


def bench_group(folder: Entry, limit: int, problem: str) -> list[dict[str, Any]]:
    """Return the completions of one problem in an evaluation, under one limit, as rollouts."""
    texts = {record.get("number"): record for record in _samples(folder, problem)}
    rows = []
    for (which, number, at), record in _verdicts(folder, problem).items():
        if (which, at) == (problem, limit):
            sample = texts.get(number, {})
            text, tokens = str(sample.get("text") or ""), sample.get("tokens")
            cuts = sample.get("cuts")
            cut = cuts.get(str(limit)) if isinstance(cuts, dict) else None
            over = cut is not None or (limit > 0 and isinstance(tokens, int) and tokens > limit)
            rows.append(
                {
                    "row": number,
                    "problem": problem,
                    "completion": text[:cut] if isinstance(cut, int) else text,
                    "verdict": record.get("verdict"),
                    "strategy": record.get("strategy"),
                    "message": record.get("message"),
                    "reward": float(record.get("verdict") == ACCEPTED),
                    "length": limit if over else tokens,
                    "truncated": bool(sample.get("truncated")) or over,
                }
            )
    return sorted(rows, key=lambda row: int(row["row"]))


def _verdicts(folder: Entry, of: str = "") -> dict[tuple[str, int, int], dict[str, Any]]:
    """The verdicts by problem, number and limit; of a sample that was judged again, the last one."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for record in records(folder.file("verdicts.jsonl"), of):
        if match := NAME.fullmatch(str(record.get("id"))):
            kept: dict[str, Any] = {name: record.get(name) for name in ("verdict", "strategy", "message")}
            found[match[1], int(match[2]), int(match[3] or 0)] = kept
    return found


def _samples(folder: Entry, problem: str) -> Iterator[dict[str, Any]]:
    return (record for record in records(folder.file("samples.jsonl"), problem) if record.get("problem_id") == problem)
