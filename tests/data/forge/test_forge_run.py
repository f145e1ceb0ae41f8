"""Many programs on many inputs in one sandboxed process."""

from __future__ import annotations

import pytest

from microcoder.data.forge.run import ProgramRunner, checks_of, differs
from microcoder.judge import Judge
from microcoder.schema import Problem, Test

from .shared_space import LARGEST, weak

BODY = "class Solution:\n    def largest(self, nums):\n        {}\n        return max(nums)\n"
INPUTS = ["[[1]]", "[[1, 2]]", "[[3, 1, 2]]", "[[4]]"]


@pytest.fixture(scope="module")
def runner():
    with Judge(workers=1) as judge:
        layer = judge.sandbox
    found = ProgramRunner(layer)
    yield found
    found.close()


def statuses(runner, programs, **options):
    rows = runner.run(weak(), [LARGEST, *programs], INPUTS, limit_s=0.2, base=True, **options)
    return [[reply.status for reply in row] for row in rows]


def test_one_program_costs_no_other_its_result(runner):
    programs = [
        BODY.format("while len(nums) > 2: pass"),
        BODY.format("os._exit(3) if len(nums) > 1 else 0"),
        BODY.format("x = [0] * (len(nums) - 2) * 10 ** 10"),
        BODY.format("raise ValueError if len(nums) > 1 else SystemExit"),
        "def",
        BODY.format("nums = nums[:1]"),
    ]
    first, *found = statuses(runner, programs)
    assert first == ["ok"] * 4
    assert found == [
        ["same", "same", "late", "unknown"],
        ["same", "crash", "unknown", "unknown"],
        ["same", "same", "memory", "same"],
        ["error"] * 4,
        ["compile"] * 4,
        ["same", "ok", "same", "same"],
    ]


def test_a_reference_goes_on_after_an_input_on_which_it_loops(runner):
    loops = BODY.format("while len(nums) == 2: pass")
    assert statuses(runner, [loops], every=True)[1] == ["same", "late", "same", "same"]


def test_programs_leave_nothing_for_the_next_one(runner):
    spoils = "import builtins\nbuiltins.max = min\nseen = []\n" + BODY.format("seen.append(1); nums = nums * len(seen)")
    _, first, second = statuses(runner, [spoils, BODY.format("pass")])
    assert first == ["same", "ok", "ok", "same"] and second == ["same"] * 4


def test_a_program_that_begins_with_a_large_table_begins_once(runner):
    table = "made = [n * n % 7 for n in range(10 ** 6)]\n" + BODY.format("made[0] += 1; nums = [made[0]]")
    (row,) = runner.run(weak(), [table], INPUTS, limit_s=2.0)
    assert row[0].cpu_s > 10 * max(reply.cpu_s for reply in row[1:])
    quick = BODY.format("made.append(1); nums = [len(made)]")
    (row,) = runner.run(weak(), ["made = []\n" + quick], INPUTS)
    assert {reply.answer for reply in row} == {row[0].answer}  # else each input finds a fresh program


def test_programs_that_read_and_print_run_as_scripts(runner):
    problem = Problem("sum", tests=[Test("1 2", "3")])
    programs = [
        "print(sum(map(int, input().split())))",
        "import os, sys\nsys.stdout.write(str(sum(map(int, os.read(0, 100).split()))))\nprint()",
        "import sys, threading\n"
        "def main():\n    print(sum(map(int, sys.stdin.readline().split())))\n"
        "one = threading.Thread(target=main)\none.start()\none.join()\nexit()",
        "print(int(input().split()[0]) + 2)",
    ]
    rows = runner.run(problem, programs, ["1 2\n", "3 4\n"], base=True)
    assert [[reply.status for reply in row] for row in rows] == [
        ["ok", "ok"],
        ["same", "same"],
        ["same", "same"],
        ["same", "ok"],
    ]
    assert rows[0][1].answer == "7\n"


def test_answers_differ_as_the_judge_says(runner):
    problem = weak(compare=weak().compare)
    problem.compare.unordered = True
    (row,) = runner.run(
        problem, ["class Solution:\n    def largest(self, nums):\n        return nums[::-1]"], ["[[1, 2]]"]
    )
    check = checks_of(problem, [("[[1, 2]]", "[1, 2]")])[0]
    assert not differs(check, row[0])
    problem.compare.unordered = False
    assert differs(checks_of(problem, [("[[1, 2]]", "[1, 2]")])[0], row[0])


def test_a_checker_is_asked_for_many_answers_at_once(runner):
    checker = "def check(input, output, expected):\n    return output in (expected, -expected), 'no'"
    problem = weak()
    problem.compare.checker = checker
    assert runner.checked(problem, [([[1]], 1, 1), ([[1]], -1, 1), ([[1]], 2, 1)]) == [True, True, False]
