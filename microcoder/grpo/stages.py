"""Stages of a run: temperature and response limit are fixed within a stage, and change from one to the next.

The paper found staged changes helpful and continuous ramps harmful, so ramps are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

SETTINGS = ("temperature", "max_response_tokens")


@dataclass(frozen=True)
class Stage:
    """Temperature and response limit from `first_step` on. Steps count from 1; a step is one rollout batch."""

    first_step: int
    temperature: float
    max_response_tokens: int

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"the stage from step {self.first_step} has temperature {self.temperature}; it must be above 0, "
                "since a policy that always answers the same cannot be trained: try 1.0"
            )
        if self.max_response_tokens < 1:
            raise ValueError(
                f"the stage from step {self.first_step} has max_response_tokens {self.max_response_tokens}; "
                "it must be 1 or more, such as 4096"
            )


def plan(temperature: float, max_response_tokens: int, stages: Sequence[Mapping[str, Any]] = ()) -> tuple[Stage, ...]:
    """Return the stages: the base settings from step 1, then each entry from its `at_step` on. Others carry over."""
    planned = [Stage(1, temperature, max_response_tokens)]
    for number, entry in enumerate(stages, 1):
        planned.append(_next(planned[-1], entry, f"stage {number}"))
    return tuple(planned)


def stage_at(stages: Sequence[Stage], step: int) -> Stage:
    """Return the stage of a step."""
    if step < stages[0].first_step:
        raise ValueError(f"there is no step {step}; the first one is {stages[0].first_step}")
    return next(stage for stage in reversed(stages) if stage.first_step <= step)


def segments(stages: Sequence[Stage], steps: int) -> list[tuple[Stage, int, int]]:
    """Return (stage, first step, last step) of each stage that a run of `steps` steps reaches."""
    lasts = [stage.first_step - 1 for stage in stages[1:]] + [steps]
    return [(s, s.first_step, min(last, steps)) for s, last in zip(stages, lasts, strict=True) if s.first_step <= steps]


def _next(before: Stage, entry: Mapping[str, Any], where: str) -> Stage:
    unknown = sorted(set(entry) - {"at_step", *SETTINGS})
    if unknown:
        raise ValueError(f"{where} has {unknown[0]!r}; a stage has at_step and one or both of {', '.join(SETTINGS)}")
    at_step = entry.get("at_step")
    if not isinstance(at_step, int) or at_step <= before.first_step:
        raise ValueError(
            f"{where} has at_step {at_step!r}; the stage before it starts at step {before.first_step}, so write a "
            f"whole number from {before.first_step + 1} on"
        )
    stage = replace(before, first_step=at_step, **{name: entry[name] for name in SETTINGS if name in entry})
    if stage == replace(before, first_step=at_step):
        raise ValueError(
            f"{where} at step {at_step} changes nothing: temperature is {before.temperature} and max_response_tokens "
            f"{before.max_response_tokens} before it already; give one of them another value or remove the stage"
        )
    return stage
