"""Examples of a statement: found in every form that people write, and held against the reference."""

from __future__ import annotations

import pytest

from microcoder.data.forge.examples import contradictions, examples
from microcoder.judge import Judge
from microcoder.schema import Problem, Test

HEADER = "def add(a, b):\n    pass"


def found(statement, **fields):
    fields = {"kind": "assert", "entry_point": "add", "starter_code": HEADER, **fields}
    return [(one.input, one.output) for one in examples(Problem("p", statement=statement, **fields))]


@pytest.mark.parametrize(
    "statement",
    [
        "Add.\n>>> add(1, 2)\n3\n",
        ">>> add(1, 2) == 3",
        "add(1, 2) == 3",
        "    add(1,2) ==> 3   # the sum",
        "for add(1, 2) -> 3.",
        "add(1, 2) ➞ 3",
        "add(1, 2) = 3 - because it is so",
        "`add(1, 2)` should return 3",
        "add(1, 2) # => 3",
        "add(1, 2) returns 3",
        "Example 1:\n\nInput: a = 1, b = 2\nOutput: 3\nExplanation: 1 + 2",
        "**Input:** b = 2, a = 1\n**Output:** 3\n",
        "Input:\n  a : 1\n  b : 2\nOutput: 3",
        "Input: 1, 2\nOutput: 3",
        "For a = 1, b = 2, the output should be 3.",
    ],
)
def test_an_example_is_found_however_it_is_written(statement):
    assert found(statement) == [("[1, 2]", "3")]


@pytest.mark.parametrize(
    "statement",
    [
        "add(a, b) = a + b",
        "add(1, 2) = 1 + 2 = 3",
        "add(5, 6) ->19 - 5 - 6 = 8",
        "add(1) == 1",
        "add(1, 2) is what you write",
        'add(1, 2) == ""three"',
        "add(1, 2)\nis 3 words",
        "myadd(1, 2) == 3",
    ],
)
def test_a_formula_or_a_sentence_is_no_example(statement):
    assert found(statement) == []


def test_an_answer_may_stand_behind_a_call_that_is_typed():
    assert found(">>> add([2], [1]) [1, 2]\n") == [("[[2], [1]]", "[1, 2]")]
    assert found("add([2], [1]) [1, 2]\n") == found(">>> add([2], [1]) [1, 2] and so on\n") == []


def test_values_of_all_kinds_are_read():
    statement = "Input: a = [[1,2],[3]], b = \"x, b = 'y'\"\nOutput: true\n\nadd({1: (2, 3)}, None) == {'k': None}"
    assert found(statement) == [("[{1: (2, 3)}, None]", '{"k": null}'), ("[[[1, 2], [3]], \"x, b = 'y'\"]", "true")]


def test_nodes_and_stdin_have_no_examples_of_calls():
    assert found("Input: head = [1], k = 1\nOutput: [1]", starter_code="def add(head: ListNode, k): pass") == []
    assert found("add(1, 2) == 3", kind="stdin") == []


def test_contradicted_examples_are_named_and_confirmed_ones_are_not():
    statement = "add(1, 2) == 3\nadd(2, 2) == 5\nadd(1, 1) == [2]\nInput: a = 7, b = 0\nOutput: 8"
    code = "def add(a, b):\n    return a + b"
    functions = Problem("p", "function", entry_point="add", statement=statement, starter_code=HEADER)
    functions.tests = [Test("[7,0]", "8")]  # a test already: not our affair
    asserts = Problem("p", "assert", entry_point="add", statement=statement, asserts=["assert add(1, 1) == 2"])
    with Judge(workers=1) as judge:
        said = contradictions(functions, judge, code)
        assert len(said) == 1 and "add(2, 2) == 5" in said[0] and "got 4, expected 5" in said[0]
        said = contradictions(asserts, judge, code)
        assert [line.partition("'")[2][:9] for line in said] == ["add(2, 2)", "Input: a "]
