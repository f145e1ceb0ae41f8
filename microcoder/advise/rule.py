"""A rule: a few words of data, and a function that says in a sentence what it found in the history, or nothing.

In a remedy {longer}, {warmer}, {cooler}, {milder}, {patient} and {slower} stand for values worked out from those in
use, and RUN for the run. `claim` and `figure` are those of the paper that speak of the matter. `explains` names the
rules that fire because this one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .history import History

Severity = Literal["warning", "error"]
Finds = Callable[[History], str | None]


@dataclass(frozen=True)
class Rule:
    code: str
    severity: Severity
    reason: str
    remedy: str
    finds: Finds
    claim: int | None = None
    figure: int | None = None
    explains: frozenset[str] = frozenset()


def rule(
    severity: Severity,
    reason: str,
    remedy: str,
    claim: int | None = None,
    figure: int | None = None,
    explains: str = "",
) -> Callable[[Finds], Rule]:
    """Make a function a rule; its name is the code. `explains` is written as words."""
    names = frozenset(explains.split())
    return lambda finds: Rule(finds.__name__, severity, reason, remedy, finds, claim, figure, names)
