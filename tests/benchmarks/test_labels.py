"""benchmarks/data/labels.py: the quality of predicted labels."""

from __future__ import annotations

import pytest

from benchmarks.data.labels import evaluate, majority


def test_an_evaluation_counts_as_by_hand():
    truth, guess = ["easy"] * 4 + ["hard"] * 6, ["easy"] * 3 + ["hard"] * 5 + ["easy"] * 2
    found = evaluate(truth, guess, ("easy", "hard"))
    assert found.confusion.tolist() == [[3, 1], [2, 4]]
    assert found.accuracy == 0.7
    assert found.macro_f1 == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert found.interval == pytest.approx((0.3968, 0.8922), abs=1e-4)  # Wilson's, of 7 in 10
    assert majority(truth) == "hard"
