"""Labelled problems -> a predictor.

1. Of the two forms, the one is taken that gives the labels of left-out training problems the higher probability.
2. Each problem is learned twice, with and without its reference solution, because many problems come without one, and
   trees that have always seen a solution take its absence for a very short one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from ..record import Record
from .features import NAMES, features
from .predictor import FORMS, Predictor, PredictorError, probabilities, table
from .solution import solution_features
from .trees import Trees, grow

ORDER = ("easy", "medium", "hard")
FEWEST = 10  # problems of each label
MOST = 10_000  # problems to learn from
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
    rows, found = [], []
    for record, label in zip(records, labels, strict=True):
        rows.append(table([features(record)], names)[0])
        found.append(label.lower())
    counts = Counter(found)
    present = [label for label in order if label in counts]
    if set(counts) - set(order) or len(present) < 2 or min(counts.values()) < FEWEST:
        raise PredictorError(
            f"a predictor learns from the labels {', '.join(order)}: at least two of them, {FEWEST} problems of each. "
            f"Found: {', '.join(f'{label!r} {count} times' for label, count in counts.items()) or 'none at all'}"
        )
    x, y = np.array(rows), np.array([present.index(label) for label in found])  # (n, features), (n,)
    if len(y) > MOST:
        kept = np.random.default_rng(seed).permutation(len(y))[:MOST]
        x, y = x[kept], y[kept]
    learn = {form: partial(fit, form, names, trees, seed) for form in FORMS}
    forms = FORMS[: len(present) - 1]  # with two labels there is one boundary, and nothing to choose
    form = max(forms, key=lambda form: likelihood(form, learn[form], x, y, seed))
    return Predictor(tuple(present), tuple(names), form, learn[form](x, y), len(y))


def fit(form: str, names: Sequence[str], count: int, seed: int, x: np.ndarray, y: np.ndarray) -> tuple[Trees, ...]:
    """`count` trees for each label, or for each boundary. x (n, features) of these names, y (n,) numbers of labels"""
    hidden = x.copy()
    for name, value in solution_features(None).items():
        if name in names:
            hidden[:, names.index(name)] = value
    x, y = np.concatenate([x, hidden]), np.concatenate([y, y])
    if form == "classes":
        return grow(x, y, count, seed)
    return sum((grow(x, (y > boundary).astype(int), count, seed) for boundary in range(y.max())), ())


def likelihood(form: str, learn: Callable[..., Sequence[Trees]], x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The mean log-probability of the labels of problems that were left out."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]  # label after label, so that each fold has its share of each
    fold = np.empty(len(y), dtype=int)
    fold[order] = np.arange(len(y)) % FOLDS
    total = 0.0
    for n in range(FOLDS):
        chances = probabilities(form, learn(x[fold != n], y[fold != n]), x[fold == n])  # (held out, labels)
        total += float(np.log(np.maximum(chances[np.arange(len(chances)), y[fold == n]], 1e-9)).sum())
    return total / len(y)
