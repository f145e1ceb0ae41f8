"""The measurements of the forge: rates, intervals, and what each part makes of its files."""

from __future__ import annotations

import json

import pytest

from benchmarks.forge.livecodebench import cases_of
from benchmarks.forge.mbpp import first_call, like
from benchmarks.forge.measure import Verdicts, rates_of, sampled
from microcoder.judge import Judge
from microcoder.schema import Problem, Test


def row(*programs, tests=3):
    found = [{"right": right, "forged": (verdict, ""), "times": times} for right, verdict, times in programs]
    return {"programs": found, "tests": {"forged": tests}}


def test_rates_count_samples_and_leave_out_what_could_not_be_judged():
    rows = [
        row((True, "accepted", 3), (True, "wrong_answer", 1), (False, "time_limit", 4), (False, "internal_error", 9)),
        row((False, "accepted", 1), (False, "wrong_answer", 3), tests=5),
    ]
    rates = rates_of(rows, "forged")
    assert [rates[name][0] for name in ("tpr", "tnr", "wrong")] == [3 / 4, 7 / 8, 1 / 4]
    assert rates["counts"] == [3, 1, 1, 7] and rates["tests"] == 4
    low, high = rates["tnr"][1:]
    assert low == 0.75 and high == 1  # a resample is one problem or the other, or both
    assert rates_of([], "forged")["tpr"] == (None, None, None)


def test_one_right_program_is_the_reference_and_is_not_scored():
    problems = {name: Problem(name, tests=[Test("1", "1")]) for name in ("a", "b", "c")}
    graded = [("a", True, "r1"), ("a", False, "w"), ("a", True, "r2")]
    graded += [("b", True, "r"), ("b", False, "w"), ("c", True, "r")]
    rows = [{"question_id": name, "graded": right, "code": code, "model": "m"} for name, right, code in graded]
    (case,) = cases_of(problems, rows)
    assert case.seen.solutions == [{"code": "r1"}]
    assert [(program.code, program.right) for program in case.programs] == [("r2", True), ("w", False)]


def test_samples_are_counted_by_program(tmp_path):
    texts = ["```python\nx = 1\n```", "so\n```python\nx = 1\n```", "```python\nx = 2\n```", ""]
    lines = [json.dumps({"problem_id": "p", "number": n, "text": text}) for n, text in enumerate(texts)]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    verdicts = [{"id": f"p#{n}@1024", "verdict": "accepted" if n == 2 else "wrong_answer"} for n in range(4)]
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(json.dumps, verdicts)) + "\n")
    assert sorted((one.times, one.accepted) for one in sampled([tmp_path])["p"].values()) == [(1, True), (2, False)]


def test_tuples_are_where_the_asserts_have_them():
    shape = first_call(["assert f([(1, 2)], {3}, 'x') == 1"], "f")
    assert like(shape, [[[4, 5], [6, 7]], [8, 8], "y"]) == [[(4, 5), (6, 7)], {8}, "y"]
    assert first_call(["assert f(g(1)) == 2"], "f") == [] and like([], [[1], 2]) == [[1], 2]


def test_verdicts_are_kept_and_nothing_is_judged_twice(tmp_path, monkeypatch):
    problem = Problem("p", "function", entry_point="f", tests=[Test("[1]", "1")])
    codes = ["def f(x):\n    return x", "def f(x):\n    return 2"]
    with Judge(workers=1) as judge:
        verdicts = Verdicts(tmp_path / "verdicts.jsonl", judge)
        verdicts.fill((problem, code) for code in codes)
        assert [verdicts.of(problem, code)[0] for code in codes] == ["accepted", "wrong_answer"]
        with open(tmp_path / "verdicts.jsonl", "a") as out:
            out.write('{"key": "cut o')  # stopped while it wrote
        again = Verdicts(tmp_path / "verdicts.jsonl", judge)
        monkeypatch.setattr(judge, "map", lambda pairs: pytest.fail("judged again") if list(pairs) else ())
        again.fill((problem, code) for code in codes)
        assert again.of(problem, codes[0])[0] == "accepted"
