"""The watch over D during training: it asks for a stage at a higher temperature when D is going to settle below D*.

A fall of D alone triggers nothing. The plateau is extrapolated from a window of steps at one temperature, and at most
one stage is asked for per cool-down. The state is a value: written to JSON and read back, the watch goes on exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from .plateau import FEWEST, plateau, steady


@dataclass(frozen=True)
class WatchState:
    """What the watch remembers. `WatchState(**json.loads(json.dumps(asdict(state))))` is the same state again."""

    temperature: float = 0.0  # of the values below; 0 before the first step
    series: tuple[float, ...] = ()  # D of the last steps at this temperature, at most a window of them
    asked_at: int | None = None  # the step of the last decision

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))  # JSON makes it a list


class Decision(NamedTuple):
    """A stage that is asked for: `temperature` from the step after `step` on."""

    step: int
    temperature: float
    plateau: float
    target: float
    reason: str  # a sentence with the numbers, for the log


@dataclass(frozen=True)
class PlateauWatch:
    target: float  # D*
    window: int  # steps that the plateau is extrapolated from; 30 are hardly ever misled by noise, 12 now and then
    cooldown: int  # steps from one decision to the next, at least
    increment: float  # of the temperature
    highest: float  # temperature that may be asked for

    def __post_init__(self) -> None:
        if self.window < FEWEST:
            raise ValueError(f"the window is {self.window} steps; a plateau needs {FEWEST} or more, such as 30")
        if not self.increment > 0:
            raise ValueError(f"the increment is {self.increment}; a stage upwards needs one above 0, such as 0.2")

    def update(
        self, state: WatchState, step: int, diversity: float, temperature: float
    ) -> tuple[WatchState, Decision | None]:
        """The state after one more step at `temperature`, and the stage it asks for, if any."""
        if temperature != state.temperature:  # D jumps with the temperature: what was seen before says nothing now
            state = replace(state, temperature=temperature, series=())
        if math.isfinite(diversity):
            state = replace(state, series=(*state.series, diversity)[-self.window :])
        cooling = state.asked_at is not None and step - state.asked_at < self.cooldown
        if len(state.series) < self.window or cooling or temperature >= self.highest:
            return state, None
        if steady(state.series, self.target):
            return state, None
        level = plateau(state.series)
        higher = min(round(temperature + self.increment, 6), self.highest)  # 0.1 + 0.2 is meant to be 0.3
        reason = (
            f"step {step}: D is {state.series[-1]:.3f} and, from the last {self.window} steps, settles on {level:.3f}, "
            f"below D* = {self.target:.3f}: temperature {temperature:g} -> {higher:g}"
        )
        return replace(state, asked_at=step), Decision(step, higher, level, self.target, reason)
