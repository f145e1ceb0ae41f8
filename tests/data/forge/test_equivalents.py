"""Mutants that no input tells from the reference are not counted against tests."""

from __future__ import annotations

import json
import random

import pytest

from microcoder.data.forge import ForgeOptions, forge
from microcoder.data.forge.arguments.beyond import beyond
from microcoder.data.forge.equivalents import tripwire
from microcoder.data.forge.search import Effort
from microcoder.data.record import Dropped, Record
from microcoder.data.verify import strength
from microcoder.data.verify.mutations import digest, mutants
from microcoder.judge import Judge
from microcoder.schema import Problem

MEDIAN = """def middle(a, b, c):
    if a > b:
        if a < c:
            found = a
        elif b > c:
            found = b
        else:
            found = c
    else:
        if a > c:
            found = a
        elif b < c:
            found = b
        else:
            found = c
    return found
"""
AGE = """def age(n):
    if n <= 0:
        return 0
    if n <= 2:
        return n * 10
    return 20 + (n - 2) * 4
"""


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=2) as found:
        yield found


def problem(code, *asserts):
    name = code[4 : code.index("(")]
    return Problem(
        "p", kind="assert", statement="Find it.", entry_point=name, asserts=list(asserts), solutions=[{"code": code}]
    )


def forged(judge, given):
    (record,) = forge([Record(given)], judge, options=ForgeOptions(Effort(tests=12, candidates=96, mutants=36)))
    return record


def test_mutants_that_change_nothing_are_found_and_left_out(judge):
    given = problem(MEDIAN, "assert middle(25, 55, 65) == 55", "assert middle(20, 10, 30) == 20")
    record = forged(judge, given)
    alike = record.problem.extra["forge"]["equivalent"]
    made = {digest(one.code): one.change for one in mutants(MEDIAN, entry_point="middle")}
    assert alike and {made[one] for one in alike} <= {
        change for change in made.values() if "<=" in change or ">=" in change
    }
    assert strength(record, judge=judge).notes["mutants_equivalent"] == len(alike)


def test_mutants_that_only_inputs_beyond_the_tests_tell_apart_still_count(judge):
    record = forged(judge, problem(AGE, "assert age(12) == 60", "assert age(15) == 72", "assert age(24) == 108"))
    about = record.problem.extra["forge"]
    assert about["bounded_by"] == "hull" and about["after"]["alive"] > 5
    made = {digest(one.code): one.change for one in mutants(AGE, entry_point="age")}
    assert not {made[one] for one in about["equivalent"]} & {"`n * 10` -> `n // 10`", "`n <= 2` -> `not n <= 2`"}
    with pytest.raises(Dropped):
        strength(record, judge=judge)


def test_all_mutants_count_where_nothing_was_forged(judge):
    given = problem(MEDIAN, "assert middle(25, 55, 65) == 55", "assert middle(20, 10, 30) == 20")
    given.extra["forge"] = {"equivalent": "no list"}
    with pytest.raises(Dropped):
        strength(Record(given), judge=judge)


def test_a_tripwire_stands_where_the_change_was_made():
    assert "raise RuntimeError()\n        return 0" in tripwire(AGE, 3)
    assert tripwire(AGE, 99) == "" and tripwire("def", 1) == ""


def test_values_beyond_keep_their_types():
    value = [3, "ab", [1.5, True], {"a": [2]}]
    seen = set()
    for n in range(200):
        new = beyond(random.Random(n), value, [180], ["March"])
        seen.add(json.dumps(new))
        kinds = {type(one) for one in new}
        assert kinds <= {int, str, list, dict}
    assert len(seen) > 60
    numbers = {beyond(random.Random(n), 5, [180], []) for n in range(400)}
    assert {0, -5, 180} <= numbers and max(numbers) > 10**6
