"""The comparison of outputs: what each policy accepts and by which strategy, as tables."""

from __future__ import annotations

import math
from typing import Any

import pytest
from comparing import text, value

from microcoder.judge.compare import STRATEGIES, weakest
from microcoder.judge.compare.keys import VERDICT_WORDS
from microcoder.judge.sandbox.values import Array, Opaque
from microcoder.schema import POLICIES

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
        ((1, 2), (1, 2), "equal"),  # as an assertion may have it
        ((1, 2), [1, 2], ""),
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


def test_the_verdict_words_come_in_lower_case() -> None:
    assert all(word == word.lower() for word in VERDICT_WORDS)
