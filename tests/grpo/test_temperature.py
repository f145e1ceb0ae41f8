"""T(D): the plateau of D, the choice of a temperature, and the watch over D during training."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.grpo import PlateauWatch, TemperatureProbe, WatchState, choose_temperature, plateau, steady, viable

quick = settings(deadline=None)


def decay(level, fall, tau, steps=40, noise=0.0, seed=0):
    scatter = noise * np.random.default_rng(seed).standard_normal(steps)
    return (level + fall * np.exp(-np.arange(steps) / tau) + scatter).tolist()


@quick
@given(st.floats(0.05, 0.6), st.floats(0.05, 0.35), st.floats(0.03, 1.0), st.integers(12, 80))
def test_the_plateau_of_a_clean_decay_is_found(level, fall, tau, steps):
    # tau up to the length of the series: at least the first 63 % of the fall have been seen
    found = plateau(decay(level, fall, max(1.0, tau * (steps - 1)), steps))
    assert found == pytest.approx(level, abs=0.03 * fall)


@quick
@given(st.floats(0.1, 0.6), st.floats(0.1, 0.35), st.integers(2, 10), st.integers(0, 1000))
def test_the_plateau_of_a_noisy_decay_is_found(level, fall, tau, seed):
    assert plateau(decay(level, fall, tau, noise=0.01, seed=seed)) == pytest.approx(level, abs=0.02)


def test_an_outlier_moves_the_plateau_no_further_than_it_moves_a_mean():
    series = decay(0.4, 0.3, 8)
    series[25] -= 0.2
    assert plateau(series) == pytest.approx(0.4, abs=0.2 / 40 * 3)


@quick
@given(st.floats(0, 1), st.floats(-0.02, -0.001), st.integers(6, 40))
def test_a_straight_fall_is_followed_for_less_than_its_own_length(start, slope, steps):
    fall = -slope * (steps - 1)
    found = plateau([start + slope * i for i in range(steps)])
    assert max(0.0, start - 1.7 * fall) - 1e-9 <= found <= max(0.0, start - fall)


@pytest.mark.parametrize("series", [[0.3] * 20, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.5, 0.3], [0.3], [0.5, 0.3]])
def test_without_a_fall_to_follow_the_last_third_decides(series):
    assert plateau(series) == pytest.approx(np.mean(series[-max(1, len(series) // 3) :]))


def test_a_plateau_lies_between_0_and_1():
    assert plateau([0.5 - 0.05 * i for i in range(10)]) == 0
    assert plateau([1.5] * 3) == 1


def test_a_step_without_a_value_is_passed_over():
    series = decay(0.4, 0.3, 8)
    holes = [math.nan if step in (0, 7, 20, 39) else value for step, value in enumerate(series)]
    assert plateau(holes) == pytest.approx(plateau(series), abs=0.005)
    with pytest.raises(ValueError, match="at least 2 responses"):
        plateau([math.nan])


def test_steady_is_a_series_that_settles_on_the_target_however_far_it_fell():
    assert steady(decay(0.4, 0.5, 6), 0.4)
    assert steady(decay(0.39, 0.1, 6), 0.4)  # within the tolerance
    assert not steady(decay(0.3, 0.1, 6), 0.4)
    # the last value still lies above the target, but the series is on its way below
    falling = decay(0.3, 0.4, 15, steps=20)
    assert falling[-1] > 0.4 and not steady(falling, 0.4)


LOW, MIDDLE, HIGH = (
    TemperatureProbe(0.6, 0.35, 0.40),
    TemperatureProbe(0.9, 0.50, 0.38),
    TemperatureProbe(1.2, 0.65, 0.30),
)


def test_the_lowest_temperature_with_enough_diversity_is_chosen():
    choice = choose_temperature([HIGH, LOW, MIDDLE], 0.4)
    assert (choice.temperature, choice.rule) == (0.9, "diversity")
    assert choice.reason == (
        "T = 0.9 is the lowest temperature that keeps D above D* = 0.400: at T = 0.6 D is 0.350; at T = 0.9 D is 0.500"
    )


def test_a_pilot_that_settles_below_the_target_rules_its_temperature_out():
    falls = TemperatureProbe(0.9, 0.50, 0.38, pilot=(0.2,) * 20)
    holds = TemperatureProbe(1.2, 0.65, 0.30, pilot=(0.45,) * 20)
    choice = choose_temperature([LOW, falls, holds], 0.4)
    assert choice.temperature == 1.2
    assert choice.reason.endswith(
        "at T = 0.9 the pilot settles on 0.200; at T = 1.2 D is 0.650, and the pilot settles on 0.450"
    )


def test_where_no_temperature_has_enough_diversity_the_most_diverse_is_chosen_and_the_reason_says_so():
    choice = choose_temperature([LOW, MIDDLE, HIGH], 0.65)  # 0.65 does not lie above 0.65
    assert (choice.temperature, choice.rule) == (1.2, "nearest")
    assert "no temperature keeps D above D* = 0.650" in choice.reason
    assert choice.reason.endswith("D at T = 1.2 is the nearest to it")


def test_of_equally_diverse_temperatures_the_lower_one_is_chosen():
    assert (
        choose_temperature([TemperatureProbe(1.2, 0.1, 0.5), TemperatureProbe(0.6, 0.1, 0.5)], 0.9).temperature == 0.6
    )


def test_without_diversity_or_a_solved_problem_the_lowest_temperature_is_chosen():
    choice = choose_temperature([TemperatureProbe(1.2, 0.3, 0.0), TemperatureProbe(0.6, 0.1, 0.0)], 0.9)
    assert choice.temperature == 0.6
    assert choice.reason.endswith("nothing was solved at any: T = 0.6 is the lowest")


def test_a_temperature_at_which_the_model_writes_nonsense_is_not_chosen_for_its_diversity():
    small = [
        TemperatureProbe(0.2, 0.30, 0.045),
        TemperatureProbe(0.6, 0.55, 0.030),
        TemperatureProbe(1.0, 0.90, 0.006),
        TemperatureProbe(1.2, 0.97, 0.001),
    ]
    assert [probe.temperature for probe in viable(small)] == [0.2, 0.6]
    assert choose_temperature(small, 0.5).temperature == 0.6
    choice = choose_temperature(small, 0.8)  # only nonsense is as diverse as that
    assert (choice.temperature, choice.rule) == (0.6, "nearest")
    assert "at T = 1 accuracy is 0.006, under half of the best" in choice.reason


def test_where_nothing_is_solved_every_temperature_may_be_chosen():
    assert len(viable([TemperatureProbe(0.2, 0.3, 0.0), TemperatureProbe(1.0, 0.9, 0.0)])) == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: choose_temperature([], 0.4), "no probes"),
        (lambda: TemperatureProbe(0.0, 0.5, 0.5), "temperature 0.0; training needs one above 0"),
        (lambda: TemperatureProbe(0.6, math.nan, 0.5), "T = 0.6 has diversity nan.*at least 2 responses"),
        (lambda: TemperatureProbe(0.6, 0.5, 40), "accuracy 40"),
        (lambda: PlateauWatch(0.4, 5, 20, 0.2, 1.8), "window is 5 steps.*6 or more"),
        (lambda: PlateauWatch(0.4, 20, 20, 0.0, 1.8), "increment is 0.0.*such as 0.2"),
    ],
)
def test_what_cannot_be_is_refused_with_directions(make, words):
    with pytest.raises(ValueError, match=words):
        make()


WATCH = PlateauWatch(target=0.4, window=12, cooldown=30, increment=0.2, highest=1.8)


def watched(series, temperature=1.2, state=None, watch=WATCH, first_step=1):
    """(the last state, every decision) of a run that goes on at the same temperature whatever is asked for."""
    state, decisions = state or WatchState(), []
    for step, diversity in enumerate(series, first_step):
        state, decision = watch.update(state, step, diversity, temperature)
        decisions += [decision] if decision else []
    return state, decisions


def test_a_fall_to_the_target_asks_for_nothing():
    assert watched(decay(0.4, 0.5, 15, steps=200))[1] == []


def test_a_run_that_has_settled_on_the_target_asks_for_nothing_in_spite_of_its_noise():
    patient = replace(WATCH, window=30)
    assert watched(decay(0.4, 0.0, 1, steps=1000, noise=0.01), watch=patient)[1] == []


def test_a_plateau_below_the_target_asks_for_the_next_temperature_with_its_numbers():
    decision, *_ = watched([0.3] * 12)[1]
    assert (decision.step, decision.temperature, decision.target) == (12, 1.4, 0.4)
    assert decision.plateau == pytest.approx(0.3)
    assert decision.reason == (
        "step 12: D is 0.300 and, from the last 12 steps, settles on 0.300, below D* = 0.400: temperature 1.2 -> 1.4"
    )


def test_it_asks_before_the_target_is_passed():
    series = decay(0.2, 0.6, 15, steps=60)
    decision, *_ = watched(series)[1]
    assert series[decision.step - 1] > 0.4 > decision.plateau


def test_it_asks_at_most_once_per_cool_down():
    assert [d.step for d in watched([0.3] * 100)[1]] == [12, 42, 72]


def test_nothing_is_asked_before_a_window_is_full_nor_at_the_highest_temperature():
    assert watched([0.3] * 11)[1] == []
    assert watched([math.nan] * 50)[1] == []
    assert watched([0.3] * 50, temperature=1.8)[1] == []
    assert watched([0.3] * 12, temperature=1.7)[1][0].temperature == 1.8


def test_a_new_temperature_begins_a_new_window():
    state, _ = watched([0.3] * 12)
    state, decisions = watched([0.3] * 11, 1.4, state, first_step=100)
    assert decisions == [] and state.series == (0.3,) * 11
    assert watched([0.3], 1.4, state, first_step=111)[1][0].temperature == 1.6


@quick
@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=60), st.data())
def test_a_watch_that_was_written_to_json_goes_on_exactly(series, data):
    cut = data.draw(st.integers(0, len(series)))
    whole, decisions = watched(series)
    half, before = watched(series[:cut])
    read = WatchState(**json.loads(json.dumps(asdict(half))))
    assert read == half
    state, after = watched(series[cut:], state=read, first_step=cut + 1)
    assert (state, before + after) == (whole, decisions)
