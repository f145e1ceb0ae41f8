"""A rule: a few words of data, and a function that says in a sentence what it found in the history, or nothing.

In a remedy {longer}, {warmer}, {cooler}, {patient} and {slower} stand for values worked out from those in use.
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


def rule(severity: Severity, reason: str, remedy: str) -> Callable[[Finds], Rule]:
    """Make a function a rule; its name is the code."""
    return lambda finds: Rule(finds.__name__, severity, reason, remedy, finds)
