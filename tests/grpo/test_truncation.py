"""The truncation mask: repetition, draws, and which responses lose their advantage."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.grpo import draws, ends_in_repetition, group_advantages, repeat_tokens, truncation_mask
from microcoder.schema import VERDICTS

steady = settings(deadline=None, max_examples=50)


@pytest.mark.parametrize(
    ("limit", "m"), [(8192, 128), (4096, 128), (4095, 127), (2048, 64), (512, 16), (256, 8), (100, 8), (1, 8)]
)
def test_the_repeated_stretch_shrinks_with_limits_below_4096(limit, m):
    assert repeat_tokens(limit) == m


@pytest.mark.parametrize(
    ("tokens", "literal", "periodic"),
    [  # m = 3: the last 6 tokens count
        ([1, 2, 3, 1, 2, 3], True, True),
        ([9, 9, 1, 2, 3, 1, 2, 3], True, True),
        ([1, 2, 1, 2, 1, 2], False, True),  # period 2; the halves are 1 2 1 and 2 1 2
        ([7, 7, 7, 7, 7, 7], True, True),
        ([7, 7, 7, 7, 7], False, False),  # fewer than 2m tokens
        ([1, 2, 3, 1, 2, 4], False, False),
        ([1, 2, 3, 4, 1, 2, 3, 4], False, False),  # period 4 is beyond m
        ([0, 2, 1, 2, 1, 2], False, False),  # the loop does not fill the last 6
        ([], False, False),
    ],
)
def test_repetition_in_the_last_2m_tokens(tokens, literal, periodic):
    assert ends_in_repetition(tokens, 3, "literal") is literal
    assert ends_in_repetition(tokens, 3, "periodic") is periodic


@steady
@given(st.lists(st.integers(0, 2), max_size=30), st.integers(1, 8))
def test_repetition_is_what_its_definition_says_and_literal_implies_periodic(tokens, m):
    long = len(tokens) >= 2 * m
    tail = tokens[-2 * m :]
    literal = long and tail[:m] == tail[m:]
    periodic = long and any(all(tail[i] == tail[i - p] for i in range(p, 2 * m)) for p in range(1, m + 1))
    assert ends_in_repetition(tokens, m, "literal") is literal
    assert ends_in_repetition(tokens, m, "periodic") is periodic
    assert periodic or not literal


@steady
@given(st.lists(st.integers(0, 9), max_size=5), st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(6, 9))
def test_a_loop_of_up_to_m_tokens_is_found_wherever_it_was_cut_off(start, loop, m):
    cycle = (loop * 2 * m)[: 2 * m]
    assert ends_in_repetition(start + cycle, m, "periodic")


def test_tokens_may_be_an_array_or_a_tensor():
    assert ends_in_repetition(np.array([5, 1, 2, 1, 2]), 2, "literal")
    assert ends_in_repetition(torch.tensor([5, 1, 2, 1, 2]), 2, "periodic")


def test_a_repetition_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="'exact'; it must be 'literal' or 'periodic'"):
        ends_in_repetition([1, 1], 1, "exact")
    with pytest.raises(ValueError, match=r"m is 0.*repeat_tokens"):
        ends_in_repetition([1, 1], 0, "literal")


def splitmix(*parts):
    """The same hash in plain integers."""
    state = 0
    for part in parts:
        state = ((state ^ part) + 0x9E3779B97F4A7C15) % 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        state ^= state >> 31
    return state


def test_draws_stay_what_they_are_so_that_old_runs_can_be_resumed():
    # splitmix64 seeded with 0 begins with e220a8397b1dcdaf: the mixer is the published one
    assert splitmix(0) == 0xE220A8397B1DCDAF
    expected = [(splitmix(42, 7, row) >> 11) / 2**53 for row in (0, 1, 2)]
    assert draws(42, 7, [0, 1, 2]).tolist() == expected
    assert expected == [0.33493855816005447, 0.2196836783904802, 0.24084474679184942]


@steady
@given(
    st.integers(-(2**63), 2**64 - 1), st.integers(0, 10**6), st.lists(st.integers(0, 10**6), max_size=20), st.randoms()
)
def test_draws_depend_on_seed_step_and_row_alone(seed, step, rows, random):
    alone = {row: draws(seed, step, [row])[0] for row in rows}
    random.shuffle(rows)
    assert draws(seed, step, rows).tolist() == [alone[row] for row in rows]
    assert all(0 <= draw < 1 for draw in alone.values())


def test_draws_are_uniform_and_differ_between_seeds_steps_and_rows():
    rows = range(512)
    table = np.stack([draws(seed, step, rows) for seed in (0, 1) for step in range(64)])  # (128, 512)
    assert len(np.unique(table)) == table.size
    counts, _ = np.histogram(table, bins=64, range=(0, 1))
    # 65,536 draws in 64 bins: chi-square of 63 degrees of freedom has mean 63 and deviation 11
    assert ((counts - 1024) ** 2 / 1024).sum() < 63 + 5 * 11
    correlation = np.corrcoef(table)[np.triu_indices(128, 1)]  # of any two steps; the deviation is 1 / sqrt(512)
    assert np.abs(correlation).max() < 6 / np.sqrt(512)


def mask_of(truncated, outcomes, repeated, rows=None, **settings):
    settings = {"mask": "conditional", "rho": 1.0, "mask_outcome": "incorrect", "seed": 0, "step": 1} | settings
    rows = list(range(len(outcomes))) if rows is None else rows
    return truncation_mask(truncated, outcomes, repeated, rows=rows, **settings)


def test_two_responses_that_were_cut_off_of_which_one_had_fallen_into_a_loop():
    assert mask_of([True, True], ["wrong_answer", "wrong_answer"], [False, True]).tolist() == [True, False]
    assert mask_of([True, True], ["wrong_answer"] * 2, [False, True], mask="all").tolist() == [True, True]
    assert mask_of([True, True], ["wrong_answer"] * 2, [False, True], mask="none").tolist() == [False, False]


@pytest.mark.parametrize(
    ("mask_outcome", "masked"),
    [
        ("incorrect", set(VERDICTS) - {"accepted", "internal_error"}),
        ("non_incorrect", {"accepted", "no_code"}),
        ("correct", {"accepted"}),
        ("any", set(VERDICTS)),
    ],
)
def test_mask_outcome_says_which_verdicts_are_masked(mask_outcome, masked):
    mask = mask_of([True] * len(VERDICTS), VERDICTS, [False] * len(VERDICTS), mask_outcome=mask_outcome)
    assert {verdict for verdict, hit in zip(VERDICTS, mask.tolist(), strict=True) if hit} == masked


@st.composite
def batches(draw):
    n = draw(st.integers(0, 12))
    flags = st.lists(st.booleans(), min_size=n, max_size=n)
    outcomes = draw(st.lists(st.sampled_from(VERDICTS), min_size=n, max_size=n))
    return draw(flags), outcomes, draw(flags)


outcome_kinds = st.sampled_from(["incorrect", "non_incorrect", "correct", "any"])


@steady
@given(batches(), outcome_kinds, st.floats(0, 1), st.integers(0, 9), st.integers(1, 9), st.randoms())
def test_a_response_is_masked_or_not_whatever_batch_it_comes_in(batch, mask_outcome, rho, seed, step, random):
    settings = {"mask_outcome": mask_outcome, "rho": rho, "seed": seed, "step": step}
    whole = mask_of(*batch, **settings).tolist()
    rows = list(range(len(whole)))
    random.shuffle(rows)
    some = rows[: len(rows) // 2]
    part = mask_of(*([column[row] for row in some] for column in batch), rows=some, **settings)
    assert part.tolist() == [whole[row] for row in some]


@steady
@given(batches(), outcome_kinds, st.floats(0, 1))
def test_conditional_masks_only_what_all_masks_and_the_more_the_higher_rho(batch, mask_outcome, rho):
    truncated, _, repeated = batch
    some, most = (mask_of(*batch, mask_outcome=mask_outcome, rho=r) for r in (rho, 1.0))
    every = mask_of(*batch, mask="all")
    assert every.tolist() == truncated
    assert not (some & ~most).any() and not (most & ~every).any()
    assert not (most & torch.tensor(repeated, dtype=torch.bool)).any()


@steady
@given(batches(), st.sampled_from(["no mask", "rho 0", "nothing truncated"]), outcome_kinds)
def test_without_anything_to_mask_advantages_are_those_of_grpo(batch, reason, mask_outcome):
    truncated, outcomes, repeated = batch
    settings = {"no mask": {"mask": "none"}, "rho 0": {"rho": 0.0}}.get(reason, {})
    if reason == "nothing truncated":
        truncated = [False] * len(truncated)
    mask = mask_of(truncated, outcomes, repeated, mask_outcome=mask_outcome, **settings)
    grpo = group_advantages(torch.tensor([float(o == "accepted") for o in outcomes]), max(1, len(outcomes)))
    assert torch.equal(grpo.masked_fill(mask, 0), grpo)


def test_a_draw_must_lie_below_rho():
    draw = draws(0, 1, [0])[0]
    assert not mask_of([True], ["no_code"], [False], rho=draw).any()
    assert mask_of([True], ["no_code"], [False], rho=np.nextafter(draw, 1)).all()


def test_rho_is_the_share_that_is_masked():
    n = 20_000
    mask = mask_of([True] * n, ["no_code"] * n, [False] * n, rho=0.3)
    assert mask.float().mean().item() == pytest.approx(0.3, abs=5 * (0.3 * 0.7 / n) ** 0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mask": "some"}, "mask is 'some'; it must be one of none, all, conditional"),
        ({"mask_outcome": "wrong"}, "mask_outcome is 'wrong'; it must be one of incorrect, non_incorrect"),
        ({"rho": 20}, "rho is 20; it is a probability: pass 0.2 for 20 %"),
        ({"rho": float("nan")}, "rho is nan"),
        ({"rows": [0]}, "2, 2, 2 and 1 entries"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_directions(settings, words):
    with pytest.raises(ValueError, match=words):
        mask_of([True, True], ["no_code", "no_code"], [False, False], **settings)
