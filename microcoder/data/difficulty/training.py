"""Labelled problems -> a predictor.

1. Of the two forms, the one is taken that gives the labels of left-out training problems the higher probability.
2. Each problem is learned twice, with and without its reference solution, because many problems come without one, and
   trees that have always seen a solution take its absence for a very short one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..record import Record
from .features import NAMES, features
from .predictor import FORMS, Predictor, PredictorError, probabilities, table
from .solution import solution_features
from .trees import Trees, grow

ORDER = ("easy", "medium", "hard")
FEWEST = 10  # problems of each label
MOST = 10_000  # problems to learn from
TRIED = 2_000  # of these, to choose the form by, which takes six trainings
FOLDS = 3


def labelled(records: Iterable[Record], order: Sequence[str] = ORDER) -> Iterator[tuple[Record, str]]:
    """Those whose difficulty is a label of `order`, with it."""
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
    """`order` is from easy to hard; `names`: the features to look at. Of each record only these numbers are kept."""
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
    """The same of rows of features. `spread` is a `map` that may work on several cores."""
    found = [label.lower() for label in labels]
    counts = Counter(found)
    present = [label for label in order if label in counts]
    if set(counts) - set(order) or len(present) < 2 or min(counts.values()) < FEWEST:
        raise PredictorError(
            f"a predictor learns from the labels {', '.join(order)}: at least two of them, {FEWEST} problems of each. "
            f"Found: {', '.join(f'{label!r} {count} times' for label, count in counts.items()) or 'none at all'}"
        )
    x, y = np.array(rows), np.array([present.index(label) for label in found])  # (n, features), (n,)
    some = drawn(y, MOST, seed)
    x, y = x[some], y[some]
    learner = partial(fit, names=names, count=trees, seed=seed)
    forms = FORMS[: len(present) - 1]  # with two labels there is one boundary, and nothing to choose
    some = drawn(y, TRIED, seed)
    form = likeliest(forms, learner, x[some], y[some], seed, spread) if len(forms) > 1 else forms[0]
    return Predictor(tuple(present), tuple(names), form, learner(form, x=x, y=y, spread=spread), len(y))


def drawn(y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Which problems to take where there are more than `most`: each label's share of them, but FEWEST at least."""
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
    """`count` trees for each label, or for each boundary. x (n, features) of these names, y (n,) numbers of labels"""
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
    """The form that gives the labels of problems that were left out the higher probability."""
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
    """The log-probability of the labels of the problems that are left out (n,), all together."""
    form, out = job
    chances = probabilities(form, learner(form, x=x[~out], y=y[~out]), x[out])  # (left out, labels)
    return float(np.log(np.maximum(chances[np.arange(len(chances)), y[out]], 1e-9)).sum())
