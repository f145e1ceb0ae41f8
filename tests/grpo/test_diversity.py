"""Diversity of responses, against a plain count of their grams."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.grpo import diversity, group_diversity

steady = settings(deadline=None)
# few words, so that grams are shared and repeated; ids as large as vocabularies have
tokens = st.sampled_from([0, 1, 2, 151_935])
groups = st.lists(st.lists(tokens, max_size=12), min_size=2, max_size=9)


def counted(responses, n):
    """1 - mean pairwise multiset Jaccard, one pair after the other."""
    grams = []
    for response in responses:
        size = min(n, len(response))
        grams.append(Counter(tuple(response[i : i + size]) for i in range(len(response) - size + 1)))
    similarities = [(a & b).total() / (a | b).total() for a, b in combinations(grams, 2)]
    return 1 - sum(similarities) / len(similarities)


def test_two_responses_worked_by_hand():
    # 1234 2345 3456 beside 1234 2345 3457: 2 of 4 different grams are shared, similarity 2/4
    assert group_diversity([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7]]) == pytest.approx(0.5)


def test_a_gram_counts_as_often_as_it_occurs():
    # 1111 three times beside once: shared 1, all 3
    assert group_diversity([[1] * 6, [1] * 4]) == pytest.approx(1 - 1 / 3)


def test_a_third_response_adds_two_pairs():
    # two equal ones and a stranger: similarities 1, 0, 0
    assert group_diversity([[1, 2, 3, 4], [1, 2, 3, 4], [5, 6, 7, 8]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [], 0),
        ([7], [7], 0),
        ([7], [8], 1),
        ([], [7], 1),
        ([1, 2], [1, 2, 3], 1),  # a short response is one gram, its whole self
        ([0], [0, 0], 1),
        ([1, 2, 3], [1, 2, 3, 4], 1),
    ],
)
def test_short_responses_are_alike_only_if_they_are_equal(first, second, expected):
    assert group_diversity([first, second]) == expected


def test_diversity_of_fewer_than_two_responses_is_not_a_number():
    assert math.isnan(group_diversity([])) and math.isnan(group_diversity([[1, 2, 3, 4]]))
    assert math.isnan(diversity([], 8)) and math.isnan(diversity([[1], [2]], 1))


@steady
@given(groups, st.integers(1, 5))
def test_diversity_is_that_of_a_plain_count(responses, n):
    assert group_diversity(responses, n) == pytest.approx(counted(responses, n), abs=1e-12)


@steady
@given(groups, st.randoms())
def test_diversity_lies_between_0_and_1_and_knows_no_order(responses, random):
    value = group_diversity(responses)
    assert 0 <= value <= 1
    random.shuffle(responses)
    assert group_diversity(responses) == pytest.approx(value, abs=1e-12)


@steady
@given(st.lists(tokens, max_size=12), st.integers(2, 9))
def test_equal_responses_have_diversity_0(response, count):
    assert group_diversity([response] * count) == 0


def test_responses_that_share_nothing_have_diversity_1():
    assert group_diversity([list(range(start, start + 500)) for start in range(0, 8000, 1000)]) == 1


def test_long_responses_of_a_large_vocabulary_are_counted_right():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 150_000, 3000)
    responses = [np.where(rng.random(3000) < 0.1, rng.integers(0, 150_000, 3000), base).tolist() for _ in range(8)]
    assert group_diversity(responses) == pytest.approx(counted(responses, 4), abs=1e-12)


def test_the_diversity_of_a_batch_is_the_mean_over_its_groups():
    alike, unlike = [[1, 2, 3, 4]] * 2, [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert diversity(alike + unlike + unlike, 2) == pytest.approx(2 / 3)


def test_responses_may_be_arrays():
    assert group_diversity([np.array([1, 2, 3, 4, 5, 6]), np.array([1, 2, 3, 4, 5, 7])]) == pytest.approx(0.5)


def test_what_cannot_be_grouped_is_refused_with_directions():
    with pytest.raises(ValueError, match="3 responses cannot be divided into groups of 2"):
        diversity([[1], [2], [3]], 2)
    with pytest.raises(ValueError, match="groups of 0"):
        diversity([[1]], 0)
    with pytest.raises(ValueError, match=r"n is 0.*usual n is 4"):
        group_diversity([[1], [2]], 0)
