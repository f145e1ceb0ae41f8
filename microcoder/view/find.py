"""Finding rollouts in bounded time.

What the groups tell (the worst, the longest, truncated, masked, newly solved, lost) is found in one pass over the
groups that the run wrote, over the whole run. What only the text tells (suspected hacks, search) is looked for in the
files of the steps, newest first, until BUDGET_S is spent; the answer says where to go on.

1. Newly solved: no sample of the problem was accepted at its last visit, and one is at this. Lost: the reverse.
2. A run from before there were groups is read from its steps too, within the same budget, and the answer says so.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..runs import Group, read_groups
from ..schema import ACCEPTED
from .hacks import suspicions
from .library import Folder
from .rollouts import entries, read_step, steps

Visit = tuple[int, list[Group]]
KINDS = ("worst", "longest", "truncated", "masked", "solved", "lost", "hacks", "text")
LIMIT, BUDGET_S = 100, 1.0


def find(folder: Folder, kind: str, text: str = "", before: int | None = None) -> dict[str, Any]:
    """{"found": [{step, problem, why, row?}], "next": a step to go on before, "note"}; `before` bounds the steps."""
    if kind in ("hacks", "text"):
        return _scan(folder, kind, text, before)
    visits, note = _visits(folder)
    wanted = ((step, groups) for step, groups in visits if before is None or step < before)
    if kind in ("worst", "longest"):
        return {"found": _extreme(wanted, kind), "next": None, "note": note}
    test = {"truncated": _flagged("truncated"), "masked": _flagged("masked")}.get(kind)
    changes = (hit for step, groups in wanted for group in groups if (hit := test(step, group))) if test else (
        _changes(wanted, kind)
    )
    newest = deque(changes, maxlen=LIMIT + 1)
    found = list(reversed(newest))[:LIMIT]
    return {"found": found, "next": found[-1]["step"] if len(newest) > LIMIT else None, "note": note}


def visits_of(folder: Folder, problem: str) -> list[list[int]]:
    """[step, accepted, rows] of each time that the problem was sampled."""
    visits, _ = _visits(folder, problem)
    return [[step, one.accepted, one.rows] for step, groups in visits for one in groups if one.problem == problem]


def last_visits(folder: Folder) -> tuple[dict[str, list[int]], str]:
    """Problem -> [step, accepted, rows, accepted in all, rows in all]; and a note where that is not the whole run."""
    found: dict[str, list[int]] = {}
    visits, note = _visits(folder)
    for step, groups in visits:
        for group in groups:
            _, _, _, accepted, rows = found.get(group.problem, [0, 0, 0, 0, 0])
            totals = [accepted + group.accepted, rows + group.rows]
            found[group.problem] = [step, group.accepted, group.rows, *totals]
    return found, note


def _visits(folder: Folder, problem: str | None = None) -> tuple[Iterable[Visit], str]:
    """What came of the groups, in the order of steps; and a note where that is not the whole run."""
    if folder.file("rollouts", "groups.jsonl").exists():
        return read_groups(folder.path, problem), ""
    ends = time.monotonic() + BUDGET_S
    found: list[Visit] = []
    newest = sorted(steps(folder), reverse=True)
    for step in newest:
        if time.monotonic() > ends:
            break
        found.append((step, read_step(folder, step).groups()))
    words = "" if len(found) == len(newest) else f"only steps {found[-1][0]} to {found[0][0]} were looked at"
    return reversed(found), f"this run has no groups.jsonl, as older ones; {words}" if words else ""


def _extreme(visits: Iterable[Visit], kind: str) -> list[dict[str, Any]]:
    pairs = ((step, group) for step, groups in visits for group in groups)
    if kind == "longest":
        best = heapq.nlargest(LIMIT, pairs, key=lambda pair: (pair[1].longest, pair[0]))
        return [_hit(step, group, f"{group.longest} tokens") for step, group in best]
    best = heapq.nsmallest(LIMIT, pairs, key=lambda pair: (pair[1].lowest, -pair[1].accepted, -pair[0]))
    return [_hit(step, group, f"advantage {group.lowest:.2f} in a group with {_of(group)}") for step, group in best]


def _flagged(name: str) -> Callable[[int, Group], dict[str, Any] | None]:
    def test(step: int, group: Group) -> dict[str, Any] | None:
        count = getattr(group, name)
        return _hit(step, group, f"{count} of {group.rows} {name}") if count else None

    return test


def _changes(visits: Iterable[Visit], kind: str) -> Iterator[dict[str, Any]]:
    seen: dict[str, tuple[int, int]] = {}  # problem -> (step, accepted)
    for step, groups in visits:
        for group in groups:
            then, accepted = seen.get(group.problem, (step, -1))
            seen[group.problem] = (step, group.accepted)
            if accepted >= 0 and then < step and (accepted > 0) != (group.accepted > 0):
                if (kind == "solved") == (group.accepted > 0):
                    yield _hit(step, group, f"{_of(group)}; at step {then} it was {accepted}")


def _scan(folder: Folder, kind: str, text: str, before: int | None) -> dict[str, Any]:
    ends, listed, wanted = time.monotonic() + BUDGET_S, entries(folder), text.casefold()
    found: list[dict[str, Any]] = []
    programs: dict[str, tuple[str, int]] = {}  # accepted code -> the problem and step where it was first met
    left = [step for step in sorted(steps(folder), reverse=True) if before is None or step < before]
    looked: int | None = None
    for step in left:
        if len(found) >= LIMIT or (looked is not None and time.monotonic() > ends):
            break
        looked = step
        if kind == "hacks" and listed.get(step, {}).get("accuracy") == 0:
            continue
        for row in read_step(folder, step).rows:
            for why in _hack(row, programs) if kind == "hacks" else _text(row, wanted):
                found.append({"step": step, "problem": row["problem"], "row": row.get("row"), "why": why})
    more = looked is not None and bool(left) and looked != left[-1]
    words = f"looked at steps {looked} to {left[0]}" if more else ""
    return {"found": found[: 4 * LIMIT], "next": looked if more else None, "note": words}


def _hack(row: dict[str, Any], programs: dict[str, tuple[str, int]]) -> Iterator[str]:
    code = str(row.get("code") or "")
    if row.get("verdict") != ACCEPTED or not code.strip():
        return
    yield from suspicions(code)
    problem, step = programs.setdefault(" ".join(code.split()), (row["problem"], row.get("step") or 0))
    if problem != row["problem"]:
        yield f"the same program was accepted for {problem} at step {step}"


def _text(row: dict[str, Any], wanted: str) -> Iterator[str]:
    for name in ("completion", "message", "problem"):
        value = str(row.get(name) or "")
        at = value.casefold().find(wanted) if wanted else -1
        if at >= 0:
            yield f"{name}: {' '.join(value[max(0, at - 30) : at + 60].split())}"
            return


def _hit(step: int, group: Group, why: str) -> dict[str, Any]:
    return {"step": step, "problem": group.problem, "why": why}


def _of(group: Group) -> str:
    return f"{group.accepted} of {group.rows} accepted"
