"""Intervals: as wide as they should be, and right as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from microcoder.stats import bootstrap, crossed_means, middle, wilson


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    draw = np.random.default_rng(1)
    covered = []
    for _ in range(300):
        truth = draw.uniform(0.2, 0.8)
        low, high = bootstrap(draw.binomial(4, truth, size=60) / 4)  # 60 problems, 4 tries each
        covered.append(low <= truth <= high)
    assert 0.91 < np.mean(covered) < 0.98


def test_the_interval_shrinks_with_the_root_of_the_number_of_problems():
    draw = np.random.default_rng(2)
    widths = [float(np.subtract(*bootstrap(draw.binomial(1, 0.5, size=n).astype(float))[::-1])) for n in (100, 1600)]
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.15)
    assert widths[0] == pytest.approx(2 * 1.96 * 0.05, rel=0.15)


def test_the_interval_is_the_same_each_time():
    scores = np.linspace(0, 1, 9)
    assert bootstrap(scores) == bootstrap(scores)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([], (None, None)), ([0.5], (None, None)), ([0.25] * 7, (0.25, 0.25)), ([0.0, 0.0], (0.0, 0.0)), ([1, 1], (1, 1))],
)
def test_too_few_problems_have_no_interval_and_equal_ones_no_width(scores, expected):
    assert bootstrap(np.array(scores, float)) == expected


def test_the_interval_of_a_hundred_problems_half_solved_is_two_deviations_wide():
    low, high = bootstrap(np.repeat([0.0, 1.0], 50))
    assert (low, high) == pytest.approx((0.5 - 1.96 * 0.05, 0.5 + 1.96 * 0.05), abs=0.011)  # means are whole hundredths
    assert bootstrap(np.array([0.5] * 9)) == (0.5, 0.5)
    assert bootstrap(np.array([1.0])) == (None, None)


def test_drawing_counts_gives_the_interval_of_drawing_problems():
    values = np.random.default_rng(1).integers(0, 5, 83) / 4
    picks = np.random.default_rng(2).integers(len(values), size=(40_000, len(values)))
    drawn = np.quantile(values[picks].mean(1), (0.025, 0.975))
    assert bootstrap(values, 40_000) == pytest.approx(tuple(drawn), abs=1.5 / (4 * 83))  # means are whole 332nds


def test_of_skewed_scores_too_it_covers_the_truth():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        low, high = bootstrap(rng.binomial(4, rng.beta(0.5, 0.75, 60)) / 4)
        held += low <= 0.4 <= high
    assert 0.91 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    ("count", "of", "interval"),
    [(0, 10, (0.0, 0.2775)), (5, 10, (0.2366, 0.7634)), (10, 10, (0.7225, 1.0)), (1, 29, (0.0061, 0.1718))],
)
def test_wilson_intervals_are_the_published_ones(count, of, interval):
    assert wilson(count, of) == pytest.approx(interval, abs=5e-5)
    assert wilson(0, 0) is None


def test_means_over_runs_and_problems_vary_as_much_as_both():
    draw = np.random.default_rng(3)
    runs, problems = draw.normal(0, 1, (3, 1)), draw.normal(0, 1, (1, 50))
    (both,) = crossed_means([runs + problems], 20_000)
    assert both.mean() == pytest.approx((runs + problems).mean(), abs=0.02)
    of_runs, of_problems = runs.var(ddof=1) / 3, problems.var() / 50  # few runs count with all of their variance
    assert both.var() == pytest.approx(of_runs + of_problems, rel=0.05)


def test_one_run_varies_over_problems_alone():
    scores = np.random.default_rng(4).normal(0, 1, 60)
    (found,) = crossed_means([scores[None]], 20_000)
    assert middle(found) == pytest.approx(bootstrap(scores, 20_000), abs=0.01)


def test_groups_are_drawn_at_the_same_problems():
    problems = np.random.default_rng(5).normal(0, 10, (1, 40))
    before, after = crossed_means([problems, problems + np.array([[1.0], [1.0]])])
    assert after - before == pytest.approx(np.ones(2000))
