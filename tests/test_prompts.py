"""Prompts: each kind of problem says what the judge will do with the answer."""

from __future__ import annotations

import pytest

from microcoder.judge.extract import code_block
from microcoder.prompts import ANSWER, OURS, messages, prompt
from microcoder.schema import Problem, Test

TEST = [Test("[1]", "2")]


def test_a_stdin_problem_says_what_is_read_and_where_to_print():
    problem = Problem(id="a", statement="  Print n + 1.\n", tests=[Test("1", "2")])
    assert prompt(problem) == (
        "Print n + 1.\n\nWrite a Python program that reads standard input and prints to standard output. "
        "Put the answer in one ```python block."
    )


def test_a_function_problem_names_the_function_that_is_called():
    problem = Problem(id="a", kind="function", entry_point="solve", statement="Add one.", tests=TEST)
    assert prompt(problem) == f"Add one.\n\nWrite the Python function `solve`. {ANSWER}"


def test_a_method_is_named_with_its_class():
    problem = Problem(id="a", kind="function", entry_point="Solution.addOne", statement="Add one.", tests=TEST)
    assert "Write the Python class `Solution` with the method `addOne`." in prompt(problem)


def test_starter_code_is_shown_and_what_the_judge_calls_is_still_named():
    starter = "class Solution:\n    def addOne(self, n: int) -> int:\n"
    problem = Problem(
        id="a", kind="function", entry_point="Solution.addOne", statement="Add one.", starter_code=starter, tests=TEST
    )
    assert prompt(problem) == (
        "Add one.\n\nWrite the Python class `Solution` with the method `addOne`. Complete this:\n"
        f"```python\n{starter.strip()}\n```\n{ANSWER}"
    )


def test_a_program_with_starter_code_is_still_told_to_read_standard_input():
    problem = Problem(id="a", statement="Print n + 1.", starter_code="n = int(input())\n", tests=[Test("1", "2")])
    assert "reads standard input" in prompt(problem)
    assert "```python\nn = int(input())\n```\n" in prompt(problem)


def test_asserts_with_an_entry_point_name_it_and_show_none_of_them():
    problem = Problem(id="a", kind="assert", entry_point="f", statement="Add one.", asserts=["assert f(1) == 2"])
    assert prompt(problem) == f"Add one.\n\nWrite the Python function `f`. {ANSWER}"


def test_asserts_without_an_entry_point_show_one_since_nothing_else_names_the_function():
    asserts = ["assert inc(1) == 2\n", "assert inc(5) == 6"]
    problem = Problem(id="a", kind="assert", statement="Add one.", asserts=asserts)
    assert prompt(problem) == (
        f"Add one.\n\nWrite Python code that makes this hold:\n```python\nassert inc(1) == 2\n```\n{ANSWER}"
    )


def test_asserts_without_an_entry_point_but_with_starter_code_show_that_instead():
    problem = Problem(id="a", kind="assert", starter_code="def inc(n): ...", asserts=["assert inc(1) == 2"])
    assert "```python\ndef inc(n): ...\n```\n" in prompt(problem)
    assert "assert" not in prompt(problem)


PAIR = "class Pair:\n\n    def __init__(self, a, b):\n        self.a, self.b = (a, b)"


def test_classes_of_the_setup_that_the_asserts_construct_are_shown():
    problem = Problem(
        id="a", kind="assert", entry_point="chain", statement="Find the longest chain.",
        setup=f"import math\n\nclass Other:\n    pass\n\n{PAIR}", asserts=["assert chain([Pair(1, 2), Pair(3, 4)])"],
    )  # fmt: skip
    assert prompt(problem) == (
        f"Find the longest chain.\n\nThe tests define and use:\n```python\n{PAIR}\n```\n\n"
        f"Write the Python function `chain`. {ANSWER}"
    )


def test_a_class_that_the_statement_or_the_starter_code_shows_is_not_shown_again():
    asserts = ["assert chain([Pair(1, 2)]) == 1"]
    for told in ({"statement": f"Chain.\n{PAIR}"}, {"starter_code": f"{PAIR}\n\ndef chain(arr):"}):
        problem = Problem(id="a", kind="assert", entry_point="chain", setup=PAIR, asserts=asserts, **told)
        assert "The tests define" not in prompt(problem)
    problem = Problem(id="a", kind="assert", entry_point="f", statement="A Pair.", setup=PAIR, asserts=["f(Pair())"])
    assert PAIR in prompt(problem)  # to name it is not to show it


def test_a_setup_or_assert_that_is_no_python_shows_nothing():
    for setup, test in (("class Pair(:", "assert f(Pair()) == 1"), (PAIR, "assert f(Pair( == 1")):
        problem = Problem(id="a", kind="assert", entry_point="f", statement="Do.", setup=setup, asserts=[test])
        assert prompt(problem) == f"Do.\n\nWrite the Python function `f`. {ANSWER}"


def test_an_answer_as_the_prompt_asks_for_it_is_what_the_judge_takes():
    fence = ANSWER.split()[-2]  # ```python
    assert code_block(f"Here it is.\n{fence}\nprint(1)\n```\nThat is all.") == "print(1)"


def test_the_conversation_is_the_prompt_as_the_users_message():
    problem = Problem(id="a", statement="Print n + 1.", tests=[Test("1", "2")])
    assert messages(problem) == [{"role": "user", "content": prompt(problem)}]


EVERY_KIND = {
    "stdin": Problem(id="a", statement="Print n + 1.", tests=[Test("1", "2")]),
    "function": Problem(id="a", kind="function", entry_point="solve", statement="Add one.", tests=TEST),
    "starter": Problem(
        id="a", kind="function", entry_point="S.f", statement="Add one.", starter_code="class S:\n", tests=TEST
    ),
    "assert": Problem(id="a", kind="assert", statement="Add one.", asserts=["assert inc(1) == 2"]),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_style_reason_asks_for_the_approach_first_and_for_the_same_program(kind):
    problem = EVERY_KIND[kind]
    code, reason = prompt(problem), prompt(problem, "reason")
    assert code.endswith(ANSWER) and reason == code.removesuffix(ANSWER) + OURS["reason"]
    assert messages(problem, "reason") == [{"role": "user", "content": reason}]
    assert code == prompt(problem, "code")


def test_a_style_that_is_none_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="no style of prompts 'think'; known are code, reason, livecodebench"):
        messages(EVERY_KIND["stdin"], "think")
