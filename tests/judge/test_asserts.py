"""Assert tests taken apart: what is asked inside, what is expected outside."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from microcoder import Judge, Problem, Test
from microcoder.judge.asserts import Probe, probes
from microcoder.judge.sandbox.records import RECORDS, recorder
from microcoder.schema import SchemaError


def evaluate(statements: str, expression: str) -> Any:
    """The problem's code, run here: it is our own."""
    scope: dict[str, Any] = {RECORDS: []}
    scope["_record"] = recorder(scope[RECORDS])
    exec(statements, scope)
    return eval(expression, scope)


def taken_apart(program: str, entry: str = "f") -> list[Probe]:
    return probes([program], entry, "", evaluate)


@pytest.mark.parametrize(
    ("text", "op", "ask", "expected"),
    [
        ("assert f(1) == 2", "==", "f(1)", "2"),
        ("assert 2 == f(1)", "==", "f(1)", "2"),
        ("assert f(1) != 2", "!=", "f(1)", "2"),
        ("assert 3 < f(1)", ">", "f(1)", "3"),
        ("assert f(1) is None", "is", "f(1)", "None"),
        ("assert f(1) in (2, 3)", "in", "f(1)", "(2, 3)"),
        ("assert 2 in f(1)", "rest", "(f(1),)", "2 in _answers[0]"),
        ("assert f(1)", "truth", "f(1)", ""),
        ("assert not f(1)", "false", "f(1)", ""),
        ("assert abs(f(1) - 2.5) < 1e-6", "<", "(f(1),)", "1e-06"),
        ("assert abs(2.5 - f(1)) <= 1e-6", "<=", "(f(1),)", "1e-06"),
        ("assert math.isclose(f(1), 2.5)", "rest", "(f(1),)", "math.isclose(_answers[0], 2.5)"),
        ("assert sorted(f(1)) == [1, 2]", "==", "sorted(f(1))", "[1, 2]"),
        ("assert f(1) == f(2)", "pair", "(f(1), f(2))", ""),
        ("assert isinstance(f(1), int)", "rest", "(f(1),)", "isinstance(_answers[0], int)"),
        ("assert f(1) == 2 or f(1) == 3", "rest", "(f(1), f(1))", "_answers[0] == 2 or _answers[1] == 3"),
        ("assert 1 <= f(1) <= 6", "rest", "(f(1),)", "1 <= _answers[0] <= 6"),
    ],
)
def test_forms_of_assert(text: str, op: str, ask: str, expected: str) -> None:
    [probe] = probes([text], "f", "")
    assert (probe.op, probe.ask, probe.expected) == (op, ask, expected)


def test_and_becomes_two_questions() -> None:
    assert [p.ask for p in probes(["assert f(1) == 2 and f(2) == 3"], "f", "")] == ["f(1)", "f(2)"]


def test_check_of_a_candidate_is_read_statement_by_statement() -> None:
    program = (
        "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    xs = [1, 2]\n    assert candidate(xs) == 3\n"
        "    assert True, 'easy'\n    assert candidate([]) == 0\n\ncheck(f)\n"
    )
    first, second = taken_apart(program)
    assert (first.alias, first.entry, first.ask) == ("candidate", "f", "candidate(xs)")
    assert (first.before, first.given) == ("xs = _given1", {"_given1": "[1, 2]"})
    assert (second.before, second.given) == ("", {})


def test_a_check_without_an_entry_point_must_name_the_function() -> None:
    [probe] = taken_apart("def check(candidate):\n    assert candidate(1) == 2\n\ncheck(Solution().double)\n", "")
    assert probe.entry == "Solution.double"
    with pytest.raises(SchemaError, match='"entry_point" must name the function'):
        probes(["def check(candidate):\n    assert candidate(1) == 2\n"], "", "")


def test_what_is_handed_over_is_a_value_and_not_where_it_came_from() -> None:
    [first, second] = taken_apart(
        "cases = [(1, 'kappa'), (2, 'omega')]\nfor n, want in cases:\n    assert f(n) == want"
    )
    assert (first.before, first.ask, first.given) == ("", "f(_given1)", {"_given1": "1"})
    assert (second.ask, second.given) == ("f(_given2)", {"_given2": "2"})
    assert first.fact is not None and first.fact.text == '"kappa"' and not first.tells


def test_a_function_as_an_argument_goes_inside_with_what_it_needs_and_no_more() -> None:
    program = "want = 'kappa'\nstep = 3\ndef add(x):\n    return x + step\nassert f(add) == want"
    [probe] = taken_apart(program)
    assert "step = 3" in probe.before and "def add" in probe.before and "kappa" not in probe.before
    assert not probe.tells


def test_a_function_beside_what_is_expected_is_said_to_tell() -> None:
    [probe] = taken_apart("cases = [(lambda x: x, 'kappa')]\nassert f(cases[0][0]) == cases[0][1]")
    assert "kappa" in probe.before and probe.tells


def test_a_helper_that_computes_the_expected_value_stays_outside() -> None:
    program = "def reference(n):\n    return n * 2\n\ndef check(candidate):\n    assert candidate(4) == reference(4)\n"
    [probe] = taken_apart(program)
    assert probe.before == "" and probe.fact is not None and probe.fact.text == "8"


def test_a_value_that_cannot_change_stays_known_after_it_was_handed_over() -> None:
    first, second = taken_apart("n = 5\nanswer = f(n)\nassert answer == n * 2\nassert f(n) == n * 2")
    assert [probe.fact.text for probe in (first, second) if probe.fact] == ["10", "10"]
    assert not first.again and not second.again


def test_what_the_candidate_may_have_changed_is_compared_as_it_was_first() -> None:
    [probe] = taken_apart("xs = [1, 2]\nanswer = f(xs)\nassert answer == sum(xs)")
    assert probe.fact is not None and probe.fact.text == "3" and probe.again


def test_a_call_that_changes_a_variable_is_seen_by_later_asserts() -> None:
    _, second = probes(["xs = [3, 1]\nassert order(xs) is None\nassert xs == [1, 3]"], "order", "")
    assert second.op == "==" and second.ask == "xs" and "order(xs)" in second.before


def test_loops_over_what_is_known_are_written_out() -> None:
    found = taken_apart("for n in range(3):\n    assert f(n) == n * n")
    assert [probe.given for probe in found] == [{"_given1": "0"}, {"_given2": "1"}, {"_given3": "2"}]
    assert [probe.fact.text for probe in found if probe.fact] == ["0", "1", "4"]


@pytest.mark.parametrize(
    "program",
    [
        "while True:\n    assert f(1) == 1\n    break",
        "for n in range(1001):\n    assert f(n) == n",
        "for x in f(1):\n    y = x\n    assert y > 0",
        "import itertools\nfor n in itertools.count():\n    assert f(n) == n\n    if n > 3:\n        break",
        "assert f(1) is f(1)",
        "def run(x, want):\n    assert f(x) == want\n    return x\nrun(1, 2)",
    ],
)
def test_what_cannot_be_written_out_runs_inside(program: str) -> None:
    assert "inside" in [probe.op for probe in taken_apart(program)]


def test_an_assert_runs_no_calls_but_those_that_lead_to_it() -> None:
    rows = taken_apart("for xs, want in [([1], 2), ([3], 4)]:\n    assert f(xs) == want")
    assert [probe.before for probe in rows] == ["xs = _given1", "xs = _given2"]
    answers = taken_apart("y = f(1)\nassert y == 2\ny = f(2)\nassert y == 3")
    assert [probe.before for probe in answers] == ["y = f(1)", "y = f(2)"]
    changed = taken_apart("xs = [1]\nys = xs\nf(ys)\nys = 5\nassert xs == [2]")
    assert changed[0].before == "xs = [1]\nys = xs\nf(ys)"


def test_a_function_sees_names_as_they_are_when_it_is_called() -> None:
    [probe] = taken_apart("n = 1\ndef g(x):\n    return x + n\nn = 2\nassert f(g) == 3")
    assert probe.before.endswith("n = 2")
    [probe] = taken_apart("s = Stack()\ndef add(x):\n    s.push(x)\ns = Stack()\nadd(1)\nassert s.top() == 1")
    assert probe.before.endswith("s = Stack()\nadd(1)")


def test_a_function_with_asserts_is_read_where_it_is_called() -> None:
    found = taken_apart(
        "def same(n, want=9):\n    assert f(n) == want\nsame(2, 4)\nsame(n=3)\nfor n in (1,):\n    same(n, 1)"
    )
    assert [probe.given.get("_given" + str(n)) for n, probe in enumerate(found, 1)] == ["2", "3", "1"]
    assert [probe.fact.text for probe in found if probe.fact] == ["4", "9", "1"]


def test_an_exception_is_asked_for_without_saying_which() -> None:
    [probe] = taken_apart("try:\n    f(-1)\nexcept (KeyError, OSError):\n    pass\nelse:\n    assert False")
    assert probe.op == "raises" and "KeyError" not in probe.before + probe.ask
    assert probe.fact is not None and probe.fact.text == '["KeyError", "OSError"]'


def test_the_answer_to_an_assert_is_not_told_to_the_next_one() -> None:
    first, second = taken_apart("s = Stack()\nassert s.pop() == 'kappa'\nassert s.pop() == 'omega'")
    assert "kappa" not in second.before and second.before.count("s.pop()") == 1
    assert not first.tells and not second.tells


def test_a_function_named_like_a_built_in_one_is_the_candidates() -> None:
    [probe] = probes(["assert sum(10, 15) == 6"], "", "")
    assert (probe.op, probe.ask) == ("==", "sum(10, 15)")


def test_a_module_that_an_assert_mentions_is_imported() -> None:
    [probe] = probes(["assert f(math.pi) == 0"], "f", "")
    assert probe.given == {"_given1": "null"}  # a value, which is missing where nothing runs the problem's code
    [probe] = taken_apart("assert f(math.pi) == 0")
    assert probe.given == {"_given1": "3.141592653589793"}


CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "right_asserts.toml").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_plain_python_accepts_the_right_asserts(case: dict[str, Any]) -> None:
    for text in case["problem"]["asserts"]:
        scope: dict[str, Any] = {"__name__": "solution"}
        for source in (case["problem"].get("setup", ""), case["code"], text):
            exec(compile(source, "<asserts>", "exec", dont_inherit=True), scope)
        if "def test_zero" in text:
            scope["test_zero"]()


def test_asserts_and_tests_may_hold_long_integers() -> None:
    digits = "7" * 5000
    code = "def f(x=0): return 7 * (10 ** 5000 - 1) // 9"
    asserted = Problem("a", "assert", entry_point="f", asserts=[f"assert f() == {digits}", f"assert f({digits}) > 5"])
    tested = Problem("b", "function", entry_point="f", tests=[Test("[]", digits)])
    too_long = Problem("c", "function", entry_point="f", tests=[Test("[]", "7" * 200_001)])
    with Judge(workers=1) as judge:
        assert judge.check(asserted, code=code).accepted
        assert judge.check(tested, code=code).accepted
        refused = judge.check(too_long, code=code)
    assert refused.verdict == "internal_error" and "integer of over 200,000 digits" in refused.message


def test_the_table_of_right_asserts_is_large() -> None:
    assert sum(len(case["problem"]["asserts"]) for case in CASES) >= 400
