"""Assert tests taken apart: what is asked inside, what is expected outside."""

from __future__ import annotations

import pytest

from microcoder.judge.asserts import probes


@pytest.mark.parametrize(
    ("text", "op", "ask", "expected"),
    [
        ("assert f(1) == 2", "==", "f(1)", "2"),
        ("assert 2 == f(1)", "==", "f(1)", "2"),
        ("assert f(1) != 2", "!=", "f(1)", "2"),
        ("assert 3 < f(1)", ">", "f(1)", "3"),
        ("assert f(1) is None", "is", "f(1)", "None"),
        ("assert f(1) in (2, 3)", "in", "f(1)", "(2, 3)"),
        ("assert 2 in f(1)", "contains", "f(1)", "2"),
        ("assert f(1)", "truth", "f(1)", ""),
        ("assert not f(1)", "false", "f(1)", ""),
        ("assert abs(f(1) - 2.5) < 1e-6", "near", "f(1)", "2.5"),
        ("assert abs(2.5 - f(1)) <= 1e-6", "near", "f(1)", "2.5"),
        ("assert math.isclose(f(1), 2.5, rel_tol=1e-3)", "close", "f(1)", "2.5"),
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
    first, second = probes([program], "f", "")
    assert first.alias == "candidate" and first.ask == "candidate(xs)" and "xs = [1, 2]" in first.before
    assert second.before == ""


def test_a_variable_that_holds_the_expected_value_stays_outside() -> None:
    program = "def check(candidate):\n    secret = 'kappa'\n    n = 5\n    assert candidate(n) == secret\n"
    [probe] = probes([program], "f", "")
    assert "kappa" not in probe.before + probe.ask and "n = 5" in probe.before
    assert "kappa" in probe.outside and probe.expected == "secret"


def test_a_helper_that_computes_the_expected_value_stays_outside() -> None:
    program = "def reference(n):\n    return n * 2\n\ndef check(candidate):\n    assert candidate(4) == reference(4)\n"
    [probe] = probes([program], "f", "")
    assert "reference" not in probe.before and "reference" in probe.outside


def test_a_call_that_changes_a_variable_is_seen_by_later_asserts() -> None:
    _, second = probes(["xs = [3, 1]\nassert order(xs) is None\nassert xs == [1, 3]"], "order", "")
    assert second.op == "==" and second.ask == "xs" and "order(xs)" in second.before


def test_asserts_in_a_loop_run_inside() -> None:
    [probe] = probes(["for n in range(3):\n    assert f(n) == n"], "f", "")
    assert probe.op == "inside"


def test_a_function_named_like_a_built_in_one_is_the_candidates() -> None:
    [probe] = probes(["assert sum(10, 15) == 6"], "", "")
    assert (probe.op, probe.ask) == ("==", "sum(10, 15)")


def test_a_module_that_an_assert_mentions_is_imported() -> None:
    [probe] = probes(["assert f(math.pi) == 0"], "f", "")
    assert "import math" in probe.before
