"""Problems and solutions as they are read; problems are counted by difficulty in one way everywhere."""

from __future__ import annotations

import json

import pytest

from microcoder.schema import Compare, Problem, SchemaError, Solution, bands, in_order


def problems(*levels: str | float | None) -> list[Problem]:
    return [
        Problem(str(n), difficulty=level) if isinstance(level, str) else Problem(str(n), difficulty_score=level)
        for n, level in enumerate(levels)
    ]


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        ((), []),
        ((None, ""), ["", ""]),
        (("easy", "rated", 2.0), ["easy", "rated", "2"]),
        ((1.0, 6.0, 3.0), ["1", "6", "3"]),
        ((0.0, 0.1999, 0.2, 0.6, 0.99, 1.0), ["0-0.2", "0-0.2", "0.2-0.4", "0.6-0.8", "0.8-1", "0.8-1"]),
        ((800.5, 1999.0, 3500.0), ["0-1000", "1000-2000", "3000-4000"]),
        ((0.5, -0.1), ["0.4-0.6", "-0.2-0"]),
        ((float("nan"), float("inf"), 0.5), ["", "", "0.4-0.6"]),
        (("800", "1700", 0.5), ["800", "1700", "0.4-0.6"]),
    ],
)
def test_a_label_or_a_band_of_the_score(levels, found):
    assert bands(problems(*levels)) == found


def test_a_label_goes_before_a_score():
    assert bands([Problem("a", difficulty="hard", difficulty_score=0.1234)]) == ["hard"]


def test_216_scores_are_five_bands():
    assert len(set(bands(problems(*(n / 217 for n in range(216)))))) == 5


def test_many_ratings_as_labels_are_bands_and_other_labels_stay():
    ratings = [str(rating) for rating in range(800, 3600, 100)]
    found = bands(problems(*ratings, "easy", 0.5))
    assert in_order(found) == ["easy", "0-1000", "0.4-0.6", "1000-2000", "2000-3000", "3000-4000"]
    assert (found[0], found[9], found[-1]) == ("0-1000", "1000-2000", "0.4-0.6")


def test_bands_come_from_easy_to_hard():
    names = ["hard", "0.8-1", "z", "easy", "-0.2-0", "0.2-0.4", "10", "2", "medium", "", "0.2-0.4"]
    assert in_order(names) == ["easy", "medium", "hard", "-0.2-0", "0.2-0.4", "0.8-1", "2", "10", "", "z"]


def test_a_solution_of_a_pandas_row_has_no_nan_for_what_it_lacks():
    row = {"problem_id": "a", "code": float("nan"), "completion": "x", "id": float("nan"), "language": float("nan")}
    assert Solution.from_dict(row) == Solution("a", completion="x")


def test_lines_of_a_stdin_test_may_be_a_list():
    record = {"id": "a", "tests": [{"input": ["2", "1 2"], "output": [3, "4"]}]}
    for kind in ({}, {"kind": "stdin"}):
        (test,) = Problem.from_dict(record | kind).tests
        assert (test.input, test.output) == ("2\n1 2", "3\n4")


def test_a_list_of_a_function_test_is_its_value():
    record = {"id": "a", "kind": "function", "entry_point": "f", "tests": [{"input": [["a"], 2], "output": ["a"]}]}
    (test,) = Problem.from_dict(record).tests
    assert (test.input, test.output) == ('[["a"], 2]', '["a"]')


def test_numbers_where_text_belongs_become_text_and_lists_are_refused():
    record = {"id": 1, "difficulty": 1200, "date": 2024, "tags": "dp", "tests": [{"input": "", "output": ""}]}
    problem = Problem.from_dict(record)
    assert (problem.id, problem.difficulty, problem.date, problem.tags) == ("1", "1200", "2024", ["dp"])
    for field, value in (("title", ["a"]), ("setup", 7), ("difficulty_score", "3")):
        with pytest.raises(SchemaError, match=field):
            Problem.from_dict(record | {field: value})


TESTS = {"id": "a", "tests": [{"input": "1", "output": "2"}]}


@pytest.mark.parametrize("extra", ["text", {"kind": "function", "difficulty": 5, "extra": 1, "mine": [1]}])
def test_what_is_extra_stays_so_though_it_has_the_name_of_a_field(extra):
    problem = Problem.from_dict(TESTS | {"extra": extra})
    assert (problem.kind, problem.difficulty) == ("stdin", "")
    again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
    assert again == problem and problem.extra == (extra if isinstance(extra, dict) else {"extra": "text"})


@pytest.mark.parametrize("name", ["input", "output"])
def test_null_is_no_text_of_a_stdin_test_but_a_value_of_a_function(name):
    tests = [{"input": "[1]", "output": "2"} | {name: None}]
    with pytest.raises(SchemaError, match="test 0 must be an object"):
        Problem.from_dict(TESTS | {"tests": tests})
    function = {"kind": "function", "entry_point": "f", "tests": [{"input": "[1]", "output": None}]}
    assert Problem.from_dict(TESTS | function).tests[0].output == "null"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"unordered": "false"}, "compare.unordered is 'false'; it must be true or false"),
        ({"tolerance": "1e-6"}, "compare.tolerance is '1e-6'; it must be a number"),
        ({"tolerance": -1}, "compare.tolerance is -1; it must be a number, 0 or more"),
        ({"checker": 5}, "compare.checker is 5; it must be text"),
    ],
)
def test_rules_of_comparison_are_of_their_types(rules, said):
    with pytest.raises(SchemaError, match=said):
        Problem.from_dict(TESTS | {"compare": rules})
    assert Problem.from_dict(TESTS | {"compare": dict.fromkeys(rules)}).compare == Compare()


def test_a_lineage_may_be_one_text_and_tags_may_be_numbers():
    problem = Problem.from_dict(TESTS | {"lineage": "by hand", "tags": [1, "dp"]})
    assert (problem.lineage, problem.tags) == (["by hand"], ["1", "dp"])
    with pytest.raises(SchemaError, match='"asserts" must be a list'):
        Problem.from_dict({"id": "a", "kind": "assert", "asserts": {"assert f()": 1}})
