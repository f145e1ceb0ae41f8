"""How often verdicts are wrong: benchmarks/study/rates.py on made-up runs, spread.py on fewer reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
from study_runs import arm_of, finished, lines

from benchmarks.study import draws as rates
from benchmarks.study.spread import row
from microcoder.study.plan import ClaimTest
from microcoder.study.results import StudyRuns


@pytest.mark.parametrize(
    ("expect", "by", "false"),
    [
        ("more", 0.02, {"supported"}),
        ("less", 0.02, {"supported"}),
        ("more", 0.0, {"supported", "contradicted"}),
        ("same", 0.02, {"contradicted"}),
    ],
)
def test_where_there_is_no_effect_it_is_known_which_verdicts_are_false(expect, by, false):
    verdicts = ("supported", "contradicted", "undecided")
    assert {each for each in verdicts if rates.is_false(each, ClaimTest("last(reward)", expect, by))} == false


def test_rates_are_small_for_a_null_and_large_for_a_planted_effect():
    def run(seed, gain):
        metrics = lines(gain, seed, gain, steps=20)
        return finished([line | {"accuracy": line.get("reward", 0.0) + gain * line["step"] / 20} for line in metrics])

    arms = {"real": 0.3, "shuffled": 0.0}
    made = {name: arm_of(name, [run(seed, gain) for seed in range(20)]) for name, gain in arms.items()}
    found = rates.rates(StudyRuns("study_rates", "", 0, "", made, ()), size=5, draws=40)
    assert len(found["null"]) > 20 and np.mean([row["alone"] for row in found["null"]]) < 0.15
    gained = {row["statistic"]: row["together"] for row in found["planted"]}
    assert gained["last(test_accuracy)"] == gained["peak(accuracy)"] == 1.0
    assert found["false_among_findings"] < 0.1
    assert "last(exact_mistaken) - last(robust_mistaken)" in found["not_recorded"]
    assert not rates.is_gain("fall(accuracy)") and not rates.is_gain("last(diversity)")


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_in_whole_reports_few_verdicts_are_false_and_more_are_found_than_by_a_tests_own_spread(sigma):
    found = row(seeds=3, sigma=sigma, reports=60)
    assert found["null_blended"] < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 60)
    assert found["found_blended"] > 2 * found["found_own"]
