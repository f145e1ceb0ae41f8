"""Comparison of what a program gave with what was expected: named strategies under three policies.

`exact` is LiveCodeBench's rule; `robust` is every strategy that cannot accept a wrong answer; `paper` adds those that
can (order-free, np.allclose). A problem may name a fourth as its own: `evalplus`, the rule of EvalPlus's suites. A
match names the most lenient strategy it needed. Everything here runs on the trusted side, and takes `got` for hostile:
no input makes it crash, or take much longer than reading that input.
"""

from __future__ import annotations

from ...schema import OWN_POLICIES, Compare
from .exact import evalplus_value, exact_text, exact_value
from .icpc import validate
from .lenient import lenient_text, lenient_value
from .match import STRATEGIES, Match, differ, weakest
from .numbers import DEFAULT_TOLERANCE
from .outputs import robust
from .structures import ROBUST, walk
from .unordered import same_elements

__all__ = ["STRATEGIES", "Match", "compare_text", "compare_value", "weakest"]


def compare_text(got: bytes, expected: bytes, policy: str, rules: Compare, test_input: bytes = b"") -> Match:
    """Compare a program's output. `policy` is final: `rules.policy` and `rules.checker` are the caller's affair."""
    _check(policy)
    if rules.validator_flags is not None:
        return validate(got, expected, rules.validator_flags)
    if policy == "exact":
        return exact_text(got, expected)
    found = robust(got, expected, rules, test_input)
    if policy == "paper" and not found.strategy:
        strategy = lenient_text(got, expected)
        return Match(strategy, "") if strategy else found
    return found


def compare_value(got: object, expected: object, policy: str, rules: Compare, from_json: bool = False) -> Match:
    """Compare a returned value. `from_json`: the expected value was written in JSON, which has only string keys."""
    _check(policy)
    try:
        if policy == "exact":
            return exact_value(got, expected)
        if policy == "evalplus":
            return evalplus_value(got, expected, rules.tolerance or 0.0)
        tolerance = DEFAULT_TOLERANCE if rules.tolerance is None else rules.tolerance
        allowed = ROBUST | {"json_keys"} if from_json else ROBUST
        found = walk(got, expected, allowed, tolerance)
        if not found.strategy and rules.unordered and same_elements(got, expected, allowed, tolerance, from_json):
            return Match("unordered", "")
        if not found.strategy and policy == "paper":
            strategy = lenient_value(got, expected, from_json)
            return Match(strategy, "") if strategy else found
        return found
    except (RecursionError, MemoryError) as error:
        return differ(f"the returned value cannot be compared: {type(error).__name__}")


def _check(policy: str) -> None:
    if policy not in OWN_POLICIES:
        raise ValueError(f"policy is {policy!r}; it must be one of {', '.join(OWN_POLICIES)}")
