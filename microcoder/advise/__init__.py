"""Advice about a run: what is wrong, why that usually happens, and what to type.

    history.py    the metrics so far, as the rules look at them; what a rule is
    rules.py      the rules: causes, which explain others, then symptoms in the answers and in the policy

Metrics are the lines of metrics.jsonl, `config` the settings of config.toml; without `config` some rules find nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import rules
from .history import AdviceRule, History, Severity, earned_nothing

__all__ = ["Advice", "advise", "advise_run", "new_advice"]
RULES = {rule.code: rule for rule in rules.RULES}
QUIET = 10  # steps during which `new_advice` does not repeat an advice
EVERY = 150  # steps of which `advise_run` looks at each; of the next 150 at every second, of the next at every third
PASSING = 3  # steps with a finding that `advise_run` needs to report it after it is over

Metrics = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Advice:
    """One fault of a run: `message` says what is wrong, `reason` why, `remedy` what to type."""

    code: str
    severity: Severity
    message: str
    reason: str
    remedy: str
    step: int  # where it was found; for a whole run, where it was first found
    claim: int | None = None  # of the paper
    figure: int | None = None
    holds: bool = True  # for a whole run: whether it holds at the last step
    symptoms: tuple[Advice, ...] = ()  # other findings that it explains

    @property
    def is_cause(self) -> bool:
        return RULES[self.code] in rules.CAUSES


def advise(metrics: Metrics, config: Mapping[str, Any] | None = None) -> list[Advice]:
    """Return all faults at the last step, causes first, then errors; a cause holds the symptoms that it explains."""
    return _arranged(_found(metrics, config))


def new_advice(metrics: Metrics, config: Mapping[str, Any] | None = None) -> list[Advice]:
    """Return the faults at the last step that none of the QUIET steps before it had, for a live display."""
    said = {one.code for back in range(1, QUIET + 1) for one in _found(metrics[:-back], config)}
    return [one for one in advise(metrics, config) if one.code not in said]


def advise_run(metrics: Metrics, config: Mapping[str, Any] | None = None) -> list[Advice]:
    """Return the faults at any step, ordered as by `advise`: `step` is the first one, the numbers are the latest ones.

    After EVERY steps it looks ever more seldom. A fault that is over, and was found fewer than PASSING times, is
    left out. A run without any reward is always reported, however few its steps.
    """
    seen: dict[str, list[Advice]] = {}
    now: list[Advice] = []
    number = 0
    while number < len(metrics):
        number = min(len(metrics), number + number // EVERY + 1)
        now = _found(metrics[:number], config)
        for one in now:
            seen.setdefault(one.code, []).append(one)
    if "no_reward" not in seen and earned_nothing(History(metrics)):
        now = [*now, _advice(RULES["no_reward"], "no program earned a reward at any step", metrics, config)]
        seen["no_reward"] = now[-1:]
    holding = {one.code for one in now}
    return _arranged(
        replace(times[-1], step=times[0].step, holds=code in holding)
        for code, times in seen.items()
        if code in holding or len(times) >= PASSING
    )


def _found(metrics: Metrics, config: Mapping[str, Any] | None) -> list[Advice]:
    """Return the findings of all rules at the last step, in the order of rules."""
    history = History(metrics, config or {})
    said = [(rule, rule.finds(history)) for rule in RULES.values()]
    return [_advice(rule, message, metrics, config) for rule, message in said if message]


def _advice(rule: AdviceRule, message: str, metrics: Metrics, config: Mapping[str, Any] | None) -> Advice:
    history = History(metrics, config or {})
    remedy, step = rule.remedy.format(**history.words()), int(history.now("step") or 0)
    return Advice(rule.code, rule.severity, message, rule.reason, remedy, step, rule.claim, rule.figure)


def _arranged(found: Iterable[Advice]) -> list[Advice]:
    """Sort findings: causes first, then those that still hold, then errors; put symptoms under their cause."""
    order = sorted(found, key=lambda one: (not one.is_cause, not one.holds, one.severity != "error", one.step))
    explained: set[str] = set()
    arranged: list[Advice] = []
    for one in order:
        mine = tuple(other for other in order if other.code in RULES[one.code].explains - explained)
        explained |= {other.code for other in mine}
        arranged.append(replace(one, symptoms=mine))
    return [one for one in arranged if one.code not in explained]
