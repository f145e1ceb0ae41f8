"""What flows through the four stages: a problem with what was measured of it, or the reason why it leaves them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from ..schema import Compare, Problem, Test


@dataclass(slots=True)
class Record:
    """A problem on its way. It may be incomplete until `process` has looked at it: no `Problem.check` before."""

    problem: Problem
    notes: dict[str, Any] = field(default_factory=dict)  # measured by a stage: numbers and short words, by name

    def did(self, what: str) -> None:
        """Remember in the problem's lineage that something was done to it."""
        self.problem.lineage.append(what)

    def to_dict(self) -> dict[str, Any]:
        return {"problem": self.problem.to_dict(), "notes": self.notes}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Record:
        fields = dict(data["problem"])
        fields["tests"] = [Test(**test) for test in fields.get("tests", [])]
        fields["compare"] = Compare(**fields.get("compare", {}))
        return cls(Problem(**fields), data["notes"])

    def copy(self) -> Record:
        return Record.from_dict({"problem": dataclasses.asdict(self.problem), "notes": dict(self.notes)})


class DataError(ValueError):
    """Nothing can go on, whatever the record: the message says what to change. Never a reason to drop a record."""


class Dropped(Exception):
    """A record leaves the pipeline here. `reason` is one of few words, for counting; `detail` says what was found."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail
