"""Advantages within a group, and the shaping of overlong rewards."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.grpo import group_advantages, has_signal, overlong_penalty

steady = settings(deadline=None, max_examples=50)
nan = math.nan


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


@st.composite
def batches(draw):
    """(rewards, group, valid): rewards on a grid, so that a deviation is either 0 or large beside 1e-6."""
    group, problems = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    n = group * problems
    rewards = draw(st.lists(st.integers(-8, 8).map(lambda k: k / 8), min_size=n, max_size=n))
    valid = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return f64(rewards), group, torch.tensor(valid)


def test_one_right_and_one_wrong_response():
    # rewards 1 and 0: mean 1/2, deviations +-1/2, sample variance (1/4 + 1/4) / (2 - 1) = 1/2
    expected = 0.5 / (math.sqrt(0.5) + 1e-6)
    assert group_advantages(f64([1, 0]), 2).tolist() == pytest.approx([expected, -expected], rel=1e-15)
    assert group_advantages(f64([1, 0]), 2, std=False).tolist() == [0.5, -0.5]


def test_groups_do_not_see_each_other():
    # 3, 0, 0: mean 1, variance (4 + 1 + 1) / 2 = 3; the second group is the first one times 10
    root = math.sqrt(3)
    expected = [2 / (root + 1e-6), -1 / (root + 1e-6), -1 / (root + 1e-6)]
    tenfold = [20 / (10 * root + 1e-6), -10 / (10 * root + 1e-6), -10 / (10 * root + 1e-6)]
    assert group_advantages(f64([3, 0, 0, 30, 0, 0]), 3).tolist() == pytest.approx(expected + tenfold, rel=1e-14)


def test_a_response_without_a_reward_leaves_its_group():
    rewards, valid = f64([1, nan, 0, 1, 1, nan]), torch.tensor([True, False, True, True, True, False])
    advantages = group_advantages(rewards, 3, valid=valid)
    pair = group_advantages(f64([1, 0]), 2)
    assert advantages.tolist() == [pair[0], 0, pair[1], 0, 0, 0]  # of the second group, two equal rewards are left
    assert has_signal(rewards, 3, valid).tolist() == [True, False]


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, 1 / 3, 1e9])
def test_equal_rewards_give_exactly_zero(reward):
    rewards = torch.full((7,), reward)  # 7 * 0.1 / 7 is not 0.1 in float32
    assert group_advantages(rewards, 7).tolist() == [0.0] * 7
    assert group_advantages(rewards, 7, std=False).tolist() == [0.0] * 7
    assert has_signal(rewards, 7).tolist() == [False]


@pytest.mark.parametrize("valid", [[False, False], [True, False]])
def test_fewer_than_two_known_rewards_give_zero(valid):
    assert group_advantages(f64([1, 0]), 2, valid=torch.tensor(valid)).tolist() == [0, 0]
    assert has_signal(f64([1, 0]), 2, torch.tensor(valid)).tolist() == [False]


@steady
@given(batches(), st.booleans())
def test_advantages_of_a_group_sum_to_zero(batch, std):
    rewards, group, valid = batch
    sums = group_advantages(rewards, group, std=std, valid=valid).reshape(-1, group).sum(1)
    assert sums.abs().max() < 1e-12


@steady
@given(batches(), st.booleans(), st.integers(-100, 100))
def test_advantages_do_not_change_with_a_constant(batch, std, constant):
    rewards, group, valid = batch
    moved = group_advantages(rewards + constant, group, std=std, valid=valid)
    assert torch.allclose(moved, group_advantages(rewards, group, std=std, valid=valid), rtol=0, atol=1e-11)


@steady
@given(batches(), st.floats(0.5, 100))
def test_advantages_with_deviation_do_not_change_with_the_scale(batch, scale):
    rewards, group, valid = batch
    scaled = group_advantages(scale * rewards, group, valid=valid)
    # one of six that differs by 1/8 has a deviation of 0.051: 1e-6 beside it weighs 4e-5 at half the scale
    assert torch.allclose(scaled, group_advantages(rewards, group, valid=valid), rtol=1e-4, atol=1e-9)
    plain = scale * group_advantages(rewards, group, std=False, valid=valid)
    assert torch.allclose(group_advantages(scale * rewards, group, std=False, valid=valid), plain, rtol=0, atol=1e-12)


@steady
@given(batches(), st.booleans(), st.sampled_from([nan, math.inf, -math.inf, 1e300]))
def test_what_stands_in_an_invalid_row_is_not_looked_at(batch, std, rubbish):
    rewards, group, valid = batch
    soiled = torch.where(valid, rewards, torch.tensor(rubbish, dtype=torch.float64))
    clean = group_advantages(rewards, group, std=std, valid=valid)
    assert torch.equal(group_advantages(soiled, group, std=std, valid=valid), clean)
    assert clean[~valid].eq(0).all()
    assert torch.equal(has_signal(soiled, group, valid), has_signal(rewards, group, valid))


@steady
@given(batches())
def test_a_group_has_a_signal_exactly_when_an_advantage_is_not_zero(batch):
    rewards, group, valid = batch
    advantages = group_advantages(rewards, group, valid=valid).reshape(-1, group)
    assert torch.equal(has_signal(rewards, group, valid), advantages.ne(0).any(1))


@pytest.mark.parametrize(
    ("rewards", "group", "valid", "words"),
    [
        (torch.zeros(2, 2), 2, None, r"shape \(2, 2\).*flatten"),
        (torch.tensor([1, 0]), 2, None, r"int64.*\.float\(\)"),
        (torch.zeros(5), 2, None, "5 rewards cannot be divided into groups of 2"),
        (torch.zeros(4), 0, None, "groups of 0"),
        (torch.zeros(4), 2, torch.ones(3, dtype=torch.bool), r"shape \(3,\).*4 rewards"),
        (torch.zeros(4), 2, torch.ones(4), "float32.*one bool"),
        (torch.tensor([0.0, nan]), 2, None, "row 1 is nan.*valid"),
    ],
)
def test_what_cannot_be_grouped_is_refused_with_directions(rewards, group, valid, words):
    with pytest.raises(ValueError, match=words):
        group_advantages(rewards, group, valid=valid)
    with pytest.raises(ValueError, match=words):
        has_signal(rewards, group, valid)


def test_the_overlong_penalty_falls_in_a_straight_line_over_the_buffer():
    # limit 100, buffer 20: nothing up to 80, then 1/20 a token
    lengths = torch.tensor([0, 80, 81, 90, 99, 100, 150])
    assert overlong_penalty(lengths, 100, 20).tolist() == pytest.approx([0, 0, -0.05, -0.5, -0.95, -1, -1])


@steady
@given(st.integers(1, 200), st.data())
def test_the_overlong_penalty_lies_between_minus_one_and_zero_and_never_rises(limit, data):
    buffer = data.draw(st.integers(1, limit))
    penalties = overlong_penalty(torch.arange(limit + 5), limit, buffer)
    assert penalties.diff().le(0).all()
    assert penalties[: limit - buffer + 1].eq(0).all() and penalties[limit:].eq(-1).all()


@pytest.mark.parametrize("buffer", [0, -1, 101])
def test_a_buffer_that_is_no_part_of_the_limit_is_refused(buffer):
    with pytest.raises(ValueError, match=f"buffer is {buffer}.*such as 20"):
        overlong_penalty(torch.tensor([1]), 100, buffer)
