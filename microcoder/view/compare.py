"""Two runs, or two bench results, on the same problems: which of them the second one wins and loses."""

from __future__ import annotations

from typing import Any

from . import bench
from .find import last_visits
from .library import Folder

Visits = dict[str, list[int]]


def compare(one: Folder, other: Folder) -> dict[str, Any]:
    """{"problems": [[problem, visit of one, visit of the other], ...], "note"}, the greatest change first.

    A visit is [step, accepted, rows, accepted in all, rows in all], of the last time that the problem was sampled.
    """
    (first, one_note), (second, other_note) = _visits(one), _visits(other)
    common = [(problem, first[problem], second[problem]) for problem in first if problem in second]
    common.sort(key=lambda line: (-abs(_share(line[2]) - _share(line[1])), line[0]))
    notes = [f"{folder.name}: {note}" for folder, note in ((one, one_note), (other, other_note)) if note]
    return {
        "problems": common,
        "only_one": len(first) - len(common),
        "only_other": len(second) - len(common),
        "note": "; ".join(notes),
    }


def _share(visit: list[int]) -> float:
    return visit[1] / visit[2] if visit[2] else 0.0


def _visits(folder: Folder) -> tuple[Visits, str]:
    if folder.kind != "bench":
        return last_visits(folder)
    limits = bench.visits(folder)
    last = limits[-1:]  # the largest limit
    visits = {g.problem: [limit, g.accepted, g.rows, g.accepted, g.rows] for limit, groups in last for g in groups}
    return visits, f"the limit of {last[0][0]} tokens" if len(limits) > 1 else ""
