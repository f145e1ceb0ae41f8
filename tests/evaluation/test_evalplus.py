"""EvalPlus's suites: outputs of canonical solutions, its rules of comparison, and its two scores. Real judge."""

from __future__ import annotations

import json

import pytest

import microcoder as mc
from microcoder import Judge
from microcoder.data.sources import Unreadable, collect, detect, evalplus
from microcoder.evaluation.catalog import load_suite
from microcoder.evaluation.folder import compare_scores, read_scores
from microcoder.evaluation.suite import EvaluationError, about_tests
from microcoder.files import FileError
from microcoder.judge.compare import compare_value
from microcoder.prompts import messages
from microcoder.schema import Compare, Problem, SchemaError, Test


def row(name, prompt, entry, code, base, plus, atol=0):
    return {
        "task_id": name, "prompt": prompt, "entry_point": entry, "canonical_solution": code, "base_input": base,
        "plus_input": plus, "atol": atol, "contract": "",
    }  # fmt: skip


DOUBLE = 'from typing import List\n\n\ndef double(x: int) -> int:\n    """Twice x."""\n'
ZERO = 'def find_zero(xs: list):\n    """Find a zero."""\n'
COMMON = (
    '"""\nWrite a function to find shared elements.\nassert set(similar_elements((1, 2), (2, 3))) == set((2,))\n"""\n'
)
ROWS = {
    "double": row("HumanEval/0", DOUBLE, "double", "    return 2 * x\n", [[1], [2]], [[-3], [10**3000]]),
    "find_zero": row("HumanEval/32", ZERO, "find_zero", "    return -xs[0] / xs[1]\n", [[[1, 2]]], [[[-6, 3]]], 1e-4),
    "similar_elements": row(
        "Mbpp/2", COMMON, "similar_elements", "\ndef similar_elements(a, b):\n  return tuple(set(a) & set(b))\n",
        [[[3, 4, 5], [5, 4, 10]]], [[[], []], [[1, 2], [2, 1]]],
    ),
    "convert": row(
        "Mbpp/252", '"""\nPolar.\nassert convert(1) == (1.0, 0.0)\n"""\n', "convert",
        "\nimport cmath\ndef convert(numbers):\n  return cmath.polar(numbers)\n", [[1]], [["(3-4j)"]],
    ),
    "check_str": row(
        "Mbpp/737", '"""\nVowel first.\nassert check_str("annie")\n"""\n', "check_str",
        "\nimport re\ndef check_str(string):\n  return re.search('^[aeiou]', string)\n", [["annie"]], [["dawood"]],
    ),
    "last": row(
        "Mbpp/793", '"""\nLast.\nassert last([1]) == 1\n"""\n', "last", "\ndef last(a):\n  return a[-1]\n",
        [[[1, 2]]], {},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))


def written(folder, *names, **changes):
    path = folder / "plus.jsonl"
    path.write_text("".join(json.dumps({**ROWS[name], **changes}) + "\n" for name in names))
    return str(path)


def read(path):
    return [found if isinstance(found, Unreadable) else found.problem for found in collect("evalplus", path)]


def test_the_outputs_are_those_of_the_canonical_solution_base_tests_first(tmp_path):
    path = written(tmp_path, *ROWS)
    assert detect(path) == "evalplus"
    found = {problem.entry_point: problem for problem in read(path)}
    assert found["double"].tests[:3] == [Test("[1]", "2", 4.0), Test("[2]", "4", 4.0), Test("[-3]", "-6", 4.0)]
    assert int(found["double"].tests[3].output, 16) == 2 * 10**3000
    assert found["double"].extra == {"base_tests": 2}
    pairs = [("[(), ()]", "()"), ("[(1, 2, ), (2, 1, )]", "(1, 2, )")]
    assert [(test.input, test.output) for test in found["similar_elements"].tests[1:]] == pairs
    assert [test.input for test in found["convert"].tests] == ["[(1+0j)]", "[(3-4j)]"]
    assert [test.output for test in found["check_str"].tests] == ["true", "false"]
    assert len(found["last"].tests) == 1
    with Judge(workers=2) as judge:
        for problem in found.values():
            verdict = judge.check(problem, code=problem.solutions[0]["code"])
            assert verdict.accepted, (problem.id, verdict.message)


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        ("double", "def double(x): return x + x", "accepted"),
        ("double", "def double(x): return abs(2 * x)", "wrong_answer"),
        ("double", "def double(x): return 2.0 * x if x < 9 else 2 * x", "accepted"),  # 4.0 == 4
        ("find_zero", "def find_zero(xs): return -xs[0] / xs[1] + 1e-6", "accepted"),
        ("find_zero", "def find_zero(xs): return -xs[0] / xs[1] + 1e-3", "wrong_answer"),
        ("similar_elements", "def similar_elements(a, b): return sorted(set(a) & set(b), reverse=True)", "accepted"),
        ("similar_elements", "def similar_elements(a, b): return a", "wrong_answer"),
        ("similar_elements", "def similar_elements(a, b): return (*a, 0) and a + [] or b", "runtime_error"),  # tuples
        ("convert", "import cmath\ndef convert(z): return (abs(z) + 1e-9, cmath.phase(z))", "accepted"),
        ("convert", "import cmath\ndef convert(z): return [abs(z), cmath.phase(z)]", "wrong_answer"),
        ("check_str", "def check_str(s): return s[0] in 'aeiou'", "accepted"),
        ("check_str", "def check_str(s): return s", "wrong_answer"),
        ("last", "def last(a): a[:] = [2]", "wrong_answer"),  # a changed argument is no answer
    ],
)
def test_programs_are_judged_by_evalplus_rules_under_every_policy(tmp_path, name, code, verdict):
    (problem,) = read(written(tmp_path, name))
    with Judge(workers=1, policy="paper", also="exact") as judge:
        found = judge.check(problem, code=code)
    assert (found.verdict, found.also) == (verdict, verdict)


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "strategy"),
    [
        ([1, 2], [1, 2], None, "equal"),
        ((1, 2), [1, 2], None, ""),
        (1, True, None, "equal"),
        (0.3, 0.1 + 0.2, None, "numbers"),
        (0.31, 0.3, None, ""),
        (0.31, 0.3, 0.1, "numbers"),
        (1e9 + 50, 1e9, None, "numbers"),  # 1e-7 of it
        (1e9 + 150, 1e9, None, ""),
        (10**9 + 50, 10**9, None, ""),  # no float is expected
        (1, 1.0000001, None, ""),  # an int is no float
        ([0.1, 0.2], [0.1, 0.2000001], None, "numbers"),
        ([0.1, 2], [0.1000001, 2], None, ""),  # not floats alone
        ([0.1, 2], [0.1000001, 2], 1e-4, "numbers"),
        ((0.1,), [0.1000001], 1e-4, ""),
        ([0.1], [0.1, 0.2], 1e-4, ""),
        ({"a": [("x", 0.1)]}, {"a": [("x", 0.10001)]}, 1e-4, "numbers"),
        ({"a": 0.1}, {"b": 0.1}, 1e-4, ""),
        (float("inf"), float("inf"), None, "equal"),
        (float("nan"), float("nan"), 1.0, ""),
        (10**400, 1.5, 1.0, ""),
        ("a", "a", 1.0, "equal"),
    ],
)
def test_equality_and_tolerance_are_evalplus(got, expected, tolerance, strategy):
    assert compare_value(got, expected, "evalplus", Compare(tolerance=tolerance)).strategy == strategy


def test_its_policy_is_for_returned_values():
    with pytest.raises(SchemaError, match="compares returned values"):
        Problem("a", tests=[Test("1", "1")], compare=Compare(policy="evalplus")).check()


def test_a_canonical_solution_runs_once_and_its_outputs_are_kept(tmp_path, monkeypatch):
    path = written(tmp_path, "double", "last")
    first = read(path)
    monkeypatch.setattr(evalplus, "Judge", None)  # a second run would fail
    assert read(path) == first
    with pytest.raises(TypeError):
        read(written(tmp_path, "double", canonical_solution="    return x + x\n"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"canonical_solution": "    return 1 // (x - 2)\n"}, r"HumanEval/0 fails: test 1: ZeroDivisionError"),
        (
            {"canonical_solution": "    return object()\n"},
            r"HumanEval/0 fails: test 0: TypeError: object has no literal",
        ),
        ({"canonical_solution": "    import os\n    os._exit(3)\n"}, r"HumanEval/0 fails: runtime_error"),
        ({"base_input": [1]}, "'base_input' should be a list of lists"),
        ({"base_input": []}, "'base_input' holds no test"),
    ],
)
def test_a_canonical_solution_that_fails_is_named(tmp_path, changes, words):
    with pytest.raises(EvaluationError, match=words):
        load_suite("humanevalplus", data=written(tmp_path, "double", **changes), unchecked=True)


def test_a_canonical_solution_that_takes_too_long_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(evalplus, "REFERENCE", evalplus.Limits(0.3, 1 << 30, 1 << 20))
    path = written(tmp_path, "double", canonical_solution="    while True: pass\n")
    with pytest.raises(EvaluationError, match=r"HumanEval/0 fails: time_limit"):
        load_suite("humanevalplus", data=path, unchecked=True)


def test_outputs_that_are_too_large_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(evalplus, "_DRIVER", evalplus._DRIVER.replace(str(evalplus.LARGEST), "50"))
    code = "\ndef last(a):\n  return ['x'] * a[-1]\n"
    path = written(tmp_path, "last", canonical_solution=code, base_input=[[[1]], [[99]]], plus_input=[[[98]], [[2]]])
    (problem,) = read(path)
    assert problem.tests == [Test("[[1]]", '["x"]', 4.0), Test("[[2]]", '["x", "x"]', 4.0)]
    assert problem.extra == {"base_tests": 1, "left_out": 2}
    assert about_tests([problem]) == "2 tests with too large outputs left out"


def test_a_test_has_four_seconds_or_four_times_what_the_canonical_solution_took(tmp_path):
    code = (
        "\ndef last(a):\n  import time\n  end = time.process_time() + a[-1]\n  while time.process_time() < end: pass\n"
    )
    path = written(tmp_path, "last", canonical_solution=code, base_input=[[[0.1]]], plus_input=[[[1.2]]])
    (problem,) = read(path)
    quick, slow = (test.time_limit_s for test in problem.tests)
    assert quick == 4.0 and 4.8 <= slow < 6.0


def test_the_suites_have_the_prompts_of_humaneval_and_mbpp(tmp_path):
    plus = load_suite("humanevalplus", data=written(tmp_path, "double"), unchecked=True)
    assert (plus.style, plus.time_limit_s, plus.reuse, plus.problems[0].id) == ("humaneval", 10.0, True, "HumanEval/0")
    assert messages(plus.problems[0], plus.style)[0]["content"].endswith(f"for this function.\n{DOUBLE}")
    plus = load_suite("mbppplus", data=written(tmp_path, "similar_elements"), unchecked=True)
    assert messages(plus.problems[0], plus.style)[0]["content"] == (
        "You are an expert Python programmer, and here is your task: Write a function to find shared elements. Your "
        "code should pass these tests:\n\nassert set(similar_elements((1, 2), (2, 3))) == set((2,))"
    )


def test_what_is_no_whole_suite_is_refused_with_what_to_do(tmp_path):
    path = written(tmp_path, "double")
    get = r"download HumanEvalPlus\.jsonl\.gz from https://github\.com/evalplus/humanevalplus_release/releases"
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "a", "tests": []}\n')
    for words, data in (
        (f"not on the hub.*{get}", None),
        (f"there is no file .*{get}", str(tmp_path)),
        (f"not in EvalPlus's layout.*{get}", str(other)),
        ("has 1 problems, but humanevalplus has 164; .*--unchecked", path),
    ):
        with pytest.raises(EvaluationError, match=words):
            load_suite("humanevalplus", data=data)


def test_a_file_of_problems_it_is_not_and_the_error_says_how_it_becomes_one(tmp_path):
    with pytest.raises(FileError, match=r"in the layout of EvalPlus; make problems of it first: .*data run"):
        mc.load_problems(written(tmp_path, "double"))


BASE_ONLY = "def double(x): return abs(2 * x)"  # passes the base tests
RIGHT = "def double(x): return 2 * x"


def scored(folder, name, solutions):
    suite = written(folder, "double", "find_zero")
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"task_id": i, "solution": code}) + "\n" for i, code in solutions))
    return mc.evaluate(
        completions=path, suite="humanevalplus", data=suite, unchecked=True, output=folder / name, judge={"workers": 1}
    )


def test_base_and_plus_are_scored_side_by_side_and_compared(tmp_path):
    zero = ("HumanEval/32", "def find_zero(xs): return -xs[0] / xs[1]")
    before = scored(tmp_path, "before", [("HumanEval/0", BASE_ONLY), ("HumanEval/32", "def find_zero(")])
    after = scored(tmp_path, "after", [("HumanEval/0", RIGHT), zero])
    assert (before.accuracy, before.at(tests="base").accuracy) == (0.0, 0.5)
    assert (after.accuracy, after.at(tests="base").accuracy) == (1.0, 1.0)
    at = json.loads((tmp_path / "before/scores.json").read_text())["scores"]["0"]
    for policy in ("exact", "robust"):
        assert (at[policy]["pass_at_k"], at["base"][policy]["pass_at_k"]) == ({"1": 0.0}, {"1": 0.5})
    assert at["base"]["robust"]["verdicts"] == {"accepted": 1, "compile_error": 1}
    lines = [line.split()[1:] for line in str(before).partition("EvalPlus's two scores")[2].splitlines()]
    assert ["base", "50.0", "(0.0-100.0)", "50.0"] in lines and ["base", "+", "plus", "0.0", "0.0"] in lines
    pair = [read_scores(tmp_path / name) for name in ("before", "after")]
    whole, _ = compare_scores(*pair)
    base, _ = compare_scores(*pair, tests="base")
    assert (whole["difference"], base["difference"]) == (1.0, 0.5)


def test_a_suite_without_base_tests_has_no_score_for_them(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"id": "a", "tests": [{"input": "1", "output": "1"}]}) + "\n")
    (tmp_path / "c.jsonl").write_text('{"problem_id": "a", "code": "print(1)"}\n')
    scores = mc.evaluate(completions=tmp_path / "c.jsonl", suite=str(path), output=tmp_path / "o", judge={"workers": 1})
    assert "base" not in scores.result["scores"]["0"] and "EvalPlus" not in str(scores)
    with pytest.raises(EvaluationError, match="has no base tests"):
        scores.at(tests="base")


def test_evalplus_problems_are_not_those_of_mbpp(tmp_path):
    with pytest.raises(EvaluationError, match="type --suite mbppplus"):
        load_suite("mbpp", data=str(written(tmp_path, "similar_elements")))
