"""Hostile output: 16 MB of whatever costs a careless comparison its time, its memory or its stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparing import PLAIN, text, value

from microcoder.judge.compare import compare_text
from microcoder.schema import POLICIES, Compare

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


@pytest.mark.long
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
