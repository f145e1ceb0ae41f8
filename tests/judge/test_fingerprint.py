"""A problem's fingerprint stands for all that a verdict depends on: no other problem can pass for it."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import time
from typing import Any

import pytest
from serve_process import served

from microcoder.judge import Judge
from microcoder.judge.remote.http import packed
from microcoder.schema import JUDGED, Compare, Problem, Test

OTHERWISE = {  # for each field that a verdict depends on, another value
    "id": "q", "kind": "function", "entry_point": "f", "starter_code": "def f(): ...", "setup": "import math",
    "time_limit_s": 2.0, "memory_mb": 64, "asserts": ["assert 1"], "tests": [Test("1", "1.0")],
    "compare": Compare(lines=True),
}  # fmt: skip
HALF = {"id": "half", "tests": [{"input": "1\n", "output": "0.5\n"}], "compare": {"tolerance": 1e-6}}
FORGED = {**HALF, "compare": {"tolerance": hash(1e-6)}}  # the same Python hash, and any number is near enough
WRONG = "print(7)"


def problem(**fields: Any) -> Problem:
    return Problem(**{"id": "p", "tests": [Test("1", "1.0"), Test("2", "2.0")], **fields})


def test_another_problem_with_the_same_hash_does_not_pass_for_it() -> None:
    with Judge(workers=1) as judge:
        forged = judge.check(Problem.from_dict(FORGED), code=WRONG)
        assert forged.accepted  # as its author wants it
        assert judge.check(Problem.from_dict(HALF), code=WRONG).verdict == "wrong_answer"


def test_a_client_cannot_have_another_clients_wrong_program_accepted() -> None:
    with served("--token", "mine", "--token", "theirs", workers=1) as service:
        asked = [
            service.ask("POST", "/v1/judge", {"problem": sent, "code": WRONG}, {"Authorization": f"Bearer {token}"})
            for token, sent in (("theirs", FORGED), ("mine", HALF))
        ]
    assert [answer["verdict"] for _, answer, _ in asked] == ["accepted", "wrong_answer"]


@pytest.mark.parametrize("name", JUDGED)
def test_each_field_that_decides_changes_it_and_travels(name: str) -> None:
    other = problem(**{name: OTHERWISE[name]})
    assert other.fingerprint() != problem().fingerprint()
    assert name in json.loads(packed(other))


def test_the_limit_of_a_test_decides_too_and_travels() -> None:
    first, second = (problem(tests=[Test("1", "1.0", a), Test("2", "2.0", b)]) for a, b in ((0.5, None), (None, 0.5)))
    assert len({problem().fingerprint(), first.fingerprint(), second.fingerprint()}) == 3
    assert Problem.from_dict(json.loads(packed(first))).tests == first.tests


def test_what_does_not_decide_leaves_it_alone() -> None:
    rest = {field.name for field in dataclasses.fields(Problem)} - set(JUDGED)
    for name in rest:
        other = problem(**{name: 0.5 if name == "difficulty_score" else ["x"] if name == "tags" else "x"})
        assert other.fingerprint() == problem().fingerprint(), name


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Compare)])
def test_values_that_python_takes_for_equal_are_told_apart(name: str) -> None:
    values = [None, False, True, 0, 1, -1, -2, 0.0, -0.0, 1.0, "", "1", "True", float("inf"), float("nan"), 10**400]
    marks = [problem(compare=Compare(**{name: value})).fingerprint() for value in values]
    assert len(set(marks)) == len(marks)


def test_texts_cannot_be_divided_otherwise() -> None:
    divided = [
        problem(tests=[Test("ab", "c")]), problem(tests=[Test("a", "bc")]), problem(tests=[Test("abc", "")]),
        problem(tests=[Test("a", "b"), Test("c", "")]), problem(asserts=["ab", "c"], tests=[]),
        problem(asserts=["a", "bc"], tests=[]), problem(asserts=["ab"], tests=[Test("c", "")]),
        problem(asserts=["ab", "c", ""], tests=[]), problem(tests=[Test("\ud800", "")]), problem(tests=[]),
    ]  # fmt: skip
    assert len({one.fingerprint() for one in divided}) == len(divided)


def test_a_problem_that_is_changed_does_not_keep_its_old_one() -> None:
    one = problem()
    seen = [one.fingerprint()]

    def changed() -> None:
        seen.append(one.fingerprint())
        assert one.fingerprint() == seen[-1]

    one.tests[1].output = "3"
    changed()
    one.tests.append(Test("", ""))
    changed()
    one.tests[:2] = one.tests[1::-1]
    changed()
    one.compare.tolerance = 1
    changed()
    one.compare.tolerance = True
    changed()
    one.asserts.append("assert 1")
    changed()
    one.setup = "x = 1"
    changed()
    assert len(set(seen)) == len(seen)


def test_a_copy_has_the_same_until_it_is_changed() -> None:
    one = problem()
    mark = one.fingerprint()
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), dataclasses.replace(one)):
        assert other == one and other.fingerprint() == mark
        other.id = "q"
        assert other.fingerprint() != mark
    assert "_mark" not in repr(one) and "_mark" not in one.to_dict()
    assert Problem.from_dict({**one.to_dict(), "_mark": "x"}).fingerprint() == mark


def test_it_costs_microseconds_however_large_the_tests_are() -> None:
    large = problem(tests=[Test("x" * (1 << 16), str(n)) for n in range(16)])
    large.fingerprint()
    times = []
    for _ in range(50):
        start = time.perf_counter()
        large.fingerprint()
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-4  # the digest of a megabyte takes ten times as long and more


def test_what_is_no_plain_value_has_none() -> None:
    with pytest.raises(TypeError, match="list"):
        problem(id=[]).fingerprint()
