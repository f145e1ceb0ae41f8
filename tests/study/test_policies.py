"""Answers in varied formats keep right programs right, and what each policy makes of a run's programs is counted."""

from __future__ import annotations

import dataclasses
import json

import pytest

from microcoder.files import read_problems
from microcoder.judge import Judge
from microcoder.runs import write_rollouts
from microcoder.schema import ACCEPTED, Problem, Test
from microcoder.starter import operations, problems
from microcoder.study import policies as judging
from microcoder.study.policies import LARGEST, drawn, judge_runs, mistakes, varied, write_varied

PROBLEMS = problems("train", 60)
ACCEPTS_ALL = dict.fromkeys(("exact", "robust", "paper"), ACCEPTED)


def rewritten(ending, kind, *outputs):
    """The answers of a problem that ends in this operation, once it is among those that are varied."""
    tests = [Test("", output) for output in outputs]
    for n in range(100):
        problem = Problem(str(n), kind=kind, tests=tests, lineage=[ending], entry_point="solve")
        if varied(problem) != problem:
            return [test.output for test in varied(problem).tests]
    return list(outputs)


def operation(gives):
    return next(name for name, found in operations().items() if found.gives == gives)


@pytest.mark.parametrize(
    ("gives", "kind", "outputs", "expected"),
    [
        ("numbers", "function", ["[1, 2]", "[3]", "[]"], ["(1, 2)", "(3,)", "()"]),
        ("words", "function", ['["a", "b"]'], ["('a', 'b')"]),
        ("numbers", "stdin", ["1 2\n", "\n"], ["1\n2\n", "\n"]),
        ("words", "stdin", ["a bc d\n"], ["a\nbc\nd\n"]),
        ("int", "function", ["25", "-3", "0"], ["25.000000000000007", "-3.000000000000001", "0.0"]),
        ("int", "stdin", ["25\n"], ["25.000000000000007\n"]),
        ("int", "function", ["25", str(LARGEST)], ["25", str(LARGEST)]),
        ("text", "function", ['"1 2"'], ['"1 2"']),
        ("text", "stdin", ["a b\n"], ["a b\n"]),
    ],
)
def test_each_kind_of_answer_has_its_other_format(gives, kind, outputs, expected):
    assert rewritten(operation(gives), kind, *outputs) == expected


def test_in_varied_formats_right_stays_right_and_wrong_wrong_and_exact_refuses_what_was_changed():
    changed = [problem for problem in PROBLEMS if varied(problem) != problem]
    assert 0.3 < len(changed) / len(PROBLEMS) < 0.7
    with Judge(policy="exact", also="robust", reuse=True) as judge:
        right = [judge.submit(varied(problem), code=problem.solutions[0]["code"]) for problem in PROBLEMS]
        wrong = [judge.submit(varied(problem), code=problem.solutions[1]["code"]) for problem in changed]
        refused = [problem for problem, future in zip(PROBLEMS, right, strict=True) if not future.result().accepted]
        assert {future.result().also for future in right} == {ACCEPTED}
        assert {future.result().also for future in wrong} == {"wrong_answer"}
    assert refused == changed


def test_the_file_of_varied_problems_is_the_same_each_time_and_larger_ones_begin_alike(tmp_path):
    write_varied(tmp_path / "a.jsonl", 20)
    write_varied(tmp_path / "b.jsonl", 30)
    small, large = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "ab")
    assert large.startswith(small)
    assert list(read_problems(tmp_path / "b.jsonl")) == [varied(problem) for problem in PROBLEMS[:30]]
    write_varied(tmp_path / "b.jsonl", 20)
    assert (tmp_path / "b.jsonl").read_bytes() == large
    write_varied(tmp_path / "a.jsonl", 30)
    assert (tmp_path / "a.jsonl").read_bytes() == large


def test_mistakes_are_counted_by_policy():
    verdicts = [
        {**ACCEPTS_ALL, "truth": ACCEPTED},
        {**ACCEPTS_ALL, "exact": "wrong_answer", "truth": ACCEPTED},
        {"exact": "wrong_answer", "robust": "wrong_answer", "paper": ACCEPTED, "truth": "wrong_answer"},
        {"exact": "no_code", "robust": "no_code", "paper": "no_code", "truth": "no_code"},
        {"truth": "internal_error"},
    ]
    found = mistakes(verdicts)
    assert (found["programs"], found["right"], found["faults"]) == (4, 2, 1)
    counts = {name: (found[f"{name}_right_refused"], found[f"{name}_wrong_accepted"]) for name in ACCEPTS_ALL}
    assert counts == {"exact": (1, 0), "robust": (0, 0), "paper": (0, 1)}
    shares = {name: [found[f"{name}_{what}"] for what in ("refused", "accepted", "mistaken")] for name in ACCEPTS_ALL}
    assert shares == {"exact": [0.25, 0, 0.25], "robust": [0, 0, 0], "paper": [0, 0.25, 0.25]}


def test_of_nothing_there_are_no_shares():
    assert mistakes([]) == {"programs": 0, "right": 0, "faults": 0} | {
        f"{policy}_{what}": 0 for policy in ACCEPTS_ALL for what in ("right_refused", "wrong_accepted")
    }


def rollouts(run, *programs):
    """A run directory with these programs, two a step."""
    run.mkdir(parents=True)
    rows = [{"problem": name, "code": code, "verdict": "accepted", "reward": 1.0} for name, code in programs]
    for start in range(0, len(rows), 2):
        write_rollouts(run, 1 + start // 2, rows[start : start + 2])
    return run


def test_programs_are_drawn_from_all_steps_and_always_the_same(tmp_path, monkeypatch):
    programs = [("p", f"print({n})") for n in range(9)]
    run = rollouts(tmp_path / "a.0", *programs, ("p", ""))
    assert sorted(drawn(run)) == programs
    monkeypatch.setattr(judging, "PROGRAMS", 4)
    assert drawn(run) == drawn(run) and len(set(drawn(run))) == 4


def test_the_programs_of_a_run_are_judged_under_every_policy(tmp_path):
    write_varied(tmp_path / "varied.jsonl", len(PROBLEMS))
    changed = next(p for p in PROBLEMS if varied(p) != p and p.tests[0].output.startswith("["))
    same = next(problem for problem in PROBLEMS if varied(problem) == problem)
    right, wrong = changed.solutions[0]["code"], "def solve(*given):\n    return None\n"
    reversed_ = f"{right.replace('def solve', 'def inner')}\ndef solve(*given):\n    return inner(*given)[::-1]\n"
    programs = [
        (changed.id, right),  # refused by exact
        (changed.id, right),
        (changed.id, wrong),
        (changed.id, reversed_),  # accepted by paper
        (same.id, same.solutions[0]["code"]),
        (same.id, "not a program"),
    ]
    run = rollouts(tmp_path / "runs" / "a.0", *programs)
    assert list(judge_runs([run], tmp_path / "varied.jsonl", tmp_path / "judged")) == ["a.0"]
    found = json.loads((tmp_path / "judged" / "a.0.json").read_text())
    assert (found["programs"], found["right"], found["faults"]) == (6, 3, 0)
    counts = {name: (found[f"{name}_right_refused"], found[f"{name}_wrong_accepted"]) for name in ACCEPTS_ALL}
    assert counts == {"exact": (2, 0), "robust": (0, 0), "paper": (0, 1)}
    assert found["exact_mistaken"] == pytest.approx(2 / 6)


def test_a_varied_problem_differs_in_its_answers_only():
    for problem in PROBLEMS:
        found = varied(problem)
        assert [test.input for test in found.tests] == [test.input for test in problem.tests]
        assert dataclasses.replace(found, tests=problem.tests) == problem
