"""Several right answers: what says so, and which comparison accepts them all."""

from __future__ import annotations

import pytest

from microcoder.data.forge import Effort, ForgeOptions, forge
from microcoder.data.forge.answers import (
    SETS_OF_LISTS,
    by_disagreement,
    made_of_a_set,
    reconciled,
    rule,
    stated_tolerance,
    usable,
)  # fmt: skip
from microcoder.data.forge.label import assertion, written
from microcoder.data.forge.run import Behaviour
from microcoder.data.record import Record
from microcoder.judge import Judge
from microcoder.schema import Compare, Problem, Test


def of(statement, tests=(), **fields):
    tests = [Test(given, answer) for given, answer in tests]
    return Problem("p", "function", entry_point="f", statement=statement, tests=tests, **fields)


def test_an_order_that_is_free_is_not_compared():
    chosen = rule(of("You can return the answer in any order.", [("[1]", "[2, 3]")]))
    assert (chosen.name, chosen.applied(Compare()).unordered, chosen.open) == ("any order", True, False)
    assert rule(of("Return the answer in any order.", [("[1]", "7")])).name == "one"  # a number has no order
    assert rule(of("The edges are given in any order. Return their sum.")).name == "one"
    assert rule(of("Return it in any order.", compare=Compare(checker="def check"))).name == "one"


def test_lines_of_standard_output_are_free_only_where_each_is_an_item_of_one_answer():
    def told(statement, output):
        return rule(Problem("p", statement=statement, tests=[Test("1", output)])).name

    assert told("Print the divisors, one a line, in any order.", "1\n2\n") == "any order"
    assert told("Print the divisors in any order.", "1 2\n") == "any"  # their order within the line is free
    assert told("Print the divisors on one line, in any order.", "1\n") == "any"
    assert told("For each test case print the divisors, one a line, in any order.", "1\n2\n") == "any"


def test_combinations_are_sets_and_permutations_are_not():
    tests = [("[1]", "[[1, 2], [3]]")]
    sets = rule(of("Return all combinations in any order.", tests))
    assert (sets.name, sets.checker) == ("sets of lists", SETS_OF_LISTS)
    assert rule(of("Return all permutations of the pairs in any order.", tests)).name == "any order"
    mirrored = [("[1]", "[[1, 2], [2, 1]]")]
    assert rule(of("Return all pairs in any order.", mirrored)).name == "any order"
    places = of("answer[0] holds the distinct pairs. The lists may be returned in any order.", tests)
    assert rule(places).name == "lists in any order"


@pytest.mark.parametrize(
    "got, verdict", [("[[3], [2, 1]]", "accepted"), ("[[1, 2]]", "wrong_answer"), ("7", "wrong_answer")]
)
def test_the_judge_runs_a_chosen_checker(got, verdict):
    problem = of("Return all combinations in any order.", [("[1]", "[[1, 2], [3]]")])
    problem.compare = rule(problem).applied(problem.compare)
    with Judge(workers=1) as judge:
        assert judge.check(problem, code=f"def f(n):\n    return {got}").verdict == verdict


def test_any_answer_has_a_checker_where_the_tests_confirm_it():
    orders = of(
        "Return the ordering of courses. If there are many valid answers, return any of them.",
        [("[2, [[1, 0]]]", "[0, 1]"), ("[4, [[1,0],[2,0],[3,1],[3,2]]]", "[0, 2, 1, 3]")],
    )
    chosen = rule(orders)
    assert chosen.name == "topological order" and "place[a] > place[b]" in chosen.checker
    orders.tests.append(Test("[2, [[0, 1]]]", "[0, 1]"))  # the other direction: no order keeps to the pairs
    assert rule(orders).open
    path = of("Pairs of adjacent elements. If there are multiple solutions, return any.", [("[[[1,2]]]", "[1, 2, 3]")])
    assert rule(path).name == "either direction"


def test_without_a_checker_only_inputs_that_have_no_answer_are_used():
    chosen = rule(of("If there are multiple answers, return any. If it is impossible return -1.", [("[1]", "5")]))
    assert chosen.open
    assert [usable(chosen, output) for output in ("-1", "[]", "[1, 2]", "No\n-1\n", "No\n1 2\n")] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert usable(rule(of("Return the sum.")), "[1, 2]")


def test_the_error_that_a_statement_allows():
    assert stated_tolerance("Answers within 10^-5 of the actual answer will be accepted.") == 1e-5
    assert stated_tolerance("Answers within 10-5 of the actual answer are accepted.") == 1e-5
    assert stated_tolerance("an absolute error of at most 10^{-4}.") == 1e-4
    assert stated_tolerance("the difference between 10 - 26 and the error is 3") is None
    assert rule(of("Answers within 10-5 are accepted.")).tolerance == 1e-5
    assert rule(of("An error of at most 10^{-9} is accepted.")).name == "one"  # never stricter than the judge is


def test_a_list_made_of_a_set_has_no_order():
    assert made_of_a_set("def f(a, b):\n    return tuple(set(a) & set(b))")
    assert made_of_a_set("def f(a):\n    s = {x for x in a}\n    out = [x for x in s]\n    return out")
    assert made_of_a_set("def f(a, b):\n    return list(set(a) - set(b)) + list(set(b) - set(a))")
    assert not made_of_a_set("def f(a):\n    return sorted(set(a))")
    assert not made_of_a_set("def f(a):\n    out = list(set(a))\n    out.sort()\n    return out")
    problem = of(
        "Common elements.", [("[[1], [1]]", "[1]")], solutions=[{"code": "def f(a, b):\n    return list(set(a))"}]
    )
    assert rule(problem).said == "a reference makes a list of a set"


def test_what_references_differ_by():
    assert reconciled([[1, 2], [1, 2]]) == "equal"
    assert reconciled([0.5, 0.500001]) == "tolerance"
    assert reconciled([[1, 2], [2, 1], [1, 2]]) == "any order"
    assert reconciled([[[1, 2], [3]], [[3], [2, 1]]]) == "sets of lists"
    assert reconciled([[1, 2], [1, 3]]) == "" and reconciled(["a", "b"]) == ""
    assert reconciled(["1 2\n3\n", "3\n1 2\n"]) == "any order"
    problem = of("Return them all.", [("[1]", "[2]")])
    assert by_disagreement(problem, [([1, 2], [2, 1]), ([3], [3])]).unordered
    assert by_disagreement(problem, [([1, 2], [2, 1]), ([3], [4])]) is None
    assert by_disagreement(problem, []) is None
    assert by_disagreement(problem, [([1, 2], [2, 1])]) is None  # once may be chance
    ordered = of("Return them all in ascending order.", [("[1]", "[2]")])
    assert by_disagreement(ordered, [([1, 2], [2, 1]), ([3, 4], [4, 3])]) is None
    queries = Problem("q", statement="Answer each query.", tests=[Test("1", "2")])
    assert by_disagreement(queries, [("1\n2\n", "2\n1\n")] * 3) is None


# --- forged problems: what programs differ by

LARGE = """Return the numbers of nums that are larger than 3{}.

Constraints:

1 <= nums.length <= 20
-9 <= nums[i] <= 9
"""
CODE = "from collections import *\ndef f(nums: list[int]) -> list[int]:\n    return {}\n"
FORWARD = CODE.format("[n for n in nums if n > 3]")
BACKWARD = CODE.format("[n for n in nums[::-1] if n > 3]")
SORTED = CODE.format("sorted(n for n in nums if n > 3)")
DISTINCT = CODE.format("list({n for n in nums if n > 3})")
LEFT_OUT = "programs that may be right differ in order or rounding"


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=1) as found:
        yield found


def forged(judge, demand="", references=(FORWARD,), adversaries=(), **fields):
    problem = of(LARGE.format(demand), [("[[1, 5]]", "[5]")], solutions=[{"code": code} for code in references])
    problem.starter_code = "def f(nums: list[int]) -> list[int]:\n    pass\n"
    options = ForgeOptions(Effort(tests=12, candidates=96, mutants=24))
    named = [(f"a{n}", code) for n, code in enumerate(adversaries)]
    (record,) = forge([Record(problem)], judge, options=options, adversaries=lambda ident: named)
    return record.problem, record.problem.extra["forge"]


def test_references_that_differ_in_order_alone_give_a_comparison_without_order(judge):
    problem, about = forged(judge, references=[FORWARD, BACKWARD])
    assert problem.compare.unordered and "references differ in order" in about["checker"]
    assert "references disagree" not in about["left_out"] and len(problem.tests) == 13
    assert judge.check(problem, code=SORTED).accepted and not judge.check(problem, code=DISTINCT).accepted


def test_references_that_differ_in_the_order_that_is_demanded_are_not_believed(judge):
    problem, about = forged(judge, " in ascending order", references=[FORWARD, SORTED])
    assert problem.compare == Compare() and about["left_out"]["references disagree"] > 5
    assert judge.check(problem, code=SORTED).accepted and judge.check(problem, code=FORWARD).accepted


def test_one_adversary_with_another_order_changes_nothing_and_two_only_leave_inputs_out(judge):
    alone, about = forged(judge, adversaries=[BACKWARD])
    assert LEFT_OUT not in about["left_out"] and not judge.check(alone, code=BACKWARD).accepted
    two, about = forged(judge, adversaries=[BACKWARD, SORTED, DISTINCT])
    assert about["left_out"][LEFT_OUT] > 5 and two.compare == Compare()
    assert all(judge.check(two, code=code).accepted for code in (FORWARD, BACKWARD, SORTED))
    assert not judge.check(two, code=DISTINCT).accepted  # it loses numbers: wrong in any order
    assert about["after"]["adversaries_alive"] == 2
    _, about = forged(judge, " as they stand in the sequence", adversaries=[BACKWARD, SORTED])
    assert LEFT_OUT not in about["left_out"] and about["after"]["adversaries_alive"] == 0


def test_references_may_differ_in_rounding(judge):
    codes = [CODE.replace("list[int]:", "float:").format(text) for text in ("sum(nums) / 7", "sum(nums) / 7.00002")]
    problem = of(
        LARGE.format(""), [("[[0]]", "0.0"), ("[[0, 0]]", "0.0")], solutions=[{"code": code} for code in codes]
    )
    problem.starter_code = "def f(nums: list[int]) -> float:\n    pass\n"
    (record,) = forge([Record(problem)], judge, options=ForgeOptions(Effort(tests=6, candidates=48, mutants=12)))
    assert record.problem.compare.tolerance == 1e-5, record.problem.extra["forge"]


def test_an_assert_is_written_as_the_problem_writes_its_own():
    def written(*asserts):
        form = assertion(Problem("p", "assert", entry_point="f", asserts=list(asserts)))
        return form and form("f(7)", "[8]")

    assert written("assert f(1) == 2", "assert f(3)", "assert not f(4)") == "assert f(7) == [8]"
    assert written("assert set(f(1)) == set([2])") == "assert set(f(7)) == set([8])"
    assert written("def check(candidate):\n    assert candidate(1) == 2") == "assert f(7) == [8]"
    assert written("assert math.isclose(f(1), 2, rel_tol=0.001)") == "assert math.isclose(f(7), [8], rel_tol=0.001)"
    assert written("def check(candidate):\n    assert abs(candidate(1) - 2) < 1e-6") == "assert abs(f(7) - [8]) < 1e-06"
    assert written("assert f(1).value == 2") is None
    assert written("assert f(1) == 2", "assert sorted(f(1)) == [2]") is None
    assert written("x = 1") is None


@pytest.mark.parametrize(
    ("answer", "text"), [("[2]", "assert f(7)"), ("[]", "assert not f(7)"), ("True", "assert f(7)")]
)
def test_what_only_has_to_be_true_or_false_is_not_compared(answer, text):
    form = assertion(Problem("p", "assert", entry_point="f", asserts=["assert f(4)", "assert not f(5)"]))
    assert form("f(7)", answer) == text


@pytest.mark.parametrize(("answer", "output"), [("true", "True"), ("null", None), ("3", None)])
def test_an_answer_of_another_type_than_in_all_asserts_is_not_used(answer, output):
    problem = Problem("p", "assert", entry_point="f", asserts=["assert f(1) == True", "assert f(2) == False"])
    assert written(problem, Behaviour("ok", f'{{"r": {answer}}}')) == output
    free = Problem("p", "assert", entry_point="f", asserts=["assert abs(f(1) - 3) < 1"])
    assert written(free, Behaviour("ok", '{"r": 3}')) == "3"
