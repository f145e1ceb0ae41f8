"""A judge that remembers: the same verdicts, and a program is not run again."""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import replace

import pytest

from microcoder import Problem, Solution, Test
from microcoder.config import load
from microcoder.judge.remote import open_judge

CLOCK = "import time; print(time.time_ns())"  # says something else each time it is run
ZERO = Problem("zero", tests=[Test("", "0\n")])
SAME = replace(ZERO, id="same", title="other words", statement="Print 0.")
HARDER = replace(ZERO, id="harder", tests=[Test("", "0\n"), Test("1", "0\n")])


@pytest.fixture
def judge():
    with open_judge(load(None, ["judge.workers=1", "judge.remember=2"]).judge.options()) as judge:
        yield judge


def block(code: str) -> str:
    return f"So:\n```python\n{code}\n```\n"


def test_a_program_is_run_once_for_the_same_tests(judge):
    first = judge.check(ZERO, code=CLOCK)
    again = judge.check(SAME, Solution("same", completion=block(CLOCK), id="b"))
    assert first.verdict == "wrong_answer"
    assert (again.message, again.problem_id, again.id) == (first.message, "same", "b")
    assert judge.check(HARDER, code=CLOCK).message != first.message
    assert judge.check(replace(ZERO, time_limit_s=3), code=CLOCK).message != first.message


def test_another_program_has_a_verdict_of_its_own(judge):
    found = [judge.check(ZERO, block(code)).verdict for code in ("print(0)", "print(1)", "print(0)")]
    assert found == ["accepted", "wrong_answer", "accepted"]
    assert judge.check(ZERO, "no program").verdict == "no_code"
    assert judge.check(ZERO, Solution("zero", code="print(0)", language="javascript")).verdict != "accepted"


def test_the_program_that_was_asked_for_longest_ago_is_forgotten_first(judge):
    first = judge.check(ZERO, code=CLOCK)
    judge.check(ZERO, code="print(1)")
    assert judge.check(ZERO, code=CLOCK).message == first.message
    judge.check(ZERO, code="print(2)")  # in the place of print(1)
    assert judge.check(ZERO, code=CLOCK).message == first.message
    for code in ("print(3)", "print(4)"):
        judge.check(ZERO, code=code)
    assert judge.check(ZERO, code=CLOCK).message != first.message


def test_neither_faults_nor_dropped_programs_are_kept(judge):
    broken = Problem("broken", "assert", asserts=["assert f() == 1"], setup="def (")
    assert judge.check(broken, code="def f(): return 1").verdict == "internal_error"
    slow = judge.submit(ZERO, code="while True: pass")
    judge.drop(slow)
    wait([slow])
    assert not judge._known
    done = judge.submit(ZERO, code="print(0)")
    done.result()
    judge.drop(judge.submit(ZERO, code="print(0)"))  # is known: nothing is to be stopped
    assert judge.check(ZERO, code="print(0)").verdict == "accepted"


def test_a_language_that_nobody_knows_is_the_judges_to_refuse(judge):
    completion = Solution("zero", completion="```cobol\nx\n```", language="cobol")
    with open_judge({"workers": 1}) as plain:
        assert judge.check(ZERO, completion).verdict == plain.check(ZERO, completion).verdict
