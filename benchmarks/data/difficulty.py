"""Difficulty: can it be predicted without an endpoint? On the labels of LeetCodeDataset, older problems to newer ones.

    python -m benchmarks.data difficulty --leetcode leetcode-train.jsonl.gz --json difficulty.json

Sorted by question_id (which rises with time), the older 80% are learned from, and the form of the model is chosen among
them by cross-validation; the newer 20% are predicted once. Beside it: the majority class, and the same trees on the
lengths of the statement alone. The file is the data set's own; none of it is part of this repository.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.data.labels import Evaluation, evaluate, majority
from microcoder.data.difficulty.features import NAMES, Features, features, solution_features
from microcoder.data.difficulty.predictor import ORDER, Predictor, labelled, train
from microcoder.data.record import Record
from microcoder.data.sources import collect

LENGTH = ("statement_words", "statement_lines", "samples_characters")
WITHOUT = solution_features(None)
REPEATS, RESAMPLES = 10, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leetcode", metavar="FILE", required=True)
    parser.add_argument("--older", type=float, default=0.8, help="share to learn from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    found = [record for record in collect("leetcode", args.leetcode) if isinstance(record, Record)]
    pairs = sorted(labelled(found), key=lambda pair: pair[0].notes["question_id"])
    cut = int(args.older * len(pairs))
    old, new = pairs[:cut], pairs[cut:]
    last = old[-1][0].notes["question_id"]
    print(f"{len(old)} problems up to question {last} to learn from, {len(new)} newer ones to predict")
    truth = [label for _, label in new]

    started = time.monotonic()
    predictor = train(*zip(*old, strict=True), seed=args.seed)
    seconds = time.monotonic() - started
    length = train(*zip(*old, strict=True), names=LENGTH, seed=args.seed)
    started = time.monotonic()
    rows = [features(record) for record, _ in new]
    per_second = len(rows) / (time.monotonic() - started)
    guesses = {
        "majority class": [majority([label for _, label in old])] * len(new),
        "length only": labels(length, rows),
        "predictor": labels(predictor, rows),
        "predictor, solutions hidden": labels(predictor, [{**row, **WITHOUT} for row in rows]),
    }
    results = {name: evaluate(truth, guess, ORDER) for name, guess in guesses.items()}
    show(results)
    gains = {name: gain(truth, guesses["predictor"], guesses[name]) for name in ("majority class", "length only")}
    for name, (low, high) in gains.items():
        print(f"predictor - {name}: {low:+.3f} to {high:+.3f} accuracy (95%, paired bootstrap)")
    drops = importance(predictor, rows, truth, args.seed)
    print(f"\naccuracy lost when a feature is shuffled among the newer problems ({REPEATS} times), top 15:")
    for name, mean, spread in drops[:15]:
        print(f"  {name:28} {mean:+.4f} ± {spread:.4f}")
    print(f"\nform: {predictor.form}; trained in {seconds:.0f} s; {per_second:.0f} problems/s to read features of")
    if args.json:
        figures = {
            "train": len(old), "form": predictor.form, "train_s": round(seconds, 1),
            "results": {name: result.to_dict() for name, result in results.items()},
            "gains": gains, "importance": drops[:15],
        }  # fmt: skip
        Path(args.json).write_text(json.dumps(figures, indent=1))


def labels(predictor: Predictor, rows: Sequence[Features]) -> list[str]:
    return [prediction.label for prediction in predictor.predict_features(rows)]


def show(results: dict[str, Evaluation]) -> None:
    print(f"\n{'':28} {'accuracy':>8}  {'95%':13} {'macro-F1':>8}")
    for name, result in results.items():
        low, high = result.interval
        print(f"{name:28} {result.accuracy:8.3f}  {low:.3f}-{high:.3f}   {result.macro_f1:8.3f}")
    for name in ("predictor", "predictor, solutions hidden"):
        print(f"\n{name}: truth down, predicted across")
        print(" " * 8 + "".join(f"{label:>8}" for label in ORDER))
        for label, row in zip(ORDER, results[name].confusion, strict=True):
            print(f"{label:8}" + "".join(f"{count:8}" for count in row))
    print()


def gain(truth: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> tuple[float, float]:
    """The 95% interval of the difference in accuracy, by a bootstrap over problems."""
    hits = np.array([(a == t) - (b == t) for t, a, b in zip(truth, ours, theirs, strict=True)], dtype=float)
    draws = np.random.default_rng(0).integers(len(hits), size=(RESAMPLES, len(hits)))
    low, high = np.quantile(hits[draws].mean(axis=1), [0.025, 0.975])
    return round(float(low), 4), round(float(high), 4)


def importance(
    predictor: Predictor, rows: Sequence[Features], truth: Sequence[str], seed: int
) -> list[tuple[str, float, float]]:
    """(feature, mean loss of accuracy, its standard deviation) when the feature's values change places."""
    draw = np.random.default_rng(seed)
    before = evaluate(truth, labels(predictor, rows), ORDER).accuracy
    found = []
    for name in NAMES:
        losses = []
        for _ in range(REPEATS if len({row[name] for row in rows}) > 1 else 0):
            values = draw.permutation([row[name] for row in rows])
            shuffled = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
            losses.append(before - evaluate(truth, labels(predictor, shuffled), ORDER).accuracy)
        if losses:
            found.append((name, round(float(np.mean(losses)), 4), round(float(np.std(losses)), 4)))
    return sorted(found, key=lambda item: -item[1])
