"""predict without an endpoint: difficulty from `features` by boosted trees, which `training.py` makes.

The score is the expected label: 0 if a problem is certainly of the first one (easy), 1 if of the last (hard). There are
two forms: `classes`, a sum of trees for each label and a softmax over them; `cumulative`, a sum for each boundary
("harder than easy"), which knows that the labels have an order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...runs.disk import write_whole
from ..record import DataError, Record
from .features import NAMES, Features, features
from .trees import Trees

FORMS = ("cumulative", "classes")
VERSION = 1


class PredictorError(DataError):
    """A predictor that cannot be trained or read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Prediction:
    score: float  # 0 easy ... 1 hard
    probabilities: dict[str, float]  # by label

    @property
    def label(self) -> str:
        return max(self.probabilities, key=self.probabilities.__getitem__)


@dataclass(frozen=True)
class Predictor:
    labels: tuple[str, ...]  # from easy to hard
    names: tuple[str, ...]  # of the features that it looks at
    form: str
    trees: tuple[Trees, ...]
    problems: int  # that it has learned from

    def predict(self, record: Record) -> Prediction:
        return self.predict_features([features(record)])[0]

    def predict_features(self, found: Sequence[Features]) -> list[Prediction]:
        chances = probabilities(self.form, self.trees, table(found, self.names))
        scores = chances @ np.linspace(0, 1, len(self.labels))
        return [
            Prediction(float(score), dict(zip(self.labels, map(float, row), strict=True)))
            for score, row in zip(scores, chances, strict=True)
        ]

    def save(self, path: str | Path) -> None:
        data = {"version": VERSION, **vars(self), "trees": [trees.to_dict() for trees in self.trees]}
        write_whole(Path(path), json.dumps(data).encode())

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        try:
            data = json.loads(Path(path).read_bytes())
            if data["version"] != VERSION or data["form"] not in FORMS:
                raise ValueError("another version made it")
            labels, names = tuple(map(str, data["labels"])), tuple(map(str, data["names"]))
            if unknown := set(names) - set(NAMES):
                raise ValueError(f"it looks at {', '.join(sorted(unknown)[:3])}, which is not known here")
            trees = tuple(Trees.from_dict(item, len(names)) for item in data["trees"])
            if len(labels) < 2 or len(trees) != len(labels) - (data["form"] == "cumulative"):
                raise ValueError("its labels and its trees do not fit")
            return cls(labels, names, data["form"], trees, int(data["problems"]))
        except OSError as error:
            raise PredictorError(f"cannot read the predictor {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise PredictorError(f"{path} is no predictor that can be used ({error}); train it again") from None


def predict(record: Record, *, predictor: Predictor) -> Record:
    """The step: notes["predicted"], and notes["difficulty"], which the rubric may replace."""
    score = round(predictor.predict(record).score, 4)
    record.notes |= {"predicted": score, "difficulty": score, "difficulty_by": "predictor"}
    record.problem.difficulty_score = score
    return record


def table(found: Sequence[Features], names: Sequence[str]) -> np.ndarray:
    return np.array([[row[name] for name in names] for row in found], dtype=np.float64).reshape(len(found), len(names))


def probabilities(form: str, trees: Sequence[Trees], x: np.ndarray) -> np.ndarray:
    """(n, features) -> (n, labels), each row of sum 1."""
    sums = np.stack([one(x) for one in trees], axis=1)  # (n, boundaries or labels)
    if form == "classes":
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)
    # each boundary is learned alone, so a harder one may come out likelier: it is taken down to the one before
    above = np.minimum.accumulate(1 / (1 + np.exp(-sums)), axis=1)
    ends = np.ones((len(x), 1))
    return -np.diff(np.hstack([ends, above, 0 * ends]), axis=1)
