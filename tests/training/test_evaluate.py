"""Accuracy on held-out problems, and how sure of it one can be."""

from __future__ import annotations

import pytest

from microcoder.collect import Response
from microcoder.schema import Problem, Verdict
from microcoder.training import recorder
from microcoder.training.step import evaluation


def answers(verdicts, score=None, label="", ids=((1, 2, 3, 4),), truncated=False):
    """The tries at one problem."""
    problem = Problem("p", difficulty_score=score, difficulty=label)
    return [
        Response(problem, [], n, list(ids[n % len(ids)]), [], truncated, "", Verdict(verdict))
        for n, verdict in enumerate(verdicts)
    ]


YES, NO, FAULT = "accepted", "wrong_answer", "internal_error"


def test_accuracy_is_the_mean_over_problems_of_the_mean_of_their_tries():
    found = evaluation([*answers([YES, YES, NO, NO]), *answers([NO, NO, NO, NO]), *answers([YES, NO, NO, NO])], tries=4)
    assert found["test_accuracy"] == 0.25
    assert found["test_pass_at_k"] == pytest.approx(2 / 3)
    assert (found["test_problems"], found["test_tries"]) == (3, 4)
    assert 0 <= found["test_accuracy_low"] < 0.25 < found["test_accuracy_high"] <= 0.5


def test_a_fault_of_the_judge_is_neither_right_nor_wrong():
    found = evaluation([*answers([YES, FAULT, FAULT, NO]), *answers([FAULT] * 4)], tries=4)
    assert (found["test_accuracy"], found["test_judge_faults"], found["test_problems"]) == (0.5, 6, 2)
    assert found["test_accuracy_low"] is None  # one problem is left


def test_a_second_policy_has_an_accuracy_of_its_own():
    rows = answers([YES, YES, NO, FAULT])
    assert "test_accuracy_also" not in evaluation(rows, tries=4)
    for row, verdict in zip(rows, (YES, NO, NO, ""), strict=True):
        row.verdict.also = verdict
    assert evaluation(rows, tries=4)["test_accuracy_also"] == pytest.approx(1 / 3)


def test_nothing_judged_is_no_accuracy():
    found = evaluation(answers([FAULT, FAULT]), tries=2)
    assert (found["test_accuracy"], found["test_pass_at_k"], found["test_by_difficulty"]) == (None, None, {})


def test_lengths_truncation_and_diversity_are_those_of_the_responses():
    alike, apart = [(1, 2, 3, 4)], [(1, 2, 3, 4), (5, 6, 7, 8, 9, 10)]
    rows = [*answers([YES, NO], ids=alike, truncated=True), *answers([YES, NO], ids=apart)]
    found = evaluation(rows, tries=2)
    assert (found["test_length"], found["test_truncated_share"], found["test_diversity"]) == (4.5, 0.5, 0.5)
    assert evaluation(rows, tries=1)["test_diversity"] is None  # one response has nothing to differ from


def test_each_difficulty_has_its_own_accuracy_in_order_of_the_score():
    rows = [*answers([YES, NO], 10.0), *answers([NO, NO], 2.0), *answers([YES, YES], 2.0), *answers([YES, YES])]
    found = evaluation(rows, tries=2)["test_by_difficulty"]
    assert list(found.items()) == [("2", {"accuracy": 0.5, "problems": 2}), ("10", {"accuracy": 0.5, "problems": 1})]
    named = evaluation([*answers([YES], label="hard"), *answers([NO], label="easy")], tries=1)["test_by_difficulty"]
    assert {name: part["accuracy"] for name, part in named.items()} == {"hard": 1, "easy": 0}


def test_scores_that_are_all_different_are_counted_in_bands():
    rows = [row for n in range(40) for row in answers([YES if n < 10 else NO], n / 40)]
    found = evaluation(rows, tries=1)["test_by_difficulty"]
    assert {band: part["problems"] for band, part in found.items()} == {
        "0-0.2": 8, "0.2-0.4": 8, "0.4-0.6": 8, "0.6-0.8": 8, "0.8-1": 8,
    }  # fmt: skip
    assert (found["0-0.2"]["accuracy"], found["0.2-0.4"]["accuracy"], found["0.4-0.6"]["accuracy"]) == (1, 0.25, 0)
    easy_first = evaluation([*answers([YES], label="hard"), *answers([NO], label="easy")], tries=1)
    assert list(easy_first["test_by_difficulty"]) == ["easy", "hard"]


def test_an_interval_that_says_nothing_is_not_said():
    none = evaluation([*answers([NO]), *answers([NO])], tries=1)
    assert recorder.tested(none) == "0.0% (2 problems, mean of 1 tries)"
    assert " to " in recorder.tested(evaluation([*answers([NO]), *answers([YES])], tries=1))
