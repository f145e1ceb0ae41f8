"""T(D): the training temperature, chosen by diversity.

Where we differ from the paper, which gives no rule:

1. D* is the plateau that D settles on for this model and data, measured in a pilot run.
2. The temperature is the lowest one whose initial D lies above D* and whose pilot, if it had one, does not settle
   below it: the paper's failures are runs that begin below the value that others converge to.
3. A temperature at which less than half as many programs are right as at the best one is no choice: a small model
   writes nonsense there, which is diverse, and earns no rewards to learn from.
4. If there is none, the one of those left that comes nearest to D* from below, which is the most diverse; where
   nothing was solved at any temperature, the lowest. The reason says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .plateau import plateau, steady


@dataclass(frozen=True)
class Probe:
    """What was measured at one temperature before training."""

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


def viable(probes: Sequence[Probe]) -> list[Probe]:
    """Those accurate enough to learn at, by temperature; all, where nothing was solved at any."""
    best = max((probe.accuracy for probe in probes), default=0.0)
    return sorted((p for p in probes if p.accuracy >= VIABLE * best), key=lambda p: p.temperature)


class Choice(NamedTuple):
    temperature: float
    rule: Literal["diversity", "nearest"]
    reason: str  # a sentence with the numbers, for the log


def choose_temperature(probes: Sequence[Probe], target: float) -> Choice:
    """The lowest viable temperature that keeps D above the target D*; failing that, the most diverse viable one."""
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
