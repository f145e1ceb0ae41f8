"""A run's metrics become one number, by an expression that is read and never executed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import microcoder.training
from microcoder.runs import write_rollouts
from microcoder.study.measures import FUNCTIONS, METRICS, STYLES, measure, styles
from microcoder.study.policies import mistakes

RISING = range(1, 21)  # 20 steps: a tenth is 2 of them, a quarter 5, the smoothing window 3


def run(values, name="reward", **more):
    return [{"step": n, name: value, **more} for n, value in enumerate(values, 1)]


EVALUATED = [{"step": 0, "test_accuracy": 0.25}, *run(RISING)]
EVALUATED[10]["test_accuracy"], EVALUATED[20]["test_accuracy"] = 0.5, 0.4


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("first(reward)", 1.5),
        ("last(reward)", 18.0),
        ("mean(reward)", 10.5),
        ("peak(reward)", 19.5),  # the last two, smoothed
        ("peak_step(reward)", 20),
        ("fall(reward)", 1.5),
        ("slope(reward)", 1.0),
        ("growth(reward)", 1.0),
        ("rough(reward)", 0.0),
        ("first(test_accuracy)", 0.25),
        ("last(test_accuracy)", 0.4),
        ("mean(test_accuracy)", 1.15 / 3),
        ("peak(test_accuracy)", 0.5),
        ("peak_step(test_accuracy)", 10),
        ("fall(test_accuracy)", 0.1),
        ("slope(test_accuracy)", 0.0075),
        ("growth(test_accuracy)", 0.025),
        ("rough(test_accuracy)", 0.35 / math.sqrt(2)),  # changes of +0.25 and -0.1
    ],
)
def test_each_statistic_is_what_a_hand_works_out(expression, value):
    assert measure(expression, EVALUATED) == pytest.approx(value)


def test_growth_looks_at_the_first_half_and_slope_at_all():
    bent = run([0, 2, 4, 6, 8, 8, 8, 8, 8])  # nine steps: the first half is five
    assert measure("growth(reward)", bent) == pytest.approx(2.0)
    assert 0 < measure("slope(reward)", bent) < 1.5


def test_a_peak_is_not_smoothed_away_across_a_stage_boundary():
    staged = [*run([0.25] * 10, temperature=0.6), *run([0.75] * 10, temperature=1.2)]
    staged = [{**line, "step": n} for n, line in enumerate(staged, 1)]
    assert measure("peak_step(reward)", staged) == 11
    assert measure("peak_step(reward)", [{**line, "temperature": 1} for line in staged]) == 12


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("last(reward) - first(reward)", 16.5),
        ("last(reward)-first(reward)+mean( reward )", 27.0),
        ("  - last(reward)", -18.0),
        ("last(reward) - last(reward) - slope(reward)", -1.0),
    ],
)
def test_terms_are_added_and_subtracted_from_left_to_right(expression, value):
    assert measure(expression, EVALUATED) == pytest.approx(value)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("metrics", [[], EVALUATED, [{"step": 1, "kl": None}]], ids=["no", "other", "null"])
def test_a_metric_that_was_not_recorded_is_not_a_number(function, metrics):
    assert math.isnan(measure(f"{function}(kl)", metrics))
    assert math.isnan(measure(f"{function}(kl) - last(reward)", metrics))


def test_single_gaps_are_left_out():
    gapped = run([1, None, 3, float("nan"), 5, 6, 7, 8])
    assert measure("mean(reward)", gapped) == 5.0
    assert measure("slope(reward)", gapped) == pytest.approx(1.0)
    assert measure("growth(reward)", gapped) == pytest.approx(1.0)


def test_an_evaluation_before_training_is_never_the_last_and_one_during_training_never_the_first():
    assert math.isnan(measure("last(test_accuracy)", EVALUATED[:5]))
    assert math.isnan(measure("first(test_accuracy)", EVALUATED[1:]))


def test_one_step_has_a_level_and_no_slope():
    assert measure("last(reward) - first(reward)", run([0.5])) == 0.0
    assert all(math.isnan(measure(f"{name}(reward)", run([0.5]))) for name in ("slope", "growth", "rough"))


@given(st.lists(st.floats(0, 1), min_size=4, max_size=60), st.floats(-5, 5))
def test_levels_move_with_the_curve_and_changes_do_not(values, shift):
    before, after = run(values), run([value + shift for value in values])
    for function in ("first", "last", "mean", "peak", "slope", "growth", "fall", "rough"):
        moved = shift if function in ("first", "last", "mean", "peak") else 0.0
        expression = f"{function}(reward)"
        assert measure(expression, after) - measure(expression, before) == pytest.approx(moved, abs=1e-9)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("lsat(reward)", "unknown function 'lsat'; did you mean 'last'?"),
        ("variance(reward)", "unknown function 'variance'; known are first, last"),
        ("last(test_acuracy)", "unknown metric 'test_acuracy'; did you mean 'test_accuracy'?"),
        ("last(verdicts)", "unknown metric 'verdicts'"),
        ("last(reward) first(reward)", "cannot be read at 'first(reward)'"),
        ("last(reward) -", "cannot be read at '-'"),
        ("last(reward) * 2", "cannot be read at '* 2'"),
        ("2 * last(reward)", "such as last(diversity) - first(diversity)"),
        ("__import__('os')", "cannot be read"),
        (" ", "cannot be read at its end"),
        ("", "cannot be read at its end"),
    ],
)
def test_an_expression_that_cannot_be_used_says_what_to_type(expression, words):
    with pytest.raises(ValueError) as error:
        measure(expression, EVALUATED)
    assert words in str(error.value)


def test_every_metric_that_may_be_named_is_one_that_training_or_judging_writes():
    written = "".join(path.read_text() for path in Path(microcoder.training.__file__).parent.glob("*.py"))
    judged = mistakes([{"exact": "accepted", "robust": "accepted", "paper": "accepted", "truth": "accepted"}])
    shares = {f"{style}_share" for style in STYLES}
    assert [name for name in METRICS if f'"{name}"' not in written and name not in {*judged, *shares}] == []


def test_styles_are_the_shares_of_first_words_at_each_step(tmp_path):
    texts = ["trace\na: add 3", "direct\n```python", "direct", " loop\nx is 4", "tracer", "", "print trace", "directly"]
    write_rollouts(tmp_path, 3, [{"row": n, "problem": "p", "completion": text} for n, text in enumerate(texts)])
    assert styles(tmp_path) == {3: {"direct_share": 2 / 8, "trace_share": 1 / 8, "loop_share": 1 / 8}}
