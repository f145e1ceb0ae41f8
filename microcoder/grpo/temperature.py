"""T(D): choose the training temperature by what a response can teach there, among temperatures that are diverse enough.

The model answers the same problems at each temperature of a grid; nothing is trained. Where we differ from the paper,
which says that D decides but gives no rule:

1. **Signal.** GRPO learns from groups in which some responses are right and others wrong: p (1 - p) for a problem that
   is solved with probability p, estimated without bias from c right ones of n as c (n - c) / (n (n - 1)).
2. **Something to gain.** A problem counts by the share of wrong responses, 1 - p, at the temperature with the highest
   accuracy. What the model can do already has a signal at high temperatures too, but only since nonsense is wrong.
3. **Smoothed.** A few hundred responses scatter, so the signal is averaged with that of the neighbours (1 : 2 : 1).
4. **The middle of all temperatures with at least SIGNAL of the largest signal is chosen**, of two the warmer. The curve
   is flat at its top, where noise moves the largest value about; the middle is farthest from where signal is lost.
5. **D is the constraint**: at least DIVERSE of D at the model's own likelihood, which is T = 1, so that responses which
   are compared are not nearly the same.

Only samples are needed: no pilot runs, no value of D that training settles on. Where nothing can be learnt at any
temperature, the nearest to 1 is taken, and the reason says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

OWN = 1.0  # the temperature of the model's own likelihood
SIGNAL = 0.8  # of the largest one
DIVERSE = 0.5  # of D at OWN


@dataclass(frozen=True)
class TemperatureProbe:
    """Measurements at one temperature. `right` and `judged` count responses, a pair of numbers for each problem."""

    temperature: float
    diversity: float
    right: tuple[int, ...]
    judged: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"a probe has temperature {self.temperature}; training needs one above 0: remove it")
        if not 0 <= self.diversity <= 1:  # NaN too
            raise ValueError(
                f"the probe at T = {self.temperature:g} has diversity {self.diversity}; it must lie between 0 and 1: "
                "sample at least 2 responses to each problem"
            )
        object.__setattr__(self, "right", tuple(self.right))  # JSON makes them lists
        object.__setattr__(self, "judged", tuple(self.judged))

    @property
    def accuracy(self) -> float:
        return sum(self.right) / max(sum(self.judged), 1)


class Choice(NamedTuple):
    temperature: float
    reason: str  # a sentence with the numbers, for the log
    signals: tuple[float, ...]  # of the probes, by temperature, smoothed


def signals(probes: Sequence[TemperatureProbe]) -> NDArray[np.float64]:
    """Return the signal of each probe, not smoothed: (probes,)."""
    right = np.array([probe.right for probe in probes], float)  # (probes, problems)
    judged = np.array([probe.judged for probe in probes], float)
    wrong = judged - right
    pairs = np.maximum(judged * (judged - 1), 1)
    found = right * wrong / pairs
    best = int(np.argmax([probe.accuracy for probe in probes]))
    # at the best temperature itself both factors are of the same responses, so three of them are drawn: one right,
    # two wrong
    triples = np.maximum(pairs[best] * (judged[best] - 2), 1)
    same = right[best] * wrong[best] * (wrong[best] - 1) / triples
    found *= wrong[best] / np.maximum(judged[best], 1)
    found[best] = np.where(judged[best] > 2, same, found[best])  # of two responses the product: too small, but not 0
    return found.mean(1)


def smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average each value with its neighbours, 1 : 2 : 1; at an end, 2 : 1."""
    weights = np.convolve(np.ones(len(values)), (1, 2, 1))[1:-1]
    return np.convolve(values, (1, 2, 1))[1:-1] / weights


def choose_temperature(probes: Sequence[TemperatureProbe]) -> Choice:
    """Choose the middle of the temperatures with a large signal, of those that are diverse enough."""
    if not probes:
        raise ValueError("there are no probes to choose from; sample the probe problems at one temperature or more")
    probes = sorted(probes, key=lambda probe: probe.temperature)
    found = smooth(signals(probes))  # (probes,)
    own = min(probes, key=lambda probe: (abs(probe.temperature - OWN), probe.temperature))
    least = DIVERSE * own.diversity
    allowed = [n for n, probe in enumerate(probes) if probe.diversity >= least]
    top = max(found[n] for n in allowed)
    values = tuple(map(float, found))
    if top <= 0:
        reason = (
            f"no temperature gives a signal, so T = {own.temperature:g} is taken; the problems may be too hard or easy"
        )
        return Choice(own.temperature, reason, values)
    good = [n for n in allowed if found[n] >= SIGNAL * top]
    one = probes[min(good, key=lambda n: (abs(2 * n - good[0] - good[-1]), -n))]
    low, high = (probes[n].temperature for n in (good[0], good[-1]))
    reason = (
        f"T = {one.temperature:g} is the middle of {low:g} to {high:g}, where the signal is at least {SIGNAL:.0%} of "
        f"the largest, {top:.4f}; D is {one.diversity:.3f}, and at least {least:.3f} was needed, {DIVERSE:.0%} of D at "
        f"T = {own.temperature:g}"
    )
    colder = [n for n in range(len(probes)) if n not in allowed and found[n] > top]
    if colder:
        denied = probes[colder[-1]]
        reason += f"; T = {denied.temperature:g} has more signal, but its D is {denied.diversity:.3f}"
    return Choice(one.temperature, reason, values)
