"""Scores: each expected number is worked out by hand beside it."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from microcoder.evaluation.score import outcomes, score
from microcoder.evaluation.suite import EvaluationError, Mark, Sample
from microcoder.schema import Problem
from microcoder.stats import pass_at_k

RIGHT, WRONG, FAULT = "accepted", "wrong_answer", "internal_error"
PROBLEMS = [
    Problem(id="a", platform="leetcode", difficulty="easy", date="2025-01-11T18:30:00"),
    Problem(id="b", platform="atcoder", difficulty="hard", date="2025-02-01"),
    Problem(id="c", platform="atcoder", difficulty="easy", date="2025-02-28"),
]


def marks(verdicts: dict[str, str], limit: int = 100, **fields) -> list[Mark]:
    """{"a": "+-!"}: a right, a wrong and an unjudged try at problem a."""
    names = {"+": RIGHT, "-": WRONG, "!": FAULT, "0": "no_code"}
    return [
        Mark(problem, n, limit, names[sign], names[sign], **fields)
        for problem, signs in verdicts.items()
        for n, sign in enumerate(signs)
    ]


def test_accuracy_is_the_mean_over_problems_of_the_mean_of_their_tries():
    found = score(marks({"a": "++--", "b": "-", "c": "+-+"}), PROBLEMS)["100"]["robust"]
    assert found["accuracy"] == pytest.approx((1 / 2 + 0 + 2 / 3) / 3)  # not 4 right of 8
    assert found["problems"] == 3


def test_a_fault_of_the_judge_is_neither_right_nor_wrong():
    found = score(marks({"a": "+!!-", "b": "!!", "c": "+++!"}), PROBLEMS)["100"]
    assert found["internal_errors"] == 5
    assert found["robust"]["accuracy"] == (1 / 2 + 1) / 2
    assert (found["robust"]["problems"], found["robust"]["unjudged"]) == (2, 1)
    assert found["robust"]["verdicts"] == {RIGHT: 4, WRONG: 1, FAULT: 5}
    assert list(found["robust"]["pass_at_k"]) == ["1", "2"]  # a has two judged tries


def test_a_bench_in_which_nothing_was_judged_has_no_score_but_is_still_json():
    found = score(marks({"a": "!"}), PROBLEMS)["100"]["exact"]
    assert (found["accuracy"], found["low"], found["high"], found["unjudged"]) == (None, None, None, 3)
    assert found["pass_at_k"] == {}
    json.dumps(found, allow_nan=False)
    assert score([], PROBLEMS) == {}


@pytest.mark.parametrize(
    ("tries", "right", "k", "expected"),
    [(4, 2, 2, 5 / 6), (5, 1, 2, 4 / 10), (4, 3, 2, 1.0), (4, 0, 4, 0.0), (1, 1, 1, 1.0), (2000, 1, 1000, 0.5)],
)
def test_pass_at_k_of_small_and_large_numbers(tries, right, k, expected):
    assert pass_at_k(tries, right, k) == pytest.approx(expected, rel=1e-9)


def test_pass_at_k_is_one_minus_the_chance_of_drawing_only_wrong_tries():
    for tries in range(1, 13):
        for right in range(tries + 1):
            for k in range(1, tries + 1):
                only_wrong = math.comb(tries - right, k) / math.comb(tries, k)
                assert pass_at_k(tries, right, k) == pytest.approx(1 - only_wrong, abs=1e-12)


def test_pass_at_k_goes_up_to_the_fewest_tries_that_any_problem_has():
    found = score(marks({"a": "++-----", "b": "+------", "c": "--------"}), PROBLEMS)["100"]["robust"]["pass_at_k"]
    assert list(found) == ["1", "2", "4", "5", "7"]
    assert found["1"] == pytest.approx((2 / 7 + 1 / 7 + 0) / 3)
    assert found["2"] == pytest.approx((11 / 21 + 6 / 21 + 0) / 3)  # 1 - C(5, 2) / C(7, 2), 1 - C(6, 2) / C(7, 2)
    assert found["7"] == pytest.approx(2 / 3)


def test_table_1_has_the_platforms_of_livecodebench_in_order_and_all_of_them_last():
    table = score(marks({"a": "+-", "b": "--", "c": "++"}), PROBLEMS)["100"]["robust"]["table"]
    assert {p: {d: cell["accuracy"] for d, cell in row.items()} for p, row in table.items()} == {
        "atcoder": {"easy": 1.0, "hard": 0.0, "all": 0.5},
        "leetcode": {"easy": 0.5, "hard": None, "all": 0.5},
        "all": {"easy": 0.75, "hard": 0.0, "all": 0.5},
    }
    assert list(table) == ["atcoder", "leetcode", "all"]
    assert list(table["all"]) == ["easy", "hard", "all"]
    assert table["all"]["all"]["problems"] == 3
    assert table["leetcode"]["hard"] == {"accuracy": None, "low": None, "high": None, "problems": 0}


def test_a_suite_without_platforms_difficulties_and_dates_has_only_all():
    found = score(marks({"a": "+"}), [Problem(id="a")])["100"]["robust"]
    assert list(found["table"]) == ["all"]
    assert list(found["table"]["all"]) == ["all"]
    assert found["months"] == {}


def test_every_problem_is_in_one_row_and_one_column_of_table_1():
    levels = [0.05, 0.31, 0.97, None, "easy", "1700"]
    problems = [
        Problem(str(n), difficulty=level) if isinstance(level, str) else Problem(str(n), difficulty_score=level)
        for n, level in enumerate(levels)
    ]
    problems[0].platform, problems[4].platform = "kattis", "leetcode"
    table = score(marks({str(n): "+" for n in range(6)}), problems)["100"]["robust"]["table"]
    assert {p: row["all"]["problems"] for p, row in table.items()} == {"leetcode": 1, "kattis": 1, "none": 4, "all": 6}
    columns = {level: cell["problems"] for level, cell in table["all"].items()}
    assert columns == {"easy": 1, "0-0.2": 1, "0.2-0.4": 1, "0.8-1": 1, "1700": 1, "none": 1, "all": 6}
    assert list(columns) == ["easy", "0-0.2", "0.2-0.4", "0.8-1", "1700", "none", "all"]
    assert table["none"]["none"]["problems"] == 1


def test_months_are_those_of_the_dates():
    months = score(marks({"a": "+-", "b": "--", "c": "++"}), PROBLEMS)["100"]["robust"]["months"]
    assert {month: (cell["accuracy"], cell["problems"]) for month, cell in months.items()} == {
        "2025-01": (0.5, 1),
        "2025-02": (0.5, 2),
    }


def test_limits_ascend_and_no_limit_comes_last():
    found = [mark for limit in (0, 8192, 4096) for mark in marks({"a": "+"}, limit)]
    assert list(score(found, PROBLEMS)) == ["4096", "8192", "0"]


def test_lengths_and_shares_are_over_all_tries_of_a_limit():
    found = [
        Mark("a", 0, 100, RIGHT, RIGHT, tokens=20),
        Mark("a", 1, 100, RIGHT, WRONG, tokens=40),
        Mark("b", 0, 100, WRONG, WRONG, tokens=60, truncated=True),
        Mark("b", 1, 100, "no_code", "no_code", tokens=100, truncated=True),
    ]
    scores = score(found, PROBLEMS)["100"]
    assert (scores["tries"], scores["truncated_share"], scores["no_code_share"], scores["length"]) == (4, 0.5, 0.25, 55)
    assert (scores["robust"]["length_right"], scores["exact"]["length_right"]) == (30, 20)


def test_what_a_file_of_completions_does_not_tell_is_none():
    scores = score(marks({"a": "+-"}, limit=0), PROBLEMS, [Sample("a", n, "text") for n in range(2)])["0"]
    names = ("truncated_share", "length", "diversity")
    assert [scores[name] for name in names] == [None, None, None]


def test_diversity_is_of_the_tokens_up_to_the_limit_in_groups_of_any_size():
    samples = [
        Sample("a", 0, "", ids=[1, 2, 3, 4, 5]),  # 1234 2345
        Sample("a", 1, "", ids=[1, 2, 3, 4, 6]),  # 1234 2346: one of three grams is shared
        *(Sample("b", n, "", ids=[7, 7, 7, 7]) for n in range(3)),
        Sample("c", 0, "", ids=[8]),  # no pair
    ]
    found = marks({"a": "+"}, 4) + marks({"a": "+"}, 0)
    scores = score(found, PROBLEMS, samples)
    assert scores["0"]["diversity"] == pytest.approx((2 / 3 + 0) / 2)
    assert scores["4"]["diversity"] == 0.0
    assert score(found, PROBLEMS, samples[-1:])["0"]["diversity"] is None


def test_answers_that_one_policy_alone_accepts_are_listed_with_what_the_other_said():
    found = [
        Mark("a", 0, 100, RIGHT, WRONG, "space", "", "line 1 differs"),
        Mark("a", 1, 100, WRONG, RIGHT, "", "2 is not 3", ""),
        Mark("a", 2, 100, RIGHT, FAULT, "space"),  # a fault says nothing about the answer
        Mark("a", 3, 100, RIGHT, RIGHT),
    ]
    scores = score(found, PROBLEMS)["100"]
    assert scores["only_robust"] == [{"id": "a#0", "problem_id": "a", "strategy": "space", "message": "line 1 differs"}]
    assert scores["only_exact"] == [{"id": "a#1", "problem_id": "a", "strategy": "", "message": "2 is not 3"}]
    assert (scores["robust"]["accuracy"], scores["exact"]["accuracy"]) == (3 / 4, 2 / 3)
    assert outcomes(found, "exact") == {"a": [0.0, 1.0, 1.0]}


def test_marks_of_problems_that_the_suite_lacks_are_refused():
    with pytest.raises(EvaluationError, match=r"'z'.*new folder"):
        score(marks({"a": "+", "z": "+"}), PROBLEMS)


def test_scores_are_the_same_each_time_and_json_gives_them_back():
    found = marks({"a": "+-", "b": "--", "c": "++"})
    scores = score(found, PROBLEMS)
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores == score(found, PROBLEMS)


def test_scoring_a_file_of_completions_loads_no_torch():
    program = "import sys, microcoder.evaluation.harness; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_a_suite_that_does_not_exist_is_refused_before_torch_is_loaded():
    program = """
import sys
import microcoder as mc
try:
    mc.evaluate("nano", suite="humanevil")
except ValueError as error:
    print(error, "torch" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "did you mean 'humaneval'" in run.stdout and run.stdout.split()[-1] == "False"
