"""benchmarks/faults: the injectors plant what they say, and nothing else."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.faults import faults
from benchmarks.faults.draw import half_of
from microcoder.data.record import Record
from microcoder.starter import problems


@pytest.fixture(scope="module")
def planted():
    """(controls, faulty ones) of a kind, made of starter problems."""

    def pairs(name, half="dev"):
        kind = next(kind for kind in faults.KINDS if kind.name == name)
        bench = faults.Bench({"starter": problems("train", 40, 0)}, None, 20, 0, half)
        found = list(bench.pairs(kind))
        assert len(found) >= 20
        return [(control, faulty) for _, control, faulty in found]

    return pairs


def answers(problem):
    scope: dict = {}
    exec(problem.solutions[0]["code"], scope)
    return [json.dumps(scope[problem.entry_point](*json.loads(test.input))) for test in problem.tests]


def without(problem, *names):
    """The problem as a table, but for these fields."""
    return {name: value for name, value in Record(problem).to_dict()["problem"].items() if name not in names}


def test_one_expected_output_is_wrong_and_all_else_is_as_it_was(planted):
    for control, faulty in planted("wrong expected output"):
        if control.kind == "function":
            right = [test.output == answer for test, answer in zip(faulty.tests, answers(control), strict=True)]
            assert right.count(False) == 1
            assert without(control, "tests") == without(faulty, "tests")


def test_mojibake_is_the_text_read_in_another_encoding(planted):
    pytest.importorskip("ftfy")  # which brings the codec
    for control, faulty in planted("mojibake"):
        back = set()
        for codec in ("sloppy-windows-1252", "latin-1", "mac_roman"):
            try:
                back.add(faulty.statement.encode(codec).decode())
                back.add(faulty.statement.encode(codec).decode().encode(codec).decode())
            except UnicodeError:
                continue
        assert control.statement in back - {faulty.statement}
        assert without(control, "statement") == without(faulty, "statement")


def test_a_twin_is_worded_otherwise_and_has_the_tests_and_a_program_that_gives_the_same_answers(planted):
    changed = 0
    for control, faulty in planted("duplicate, reworded"):
        changed += control.statement != faulty.statement
        assert control.tests == faulty.tests
        if control.kind == "function":
            assert answers(control) == answers(faulty)
    assert changed >= 20


def test_the_halves_share_no_problem_and_plant_different_lines(planted):
    half = {problem.id: half_of(problem) for problem in problems("train", 400, 0)}
    assert {*half.values()} == {"dev", "test"} and 150 < [*half.values()].count("dev") < 250
    dev, test = ([faulty.statement for _, faulty in planted("boilerplate", half)] for half in ("dev", "test"))
    assert not {text.split("\n")[0] for text in dev} & {text.split("\n")[0] for text in test}


def test_planted_faults_are_found_by_the_pipeline_and_controls_raise_no_alarm(tmp_path):
    bench = faults.Bench({"starter": problems("train", 20, 0)}, faults.Runs(tmp_path), 8, 0, "dev")
    for kind in faults.KINDS:
        if kind.name in ("white space", "no tests", "contradicting tests"):
            row = bench.measure(kind)
            assert (row["n"], row["found"], row["false"]) == (8, 8, 0), row


def test_a_fault_that_nothing_repairs_is_missed(tmp_path):
    kind = next(kind for kind in faults.KINDS if kind.name == "white space")
    unrepairable = dataclasses.replace(kind, plant=lambda problem, draw: polite(problem))
    row = faults.Bench({"starter": problems("train", 20, 0)}, faults.Runs(tmp_path), 8, 0, "dev").measure(unrepairable)
    assert (row["n"], row["found"], row["false"]) == (8, 0, 0)


def polite(problem):
    """A change that no step can know of."""
    problem.statement = problem.statement.replace("Return", "Please return")
    return "Please" in problem.statement
