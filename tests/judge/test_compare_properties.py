"""The comparison of outputs: what must hold for any texts and values. A busy machine is no failure of theirs."""

from __future__ import annotations

import ast
import json
import random
import re
from decimal import Decimal
from typing import Any

from comparing import PLAIN, text, value
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from microcoder.judge.compare import compare_text
from microcoder.judge.compare.numbers import same_floats, same_token
from microcoder.schema import POLICIES, Compare

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
