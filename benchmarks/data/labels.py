"""Quality of predicted labels: confusion table, accuracy with its interval, macro-F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microcoder.stats import wilson


@dataclass(frozen=True)
class Evaluation:
    labels: tuple[str, ...]
    confusion: np.ndarray  # (labels, labels) how often: rows are the truth, columns what was predicted

    @property
    def problems(self) -> int:
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion)) / self.problems

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95%."""
        return wilson(int(np.trace(self.confusion)), self.problems) or (0.0, 1.0)

    @property
    def macro_f1(self) -> float:
        """The mean over labels of the harmonic mean of precision and recall; 0 for a label that is never hit."""
        hits = np.diag(self.confusion)
        both = self.confusion.sum(axis=0) + self.confusion.sum(axis=1)
        return float(np.mean(2 * hits / np.maximum(both, 1)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "problems": self.problems,
            "accuracy": round(self.accuracy, 4),
            "interval": [round(end, 4) for end in self.interval],
            "macro_f1": round(self.macro_f1, 4),
            "labels": list(self.labels),
            "confusion": self.confusion.tolist(),
        }


def evaluate(truth: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> Evaluation:
    if not truth:
        raise ValueError("there are no labels to compare with")
    counts = Counter(zip(truth, predicted, strict=True))
    return Evaluation(tuple(labels), np.array([[counts[row, column] for column in labels] for row in labels]))


def majority(labels: Sequence[str]) -> str:
    """The most frequent label; of equals, the first."""
    return Counter(labels).most_common(1)[0][0]
