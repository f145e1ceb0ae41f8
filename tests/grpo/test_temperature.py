"""T(D): the signal of a temperature, and the choice of one."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.testbed.shapes import BREAKS, GRID, PROBLEMS, best_of, steps_off
from microcoder.grpo import TemperatureProbe, choose_temperature
from microcoder.grpo.temperature import signals, smooth

N = 8


def probes(right, diversity=None, grid=GRID):
    """Probes with `right` (temperatures, problems) of N responses right."""
    diversity = np.linspace(0.4, 0.9, len(grid)) if diversity is None else diversity
    return [
        TemperatureProbe(float(t), float(d), row, (N,) * len(row))
        for t, d, row in zip(grid, diversity, np.asarray(right).tolist(), strict=True)
    ]


# ---- the signal


def test_the_signal_is_worked_out_by_hand():
    # problem 1: 4 and 2 of 8 right; problem 2: 8 and 4. The first temperature is the more accurate one
    first, second = signals(probes([[4, 8], [2, 4]], grid=[0.5, 1.0]))
    assert first == pytest.approx((4 * 4 * 3 / (8 * 7 * 6) + 0) / 2)
    assert second == pytest.approx((2 * 6 / (8 * 7) * 0.5 + 4 * 4 / (8 * 7) * 0) / 2)  # problem 2 has nothing to gain


def test_the_estimate_has_no_bias_at_the_most_accurate_temperature_either():
    rng = np.random.default_rng(0)
    p = np.array([[0.5, 0.8, 0.3], [0.3, 0.6, 0.1]])  # (temperatures, kinds of problems)
    right = rng.binomial(N, np.repeat(p, 20_000, axis=1))
    expected = (p * (1 - p) * (1 - p[0])).mean(1)
    assert signals(probes(right, grid=[0.5, 1.0])) == pytest.approx(expected, rel=0.02)


def test_with_two_responses_a_problem_the_most_accurate_temperature_has_a_signal_too():
    found = signals([TemperatureProbe(1.0, 0.5, (1, 1), (2, 2)), TemperatureProbe(0.5, 0.5, (0, 1), (2, 2))])
    assert found[0] > 0


def test_a_response_without_a_verdict_does_not_count():
    found = signals([TemperatureProbe(1.0, 0.5, (2, 0), (4, 0)), TemperatureProbe(0.5, 0.5, (1, 1), (4, 4))])
    assert found[0] == pytest.approx(2 * 2 * 1 / (4 * 3 * 2) / 2)
    assert np.isfinite(found).all()


def test_smoothing_keeps_what_is_flat_and_the_place_of_a_peak():
    assert smooth(np.full(5, 0.3)) == pytest.approx([0.3] * 5)
    assert smooth(np.array([0.0, 0.0, 4.0, 0.0, 0.0])).tolist() == [0, 1, 2, 1, 0]
    assert smooth(np.array([2.0])).tolist() == [2.0]


# ---- the choice


def test_the_middle_of_the_large_signals_is_chosen_with_the_numbers_and_of_two_the_warmer():
    right = [[0] * 4, [2] * 4, [2] * 4, [2] * 4, [2] * 4, [0] * 4]
    choice = choose_temperature(probes(right, grid=[0.4, 0.6, 0.8, 1.0, 1.2, 1.4]))
    assert choice.temperature == 1.0  # 0.6 and 1.2 stand beside temperatures at which nothing is right
    assert choice.reason == (
        "T = 1 is the middle of 0.8 to 1, where the signal is at least 80% of the largest, 0.1652; "
        "D is 0.700, and at least 0.350 was needed, 50% of D at T = 1"
    )
    assert len(choice.signals) == 6


def test_between_two_peaks_no_temperature_without_a_signal_is_chosen():
    choice = choose_temperature(probes([[4] * 4, [0] * 4, [0] * 4, [0] * 4, [4] * 4], grid=[0.2, 0.6, 1.0, 1.4, 1.8]))
    assert choice.signals[2] == 0 and choice.temperature == 1.8  # of two the warmer


def test_a_temperature_whose_responses_are_nearly_alike_is_not_chosen_whatever_its_signal():
    right = [[4] * 4, [4] * 4, [1] * 4, [1] * 4]
    given = probes(right, diversity=[0.1, 0.2, 0.5, 0.6], grid=[0.4, 0.6, 0.8, 1.0])
    choice = choose_temperature(given)
    assert choice.temperature == 0.8
    assert choice.reason.endswith("; T = 0.6 has more signal, but its D is 0.200")


def test_where_nothing_can_be_learnt_the_own_temperature_is_taken_and_the_reason_says_so():
    for count in (0, N):
        choice = choose_temperature(probes(np.full((3, 4), count), grid=[0.4, 0.9, 1.4]))
        assert choice.temperature == 0.9
        assert choice.reason.startswith("no temperature gives a signal, so T = 0.9 is taken")


def test_the_order_of_probes_does_not_matter_and_json_keeps_them():
    right = np.random.default_rng(1).binomial(N, 0.3, (len(GRID), 16))
    given = probes(right)
    assert choose_temperature(given[::-1]) == choose_temperature(given)
    assert [TemperatureProbe(**json.loads(json.dumps(asdict(probe)))) for probe in given] == given


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TemperatureProbe(0.0, 0.5, (1,), (8,)), r"temperature 0\.0.*above 0"),
        (lambda: TemperatureProbe(1.0, float("nan"), (1,), (8,)), "diversity nan.*at least 2 responses"),
        (lambda: choose_temperature([]), "no probes"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# ---- does it follow the best temperature? Nine shapes of accuracy over T


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("breaks", BREAKS)
def test_the_choice_follows_the_temperature_with_the_largest_signal(breaks, kind):
    rng = np.random.default_rng([len(breaks), len(kind)])
    assert GRID[best_of(rng, breaks, kind)] == {"robust": 1.6, "usual": 1.2, "frail": 0.8}[breaks]  # no constant is
    assert (steps_off(rng, breaks, kind, problems=64, draws=50) <= 1).mean() >= 0.96


def test_errors_of_nonsense_on_solved_problems_are_no_reason_to_go_hotter():
    """Easy problems fail at high temperatures, which makes groups with different rewards but teaches nothing."""
    accuracy = np.linspace(0.97, 0.5, len(GRID))[:, None]
    medium = np.interp(GRID, [0.2, 0.8, 1.8], [0.1, 0.3, 0.05])[:, None]
    p = np.hstack([np.repeat(accuracy, 48, 1), np.repeat(medium, 16, 1)])
    plain = (p * (1 - p)).mean(1)
    assert GRID[plain.argmax()] >= 1.4
    choice = choose_temperature(probes(np.random.default_rng(0).binomial(N, p)))
    assert choice.temperature <= 1.0
