"""The metrics of a run so far, as the rules look at them. A metric that was not recorded gives nothing to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any


@dataclass(frozen=True)
class History:
    metrics: Sequence[dict[str, Any]]

    def now(self, name: str) -> float | None:
        """The value at the last step."""
        values = self._values(name, self.metrics[-1:])
        return values[0] if values else None

    def last(self, name: str, count: int, least: int | None = None) -> list[float]:
        """The last so many values; none at all before there are so many, or `least`."""
        values = self._values(name, self.metrics)
        return values[-count:] if len(values) >= (least or count) else []

    def ends(self, name: str, count: int = 5) -> tuple[float, float] | None:
        """The means of the first and of the last so many values, once the two do not overlap."""
        values = self._values(name, self.metrics)
        return (mean(values[:count]), mean(values[-count:])) if len(values) >= 2 * count else None

    def broken(self, name: str) -> bool:
        """Whether the last step names this metric and its value is no finite number: null, as a file has it, or NaN."""
        return bool(self.metrics) and name in self.metrics[-1] and self.now(name) is None

    def settings(self) -> dict[str, str]:
        """Values for a remedy, worked out from those in use; dots where these are not known."""
        limit, temperature, rate = map(self.now, ("max_response_tokens", "temperature", "learning_rate"))
        waited = self.now("judging_s")
        return {
            "longer": f"{2 * limit:.0f}" if limit else "...",
            "warmer": f"{temperature + 0.2:.2g}" if temperature else "...",
            "cooler": f"{temperature - min(0.2, temperature / 2):.2g}" if temperature else "...",
            "patient": f"{2 * waited:.2g}" if waited else "...",
            "slower": f"{rate / 5:.2g}" if rate else "...",
        }

    @staticmethod
    def _values(name: str, metrics: Sequence[dict[str, Any]]) -> list[float]:
        values = [line.get(name) for line in metrics]
        return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
