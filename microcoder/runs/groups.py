"""What came of each problem at each step: a line a step beside the index, so that finding opens no file of rollouts.

    {"step": 40, "size": 3362, "groups": [["p0", 8, 3, 1, 0, 128, -1.2], ...]}

The fields are those of Group. Like the index it is a convenience: a line whose file of rollouts is gone or has another
size is passed over, and a run that was made before there were such lines has none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files import json_line
from ..schema import ACCEPTED
from .disk import append_line, lines_of, opened, write_whole, writing

FILE = "groups.jsonl"


class Group(NamedTuple):
    """The samples of one problem at one step."""

    problem: str
    rows: int
    accepted: int
    truncated: int
    masked: int
    longest: int  # tokens
    lowest: float  # advantage


def group_of(problem: str, rollouts: Sequence[dict[str, Any]]) -> Group:
    return Group(
        problem,
        len(rollouts),
        sum(r.get("verdict") == ACCEPTED for r in rollouts),
        sum(bool(r.get("truncated")) for r in rollouts),
        sum(bool(r.get("masked")) for r in rollouts),
        max((r.get("length") or 0 for r in rollouts), default=0),
        round(min((r.get("advantage") or 0.0 for r in rollouts), default=0.0), 4),
    )


def groups_of(rollouts: Sequence[dict[str, Any]]) -> list[Group]:
    """A group for each problem, in the order in which they first occur."""
    found: dict[str, list[dict[str, Any]]] = {}
    for rollout in rollouts:
        found.setdefault(rollout["problem"], []).append(rollout)
    return [group_of(problem, rows) for problem, rows in found.items()]


def append_groups(folder: Path, step: int, rollouts: Sequence[dict[str, Any]], size: int) -> None:
    append_line(folder / FILE, {"step": step, "size": size, "groups": [list(group) for group in groups_of(rollouts)]})


def read_groups(run: str | Path, problem: str | None = None) -> Iterator[tuple[int, list[Group]]]:
    """(step, its groups) in the order of steps, one line at a time; what cannot be used is passed over.

    With `problem`, only steps that sampled it, which are found without parsing the others.
    """
    folder, last = Path(run) / "rollouts", -1
    named = {} if problem is None else {json_line({"": problem})[5:-2], json.dumps(problem).encode()}
    for line in _lines(folder / FILE):
        if named and not any(name in line for name in named):
            continue
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
            record = json.loads(line)
            step, groups = int(record["step"]), [_checked(Group._make(group)) for group in record["groups"]]
            if step > last and (folder / f"step_{step:05}.jsonl.gz").stat().st_size == record["size"]:
                last = step
                yield step, groups


def drop_groups_after(folder: Path, step: int) -> None:
    path = folder / FILE
    if path.exists():
        kept = []
        for line in _lines(path):
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a broken line is not worth keeping
                kept += [line] if json.loads(line)["step"] <= step else []
        if kept:
            write_whole(path, b"".join(kept))
        else:
            with writing(path):
                path.unlink()


def _lines(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(OSError), opened(path) as file:
        yield from lines_of(file)


def _checked(group: Group) -> Group:
    """TypeError for one that nobody could sort or count."""
    numbers = group[1:]
    if not isinstance(group.problem, str) or not all(isinstance(n, int | float) and abs(n) < 1e15 for n in numbers):
        raise TypeError("it is no group")
    return group
