"""Short forms of the two comparisons, for the tests of them."""

from __future__ import annotations

from typing import Any

from microcoder.judge.compare import Match, compare_text, compare_value
from microcoder.schema import Compare

PLAIN = Compare()


def text(got: str | bytes, expected: str | bytes, policy: str = "robust", test_input: str = "", **rules: Any) -> Match:
    got, expected = (x.encode("utf-8", "surrogateescape") if isinstance(x, str) else x for x in (got, expected))
    return compare_text(got, expected, policy, Compare(**rules), test_input.encode())


def value(got: Any, expected: Any, policy: str = "robust", from_json: bool = False, **rules: Any) -> Match:
    return compare_value(got, expected, policy, Compare(**rules), from_json)
