"""What a kind of fault is; problems through the steps of `microcoder data run`, and what became of each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.faults.draw import HALVES
from microcoder.data.collection import NAME, collect_all
from microcoder.data.parts import kept_parts, read_losses, read_records, write_part
from microcoder.data.pipeline import STAGES, run
from microcoder.data.record import Record
from microcoder.data.settings import Pipeline
from microcoder.data.steps import steps_for
from microcoder.schema import Problem


class Draw(Random):
    """Chance for one problem, the same every time."""

    half = "dev"

    def line(self, bank: Sequence[str]) -> str:
        """One of a bank's lines for this half."""
        return self.choice(bank[HALVES.index(self.half) :: 2])


Change = Callable[[Problem, Draw], bool]  # changes the problem; False: this one cannot be changed so


class Outcome(NamedTuple):
    reason: str  # why it was dropped; "" for what came through
    detail: str
    problem: Problem  # as it entered the step that dropped it, or as it came out at the end
    notes: dict[str, Any]


def untouched(problem: Problem, draw: Draw) -> bool:
    return True


def solved(problem: Problem) -> bool:
    return bool(problem.solutions)


@dataclass(frozen=True)
class Kind:
    """A kind of fault. The control is made first, clean in the sense of this kind; then the fault is planted in it."""

    name: str
    plant: Change
    right: tuple[str, ...] = ()  # the reasons for which a problem with this fault is rightly dropped; or else:
    repaired: Callable[[Problem], Any] | None = None  # what of a repaired problem has to be as in its control
    mark: str = ""  # what the lineage says of that repair
    control: Change = untouched
    among: Callable[[Problem], bool] = solved  # problems that can have it
    upto: str = "process"  # the stage that has to find it
    meets: str = ""  # "original": a duplicate of it; "evaluation": of what models are evaluated on
    skip: str = ""  # a stage that is left out
    line: Callable[[Problem, bool], str] | None = None  # a problem as a line of a file, with the fault or without
    layout: str = ""  # of that file
    settings: dict[str, Any] = field(default_factory=dict)
    most: int = 10**6  # faults of this kind, where each costs much time

    def found(self, planted: Outcome, control: Outcome, original: str) -> bool:
        if self.repaired is not None:
            return not planted.reason and self.repaired(planted.problem) == self.repaired(control.problem)
        if not planted.reason and "weak_tests" in self.right and planted.problem.extra.get("forge", {}).get("tests"):
            return True  # mended: the forge gave it tests that verification finds strong
        named = (f"of {original} ", f" with {original} ") if self.meets else ("",)
        return planted.reason in self.right and any(name in f"{planted.detail} " for name in named)

    def alarm(self, control: Outcome, before: Problem) -> bool:
        """Whether the same thing happens to a problem that has no such fault."""
        if self.repaired is None:
            return control.reason in self.right
        said = any(self.mark in line for line in control.problem.lineage)
        return said and self.repaired(control.problem) != self.repaired(before)

    def says(self) -> str:
        return f"repaired ({self.mark})" if self.repaired else ", ".join(self.right)


class Nobody:
    """Is told how it goes."""

    def step(self, *_: Any) -> None: ...
    def part(self, *_: Any) -> None: ...
    def done(self, *_: Any, **__: Any) -> None: ...


class Runs:
    """Each run of the pipeline in a folder of its own below `folder`; with the test forge or without."""

    def __init__(self, folder: Path, forge: bool = False) -> None:
        self.folder, self.number, self.forge = folder, itertools.count(), {"enabled": forge}

    def outcomes(
        self, kind: Kind, problems: Iterable[Problem], evaluation: Sequence[Problem] = ()
    ) -> dict[str, Outcome]:
        """By id. All of them meet in one index of duplicates, in this order."""
        out = self.folder / str(next(self.number))
        settings = {"difficulty": {"by": "none"}, "forge": self.forge, **kind.settings}
        if evaluation:
            (out / "sets").mkdir(parents=True)
            write_rows(out / "sets" / "evaluation.jsonl", [problem.to_dict() for problem in evaluation])
            source = {"path": str(out / "sets" / "evaluation.jsonl"), "read": "microcoder"}
            settings["filter"] = {**settings.get("filter", {}), "evaluation": [source]}
        steps = steps_for(Pipeline(**settings), out)
        steps = [s for s in steps if STAGES.index(s.stage) <= STAGES.index(kind.upto) and s.stage != kind.skip]
        write_part(out / NAME, "00000", [Record(problem) for problem in problems])
        run(out, steps, kept_parts(out / NAME), out.name, 1, Nobody())
        return gathered(out, [NAME, *(step.folder for step in steps)])

    def collected(self, kind: Kind, lines: list[str]) -> dict[str, Outcome]:
        """Of lines of a file, by their number from 1."""
        out = self.folder / str(next(self.number))
        out.mkdir(parents=True)
        (out / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
        settings = Pipeline(collect={"sources": [{"path": str(out / "rows.jsonl"), "read": kind.layout}]})
        collect_all(out, settings.collect.sources, 0, 1, Nobody())
        found = gathered(out, [NAME])
        return {_line(outcome): outcome for outcome in found.values()}


def gathered(out: Path, folders: list[str]) -> dict[str, Outcome]:
    found = {}
    for folder in folders:
        for part in (out / folder / "dropped").glob("*.gz"):
            found |= {
                record.problem.id: Outcome(loss.reason, loss.detail, record.problem, record.notes)
                for record, loss in read_losses(part)
            }
    for part in kept_parts(out / folders[-1]):
        found |= {record.problem.id: Outcome("", "", record.problem, record.notes) for record in read_records(part)}
    return found


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _line(outcome: Outcome) -> str:
    """Of a row that was read, the lineage says where; of another, its id."""
    where = outcome.problem.id if outcome.reason else outcome.problem.lineage[0]
    return where.rpartition(":")[2]
