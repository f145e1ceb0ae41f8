"""Boosted trees as plain arrays: grown by scikit-learn, read by numpy, kept as JSON.

scikit-learn's own files are pickles (joblib), and a stranger's pickle can run anything. JSON holds numbers only, needs
no scikit-learn to predict with, and outlives its versions. What is read is checked: every walk comes to an end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..record import package

SETTINGS: dict[str, Any] = {  # deeper trees, or twice as many, gained nothing in cross-validation on LeetCode's labels
    "learning_rate": 0.05,
    "max_depth": 3,
    "min_samples_leaf": 10,
    "subsample": 0.7,
    "max_features": 0.2,
}


@dataclass(frozen=True)
class Trees:
    """The sum of many trees' values. A node is a row of the arrays; a leaf is its own left and right."""

    start: float
    roots: np.ndarray  # (trees,) node numbers
    feature: np.ndarray  # (nodes,)
    threshold: np.ndarray  # (nodes,) at most this: left
    left: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,)
    value: np.ndarray  # (nodes,) of leaves, the learning rate in it

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(n, features) -> (n,), on the scale of log-odds."""
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
        """ValueError unless every walk from a root ends in a leaf: children come after their parents."""
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
    """`count` trees for each class; of two classes, for the second alone. x (n, features), y (n,) numbers of classes"""
    ensemble = package("sklearn.ensemble")
    model = ensemble.GradientBoostingClassifier(n_estimators=count, **SETTINGS, random_state=seed).fit(x, y)
    prior = np.bincount(y) / len(y)  # (classes,) what boosting starts from
    starts = np.log(prior) if len(prior) > 2 else np.log(prior[1:] / prior[:1])
    return tuple(_flat(model.estimators_[:, n], float(start)) for n, start in enumerate(starts))


def _flat(grown: Any, start: float) -> Trees:
    """scikit-learn's trees one after the other."""
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
