"""Stages: frozen settings, one after the other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.grpo import Stage, plan, segments, stage_at

PAPER = plan(0.6, 4096, [{"at_step": 140, "temperature": 1.2}, {"at_step": 260, "max_response_tokens": 8192}])


def test_what_a_stage_does_not_name_carries_over():
    assert PAPER == (Stage(1, 0.6, 4096), Stage(140, 1.2, 4096), Stage(260, 1.2, 8192))
    assert plan(1.2, 8192) == (Stage(1, 1.2, 8192),)


@pytest.mark.parametrize(("step", "first"), [(1, 1), (139, 1), (140, 140), (259, 140), (260, 260), (10**6, 260)])
def test_a_step_belongs_to_the_last_stage_that_has_begun(step, first):
    assert stage_at(PAPER, step).first_step == first


def test_a_run_is_divided_at_its_stages():
    first, second, third = PAPER
    assert segments(PAPER, 300) == [(first, 1, 139), (second, 140, 259), (third, 260, 300)]
    assert segments(PAPER, 260) == [(first, 1, 139), (second, 140, 259), (third, 260, 260)]
    assert segments(PAPER, 259) == [(first, 1, 139), (second, 140, 259)]
    assert segments(PAPER, 100) == [(first, 1, 100)]
    assert segments(PAPER, 0) == []


@settings(deadline=None)
@given(st.lists(st.integers(2, 50), unique=True, max_size=5).map(sorted), st.integers(1, 60))
def test_segments_cover_every_step_once_with_its_own_stage(boundaries, steps):
    stages = plan(1.0, 10, [{"at_step": at, "max_response_tokens": 10 + at} for at in boundaries])
    covered = [(step, stage) for stage, first, last in segments(stages, steps) for step in range(first, last + 1)]
    assert covered == [(step, stage_at(stages, step)) for step in range(1, steps + 1)]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([{"at_step": 1, "temperature": 1.2}], r"stage 1 has at_step 1; .* from 2 on"),
        ([{"at_step": 50, "temperature": 1.2}, {"at_step": 50, "temperature": 1.8}], r"stage 2 .* from 51 on"),
        ([{"temperature": 1.2}], "at_step None"),
        ([{"at_step": 9.5, "temperature": 1.2}], "at_step 9.5"),
        ([{"at_step": 50}], "stage 1 at step 50 changes nothing"),
        ([{"at_step": 50, "temperature": 0.6, "max_response_tokens": 4096}], "temperature is 0.6 .* 4096"),
        ([{"at_step": 50, "temprature": 1.2}], "'temprature'; a stage has at_step and one or both of temperature"),
        ([{"at_step": 50, "temperature": 0}], "from step 50 has temperature 0; .* try 1.0"),
        ([{"at_step": 50, "max_response_tokens": 0}], "max_response_tokens 0; .* such as 4096"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_directions(stages, words):
    with pytest.raises(ValueError, match=words):
        plan(0.6, 4096, stages)


def test_there_is_no_step_before_the_first():
    with pytest.raises(ValueError, match="no step 0; the first one is 1"):
        stage_at(PAPER, 0)
