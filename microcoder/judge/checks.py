"""A problem's tests as checks: what goes into the candidate's process, and what is made of what comes out."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..schema import Compare, Problem, SchemaError, Test
from .asserts import ANSWERS, Probe, probes
from .compare import Match, compare_text, compare_value
from .sandbox import values


class Helpers(Protocol):
    """What the problem's own code is asked, in boxes that the candidate never meets."""

    def evaluate(self, statements: str, expression: str, **given: Any) -> Any: ...

    def check(self, given: Any, output: Any, expected: Any) -> Match: ...


@dataclass(slots=True)
class Check:
    data: bytes  # for the candidate's process
    judge: Callable[[bytes, Helpers], Match]  # its output -> accepted by which strategy
    inside: bool = False
    otherwise: Check | None = None  # to be run instead if the output is a thing without a plain value


# An assertion that calls one of these may be about an object itself; only then is it tried inside.
_LOOKS_AT_OBJECTS = ("isinstance", "issubclass", "callable", "hasattr", "getattr", "next", "iter", "type")
NO_PLAIN_VALUE = Match("", "the answer has no plain value")


def checks(problem: Problem, policy: str, helpers: Helpers) -> list[Check]:
    """All the tests of a problem. SchemaError if one of them cannot be understood."""
    rules = problem.compare
    if problem.setup:
        helpers.evaluate("", "None")  # once without the candidate: beside it, a fault of setup would look like its own
    if problem.kind == "stdin":
        return [_stdin(test, policy, rules) for test in problem.tests]
    if problem.kind == "function":
        return [_function(test, n, problem, policy) for n, test in enumerate(problem.tests)]
    try:
        found = probes(problem.asserts, problem.entry_point, problem.setup)
    except SyntaxError as error:
        raise SchemaError(f"problem {problem.id!r}: an assert is no Python: {error}") from None
    if not found:
        raise SchemaError(f"problem {problem.id!r}: the asserts test nothing")
    return [_assertion(probe, policy, rules, helpers) for probe in found]


def _stdin(test: Test, policy: str, rules: Compare) -> Check:
    given = test.input.encode("utf-8", "surrogatepass")
    expected = test.output.encode("utf-8", "surrogatepass")

    def judge(output: bytes, helpers: Helpers) -> Match:
        if rules.checker:
            return helpers.check(test.input, output.decode("utf-8", "replace"), test.output)
        return compare_text(output, expected, policy, rules, given)

    return Check(given, judge)


def _function(test: Test, n: int, problem: Problem, policy: str) -> Check:
    given, is_json = _literal(test.input)
    if not isinstance(given, (list, tuple, dict)):
        raise SchemaError(
            f"problem {problem.id!r}: the input of test {n} must be a list of arguments such as [1, 2], "
            f'or an object of named ones such as {{"a": 1}}; it is {test.input[:60]!r}'
        )
    args, kwargs = ([], given) if isinstance(given, dict) else (list(given), {})
    expected, _ = _literal(test.output)
    if is_json and isinstance(given, list) and "{" not in test.input:
        data = b'{"args": %s, "kwargs": {}, "plain": true}' % test.input.encode()  # JSON already, with nothing to tag
    else:
        task = {"args": [values.encode(a) for a in args], "kwargs": {k: values.encode(v) for k, v in kwargs.items()}}
        data = json.dumps(task).encode()

    def judge(output: bytes, helpers: Helpers) -> Match:
        answer = values.answer(output)
        got = answer["r"]
        if problem.compare.checker:
            return helpers.check(given, got, expected)
        match = compare_value(got, expected, policy, problem.compare, from_json=True)
        if not match.strategy and got is None and "m" in answer:
            changed = compare_value(answer["m"], expected, policy, problem.compare, from_json=True)
            return changed if changed.strategy else match
        return match

    return Check(data, judge)


def _assertion(probe: Probe, policy: str, rules: Compare, helpers: Helpers) -> Check:
    if probe.op == "inside":
        return _inside(probe, probe.before)
    task = {"before": probe.before, "expr": probe.ask, "alias": probe.alias}
    data, whole = json.dumps(task).encode(), _inside(probe, f"{probe.everything}\nassert {probe.text}")
    if probe.op == "rest":
        otherwise = whole if any(f"{name}(" in probe.text for name in _LOOKS_AT_OBJECTS) else None
        return Check(data, lambda out, helpers: _rest(probe, values.answer(out)["r"], helpers), otherwise=otherwise)
    expected: Any = None
    if probe.expected:
        try:
            expected = ast.literal_eval(probe.expected)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            expected = helpers.evaluate(probe.outside, probe.expected)
        if isinstance(expected, values.Opaque):  # only the candidate's own process can compare such a thing
            return whole
    tolerance = {k: helpers.evaluate(probe.outside, v) for k, v in probe.tolerance.items()}

    def judge(output: bytes, _: Helpers) -> Match:
        got = values.answer(output)["r"]
        if probe.op in ("==", "pair"):
            pair = got if probe.op == "pair" else (got, expected)
            if not (isinstance(pair, tuple) and len(pair) == 2):
                return Match("", f"not a pair: {got!r:.80}")
            match = compare_value(*pair, policy, rules)
        else:
            holds = _holds(probe.op, got, expected, tolerance, policy, rules)
            match = Match("equal", "") if holds else Match("", f"got {got!r:.80}")
        return match if match.strategy else Match("", f"{match.message} in `assert {probe.text:.120}`")

    return Check(data, judge)


def _rest(probe: Probe, answers: Any, helpers: Helpers) -> Match:
    """Any assertion, evaluated outside on the answers that the candidate gave."""
    if not isinstance(answers, tuple) or any(isinstance(a, values.Opaque) for a in answers):
        return NO_PLAIN_VALUE
    holds = helpers.evaluate(probe.outside, f"bool({probe.expected})", **{ANSWERS: answers})
    return Match("equal", "") if holds is True else Match("", f"got {answers!r:.80} in `assert {probe.text:.120}`")


def _inside(probe: Probe, statements: str) -> Check:
    """An assertion that runs in the candidate's process: what that process says is all there is."""

    def judge(output: bytes, _: Helpers) -> Match:
        passed = values.answer(output)["r"] is True
        return Match("inside", "") if passed else Match("", f"`assert {probe.text:.120}` failed")

    return Check(json.dumps({"before": statements, "expr": "True", "alias": probe.alias}).encode(), judge, inside=True)


def _holds(op: str, got: Any, expected: Any, tolerance: dict[str, Any], policy: str, rules: Compare) -> bool:
    """An assertion other than equality, on plain values."""
    if isinstance(got, values.Opaque):
        return op == "truth"  # an object of whatever kind is true
    same = compare_value(got, expected, policy, rules).strategy != ""
    try:
        if op in ("truth", "false"):
            return bool(got) == (op == "truth")
        if op in ("is", "is not"):  # of None, True and False; for the rest identity means nothing across processes
            return (same and type(got) is type(expected)) == (op == "is")
        if op == "!=":
            return not same
        if op in ("in", "not in"):
            return any(compare_value(got, e, policy, rules).strategy for e in _items(expected, got)) == (op == "in")
        if op in ("contains", "lacks"):
            return (expected in got) == (op == "contains")
        if op == "close":
            return math.isclose(got, expected, rel_tol=tolerance["rel"], abs_tol=tolerance["abs"])
        if op == "near":
            off = abs(got - expected)
            return bool(off < tolerance["abs"] if tolerance["strict"] else off <= tolerance["abs"])
        return bool({"<": got < expected, "<=": got <= expected, ">": got > expected, ">=": got >= expected}[op])
    except (TypeError, ValueError, OverflowError):
        return False


def _items(container: Any, item: Any) -> Any:
    if isinstance(container, str):  # substring test
        return [item] if isinstance(item, str) and item in container else []
    return container


def _literal(text: str) -> tuple[Any, bool]:
    """The value that a test's text stands for, and whether it is JSON: else a Python literal, else the text itself."""
    try:
        return json.loads(text), True
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip()), False
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text, False
