"""The results of `microcoder bench` in the shape of rollouts: a limit is a step, the tries at a problem a group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..runs import Group, groups_of
from ..runs.disk import opened
from ..schema import ACCEPTED
from .library import Folder
from .rollouts import records
from .state import read_json

NAME = re.compile(r"(.*)#(\d{1,9})@(\d{1,12})", re.DOTALL)  # problem # number @ limit
REPORT = 1 << 20  # bytes of report.md that are shown


def scores(folder: Folder) -> dict[str, Any]:
    try:
        return read_json(folder.file("scores.json"))
    except ValueError as error:
        return {"fault": f"scores.json cannot be read: {error}"}


def report(folder: Folder) -> str:
    try:
        with opened(folder.file("report.md")) as file:
            return file.read(REPORT).decode("utf-8", "replace")
    except OSError:
        return ""


def visits(folder: Folder) -> list[tuple[int, list[Group]]]:
    """(limit, its groups), the smallest limit first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for name, record in _verdicts(folder):
        row = {"problem": name[0], "verdict": record.get("verdict"), "length": 0}
        found.setdefault(name[2], []).append(row)
    return [(limit, groups_of(rows)) for limit, rows in sorted(found.items())]


def group(folder: Folder, limit: int, problem: str) -> list[dict[str, Any]]:
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


def _verdicts(folder: Folder) -> Iterator[tuple[tuple[str, int, int], dict[str, Any]]]:
    for record in records(folder.file("verdicts.jsonl")):
        match = NAME.fullmatch(str(record.get("id")))
        if match:
            yield (match[1], int(match[2]), int(match[3])), record


def _samples(folder: Folder, problem: str) -> Iterator[dict[str, Any]]:
    return (record for record in records(folder.file("samples.jsonl")) if record.get("problem_id") == problem)
