"""T(D): choose the training temperature by diversity D; estimate the plateau of D; watch D during training.

Where we differ from the paper, which gives no rule:

1. D* is the plateau that D settles on for this model and data, measured in a pilot run.
2. The temperature is the lowest one whose initial D lies above D* and whose pilot, if it had one, does not settle
   below it: the paper's failures are runs that begin below the value that others converge to.
3. A temperature whose accuracy is less than half of the best one is never chosen: a small model writes nonsense there,
   which is diverse but earns no rewards to learn from.
4. If no temperature fits, the most diverse of those left is chosen, which is nearest to D* from below. If nothing was
   solved at any temperature, the lowest is chosen. The reason says so.

The plateau is extrapolated. D falls in healthy runs too, fast at first and then slower, so D(t) = P + fall * exp(-t /
tau) is fitted and P is the plateau. tau is tried on a grid, P and fall follow by linear least squares. The longest tau
is the length of the series, so the extrapolated part is at most 0.6 of the fall that was fitted, even for a straight
line. The mean of the last third is used instead of P if there is no fall to extrapolate: for a series of fewer than 6
values, one that rises, and one in which the fit explains less than half of the variance (adjusted R2).

The watch requests a stage at a higher temperature when D is going to settle below D*. A fall of D alone triggers
nothing. The plateau is that of a window of steps at one temperature, and at most one stage is requested per cool-down.
The state is a plain value, so that a watch can be saved as JSON and resumed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST = 6
EXPLAINED = 0.5
# If D scatters by 0.01 from step to step, 20 steps give the plateau within 0.005 (flat) or 0.02 (still falling).
TOLERANCE = 0.02


def plateau(series: Sequence[float]) -> float:
    """Estimate the value in [0, 1] that a series of D settles on. NaN (a step without D) is skipped."""
    values = np.asarray(series, float)
    values = values[np.isfinite(values)]  # (n,)
    if not len(values):
        raise ValueError("there is no value of D to find a plateau of; D needs at least 2 responses to each problem")
    level = _decay(values) if len(values) >= FEWEST else None
    if level is None:
        level = float(values[-max(1, len(values) // 3) :].mean())
    return min(max(level, 0.0), 1.0)


def steady(series: Sequence[float], target: float) -> bool:
    """Whether the series settles at the target D* or above, within TOLERANCE.

    A large fall is allowed: at a high temperature D begins high. Only a D that settles below D* fails.
    """
    return plateau(series) >= target - TOLERANCE


def _decay(values: NDArray[np.float64]) -> float | None:
    """Fit an exponential decay and return its plateau P, or None if there is no clear decay."""
    n = len(values)
    taus = np.geomspace(1, n - 1, 48)
    basis = np.exp(-np.arange(n) / taus[:, None])  # (taus, n)
    centred = basis - basis.mean(1, keepdims=True)
    offsets = values - values.mean()  # (n,)
    falls = centred @ offsets / (centred**2).sum(1)  # (taus,)
    errors = ((offsets - falls[:, None] * centred) ** 2).sum(1)
    best = int(errors.argmin())
    left, scatter = errors[best] / (n - 3), offsets @ offsets / (n - 1)  # 3 parameters were fitted, and 1
    if falls[best] <= 0 or left >= (1 - EXPLAINED) * scatter:
        return None
    return float(values.mean() - falls[best] * basis[best].mean())


@dataclass(frozen=True)
class TemperatureProbe:
    """Measurements at one temperature before training."""

    temperature: float
    diversity: float
    accuracy: float
    pilot: tuple[float, ...] = ()  # D over the steps of a short training run at this temperature

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"a probe has temperature {self.temperature}; training needs one above 0: remove it")
        for name, value in (("diversity", self.diversity), ("accuracy", self.accuracy)):
            if not 0 <= value <= 1:  # NaN too
                raise ValueError(
                    f"the probe at T = {self.temperature:g} has {name} {value}; it must lie between 0 and 1: sample "
                    "at least 2 responses to each problem"
                )


VIABLE = 0.5  # of the best accuracy


def viable(probes: Sequence[TemperatureProbe]) -> list[TemperatureProbe]:
    """Return the probes with enough accuracy to learn from, by temperature; all probes if nothing was solved at any."""
    best = max((probe.accuracy for probe in probes), default=0.0)
    return sorted((p for p in probes if p.accuracy >= VIABLE * best), key=lambda p: p.temperature)


class Choice(NamedTuple):
    temperature: float
    rule: Literal["diversity", "nearest"]
    reason: str  # a sentence with the numbers, for the log


def choose_temperature(probes: Sequence[TemperatureProbe], target: float) -> Choice:
    """Choose the lowest viable temperature that keeps D above the target D*; else the most diverse viable one."""
    if not probes:
        raise ValueError("there are no probes to choose from; sample the probe problems at one temperature or more")
    refused = []
    able = viable(probes)
    for probe in sorted(probes, key=lambda p: p.temperature):
        if probe not in able:
            refused.append(f"at T = {probe.temperature:g} accuracy is {probe.accuracy:.3f}, under half of the best")
        elif probe.diversity <= target:
            refused.append(f"at T = {probe.temperature:g} D is {probe.diversity:.3f}")
        elif probe.pilot and not steady(probe.pilot, target):
            refused.append(f"at T = {probe.temperature:g} the pilot settles on {plateau(probe.pilot):.3f}")
        else:
            settles = f", and the pilot settles on {plateau(probe.pilot):.3f}" if probe.pilot else ""
            reason = (
                f"T = {probe.temperature:g} is the lowest temperature that keeps D above D* = {target:.3f}: "
                + "; ".join([*refused, f"at T = {probe.temperature:g} D is {probe.diversity:.3f}"])
                + settles
            )
            return Choice(probe.temperature, "diversity", reason)
    none = f"no temperature keeps D above D* = {target:.3f} ({'; '.join(refused)})"
    if not any(probe.accuracy for probe in probes):
        lowest = min(probe.temperature for probe in probes)
        return Choice(lowest, "nearest", f"{none}, and nothing was solved at any: T = {lowest:g} is the lowest")
    best = max(able, key=lambda p: (p.diversity, -p.temperature))
    return Choice(best.temperature, "nearest", f"{none}; D at T = {best.temperature:g} is the nearest to it")


@dataclass(frozen=True)
class WatchState:
    """State of the watch. `WatchState(**json.loads(json.dumps(asdict(state))))` restores it."""

    temperature: float = 0.0  # of the values below; 0 before the first step
    series: tuple[float, ...] = ()  # D of the last steps at this temperature, at most a window of them
    asked_at: int | None = None  # the step of the last decision

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))  # JSON makes it a list


class StageRequest(NamedTuple):
    """A requested stage: `temperature` from the step after `step` on."""

    step: int
    temperature: float
    plateau: float
    target: float
    reason: str  # a sentence with the numbers, for the log


@dataclass(frozen=True)
class PlateauWatch:
    target: float  # D*
    window: int  # steps that the plateau is extrapolated from; noise misleads 12 sometimes, 30 hardly ever
    cooldown: int  # least number of steps between two decisions
    increment: float  # of the temperature
    highest: float  # highest temperature that may be requested

    def __post_init__(self) -> None:
        if self.window < FEWEST:
            raise ValueError(f"the window is {self.window} steps; a plateau needs {FEWEST} or more, such as 30")
        if not self.increment > 0:
            raise ValueError(f"the increment is {self.increment}; a stage upwards needs one above 0, such as 0.2")

    def update(
        self, state: WatchState, step: int, diversity: float, temperature: float
    ) -> tuple[WatchState, StageRequest | None]:
        """Return the state after one more step at `temperature`, and the stage that it requests, if any."""
        if temperature != state.temperature:  # D jumps with the temperature, so earlier values do not count
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
        return replace(state, asked_at=step), StageRequest(step, higher, level, self.target, reason)
