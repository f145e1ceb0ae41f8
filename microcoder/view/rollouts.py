"""The steps of a run, the groups of a step, the samples of a group. One step's file is read at a time.

A damaged file gives what can be read of it and a word about the rest; one that unpacks to more than LARGEST is cut.
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
from .library import Folder, Missing, stamps

Rollout = dict[str, Any]
LARGEST, BUDGET_S = 1 << 28, 20.0  # bytes, unpacked; and how long that may take
STEP = re.compile(r"step_(\d{1,9})\.jsonl\.gz")
NUMBERS = ("step", "row", "sample", "reward", "advantage", "length", "temperature")
TEXTS = ("completion", "code", "verdict", "strategy", "message")
_reading = threading.Lock()  # one file at a time, as each can be large


class Step:
    """What the file of one step holds."""

    def __init__(self, statements: dict[str, str], rows: list[Rollout], fault: str) -> None:
        self.statements, self.rows, self.fault = statements, rows, fault

    def groups(self) -> list[Group]:
        return groups_of(self.rows)


def steps(folder: Folder) -> list[int]:
    """The steps that have rollouts."""
    where = folder.file("rollouts")
    return list(_steps(where, stamps([where])))


def read_step(folder: Folder, step: int) -> Step:
    path = folder.file("rollouts", f"step_{step:05}.jsonl.gz")
    if not path.is_file():
        there = steps(folder)
        near = min(there, key=lambda other: abs(other - step), default=None)
        hint = f"; the nearest is step {near}" if near is not None else "; they are written as training goes on"
        raise Missing(f"{folder.name} holds no rollouts of step {step}{hint}")
    with _reading:
        return _read(path, stamps([path]))


def entries(folder: Folder) -> dict[int, dict[str, Any]]:
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
def _read(path: Path, stamped: object) -> Step:
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
    return Step(statements, rows, fault)


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
