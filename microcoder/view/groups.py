"""What the model wrote: the steps of a run, the groups of a step, the samples of a group.

The results of `microcoder eval` are given in the same shape: a token limit is a step, the tries at a problem a group.
One step's file is read at a time. A damaged file gives what can be read of it and a word about the rest.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..runs import Group, groups_of
from ..runs.disk import LINE, lines_of, opened
from ..schema import ACCEPTED
from .library import Entry, Missing, stamps
from .state import read_json

Rollout = dict[str, Any]
LARGEST, BUDGET_S = 1 << 28, 20.0  # bytes, unpacked; and how long that may take
STEP = re.compile(r"step_(\d{1,9})\.jsonl\.gz")
NAME = re.compile(r"(.*)#(\d{1,9})@(\d{1,12})", re.DOTALL)  # problem # number @ limit
REPORT = 1 << 20  # bytes of report.md that are shown
NUMBERS = ("step", "row", "sample", "reward", "advantage", "length", "temperature")
TEXTS = ("completion", "code", "verdict", "strategy", "message")
_reading = threading.Lock()  # one file at a time, as each can be large


class StepRollouts:
    """What the file of one step holds."""

    def __init__(self, statements: dict[str, str], rows: list[Rollout], fault: str) -> None:
        self.statements, self.rows, self.fault = statements, rows, fault

    def groups(self) -> list[Group]:
        return groups_of(self.rows)


def steps(folder: Entry) -> list[int]:
    """The steps that have rollouts."""
    where = folder.file("rollouts")
    return list(_steps(where, stamps([where])))


def read_step(folder: Entry, step: int) -> StepRollouts:
    path = folder.file("rollouts", f"step_{step:05}.jsonl.gz")
    if not path.is_file():
        there = steps(folder)
        near = min(there, key=lambda other: abs(other - step), default=None)
        hint = f"; the nearest is step {near}" if near is not None else "; they are written as training goes on"
        raise Missing(f"{folder.name} holds no rollouts of step {step}{hint}")
    with _reading:
        return _read(path, stamps([path]))


def entries(folder: Entry) -> dict[int, dict[str, Any]]:
    """What the index says of each step, as far as it can be read."""
    path = folder.file("rollouts", "index.jsonl")
    return _entries(path, stamps([path]))


@lru_cache(maxsize=64)
def _steps(path: Path, stamped: object) -> tuple[int, ...]:
    try:
        found = [STEP.fullmatch(entry.name) for entry in path.iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(match[1]) for match in found if match))


@lru_cache(maxsize=16)
def _entries(path: Path, stamped: object) -> dict[int, dict[str, Any]]:
    return {entry["step"]: entry for entry in records(path) if isinstance(entry.get("step"), int)}


@lru_cache(maxsize=2)
def _read(path: Path, stamped: object) -> StepRollouts:
    statements: dict[str, str] = {}
    rows: list[Rollout] = []
    fault, size, ends = "", 0, time.perf_counter() + BUDGET_S
    try:
        with opened(path) as packed, gzip.open(packed, "rb") as file:
            while line := file.readline(LINE):
                size += len(line)
                if size > LARGEST or time.perf_counter() > ends:
                    words = f"more than {LARGEST >> 20} MiB" if size > LARGEST else f"more than {BUDGET_S:g} s can read"
                    fault = f"{path.name} unpacks to {words}; what follows is left out"
                    break
                try:
                    record = json.loads(line)
                    problem = str(record["problem"])
                except (ValueError, KeyError, TypeError, RecursionError):
                    fault = f"{path.name} holds lines that are no rollouts; they are left out"
                    continue
                if "statement" in record:
                    statements[problem] = str(record["statement"])
                else:
                    rows.append(_row(record, problem))
    except (OSError, EOFError, zlib.error) as error:
        fault = f"{path.name} is damaged ({error}); {len(rows)} rollouts could be read"
    return StepRollouts(statements, rows, fault)


def _row(record: Rollout, problem: str) -> Rollout:
    """With numbers where numbers belong, and text where text does: others count and sort them."""
    row = {**record, "problem": problem}
    for name in NUMBERS:
        value = row.get(name)
        if not isinstance(value, int | float) or not abs(value) < 1e15:
            row[name] = None
    for name in TEXTS:
        if not isinstance(row.get(name), str | None):
            row[name] = str(row[name])
    return row


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of lines; one that is torn or broken is passed over, a file that is not there has none."""
    try:
        with opened(path) as file:
            for line in lines_of(file):
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
    """(limit, its groups), the smallest limit first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for name, record in _verdicts(folder):
        row = {"problem": name[0], "verdict": record.get("verdict"), "length": 0}
        found.setdefault(name[2], []).append(row)
    return [(limit, groups_of(rows)) for limit, rows in sorted(found.items())]


def bench_group(folder: Entry, limit: int, problem: str) -> list[dict[str, Any]]:
    """The tries at one problem under one limit, as rollouts."""
    texts = {record.get("number"): record for record in _samples(folder, problem)}
    rows = []
    for (which, number, at), record in _verdicts(folder):
        if (which, at) == (problem, limit):
            sample = texts.get(number, {})
            text = str(sample.get("text") or "")
            cuts = sample.get("cuts")
            cut = cuts.get(str(limit)) if isinstance(cuts, dict) else None
            rows.append(
                {
                    "row": number,
                    "problem": problem,
                    "completion": text[:cut] if isinstance(cut, int) else text,
                    "verdict": record.get("verdict"),
                    "strategy": record.get("strategy"),
                    "message": record.get("message"),
                    "reward": float(record.get("verdict") == ACCEPTED),
                    "length": sample.get("tokens"),
                    "truncated": bool(sample.get("truncated")) or cut is not None,
                }
            )
    return sorted(rows, key=lambda row: int(row["row"]))


def _verdicts(folder: Entry) -> Iterator[tuple[tuple[str, int, int], dict[str, Any]]]:
    for record in records(folder.file("verdicts.jsonl")):
        match = NAME.fullmatch(str(record.get("id")))
        if match:
            yield (match[1], int(match[2]), int(match[3])), record


def _samples(folder: Entry, problem: str) -> Iterator[dict[str, Any]]:
    return (record for record in records(folder.file("samples.jsonl")) if record.get("problem_id") == problem)
