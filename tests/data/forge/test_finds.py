"""Inputs at the limits: what is too slow is refused, what is only slower is not."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from microcoder.data.forge import Effort, ForgeOptions, _strength, forge
from microcoder.data.forge.finds import Climb, Find, largest
from microcoder.data.forge.label import Labelled
from microcoder.data.forge.run import Behaviour
from microcoder.data.forge.search import Rival
from microcoder.data.forge.space import Candidate
from microcoder.data.record import Record
from microcoder.judge import Judge
from microcoder.schema import Problem, Test, Verdict

STATEMENT = """Given an array of integers nums, return true if any value appears at least twice.

Constraints:

1 <= nums.length <= 10^5
-10^9 <= nums[i] <= 10^9
"""
BODY = "from typing import List\nclass Solution:\n    def twice(self, nums: List[int]) -> bool:\n        {}\n"
LINEAR = BODY.format("return len(set(nums)) < len(nums)")
SORTED = BODY.format("nums.sort()\n        return any(a == b for a, b in zip(nums, nums[1:]))")
THRICE = BODY.format(
    "for _ in range(3):\n            found = {}\n            for x in nums:\n"
    "                found[x] = found.get(x, 0) + 1\n        return max(found.values()) > 1"
)
QUADRATIC = BODY.format("return any(x == y for n, x in enumerate(nums) for y in nums[n + 1:])")
IN_C = BODY.format("return any(x in nums[:n] for n, x in enumerate(nums))")


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def problem():
    return Problem(
        "twice", statement=STATEMENT, kind="function", entry_point="Solution.twice", starter_code=BODY.format("pass"),
        tests=[Test("[[1, 2, 3, 1]]", "true"), Test("[[1, 2, 3, 4]]", "false")], solutions=[{"code": LINEAR}],
    )  # fmt: skip


def test_quadratic_programs_fail_where_a_hundred_thousand_numbers_are_allowed(judge, problem):
    options = ForgeOptions(Effort(tests=8, candidates=48, mutants=12))
    (record,) = forge([Record(replace(problem, tests=list(problem.tests)))], judge, options=options)
    stronger = record.problem
    assert stronger.time_limit_s == 2.0 and max(len(test.input) for test in stronger.tests) > 100_000
    for slow in (QUADRATIC, IN_C):
        assert judge.check(problem, code=slow).accepted
        assert judge.check(stronger, code=slow).verdict == "time_limit"
    for right in (SORTED, THRICE):
        assert judge.check(stronger, code=right).accepted


def test_a_few_numbers_are_drawn_up_to_their_limits(judge):
    body = BODY.replace("twice(self, nums: List[int]) -> bool", "bulky(self, length: int, width: int) -> bool")
    numbers = Problem(
        "bulky", kind="function", entry_point="Solution.bulky", starter_code=body.format("pass"),
        statement="A box is bulky if its area is at least 10^9.\n\nConstraints:\n\n1 <= length, width <= 10^5\n",
        tests=[Test("[10, 20]", "false")],
        solutions=[{"code": body.format("return length * width >= 10 ** 9")}],
    )  # fmt: skip
    options = ForgeOptions(Effort(tests=8, candidates=96, mutants=12, large=0))
    (record,) = forge([Record(replace(numbers, tests=list(numbers.tests)))], judge, options=options)
    assert {test.output for test in record.problem.tests} == {"true", "false"}
    wrong = body.format("return length >= 10 ** 5 or width >= 10 ** 5")
    assert judge.check(numbers, code=wrong).accepted and not judge.check(record.problem, code=wrong).accepted


def climbed(seconds, longest=200_000, tries=12):
    """The sizes that a climb tries, where an input of size s has 10^5s characters and takes a reference seconds(s)."""
    climb, tried = Climb(longest, 1.0), []
    for _ in range(tries):
        if climb.done(2):
            break
        size = climb.size
        tried.append(size)
        length = int(10 ** (5 * size))
        if length > longest or seconds(length) > 1:
            climb.went_too_far()
        else:
            given = "x" * length
            climb.went_well(Find(Candidate(given, "limit"), Labelled(given, "", Behaviour("ok"), seconds(length))), 0.0)
    return tried, max(len(find.candidate.input) for find in climb.top)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_the_largest_input_is_found_that_a_reference_does_in_time(power):
    tried, length = climbed(lambda n: 1e-8 * n**power)
    best = min(10**5, (1 / 1e-8) ** (1 / power))
    assert 0.5 * best <= length <= best
    assert len([size for size in tried if 1e-8 * 10 ** (5 * size * power) > 1]) <= 4  # tries that cost a second each


def test_text_that_would_be_too_long_is_not_drawn_often():
    tried, length = climbed(lambda n: 1e-8 * n, longest=20_000)
    assert 10_000 < length <= 20_000 and len([size for size in tried if 10 ** (5 * size) > 20_000]) <= 2


def test_of_inputs_at_the_limits_the_one_that_holds_most_comes_first():
    texts = ["1 " * 300, " ".join(str(7919 * n % 1009) for n in range(120)), "2 " * 200]
    finds = [Find(Candidate(t, "limit"), Labelled(t, "", Behaviour("ok"), 0.1), limit=True) for t in texts]
    assert [finds.index(find) for find in largest(finds, 2, 10_000)] == [1, 0]
    assert [finds.index(find) for find in largest(finds, 3, 900)] == [1, 2]


def test_a_slow_reference_gets_fewer_mutants():
    assert Effort().for_slow(0.01) == Effort()
    assert Effort().for_slow(0.5).mutants == 32 and Effort().for_slow(5.0).mutants == 9


def test_a_mutant_that_loops_does_not_take_the_time_of_the_tests_at_the_limits(problem):
    asked = []

    class Fake:
        def submit(self, target, code):
            asked.append((code, len(target.tests), target.time_limit_s))
            future = Future()
            future.set_result(Verdict("accepted"))
            return future

    rivals = [Rival("mutant 0", "m", "a change", counted=True), Rival("adversary 1", "a")]
    before = {"living": [rival.name for rival in rivals]}
    found = _strength(problem, rivals, Fake(), 0.5, before, replace(problem, tests=problem.tests[:1]), 0.01)
    assert asked == [("m", 1, 0.1), ("a", 2, 5.0)]
    assert (found["alive"], found["adversaries_alive"], found["tests"]) == (1, 1, 2)
