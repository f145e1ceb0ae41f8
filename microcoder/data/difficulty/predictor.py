"""Predict difficulty without an endpoint: boosted trees on `features`, trained on problems with labels.

The score is the expected label: 0 if a problem certainly has the first label (easy), 1 if it has the last (hard). There
are two forms: `classes`, a sum of trees for each label and a softmax over them; `cumulative`, a sum for each boundary
("harder than easy"), which uses the order of the labels.

1. Training chooses the form that gives the labels of left-out training problems the higher probability.
2. Each problem is learned twice, with and without its reference solution. Many problems have none, and trees that have
   always seen a solution treat a missing one like a very short one.
3. Trees are grown by scikit-learn, evaluated by numpy and saved as JSON. scikit-learn's own files are pickles, and an
   untrusted pickle can run any code. JSON holds numbers only, and predicting needs no scikit-learn of any version. A
   file is checked when it is read: every path through a tree ends in a leaf.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...runs.disk import write_whole
from ..record import DataError, Record, package
from .features import NAMES, Features, features, solution_features

FORMS = ("cumulative", "classes")
VERSION = 1
ORDER = ("easy", "medium", "hard")
FEWEST = 10  # least problems of each label
MOST = 10_000  # most problems to learn from
TRIED = 2_000  # of these, for the choice of the form, which takes six trainings
FOLDS = 3
SETTINGS: dict[str, Any] = {  # deeper trees, or twice as many, gained nothing in cross-validation on LeetCode's labels
    "learning_rate": 0.05,
    "max_depth": 3,
    "min_samples_leaf": 10,
    "subsample": 0.7,
    "max_features": 0.2,
}


class PredictorError(DataError):
    """A predictor that cannot be trained or read; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A score and the probability of each label."""

    score: float  # 0 easy ... 1 hard
    probabilities: dict[str, float]  # by label

    @property
    def label(self) -> str:
        return max(self.probabilities, key=self.probabilities.__getitem__)


@dataclass(frozen=True)
class Predictor:
    """A trained predictor, which can be saved and loaded."""

    labels: tuple[str, ...]  # from easy to hard
    names: tuple[str, ...]  # of the features that it uses
    form: str
    trees: tuple[Trees, ...]
    problems: int  # number of problems it was trained on

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
            raise PredictorError(f"{path} is not a usable predictor ({error}); train it again") from None


def predict(record: Record, *, predictor: Predictor) -> Record:
    """Set the notes "predicted" and "difficulty" to the predicted score; the rubric may replace "difficulty"."""
    score = round(predictor.predict(record).score, 4)
    record.notes |= {"predicted": score, "difficulty": score, "difficulty_by": "predictor"}
    record.problem.difficulty_score = score
    return record


def table(found: Sequence[Features], names: Sequence[str]) -> np.ndarray:
    return np.array([[row[name] for name in names] for row in found], dtype=np.float64).reshape(len(found), len(names))


def probabilities(form: str, trees: Sequence[Trees], x: np.ndarray) -> np.ndarray:
    """Return the probabilities (n, labels) for features x (n, features); each row has sum 1."""
    sums = np.stack([one(x) for one in trees], axis=1)  # (n, boundaries or labels)
    if form == "classes":
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)
    # boundaries are learned separately, so a harder one may be likelier: it is lowered to the one before
    above = np.minimum.accumulate(1 / (1 + np.exp(-sums)), axis=1)
    ends = np.ones((len(x), 1))
    return -np.diff(np.hstack([ends, above, 0 * ends]), axis=1)


# --- training


def labelled(records: Iterable[Record], order: Sequence[str] = ORDER) -> Iterator[tuple[Record, str]]:
    """Yield the records whose difficulty is a label of `order`, with the label."""
    for record in records:
        label = str(record.problem.difficulty).lower()
        if label in order:
            yield record, label


def train(
    records: Iterable[Record],
    labels: Iterable[str],
    *,
    order: Sequence[str] = ORDER,
    names: Sequence[str] = NAMES,
    trees: int = 200,
    seed: int = 0,
) -> Predictor:
    """Train on records and their labels. `order` is from easy to hard; `names` are the features to use."""
    rows = [table([features(record)], names)[0] for record in records]
    return learn(rows, labels, order=order, names=names, trees=trees, seed=seed)


def learn(
    rows: Sequence[np.ndarray],
    labels: Iterable[str],
    *,
    order: Sequence[str] = ORDER,
    names: Sequence[str] = NAMES,
    trees: int = 200,
    seed: int = 0,
    spread: Callable[..., Iterable[Any]] = map,
) -> Predictor:
    """Train on rows of features and their labels. `spread` is a `map` that may work on several cores."""
    found = [label.lower() for label in labels]
    counts = Counter(found)
    if complaint := too_few(counts, order):
        raise PredictorError(complaint)
    present = [label for label in order if label in counts]
    x, y = np.array(rows), np.array([present.index(label) for label in found])  # (n, features), (n,)
    some = drawn(y, MOST, seed)
    x, y = x[some], y[some]
    learner = partial(fit, names=names, count=trees, seed=seed)
    forms = FORMS[: len(present) - 1]  # with two labels there is one boundary, and nothing to choose
    some = drawn(y, TRIED, seed)
    form = likeliest(forms, learner, x[some], y[some], seed, spread) if len(forms) > 1 else forms[0]
    return Predictor(tuple(present), tuple(names), form, learner(form, x=x, y=y, spread=spread), len(y))


def too_few(counts: Mapping[str, int], order: Sequence[str] = ORDER) -> str:
    """Return a complaint if there are too few problems of each label to learn from; "" if there are enough."""
    if len(counts) > 1 and not set(counts) - set(order) and min(counts.values()) >= FEWEST:
        return ""
    found = ", ".join(f"{label!r} {count} times" for label, count in counts.items()) or "none at all"
    return (
        f"a predictor learns from the labels {', '.join(order)}: at least two of them, {FEWEST} problems of each. "
        f"Found: {found}"
    )


def drawn(y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Draw indices of about `most` problems: each label in proportion, but at least FEWEST."""
    if len(y) <= most:
        return np.arange(len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    counts = np.bincount(y) * most // len(y)  # (labels,)
    return np.concatenate([order[y[order] == label][: max(FEWEST, count)] for label, count in enumerate(counts)])


def fit(
    form: str,
    names: Sequence[str],
    count: int,
    seed: int,
    x: np.ndarray,
    y: np.ndarray,
    spread: Callable[..., Iterable[Any]] = map,
) -> tuple[Trees, ...]:
    """Grow `count` trees for each label or boundary. x (n, features) of these names, y (n,) numbers of labels"""
    hidden = x.copy()
    for name, value in solution_features(None).items():
        if name in names:
            hidden[:, names.index(name)] = value
    x, y = np.concatenate([x, hidden]), np.concatenate([y, y])
    aims = [y] if form == "classes" else [(y > boundary).astype(int) for boundary in range(y.max())]
    return tuple(chain.from_iterable(spread(partial(grow, x, count=count, seed=seed), aims)))


def likeliest(
    forms: Sequence[str],
    learner: Callable[..., Sequence[Trees]],
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
    spread: Callable[..., Iterable[Any]],
) -> str:
    """Return the form that gives the labels of left-out problems the higher probability."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]  # label after label, so that each fold has its share of each
    fold = np.empty(len(y), dtype=int)
    fold[order] = np.arange(len(y)) % FOLDS
    jobs = [(form, fold == n) for form in forms for n in range(FOLDS)]
    found = list(spread(partial(_likelihood, learner, x, y), jobs))
    return max(forms, key=lambda form: sum(value for (one, _), value in zip(jobs, found, strict=True) if one == form))


def _likelihood(
    learner: Callable[..., Sequence[Trees]], x: np.ndarray, y: np.ndarray, job: tuple[str, np.ndarray]
) -> float:
    """Return the log-probability of all labels of the left-out problems."""
    form, out = job
    chances = probabilities(form, learner(form, x=x[~out], y=y[~out]), x[out])  # (left out, labels)
    return float(np.log(np.maximum(chances[np.arange(len(chances)), y[out]], 1e-9)).sum())


# --- trees


@dataclass(frozen=True)
class Trees:
    """A sum of boosted trees as arrays. A node is an index of the arrays; a leaf is its own left and right child."""

    start: float
    roots: np.ndarray  # (trees,) node numbers
    feature: np.ndarray  # (nodes,)
    threshold: np.ndarray  # (nodes,) at most this: left
    left: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,)
    value: np.ndarray  # (nodes,) of leaves, the learning rate in it

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the sum (n,) of all trees for x (n, features), as log-odds."""
        x = x.astype(np.float32)  # as scikit-learn does before it compares
        rows = np.arange(len(x))[:, None]
        node = np.broadcast_to(self.roots, (len(x), len(self.roots)))
        while True:
            follow = np.where(x[rows, self.feature[node]] <= self.threshold[node], self.left[node], self.right[node])
            if (follow == node).all():
                return self.start + self.value[node].sum(axis=1)
            node = follow

    def to_dict(self) -> dict[str, Any]:
        return {name: value if name == "start" else value.tolist() for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any], features: int) -> Trees:
        """Read trees. Raise ValueError unless every path ends in a leaf: children come after their parents."""
        whole = {name: np.array(data[name], dtype=np.int64) for name in ("roots", "feature", "left", "right")}
        parts = {name: np.array(data[name], dtype=np.float64) for name in ("threshold", "value")}
        trees = cls(float(data["start"]), **whole, **parts)
        nodes = np.arange(trees.value.size)
        leaf = (trees.left == nodes) & (trees.right == nodes)
        inner = (trees.left > nodes) & (trees.right > nodes)
        good = trees.roots.ndim == 1 and all(
            array.shape == nodes.shape for name, array in vars(trees).items() if name not in ("start", "roots")
        )
        for array, end in ((trees.left, len(nodes)), (trees.right, len(nodes)), (trees.roots, len(nodes))):
            good = good and bool(((0 <= array) & (array < end)).all())
        good = good and bool(((0 <= trees.feature) & (trees.feature < features) & (leaf | inner)).all())
        if not good or not np.isfinite([trees.start, *trees.value]).all():
            raise ValueError("its trees are damaged")
        return trees


def grow(x: np.ndarray, y: np.ndarray, count: int, seed: int) -> tuple[Trees, ...]:
    """Grow `count` trees for each class; of two classes, for the second alone. x (n, features), y (n,) class numbers"""
    ensemble = package("sklearn.ensemble")
    model = ensemble.GradientBoostingClassifier(n_estimators=count, **SETTINGS, random_state=seed).fit(x, y)
    prior = np.bincount(y) / len(y)  # (classes,) the start of boosting
    starts = np.log(prior) if len(prior) > 2 else np.log(prior[1:] / prior[:1])
    return tuple(_flat(model.estimators_[:, n], float(start)) for n, start in enumerate(starts))


def _flat(grown: Any, start: float) -> Trees:
    """Convert scikit-learn's trees to arrays, one after the other."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots, offset = [], 0
    for tree in (one.tree_ for one in grown):
        own, leaf = np.arange(tree.node_count), tree.children_left < 0
        parts["feature"].append(np.where(leaf, 0, tree.feature))
        parts["threshold"].append(np.where(leaf, 0.0, tree.threshold))
        parts["left"].append(offset + np.where(leaf, own, tree.children_left))
        parts["right"].append(offset + np.where(leaf, own, tree.children_right))
        parts["value"].append(np.where(leaf, SETTINGS["learning_rate"] * tree.value[:, 0, 0], 0.0))
        roots.append(offset)
        offset += tree.node_count
    return Trees(start, np.array(roots), **{name: np.concatenate(arrays) for name, arrays in parts.items()})
