"""The history of a run's metrics, as rules read it, and the definition of a rule.

A metric that was not recorded has no values. A rule is a function that returns a sentence about what it found in the
history, or nothing, together with its texts. In a remedy {longer}, {warmer}, {cooler}, {milder}, {patient} and {slower}
stand for values computed from those in use, and RUN for the run. `claim` and `figure` are the paper's numbers.
`explains` names the rules that fire because this one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

Metric = str | Callable[[dict[str, Any]], Any]  # a name, or a function of a line


@dataclass(frozen=True)
class History:
    metrics: Sequence[dict[str, Any]]
    config: Mapping[str, Any] = field(default_factory=dict)  # the run's settings by section; empty: not known

    def now(self, name: Metric) -> float | None:
        """Return the value at the last step."""
        return next(_values(name, self.metrics[-1:]), None)

    def latest(self, name: Metric) -> float | None:
        """Return the newest value: evaluations are not made at every step."""
        return next(_values(name, reversed(self.metrics)), None)

    def first(self, name: Metric, count: int) -> list[float]:
        """Return the first `count` values; [] while there are fewer."""
        values = list(islice(_values(name, self.metrics), count))
        return values if len(values) == count else []

    def last(self, name: Metric, count: int, least: int | None = None) -> list[float]:
        """Return the last `count` values; [] while there are fewer than `least` (by default `count`)."""
        values = list(islice(_values(name, reversed(self.metrics)), count))
        return values[::-1] if len(values) >= (least or count) else []

    def all(self, name: Metric) -> list[float]:
        return list(_values(name, self.metrics))

    def ends(self, name: Metric, count: int = 5) -> tuple[float, float] | None:
        """Return the means of the first and of the last `count` values, once the two do not overlap."""
        last = self.last(name, 2 * count)
        return (mean(self.first(name, count)), mean(last[-count:])) if last else None

    def most(self, name: Metric, count: int = 5) -> float | None:
        """Return the largest mean of `count` values in a row."""
        values = self.all(name)
        return max((mean(values[n - count : n]) for n in range(count, len(values) + 1)), default=None)

    def held_out_fell(self, since: Callable[[Sequence[float]], float] = max) -> str | None:
        """Say what held-out accuracy was, at its best or else, if the newest evaluation's interval is below it."""
        tests = self.all("test_accuracy")
        if not tests or (self.latest("test_accuracy_high") or tests[-1]) >= since(tests):
            return None
        return f"held-out accuracy from {since(tests):.2f} to {tests[-1]:.2f}"

    def broken(self, name: str) -> bool:
        """Whether the last step records this metric as null or NaN."""
        return bool(self.metrics) and name in self.metrics[-1] and self.now(name) is None

    def setting(self, section: str, key: str) -> Any:
        """Return a setting of the run; None if it is not known."""
        return self.config.get(section, {}).get(key)

    def words(self) -> dict[str, str]:
        """Return the values for a remedy, computed from those in use; "..." if these are not known."""
        limit, temperature, rate = map(self.now, ("max_response_tokens", "temperature", "learning_rate"))
        waited, tested = self.now("judging_s"), self.setting("train", "eval_temperature")
        return {
            "longer": f"{2 * limit:.0f}" if limit else "...",
            "warmer": f"{temperature + 0.2:.2g}" if temperature else "...",
            "cooler": f"{temperature - min(0.2, temperature / 2):.2g}" if temperature else "...",
            "milder": f"{(temperature + tested) / 2:.2g}" if temperature and tested else "...",
            "patient": f"{2 * waited:.2g}" if waited else "...",
            "slower": f"{rate / 5:.2g}" if rate else "...",
        }


def mean(values: Sequence[float]) -> float:
    """Return the mean of some values. (The functions of `statistics` are slow, or fail if the sum overflows.)"""
    return sum(values) / len(values)


def unreadable(line: dict[str, Any]) -> float | None:
    """Return the share of a step's responses that hold no program, without truncated ones."""
    verdicts = line.get("verdicts")
    broken = _number(verdicts.get("compile_error", 0)) if isinstance(verdicts, dict) else None
    rows, silent, cut = (_number(line.get(name)) for name in ("rows", "no_code_share", "truncated_share"))
    if broken is None or not rows or silent is None or cut is None:
        return None
    return broken / rows + max(0.0, silent - cut)


def earned_nothing(history: History) -> bool:
    """Whether rewards are known, and no reward and no accuracy is above 0."""
    rewards = history.all("reward")
    return bool(rewards) and max([*rewards, *history.all("accuracy")]) <= 0


def accuracy_without_signal(history: History) -> float | None:
    """Return the mean accuracy of the last steps, if in nearly every group all rewards were equal."""
    shares, accuracies = history.last("no_signal_share", 3), history.last("accuracy", 3)
    return mean(accuracies) if accuracies and shares and min(shares) >= 0.95 else None


def at_temperature(temperature: float | None) -> str:
    return f" at temperature {temperature:g}" if temperature else ""


def _number(value: Any) -> float | None:
    """Return a value of a metric; None if it is missing or no finite number."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _values(name: Metric, lines: Iterable[dict[str, Any]]) -> Iterator[float]:
    """Yield the known values lazily: the rules must not read all of a long run at every step."""
    for line in lines:
        value = _number(line.get(name) if isinstance(name, str) else name(line))
        if value is not None:
            yield value


Severity = Literal["warning", "error"]
Finds = Callable[[History], str | None]


@dataclass(frozen=True)
class AdviceRule:
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
) -> Callable[[Finds], AdviceRule]:
    """Register a function as a rule; its name is the code. `explains` is a text of rule names."""
    names = frozenset(explains.split())
    return lambda finds: AdviceRule(finds.__name__, severity, reason, remedy, finds, claim, figure, names)
