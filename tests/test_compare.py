"""The comparison of outputs: what each policy accepts and how, what none may accept, and hostile output."""

from __future__ import annotations

import ast
import json
import math
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from microcoder.judge.compare import STRATEGIES, Match, compare_text, compare_value, weakest
from microcoder.judge.compare.numbers import same_floats, same_token
from microcoder.judge.compare.words import VERDICT_WORDS
from microcoder.judge.sandbox.values import Array, Opaque
from microcoder.schema import POLICIES, Compare

PLAIN = Compare()


def text(got: str | bytes, expected: str | bytes, policy: str = "robust", test_input: str = "", **rules: Any) -> Match:
    got, expected = (x.encode("utf-8", "surrogateescape") if isinstance(x, str) else x for x in (got, expected))
    return compare_text(got, expected, policy, Compare(**rules), test_input.encode())


def value(got: Any, expected: Any, policy: str = "robust", from_json: bool = False, **rules: Any) -> Match:
    return compare_value(got, expected, policy, Compare(**rules), from_json)


# Text under `robust`: expected, got, the strategy that accepts ("" for none).
ROBUST_TEXT = [
    # bytes, tokens
    ("1 2 3\n", "1 2 3\n", "bytes"),
    ("", "", "bytes"),
    ("1 2 3\n", "1 2 3", "tokens"),
    ("1 2 3", "1\n2\r\n\t3   \n\n", "tokens"),
    ("", "\n\n", "tokens"),
    ("1 2 3", "1 2", ""),
    ("1 2", "1 2 3", ""),
    ("1 2", "2 1", ""),
    ("12", "1 2", ""),
    ("", "0", ""),
    ("0", "", ""),
    ("abc", "abC", ""),
    ("naïve", "naïve ", "tokens"),
    ("a b", "a\u00a0b", ""),  # a no-break space is a character, not a separator
    # integers: exact, in any spelling
    ("5", "5.0", "numbers"),
    ("5", "5.", "numbers"),
    ("5", "+5", "numbers"),
    ("5", "5.000000000000", "numbers"),
    ("0", "-0", "numbers"),
    ("0", "-0.00", "numbers"),
    ("0", "0e5", "numbers"),
    ("1000000", "1e+06", "numbers"),
    ("1000000", "1.0E6", "numbers"),
    ("-12", "-0.12e2", "numbers"),
    ("5", "-5", ""),
    ("5", "5.0000000000000000001", ""),
    ("5", "4.9999999999", ""),
    ("50000000000000000", "50000000000000001", ""),
    ("9007199254740993", "9007199254740992.0", ""),
    ("9007199254740993", "9007199254740993.0", "numbers"),
    ("1" + "0" * 400, "1e400", "numbers"),
    ("1" + "0" * 400, "1e401", ""),
    ("5", "5,", ""),
    ("5", "five", ""),
    # leading zeros are strings
    ("007", "7", ""),
    ("7", "007", ""),
    ("00", "0", ""),
    ("0", "00", ""),
    ("00.5", "0.5", ""),
    ("0.5", "00.5", ""),
    ("007", "007 ", "tokens"),
    ("010", "10.0", ""),
    # floats: within the tolerance, absolute or relative
    ("0.5", "0.50000001", "numbers"),
    ("0.5", ".5", "numbers"),
    ("0.5", "0.500001", "numbers"),
    ("0.5", "0.500002", ""),
    ("1000000.5", "1000001.4", "numbers"),
    ("1000000.5", "1000002.6", ""),
    ("3.0", "3", "numbers"),
    ("0.0", "-0.0000001", "numbers"),
    ("1e-05", "0.00001", "numbers"),
    ("1e+20", "100000000000000000000", "numbers"),
    ("1e-9", "0", "numbers"),
    ("1.5e308", "1.5000001e308", "numbers"),
    ("1.0e400", "1e400", "numbers"),
    ("1.0e400", "1e401", ""),
    ("1.0e400", "1.1e400", ""),  # both overflow a float
    ("1.5", "1.5abc", ""),
    ("1.5", "-1.5", ""),
    ("0." + "3" * 200, "0.333333333", "numbers"),
    # an exponent without point or sign may be hexadecimal: by exact value only
    ("12e5", "1200000", "numbers"),
    ("9999999e1", "9999998e1", ""),
    # what looks like a number and is none
    ("nan", "NaN", ""),
    ("nan", "0", ""),
    ("inf", "Infinity", ""),
    ("1.5", "nan", ""),
    ("1.5", "inf", ""),
    ("1000", "1_000", ""),
    ("1000.0", "1_000.0", ""),
    ("16", "0x10", ""),
    ("1.2.3", "1.2.30", ""),
    ("1e5", "1e" + "0" * 30 + "5", ""),
    ("1,000", "1000", ""),
    ("3", "٣", ""),
    # verdict words
    ("YES", "Yes", "words"),
    ("Yes\nNo\n", "YES\nNO\n", "words"),
    ("true", "True", "words"),
    ("IMPOSSIBLE", "Impossible", "words"),
    ("YES 0.5", "yes 0.5000001", "words"),
    ("YES", "NO", ""),
    ("YES", "Y", ""),
    ("YES", "YES.", ""),
    ("true", "1", ""),
    ("Alice", "ALICE", ""),
    ("abc", "ABC", ""),
    ("Yes YES", "YES YES", ""),  # the answer itself tells the two apart
    # literals
    ("[1, 2]", "[1,2]", "literal"),
    ("[1, 2]", "(1, 2)", "literal"),
    ("[1, 2]", "[1.0, 2]", "literal"),
    ("['a', 'b']", '["a","b"]', "literal"),
    ("[true, null]", "[True, None]", "literal"),
    ("[0.5]", "[0.5000000001]", "literal"),
    ("[1]\n[2, 3]\n", "[1]\n[2,3]", "literal"),
    ("2\n[2, 3]\n", "2\n[2,3]", "literal"),
    ("2.0\n[2, 3]\nYES", "2\n[2,3]\nyes", "literal"),
    ('{"a": 1, "b": 2}', "{'b': 2, 'a': 1}", "literal"),
    ("{1: 2}", "{1:2}", "literal"),
    ("{1, 2}", "{2, 1}", "literal"),
    ('"a b"', "'a b'", "literal"),
    ('"a\\nb"', "'a\\x0ab'", "literal"),
    ('"\\ud83d\\ude00"', "'\U0001f600'", "literal"),
    ("[[1,\n2],\n[3]]", "[[1,2],[3]]", "literal"),
    ("[]", "()", "literal"),
    ("None", "null", "literal"),
    ("[1, 2]", "[1 2]", ""),
    ("[12]", "[1 2]", ""),
    ("[1, 2]", "[2, 1]", ""),
    ("[1, 2]", "1 2", ""),
    ("[1]", "[1, 1]", ""),
    ("[1]", "1", ""),
    ("[1]", "(1)", ""),
    ("[1]", "[True]", ""),
    ("[true]", "[1]", ""),
    ("{1: 2}", "{True: 2}", ""),
    ("{1}", "{True}", ""),
    ("{1, 2}", "[1, 2]", ""),
    ("{}", "[]", ""),
    ("'a'", "a", ""),
    ("['a']", "[a]", ""),
    ("a", "'a'", ""),
    ("'1'", "1", ""),
    ("['a b']", "['a  b']", "tokens"),  # the amount of space counts only where the problem says so
    ("['a,b']", "['a, b']", ""),
    ("['a']", "['A']", ""),
    ("[1000]", "[1_000]", ""),
    ("[16]", "[0x10]", ""),
    ("[7]", "[007]", ""),
    ("[NaN]", "[nan]", ""),
    ("[1.5]", "[inf]", ""),
    ("[1]", "[1][0]", ""),
    ("[1]", "[1", ""),
    ("[1]", "[1,,]", ""),
    ("[1]", "[,1]", ""),
    ("[1]", "[1}", ""),
    ("['ab']", "['a' 'b']", ""),
    ("{1: 2}", "{1, 2}", ""),
    ("[12345678901234567890123]", "[12345678901234567890124]", ""),
    ("[1]\n[2]", "[1]\n[2]\n[3]", ""),
]


@pytest.mark.parametrize(("expected", "got", "strategy"), ROBUST_TEXT)
def test_robust_text(expected: str, got: str, strategy: str) -> None:
    found = text(got, expected)
    assert found.strategy == strategy
    assert bool(found.message) == (not strategy)


@pytest.mark.parametrize(
    ("expected", "got", "strategy"),
    [
        ("1 2\n3\n", "1 2\n3", "lines"),
        ("1 2\n3\n", "1  2 \r\n3\r\n\r\n", "lines"),
        ("1 2\n3\n", "1 2 3", ""),
        ("1 2\n3\n", "1\n2 3", ""),
        ("1\n\n2", "1\n2", ""),
        ("1\n\n2", "1\n \n2", "lines"),
        ("1.5\nYES", "1.50\nyes", "words"),
        ("[1, 2]\n[3]", "[1,2]\n[3]", "literal"),
        ("[1, 2]\n[3]", "[1,2] [3]", ""),
        ("[[1],\n[2]]", "[[1], [2]]", ""),
        ("[1, 2]\n\n[3]", "[1,2]\n[3]", ""),
    ],
)
def test_lines_count_where_the_problem_says_so(expected: str, got: str, strategy: str) -> None:
    assert text(got, expected, lines=True).strategy == strategy


@pytest.mark.parametrize(
    ("expected", "got", "strategy"),
    [
        ("1\n2\n3", "3\n1\n2", "unordered"),
        ("1 2\n3 4", "3  4\n\n1 2.0\n", "unordered"),
        ("1\n2", "1\n2", "bytes"),
        ("1\n1\n2", "1\n2\n2", ""),
        ("1 2\n3", "2 1\n3", ""),
        ("0.5\n1.5", "1.5000001\n0.5000001", "unordered"),
        ("0.5\n1.5", "1.6\n0.5", ""),
        ("1\n2", "2\n1\n1", ""),
        ("a\nb", "b\nA", ""),
        ("007\n8", "8\n7", ""),
    ],
)
def test_unordered_lines_where_the_problem_says_so(expected: str, got: str, strategy: str) -> None:
    assert text(got, expected, unordered=True).strategy == strategy


def test_tolerance_is_the_problems_own() -> None:
    assert text("0.51", "0.5", tolerance=0.1).strategy == "numbers"
    assert text("0.50000001", "0.5", tolerance=1e-9).strategy == ""
    assert text("0.50000001", "0.5", tolerance=0.0).strategy == ""
    assert text("0.50", "0.5", tolerance=0.0).strategy == "numbers"
    assert text("6", "5", tolerance=10.0).strategy == ""  # an integer stays exact
    assert value([0.51], [0.5], tolerance=0.1).strategy == "numbers"
    assert value([0.5 + 1e-9], [0.5], tolerance=0.0).strategy == ""


@pytest.mark.parametrize("test_input", ["yes", "3\nYES no\n", 'say "Yes"!'])
def test_case_of_a_word_counts_where_the_input_holds_it(test_input: str) -> None:
    assert text("YES", "yes", test_input=test_input).strategy == ""
    assert text("YES", "YES", test_input=test_input).strategy == "bytes"


def test_a_word_inside_another_in_the_input_is_not_that_word() -> None:
    assert text("NO", "no", test_input="nodes: 3 yesterday").strategy == "words"


# `exact`, which must agree with LiveCodeBench's published rule.
EXACT_TEXT = [
    ("1 2\n3\n", "1 2\n3\n", "bytes"),
    ("1 2\n3\n", "\n 1 2 \n3", "exact_lines"),
    ("1 2", "1  2", "exact_decimals"),
    ("abc d", "abc  d", ""),
    ("1\n2", "1 2", ""),
    ("5", "5.0", "exact_decimals"),
    ("5", "005", "exact_decimals"),
    ("1000", "1_000", "exact_decimals"),
    ("inf", "Infinity", "exact_decimals"),
    ("nan", "NaN", ""),
    ("snan 1", "sNaN 1", ""),
    ("0.5", "0.5000000001", ""),
    ("YES", "Yes", ""),
    ("YES 1", "YES 1.0", ""),
    ("[1, 2]", "[1,2]", ""),
    ("1\n\n2", "1\n2", ""),
]


@pytest.mark.parametrize(("expected", "got", "strategy"), EXACT_TEXT)
def test_exact_text(expected: str, got: str, strategy: str) -> None:
    assert text(got, expected, "exact").strategy == strategy


PAPER_TEXT = [
    ("1 2 3", "1 2 3", "bytes"),
    ("YES", "yes", "words"),
    ("100000", "100000.1", "allclose"),
    ("1 2.5", "1.000001 2.5", "allclose"),
    ("100000", "100002", ""),
    ("1\n2", "2\n1", "unordered_lines"),
    ("a b\nc", "c\na b", "unordered_lines"),
    ("a b\nc", "c b\na", "unordered_tokens"),
    ("3 1 2", "1 2 3", "unordered_tokens"),
    ("1 1 2", "1 2 2", ""),
    ("1 2", "1 2 2", ""),
    ("9" * 400, "8" * 400, ""),
    ("nan", "NaN", ""),
    ("YES\nNO", "NO\nYES", ""),
    ('"YES"\n"NO"', '"NO"\n"YES"', ""),
    ("1 Yes\n2 No", "2 No\n1 Yes", ""),
    ("YES 3 4", "YES 4 3", "unordered_tokens"),
]


@pytest.mark.parametrize(("expected", "got", "strategy"), PAPER_TEXT)
def test_paper_text(expected: str, got: str, strategy: str) -> None:
    assert text(got, expected, "paper").strategy == strategy


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("flags", "expected", "got", "accepted"),
    [
        ("", "Yes 1", "yes\n1", True),
        ("", "1.0", "1.00", False),
        ("", "1 2", "1 2 3", False),
        ("", "1 2", "1", False),
        ("case_sensitive", "Yes", "yes", False),
        ("case_sensitive", "Yes", "Yes\n", True),
        ("space_change_sensitive", "1 2\n", "1 2\n", True),
        ("space_change_sensitive", "1 2\n", "1 2", False),
        ("space_change_sensitive", "1 2\n", "1  2\n", False),
        ("space_change_sensitive", "A b\n", "a B\n", True),
        ("float_tolerance 1e-2", "1.0 x", "1.005 X", True),
        ("float_tolerance 1e-2", "100", "100.9", True),
        ("float_tolerance 1e-2", "100", "101.1", False),
        ("float_absolute_tolerance 1e-2", "100", "100.9", False),
        ("float_relative_tolerance 1e-2", "100", "100.9", True),
        ("float_relative_tolerance 1e-2", "0", "0.001", False),
        ("float_relative_tolerance 1e-2 float_absolute_tolerance 1e-2", "0", "0.001", True),
        ("float_tolerance 1e-2", "7", "007", True),
        ("float_tolerance 1e-2", "1", "nan", False),
        ("float_tolerance 1e-2", "1", "0x1", False),
        ("float_tolerance 1e-2", "nan", "NaN", True),  # not finite, so a word, in any case
        ("float_tolerance 1e-2 case_sensitive", "abc", "ABC", False),
    ],
)
def test_icpc_flags_replace_every_other_rule(policy: str, flags: str, expected: str, got: str, accepted: bool) -> None:
    assert text(got, expected, policy, validator_flags=flags).strategy == ("icpc" if accepted else "")


@pytest.mark.parametrize("flags", ["case_insensitive", "float_tolerance", "float_tolerance x", "float_tolerance nan"])
def test_an_unknown_icpc_flag_is_an_error_that_names_the_known(flags: str) -> None:
    with pytest.raises(ValueError, match=r"float_tolerance"):
        text("1", "2", validator_flags=flags)


NAN = math.nan
# Values under `robust`: expected, got, strategy, whether the expected value is from JSON.
ROBUST_VALUES = [
    (5, 5, "equal", False),
    (5, 5.0, "equal", False),
    (5.0, 5, "equal", False),
    (True, 1, "equal", False),
    (1, True, "equal", False),
    (None, None, "equal", False),
    ("a", "a", "equal", False),
    (b"a", b"a", "equal", False),
    (1 + 2j, 1 + 2j, "equal", False),
    ({1, 2}, {2, 1}, "equal", False),
    ({1, 2}, frozenset({2, 1}), "equal", False),
    ({"a": [1], "b": 2}, {"b": 2, "a": [1]}, "equal", False),
    (math.inf, math.inf, "equal", False),
    ([10**5000], [10**5000], "equal", False),
    ([[1, 2], [3]], [[1, 2], [3]], "equal", False),
    ([1, "a", None, [2.5]], [1, "a", None, [2.5]], "equal", False),
    ([1, 2], (1, 2), "sequence", False),
    ((1, [2]), (1, (2,)), "sequence", False),
    ({"a": [1]}, {"a": (1,)}, "sequence", True),
    ([1, 2], Array([1, 2]), "array", False),
    ((1, 2), Array([1, 2]), "array", False),
    ([[1], [2]], Array([[1], [2]]), "array", True),
    ([(1,), Array([2])], [[1], [2]], "array", False),
    ({"1": "a"}, {1: "a"}, "json_keys", True),
    ({"true": 1, "null": 2, "1.5": 3}, {True: 1, None: 2, 1.5: 3}, "json_keys", True),
    ({"1": "a", "b": 2}, {1: "a", "b": 2}, "json_keys", True),
    ([0.1 + 0.2], [0.3], "numbers", False),
    (0.3, 0.1 + 0.2, "numbers", False),
    (1e6, 1e6 + 0.5, "numbers", False),
    (1 + 1j, 1 + 1.0000000001j, "numbers", False),
    ((0.3, 1), [0.1 + 0.2, 1], "numbers", False),
    ([1.0], [10**400], "", False),
    (5, 5.0000000001, "", False),
    (5, 6, "", False),
    (2**53 + 1, float(2**53), "", False),
    (NAN, NAN, "", False),
    ([NAN], [NAN], "", False),
    ({NAN}, {NAN}, "", False),
    ({"a": NAN}, {"a": NAN}, "", False),
    (1.0, NAN, "", False),
    (math.inf, -math.inf, "", False),
    (1e308, math.inf, "", False),
    ("5", 5, "", False),
    (5, "5", "", False),
    ("a", b"a", "", False),
    ("a", "a ", "", False),
    ("ab", ["a", "b"], "", False),
    (["a", "b"], "ab", "", False),
    ([], None, "", False),
    (None, [], "", False),
    ([], "", "", False),
    ([], {}, "", False),
    (0, None, "", False),
    ([1, 2], [2, 1], "", False),
    ([1, 2], {1, 2}, "", False),
    ({1, 2}, [1, 2], "", False),
    ({1, 2}, {1, 3}, "", False),
    ([1, 2], [1, 2, 3], "", False),
    ([1, [2]], [1, 2], "", False),
    ([1, 2], [1, [2]], "", False),
    ({"1": "a"}, {1: "a"}, "", False),
    ({"1": "a"}, {1: "b"}, "", True),
    ({"1": "a", "2": "a"}, {1: "a", "1": "a"}, "", True),
    ({"1": "a"}, {(1,): "a"}, "", True),
    ({"a": 1}, {"a": 1, "b": 2}, "", False),
    ({"a": 1}, {"b": 1}, "", False),
    (Opaque("x"), Opaque("x"), "", False),
    ([1], [Opaque("x")], "", False),
    (Opaque("x"), 1, "", False),
]


@pytest.mark.parametrize(("expected", "got", "strategy", "from_json"), ROBUST_VALUES)
def test_robust_values(expected: Any, got: Any, strategy: str, from_json: bool) -> None:
    found = value(got, expected, from_json=from_json)
    assert found.strategy == strategy
    assert bool(found.message) == (not strategy)


@pytest.mark.parametrize(
    ("expected", "got", "strategy"),
    [
        ([1, 2, 3], [3, 1, 2], "unordered"),
        ([1, 2, 3], {3, 1, 2}, "unordered"),
        ({1, 2}, [2, 1], "unordered"),
        ([[1, 2], [3]], [(3,), (1, 2)], "unordered"),
        ([[1, 2], [3]], [[3], [2, 1]], ""),
        (["a", "b"], ("b", "a"), "unordered"),
        ([{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 1}], "unordered"),
        ([0.5, 1.5], [1.5, 0.5 + 1e-9], "unordered"),
        ([[0.5], [1.5]], [[1.5], [0.5 + 1e-9]], "unordered"),
        ([0.5, 1.5], [1.5, 0.6], ""),
        ([1, 1, 2], [1, 2, 2], ""),
        ([1, 2], [2, 1, 1], ""),
        ([1, "1"], ["1", 1], "unordered"),
        ([1, "1"], [1, 1], ""),
        ([NAN, 1], [1, NAN], ""),
        (["ab"], "ab", ""),
        ([None, Opaque("x")], [Opaque("x"), None], ""),
    ],
)
def test_unordered_values_where_the_problem_says_so(expected: Any, got: Any, strategy: str) -> None:
    assert value(got, expected, unordered=True).strategy == strategy


def test_unordered_elements_know_json_keys() -> None:
    assert value([2, {1: "a"}], [{"1": "a"}, 2], from_json=True, unordered=True).strategy == "unordered"
    assert value([2, {1: "a", "1": "a"}], [{"1": "a"}, 2], from_json=True, unordered=True).strategy == ""


@pytest.mark.parametrize(
    ("expected", "got", "strategy"),
    [
        ([1, 2], [1, 2], "equal"),
        ([1, 2], (1, 2), "sequence"),
        ([[1], 2], ([1], 2), "sequence"),
        ([[1]], [(1,)], ""),
        ([0.3], [0.1 + 0.2], ""),
        (5, 5.0, "equal"),
        ([1], Array([1]), ""),
        ([[1]], [Array([1])], ""),
        ({"1": 1}, {1: 1}, ""),
    ],
)
def test_exact_values(expected: Any, got: Any, strategy: str) -> None:
    assert value(got, expected, "exact", from_json=True).strategy == strategy


@pytest.mark.parametrize(
    ("expected", "got", "strategy"),
    [
        ([1, 2], [1, 2], "equal"),
        ([100000, 2], [100000.1, 2], "allclose"),
        ([1j], [1j + 1e-9j], "numbers"),
        ([[3], [1, 2]], [[2, 1], [3]], "unordered_values"),
        ([1, 2], {1, 2}, "unordered_values"),
        ({"a": [1, 2]}, {"a": (2, 1)}, "unordered_values"),
        ("[1, 2]", [1, 2], "string_form"),
        ("5", 5, "string_form"),
        ("a  b", " a b ", "string_form"),
        ([1, 1, 2], {1, 2}, ""),
        ([10**400], [10**400 + 1], ""),
        ([True, False], [False, True], ""),
        (["YES", "NO"], ["NO", "YES"], ""),
        ([["YES"], ["NO"]], [["NO"], ["YES"]], ""),
        ("YES", "NO", ""),
        ("Opaque(type_name='x')", Opaque("x"), ""),
        ([NAN], [NAN], ""),
    ],
)
def test_paper_values(expected: Any, got: Any, strategy: str) -> None:
    found = value(got, expected, "paper")
    if expected != expected or (isinstance(expected, list) and NAN in expected):
        assert found.strategy in ("", "string_form")  # "[nan]" is the same text, and this policy compares texts
    else:
        assert found.strategy == strategy


def test_a_message_says_where_and_stays_short() -> None:
    assert text("1 2 4", "1 2 3").message == "token 3: got 4, expected 3"
    assert value({"a": [1, 5]}, {"a": [1, 6]}).message == "at ['a'][1]: got 5, expected 6"
    long = b"x" * 10_000
    for policy in POLICIES:
        assert len(text(long, long[1:], policy).message) <= 200
    for got in ("x" * 10_000, [["x" * 10_000] * 50] * 50, 10**9999, Opaque("y" * 500), Array([[1.5] * 99] * 99)):
        assert 0 < len(value(got, {"x" * 999: ["y" * 10_000]}).message) <= 200
        assert 0 < len(value([got], ["y" * 10_000]).message) <= 200
    text("\udc80", "a").message.encode()
    value("\udc80", "\ud800").message.encode()


def test_weakest_is_the_most_lenient_strategy() -> None:
    assert weakest(["numbers", "bytes", "tokens"]) == "numbers"
    assert weakest(["", "equal"]) == "equal"
    assert weakest([]) == ""
    assert weakest(["bytes", "checker", "unordered"]) == "checker"
    assert len(set(STRATEGIES)) == len(STRATEGIES)


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(ValueError, match="exact, robust, paper"):
        text("1", "1", "loose")
    with pytest.raises(ValueError, match="exact, robust, paper"):
        value(1, 1, "loose")


def test_every_strategy_is_reached_by_the_tables_above() -> None:
    tables = [ROBUST_TEXT, EXACT_TEXT, PAPER_TEXT]
    reached = {row[2] for table in tables for row in table} | {row[2] for row in ROBUST_VALUES}
    reached |= {"lines", "icpc", "unordered", "unordered_values", "string_form"}  # by the tables without a name
    assert reached - {""} == set(STRATEGIES)


# Properties. A busy machine is no failure of theirs.

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
thorough = settings(steady, max_examples=300)

SPACES = st.sampled_from([b" ", b"\n", b"  ", b" \n", b"\r\n", b"\t"])
NUMERALS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000).map(str),
    st.sampled_from(["0", "-0", "5", "5.0", "+5", "5.", ".5", "0.5", "1e5", "1E+5", "100000", "12e5", "1e400"]),
    st.sampled_from(["007", "00", "inf", "nan", "Infinity", "1_000", "0x10", "-inf", "sNaN", "1000"]),
)
WORDS = st.sampled_from(["YES", "no", "Yes", "True", "abc", "[1,", "2]", "[1,2]", "'a'", '"a"', "{", "a=b"])
TOKENS = st.one_of(NUMERALS, WORDS, st.text("aZ09.-é\u00a0\x1c\u0663_", min_size=1, max_size=5)).map(
    lambda s: s.encode("utf-8", "replace")
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    parts: list[bytes] = []
    for token in draw(st.lists(TOKENS, max_size=12)):
        parts += [token, draw(SPACES)]
    return b"".join(parts)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A text, and that text with some tokens and spaces replaced: a pair that is worth comparing."""
    original = draw(texts())
    tokens = original.split()
    for index in range(len(tokens)):
        if draw(st.integers(0, 4)) == 0:
            tokens[index] = draw(TOKENS)
    return original, draw(SPACES).join(tokens)


rules = st.builds(Compare, lines=st.booleans(), unordered=st.booleans())


@steady
@given(st.one_of(st.binary(max_size=200), texts()), rules, st.sampled_from(POLICIES))
def test_any_text_equals_itself_and_itself_without_trailing_space(data: bytes, rule: Compare, policy: str) -> None:
    assert compare_text(data, data, policy, rule).strategy == "bytes"
    assert compare_text(data + b" \n", data, policy, rule).strategy
    assert compare_text(data, data, policy, Compare(validator_flags="")).strategy == "icpc"


@steady
@given(st.lists(st.integers(), min_size=1, max_size=30), st.data())
def test_robust_accepts_no_other_integer(numbers: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(numbers) - 1))
    wrong = list(numbers)
    wrong[at] += data.draw(st.integers(-3, 3).filter(bool))
    for join in (" ".join, "\n".join, lambda items: f"[{', '.join(items)}]"):
        assert text(join(map(str, wrong)), join(map(str, numbers))).strategy == ""
    assert value(wrong, numbers).strategy == ""


@steady
@given(st.lists(st.integers(), min_size=2, max_size=30, unique=True), st.randoms(use_true_random=False))
def test_robust_accepts_no_permutation_of_integers(numbers: list[int], rng: random.Random) -> None:
    shuffled = rng.sample(numbers, len(numbers))
    assume(shuffled != numbers)
    assert text("\n".join(map(str, shuffled)), "\n".join(map(str, numbers))).strategy == ""
    assert value(shuffled, numbers).strategy == ""
    assert text("\n".join(map(str, shuffled)), "\n".join(map(str, numbers)), unordered=True).strategy == "unordered"
    assert value(shuffled, numbers, unordered=True).strategy == "unordered"


OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true", "possible": "impossible", "valid": "invalid"}


@steady
@given(
    st.lists(st.sampled_from(sorted(OPPOSITE)), min_size=1, max_size=10),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from(POLICIES),
    st.sampled_from([" ", "\n"]),
)
def test_no_policy_accepts_the_opposite_verdicts(words: list[str], spell: Any, policy: str, space: str) -> None:
    right, wrong = [spell(w) for w in words], [spell(OPPOSITE[w]) for w in words]
    assert text(space.join(wrong), space.join(right), policy).strategy == ""
    assert text(json.dumps(wrong), json.dumps(right), policy).strategy == ""
    assert value(wrong, right, policy).strategy == ""
    flags = [w in ("yes", "true") for w in words]
    assert value([not f for f in flags], flags, policy).strategy == ""


def _decimal_spellings(token: bytes) -> bool:
    """What Decimal reads and `robust` does not: leading zeros, inf and nan, underscores, digits of other scripts."""
    word = token.decode("utf-8", "surrogateescape")
    try:
        Decimal(word)
    except (ArithmeticError, ValueError):
        return False
    return not same_token(token, token, 0.0)


@thorough
@given(pairs())
@example((b"5 x", b"5\n x"))
@example((b"007", b"7"))
def test_what_exact_accepts_robust_accepts_but_for_the_named_spellings(pair: tuple[bytes, bytes]) -> None:
    """The differences: Decimal's spellings above; and what only str.split takes for a space (no-break space, \\x1c)."""
    expected, got = pair
    decoded = [data.decode("utf-8", "surrogateescape") for data in pair]
    assume([len(word.split()) for word in decoded] == [len(data.split()) for data in pair])
    assume(not any(_decimal_spellings(token) for token in got.split() + expected.split()))
    if compare_text(got, expected, "exact", PLAIN).strategy:
        assert compare_text(got, expected, "robust", PLAIN).strategy


@steady
@given(pairs())
def test_what_robust_accepts_paper_accepts_by_the_same_strategy(pair: tuple[bytes, bytes]) -> None:
    robust, paper = (compare_text(pair[1], pair[0], policy, PLAIN) for policy in ("robust", "paper"))
    assert robust.strategy in ("", paper.strategy)


def _livecodebench(got: str, expected: str) -> bool:
    """The rule as its documentation and code state it, written down naively."""
    sides = [[line.strip() for line in side.strip().split("\n")] for side in (got, expected)]
    if len(sides[0]) != len(sides[1]):
        return False
    for a, b in zip(*sides, strict=True):
        if a != b:
            try:
                if [Decimal(x) for x in a.split()] != [Decimal(x) for x in b.split()]:
                    return False
            except (ArithmeticError, ValueError):
                return False
    return True


@thorough
@given(pairs())
def test_exact_agrees_with_the_rule_written_naively(pair: tuple[bytes, bytes]) -> None:
    expected, got = pair
    naive = _livecodebench(got.decode("utf-8", "surrogateescape"), expected.decode("utf-8", "surrogateescape"))
    assert bool(compare_text(got, expected, "exact", PLAIN).strategy) == naive


@steady
@given(NUMERALS, NUMERALS, st.sampled_from([0.0, 1e-9, 1e-6, 0.5]))
def test_numbers_agree_with_decimal_arithmetic(got: str, expected: str, tolerance: float) -> None:
    plain = r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
    if not re.fullmatch(plain, got) or not re.fullmatch(plain, expected):
        assert not same_token(got.encode(), expected.encode(), tolerance)
        return
    a, b, limit = Decimal(got), Decimal(expected), Decimal(tolerance)
    approximate = "." in expected or "e-" in expected.lower() or "e+" in expected.lower()
    gap, bound = abs(a - b), limit * max(1, abs(b))
    assume(a == b or abs(gap - bound) > bound * Decimal("1e-6"))  # not at the very edge
    assert same_token(got.encode(), expected.encode(), tolerance) == (a == b or (approximate and gap <= bound))


@steady
@given(st.lists(st.tuples(NUMERALS, NUMERALS), min_size=1, max_size=5), st.sampled_from([0.0, 1e-6, 1.0]))
def test_the_quick_path_for_floats_accepts_nothing_that_the_slow_one_refuses(
    tokens: list[tuple[str, str]], tolerance: float
) -> None:
    got, expected = ([side.encode() for side in column] for column in zip(*tokens, strict=True))
    if same_floats(got, expected, tolerance):
        assert all(same_token(a, b, tolerance) for a, b in zip(got, expected, strict=True))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
LEAVES = st.one_of(SCALARS, st.text(st.characters(codec="utf-8"), max_size=6))
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(LEAVES, inner, max_size=3),
        st.frozensets(SCALARS, min_size=1, max_size=3).map(set),
    ),
    max_leaves=10,
)
JSONABLE = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=10,
)


def _typed(item: Any) -> Any:
    """A form in which Python's own == says what the rule for literals should: bools apart, lists and tuples alike."""
    if isinstance(item, bool):
        return ("bool", item)
    if isinstance(item, (list, tuple)):
        return [_typed(x) for x in item]
    if isinstance(item, dict):
        return sorted(((repr(_typed(k)), _typed(v)) for k, v in item.items()), key=lambda pair: pair[0]), "dict"
    if isinstance(item, (set, frozenset)):
        return sorted(repr(_typed(x)) for x in item), "set"
    return item


@steady
@given(NESTED)
def test_a_python_literal_equals_itself_in_other_spacing(item: Any) -> None:
    wrapped = [item]
    spaced = repr(wrapped).replace("[", "[ ", 1)
    assert text(spaced, repr(wrapped)).strategy == "literal" or spaced.split() == repr(wrapped).split()


@steady
@given(JSONABLE)
def test_json_and_python_spell_the_same_value(item: Any) -> None:
    assert text(repr([item]), json.dumps([item])).strategy
    assert text(json.dumps([item], indent=1), repr([item])).strategy
    assert value([item], json.loads(json.dumps([item])), from_json=True).strategy == "equal"


@thorough
@given(NESTED, NESTED)
def test_literals_of_different_values_are_refused(first: Any, second: Any) -> None:
    a, b = repr([first]), repr([second])
    assert _typed(ast.literal_eval(a)) == _typed([first])
    if text(a, b, tolerance=0.0).strategy:
        assert _typed([first]) == _typed([second])


@steady
@given(NESTED, NESTED)
def test_robust_values_without_tolerance_are_equal_but_for_list_and_tuple(first: Any, second: Any) -> None:
    def listed(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [listed(x) for x in item]
        return {k: listed(v) for k, v in item.items()} if isinstance(item, dict) else item

    assert bool(value(first, second, tolerance=0.0).strategy) == (listed(first) == listed(second))
    assert value(first, first).strategy == "equal"


@steady
@given(st.lists(NESTED, max_size=6), st.randoms(use_true_random=False))
def test_unordered_accepts_every_permutation_of_anything(items: list[Any], rng: random.Random) -> None:
    assert value(rng.sample(items, len(items)), items, unordered=True).strategy
    assert not value([*items, 0], items, unordered=True).strategy


# Hostile output: 16 MB of whatever costs a careless comparison its time, its memory or its stack.

MB16 = 16_000_000


HOSTILE: dict[str, Callable[[], tuple[bytes, bytes]]] = {  # got, expected
    "open brackets": lambda: (b"[" * MB16, b"[1, 2]"),
    "open brackets for a long list": lambda: (b"[" * MB16, b"[" + b"1," * (MB16 // 2) + b"]"),
    "nested braces": lambda: (b'{"a":' * (MB16 // 5), b'{"a": 1}'),
    "quotes": lambda: (b"'" * MB16, b"['a', 'b']"),
    "backslashes": lambda: (b"['" + b"\\" * MB16, b"['a', 'b']"),
    "digits for an integer": lambda: (b"9" * MB16, b"5"),
    "digits for as many digits": lambda: (b"9" * MB16, b"9" * (MB16 - 1) + b"8"),
    "digits for a float": lambda: (b"9" * MB16, b"5.5"),
    "digits after the point": lambda: (b"5." + b"0" * (MB16 - 1) + b"1", b"6"),
    "digits in a list": lambda: (b"[" + b"9" * MB16 + b"]", b"[5]"),
    "an endless exponent": lambda: (b"1e" + b"9" * MB16, b"1.5"),
    "huge exponents": lambda: (b"1e999999999 " * 1_000_000, b"1.5 " * 1_000_000),
    "huge exponents for an integer": lambda: (b"1e999999999", b"1" + b"0" * 1000),
    "tiny exponents": lambda: (b"1e-999999999 " * 1_000_000, b"1 " * 1_000_000),
    "blank lines": lambda: (b"\n" * MB16 + b"x", b"y"),
    "one word per line": lambda: (b"YES\n" * (MB16 // 4), b"NO\n" * (MB16 // 4)),
    "zero bytes": lambda: (b"\0" * MB16, b"0"),
    "not UTF-8": lambda: (b"\xff" * MB16, b"0"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_output_is_refused_by_every_policy(name: str) -> None:
    got, expected = HOSTILE[name]()
    for policy in POLICIES:
        assert compare_text(got, expected, policy, PLAIN).strategy == ""
    for rule in (Compare(lines=True), Compare(unordered=True), Compare(validator_flags="float_tolerance 1e-6")):
        assert compare_text(got, expected, "robust", rule).strategy == ""


def test_an_integer_of_16_mb_is_compared_exactly() -> None:
    digits = b"7" * MB16
    assert text(digits + b".0", digits).strategy == "numbers"
    assert text(digits + b".0", digits[:-1] + b"8").strategy == ""
    assert text(b"5." + b"0" * MB16 + b"1", b"5").strategy == ""


def test_millions_of_equal_tokens_in_other_lines_are_accepted() -> None:
    numbers = b" ".join(b"%d" % (n * n) for n in range(1_500_000))
    assert text(numbers.replace(b" ", b"\n"), numbers).strategy == "tokens"
    assert text(numbers.replace(b" ", b"\n") + b"1", numbers).strategy == ""
    assert text(b"[%s]" % numbers.replace(b" ", b","), b"[%s]" % numbers.replace(b" ", b", ")).strategy == "literal"


def _nest(depth: int, wrap: Any) -> Any:
    item: Any = 0
    for _ in range(depth):
        item = wrap(item)
    return item


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,), lambda x: {"k": x}], ids=["list", "tuple", "dict"])
@pytest.mark.parametrize("policy", POLICIES)
def test_deep_nesting_does_not_crash(wrap: Any, policy: str) -> None:
    deep = _nest(100_000, wrap)
    for expected in (1, [1], wrap(wrap(1)), _nest(100_000, lambda x: [x, x] if x == 0 else [x])):
        assert value(deep, expected, policy).strategy == ""
        assert value(deep, expected, policy, unordered=True).strategy == ""
    assert value([deep, 1], [1, 2], policy, unordered=True).strategy == ""


def test_integers_of_one_hash_do_not_make_unordered_quadratic() -> None:
    colliding = [n * (2**61 - 1) for n in range(300_000)]
    assert value(colliding, list(range(300_000)), unordered=True).strategy == ""
    assert value([*colliding, "x"], [*range(300_000), "x"], unordered=True).strategy == ""
    assert value(colliding[::-1], colliding, "paper").strategy == "unordered_values"


def test_huge_integers_are_compared_without_writing_them_in_decimal() -> None:
    huge = 1 << 50_000_000
    for policy in POLICIES:
        assert value(huge, 1.5, policy).strategy == ""
        assert value([huge], [huge + 1], policy).strategy == ""
        assert value({huge: 1}, {"1": 1}, policy, from_json=True).strategy == ""
        swapped = value([huge, 1], [1, huge], policy, unordered=True).strategy
        assert swapped == ("" if policy == "exact" else "unordered")


def test_the_verdict_words_come_in_lower_case() -> None:
    assert all(word == word.lower() for word in VERDICT_WORDS)
