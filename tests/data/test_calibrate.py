"""Calibrate and select: from scores to chances of success, and from these to what stays."""

from __future__ import annotations

import dataclasses
import json
import math
import random

import numpy as np
import pytest

from microcoder.data.difficulty.calibrate import CalibrationError, SuccessCurve, calibrate, calibrated, falling
from microcoder.data.difficulty.measure import pass_rates, points
from microcoder.data.difficulty.select import BY_SUCCESS, Bands, SelectError, plan, select, selected
from microcoder.data.record import Dropped, Record
from microcoder.judge import Judge
from microcoder.schema import Problem, Test
from microcoder.starter import problems as starter

# calibrate


def test_adjacent_violators_are_pooled_as_by_hand():
    data = np.array([[0.1, 4, 4], [0.2, 1, 4], [0.3, 3, 4], [0.9, 0, 4]], dtype=float)
    scores, chances = falling(data)
    assert scores == pytest.approx([0.1, 0.25, 0.9])  # 0.2 and 0.3 break the order, and become one
    assert chances == pytest.approx([1, 0.5, 0])


def test_the_curve_is_that_of_scikit_learn_at_the_blocks():
    from sklearn.isotonic import IsotonicRegression

    draw = np.random.default_rng(1)
    for _ in range(20):
        score, tried = draw.integers(12, size=40) / 12, draw.integers(1, 9, size=40)
        passed = draw.binomial(tried, 1 - 0.7 * score)
        scores, chances = falling(np.stack([score, passed, tried], axis=1).astype(float))
        theirs = IsotonicRegression(increasing=False).fit(score, passed / tried, sample_weight=tried)
        assert sorted({round(c, 9) for c in theirs.predict(score)}) == pytest.approx(sorted(chances), abs=1e-8)
        assert (np.diff(scores) > 0).all()
        assert (np.diff(chances) < 0).all()


def made_points(count, seed=0):
    """Success is 1 - score."""
    draw = random.Random(seed)
    scores = [draw.random() for _ in range(count)]
    return [(score, sum(draw.random() > score for _ in range(8)), 8) for score in scores]


def test_the_boundaries_are_where_success_falls_to_them_and_their_intervals_hold_the_truth():
    made = calibrate(made_points(400), "m", successes=(0.8, 0.4), resamples=200)
    for boundary, truth in zip(made.boundaries, (0.2, 0.6), strict=True):
        assert boundary.low <= truth <= boundary.high
        assert boundary.low <= boundary.score <= boundary.high
        assert boundary.high - boundary.low < 0.25
        assert made.success(boundary.score) == pytest.approx(boundary.success)
    assert (made.problems, made.attempts, made.model) == (400, 3200, "m")
    wide = calibrate(made_points(40), "m", successes=(0.4,), resamples=200).boundaries[0]
    assert wide.high - wide.low > made.boundaries[1].high - made.boundaries[1].low


def test_a_model_that_solves_all_or_nothing_has_its_boundaries_at_the_ends():
    nothing = calibrate([(0.1, 0, 4), (0.9, 0, 4)], "m", resamples=10)
    assert [boundary.score for boundary in nothing.boundaries] == [0, 0]
    everything = calibrate([(0.1, 4, 4), (0.9, 4, 4)], "m", resamples=10)
    assert [boundary.score for boundary in everything.boundaries] == [1, 1]


def test_a_calibration_comes_back_from_its_file(tmp_path):
    made = calibrate(made_points(60), "nano", resamples=20)
    made.save(tmp_path / "c.json")
    assert SuccessCurve.load(tmp_path / "c.json") == made
    for text in ("{}", "[]", "no", json.dumps({**dataclasses.asdict(made), "scores": [1, 0]})):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(CalibrationError, match="make it again"):
            SuccessCurve.load(tmp_path / "c.json")
    with pytest.raises(CalibrationError, match="No such file"):
        SuccessCurve.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "data", [[], [(0.5, 1, 2)], [(0.5, 0, 0)] * 9, [(0.1, 3, 2), (0.2, 1, 2)], [(math.nan, 1, 2)] * 3]
)
def test_points_that_cannot_be_calibrated_on_are_refused(data):
    with pytest.raises(CalibrationError):
        calibrate(data, "m")


def test_the_step_notes_the_chance_of_success():
    made = calibrate([(0.0, 4, 4), (1.0, 0, 4)], "m", resamples=5)
    one = Record(Problem("p"), {"difficulty": 0.25})
    assert calibrated(one, calibration=made).notes["success"] == 0.75
    with pytest.raises(Dropped) as dropped:
        calibrated(Record(Problem("p")), calibration=made)
    assert dropped.value.reason == "unscored"


# select

PAIRS = [(f"p{n}", (n % 100) / 100) for n in range(1000)]  # 340 easy, 330 medium, 330 hard


def shares(pairs, mask, bands=BY_SUCCESS):
    kept = [bands.of(hardness) for (_, hardness), stays in zip(pairs, mask, strict=True) if stays]
    return {band: kept.count(band) for band in bands.names}


def test_a_floor_drops_exactly_what_is_easier():
    mask = select(PAIRS, floor=0.4)
    assert [hardness for (_, hardness), stays in zip(PAIRS, mask, strict=True) if stays] == [
        hardness for _, hardness in PAIRS if hardness >= 0.4
    ]


def test_a_target_is_met_exactly_with_as_many_problems_as_it_allows():
    mask = select(PAIRS, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert shares(PAIRS, mask, Bands()) == {"easy": 165, "medium": 330, "hard": 330}
    mask = select(PAIRS, target={"easy": 0.2, "medium": 0.4, "hard": 0.4}, size=100)
    assert shares(PAIRS, mask, Bands()) == {"easy": 20, "medium": 40, "hard": 40}


def test_bands_that_a_target_leaves_out_divide_the_rest():
    mask = select(PAIRS, target={"hard": 0.5}, size=200)
    assert shares(PAIRS, mask, Bands()) == {"easy": 51, "medium": 49, "hard": 100}
    mask = select(PAIRS, target={"hard": 1.0})
    assert shares(PAIRS, mask, Bands()) == {"easy": 0, "medium": 0, "hard": 330}


def test_a_band_without_problems_is_made_up_for_by_the_others():
    easier = [pair for pair in PAIRS if pair[1] < 2 / 3]
    mask = select(easier, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert shares(easier, mask, Bands()) == {"easy": 165, "medium": 330, "hard": 0}


def test_neither_the_order_nor_the_parts_matter_but_the_seed_does():
    options = {"target": {"easy": 0.1, "hard": 0.2}, "size": 300}
    kept = {ident for (ident, _), stays in zip(PAIRS, select(PAIRS, **options), strict=True) if stays}
    shuffled = random.Random(1).sample(PAIRS, len(PAIRS))
    made = plan(shuffled, **options)
    assert {ident for ident, hardness in reversed(PAIRS) if made.refuse(ident, hardness) is None} == kept
    assert {i for (i, _), stays in zip(PAIRS, select(PAIRS, **options, seed=1), strict=True) if stays} != kept
    smaller = {i for (i, _), s in zip(PAIRS, select(PAIRS, **{**options, "size": 100}), strict=True) if s}
    assert smaller < kept
    assert (len(smaller), len(kept)) == (100, 300)


def test_what_is_dropped_says_why_in_terms_of_what_is_known():
    made = plan(PAIRS, floor=0.2, target={"easy": 0.1}, bands=BY_SUCCESS)
    scored = Record(Problem("p0"), {"difficulty": 0.05})
    measured = Record(Problem("p0"), {"difficulty": 0.5, "success": 0.92})
    for one, detail in ((scored, "hardness 0.05 < 0.2"), (measured, "success 0.92 > 0.8")):
        with pytest.raises(Dropped) as dropped:
            selected(one, plan=made)
        assert (dropped.value.reason, dropped.value.detail) == ("too_easy", detail)
    made = plan(PAIRS, target={"easy": 0.0, "hard": 0.1})
    with pytest.raises(Dropped, match="over_target: easy: 0 of 340 stay"):
        selected(scored, plan=made)
    with pytest.raises(Dropped, match="unscored"):
        selected(Record(Problem("p")), plan=made)
    with pytest.raises(Dropped, match="unscored"):
        selected(Record(Problem("p"), {"difficulty": math.nan}), plan=made)


def test_the_report_adds_up_before_and_after():
    made = plan(PAIRS, floor=0.1, target={"easy": 0.2, "medium": 0.4, "hard": 0.4})
    assert made.before == {"easy": 340, "medium": 330, "hard": 330}
    assert made.floored == {"easy": 240, "medium": 330, "hard": 330}
    assert made.after == {"easy": 165, "medium": 330, "hard": 330}
    assert made.table().splitlines()[1].split() == ["easy", "340", "34.0%", "100", "75", "165", "20.0%"]


@pytest.mark.parametrize("target", [{"esay": 0.2}, {"easy": 0.8, "hard": 0.5}, {"easy": -0.1}, {"easy": 0.0}])
def test_a_target_that_cannot_be_meant_says_what_to_write(target):
    with pytest.raises(SelectError, match=r"such as \{easy = 0.2, hard = 0.5\}"):
        plan(PAIRS, target=target)


def test_a_target_of_bands_that_are_all_empty_is_refused():
    with pytest.raises(SelectError, match="none of the problems"):
        plan([("a", 0.1)], target={"hard": 1.0})


# measure


@pytest.mark.usefixtures("one_thread")
def test_pass_rates_of_nano_go_through_rollout_and_judge_and_can_be_calibrated_on():
    found = [Record(problem, {"difficulty": 0.1 * n}) for n, problem in enumerate(starter("train", 2))]
    hopeless = Record(Problem("hopeless", tests=[Test("", "never said")], statement="Say it."), {"difficulty": 0.9})
    empty = Record(Problem("empty"), {"difficulty": 0.5})
    endless = Record(Problem("endless", tests=[Test("", "1")], statement="word " * 2000), {"difficulty": 0.5})
    records = [*found, hopeless, empty, endless]
    with Judge(workers=1, queue=1000) as judge:
        rates = list(pass_rates(iter(records), "nano", 4, judge=judge, limit=64))
        beyond = list(pass_rates(iter(found[:1]), "nano", 1, judge=judge, limit=100_000))
    assert [rate.id for rate in rates] == [one.problem.id for one in records]
    assert [rate.attempts for rate in rates] == [4, 4, 4, 0, 0]
    assert sum(rate.successes for rate in rates[:2]) > 0
    assert rates[2].successes == 0
    assert [rate.attempts for rate in beyond] == [1]  # a limit beyond the model's window is cut to what is left of it
    made = calibrate(points(records, rates), "nano", resamples=20)
    assert (made.problems, made.attempts) == (3, 12)
