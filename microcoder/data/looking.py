"""Records of a run to read: kept or dropped, by reason, by step, by id."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from ..prompts import prompt
from ..schema import nearest
from .parts import kept_parts, read_losses, read_records
from .record import Record
from .report import Done, steps_of

LINES = 30  # of a statement


class Nothing(ValueError):
    """There is nothing like that; the message says what there is."""


def found(out: Path, reason: str | None, step: str | None, ident: str | None, count: int) -> list[str]:
    """Up to `count` records as text."""
    steps = steps_of(out)
    if not steps:
        raise Nothing(f"{out} holds no finished step; make some: microcoder data run data.toml")
    if step is not None:
        names = [each.name for each in steps]
        if step not in names:
            raise Nothing(f"there is no step {step!r}{nearest(step, names) or '; there are ' + ', '.join(names)}")
        steps = [each for each in steps if each.name == step]
    if ident is not None:
        return _one(steps, ident)
    if reason is not None:
        return _dropped(steps, reason, count)
    last = steps[-1]
    records = (record for part in kept_parts(last.folder) for record in read_records(part))
    shown = [text(record, f"kept by {last.name}") for record in islice(records, count)]
    if not shown:
        raise Nothing(f"{last.name} has kept nothing; see what was dropped: --dropped REASON")
    return shown


def _dropped(steps: list[Done], reason: str, count: int) -> list[str]:
    known = {name for step in steps for name in step.counts.dropped}
    if reason not in known:
        hint = nearest(reason, known) or f"; the reasons are {', '.join(sorted(known))}"
        raise Nothing(f"nothing was dropped as {reason!r}{hint}")
    shown: list[str] = []
    for step in steps:
        for part in sorted((step.folder / "dropped").glob("*.jsonl.gz")) if step.counts.dropped[reason] else []:
            for record, loss in read_losses(part):
                if loss.reason == reason and len(shown) < count:
                    shown.append(text(record, f"dropped by {step.name}: {loss}"))
    return shown


def _one(steps: list[Done], ident: str) -> list[str]:
    for step in reversed(steps):
        for part in kept_parts(step.folder):
            for record in read_records(part):
                if record.problem.id == ident:
                    return [text(record, f"kept by {step.name}")]
        for part in sorted((step.folder / "dropped").glob("*.jsonl.gz")):
            for record, loss in read_losses(part):
                if record.problem.id == ident:
                    return [text(record, f"dropped by {step.name}: {loss}")]
    raise Nothing(f"no step has seen a problem {ident!r}")


def text(record: Record, fate: str) -> str:
    problem = record.problem
    try:
        asked = prompt(problem)
    except (IndexError, AttributeError):  # not complete enough for one
        asked = problem.statement
    lines = asked.splitlines()
    more = [f"... {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    count = len(problem.tests) or len(problem.asserts)
    facts: dict[str, Any] = {"kind": problem.kind, "tests": count, "solutions": len(problem.solutions)}
    facts |= {"difficulty label": problem.difficulty, **record.notes}
    known = ", ".join(f"{name} {value}" for name, value in facts.items() if value not in ("", None))
    done = [f"  {line}" for line in problem.lineage]
    return "\n".join([f"== {problem.id}: {fate}", known, *done, "", *lines[:LINES], *more, ""])
