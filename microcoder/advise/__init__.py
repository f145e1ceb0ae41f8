"""What is wrong with a run right now, why that usually happens, and what to type about it.

    history.py    the metrics so far, as the rules look at them
    rule.py       what a rule is
    answers.py    rules about the answers: can they be read, are they judged, do they tell good from bad
    policy.py     rules about the policy and its updates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import answers, policy
from .history import History
from .rule import Severity

__all__ = ["Advice", "advise", "new_advice"]
QUIET = 10  # steps for which `new_advice` does not say the same thing again


@dataclass(frozen=True)
class Advice:
    """One thing that is wrong: `message` says what, `reason` why, `remedy` what to type."""

    code: str
    severity: Severity
    message: str
    reason: str
    remedy: str
    step: int


def advise(metrics: Sequence[dict[str, Any]]) -> list[Advice]:
    """Everything that is wrong at the last step of `metrics`, the lines of metrics.jsonl; errors come first."""
    history = History(metrics)
    settings, step = history.settings(), history.now("step") or 0
    found = [(rule, rule.finds(history)) for rule in (*answers.RULES, *policy.RULES)]
    advice = [
        Advice(rule.code, rule.severity, message, rule.reason, rule.remedy.format(**settings), int(step))
        for rule, message in found
        if message
    ]
    return sorted(advice, key=lambda one: one.severity != "error")


def new_advice(metrics: Sequence[dict[str, Any]]) -> list[Advice]:
    """What is wrong at the last step and was not at any of the QUIET steps before it: what a display should say."""
    said = {one.code for back in range(1, QUIET + 1) for one in advise(metrics[:-back])}
    return [one for one in advise(metrics) if one.code not in said]
