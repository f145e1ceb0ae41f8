"""The tests of a problem as checks: the input for the candidate's process, and the comparison of its output."""

from __future__ import annotations

import ast
import json
import operator
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ..schema import Compare, Problem, SchemaError, Test
from .asserts import ANSWERS, Probe, probes
from .compare import Match, compare_text, compare_value
from .compare.match import show
from .sandbox import values


class Helpers(Protocol):
    """Evaluate the problem's own code in boxes apart from the candidate's."""

    def evaluate(self, statements: str, expression: str, **given: Any) -> Any: ...

    def check(self, given: Any, output: Any, expected: Any) -> Match: ...


@dataclass(slots=True)
class Check:
    data: bytes  # for the candidate's process
    judge: Callable[[bytes, Helpers], Match]  # its output -> accepted by which strategy
    inside: bool = False
    time_s: float | None = None  # CPU seconds, where the test has fewer than its problem
    otherwise: Check | None = None  # to be run instead if the output is a thing without a plain value


NO_PLAIN_VALUE = Match("", "the answer has no plain value")  # what the answer is can be told inside only
UNCHANGEABLE = (str, bytes, int, float, complex, tuple, frozenset, type(None))  # no function changes one in place
MAX_EXPECTED_DIGITS = 200_000  # of an integer in a problem: reading it is quadratic


def checks(problem: Problem, policy: str, helpers: Helpers) -> list[Check]:
    """Return the checks of all tests of a problem. Raise SchemaError for a test that cannot be read."""
    rules = problem.compare
    if problem.setup:
        helpers.evaluate("", "None")  # once without the candidate: beside it, a fault of setup would look like its own
    if problem.kind == "stdin":
        return [_stdin(test, policy, rules) for test in problem.tests]
    if problem.kind == "function":
        return _functions(problem, policy)
    try:
        with _many_digits():
            found = probes(problem.asserts, problem.entry_point, problem.setup, helpers.evaluate)
            if not found:
                raise SchemaError(f"problem {problem.id!r}: the asserts test nothing")
            return [_assertion(probe, policy, rules, helpers) for probe in found]
    except SyntaxError as error:
        raise SchemaError(f"problem {problem.id!r}: an assert is no Python: {error}") from None
    except values.TooMuch as error:
        raise SchemaError(f"problem {problem.id!r}: an expected value is too much: {error}") from None


def _stdin(test: Test, policy: str, rules: Compare) -> Check:
    given = test.input.encode("utf-8", "surrogatepass")
    expected = test.output.encode("utf-8", "surrogatepass")

    def judge(output: bytes, helpers: Helpers) -> Match:
        if rules.checker:
            return helpers.check(test.input, output.decode("utf-8", "replace"), test.output)
        return compare_text(output, expected, policy, rules, given)

    return Check(given, judge, time_s=test.time_limit_s)


def _functions(problem: Problem, policy: str) -> list[Check]:
    """Return the checks of a function problem, whose answer is the returned value or the changed argument."""
    read = [(*_literal(test.input, problem), _literal(test.output, problem)[0]) for test in problem.tests]
    signature = _signature(problem)
    returns = None if signature is None else "argument" if _is_none(signature.returns) else ""
    if returns is None and all(expected is not None for _, _, expected in read):
        returns = "either"  # no test expects null, so a function that returns None has changed its argument
    asked: dict[str, Any] = {"nodes": nodes} if (nodes := _nodes(signature)) else {}
    asked |= {"changed": True} if returns else {}
    return [
        _function(test, n, problem, policy, given, is_json, expected, returns or "", asked)
        for n, (test, (given, is_json, expected)) in enumerate(zip(problem.tests, read, strict=True))
    ]


def _signature(problem: Problem) -> ast.FunctionDef | None:
    """The head of the function in the starter code, as far as it can be read; None if it is not there."""
    ident = re.escape(problem.entry_point.rpartition(".")[2])
    code = problem.starter_code
    found = re.search(rf"\bdef\s+{ident}\s*\(", code)
    if found is None:
        return None
    depth, at = 1, found.end()
    while at < len(code) and depth:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    end = re.match(r"[^:\n]*:", code[at:])
    for head in (f"({code[found.end() : at - 1]}){end[0] if end else ':'}", f"(){end[0] if end else ':'}"):
        try:
            (function,) = ast.parse(f"def f{head} pass").body
        except (SyntaxError, ValueError):
            continue
        return function if isinstance(function, ast.FunctionDef) else None
    return ast.FunctionDef("f", ast.arguments([], [], None, [], [], None, []), [], [])


def _is_none(note: ast.expr | None) -> bool:
    return isinstance(note, ast.Constant) and note.value is None


def _nodes(signature: ast.FunctionDef | None) -> dict[str, str]:
    """Annotations by parameter, and that of "return", where one of them is a list's or a tree's node; else {}."""
    if signature is None:
        return {}
    takes = [arg for arg in (*signature.args.posonlyargs, *signature.args.args) if arg.arg not in ("self", "cls")]
    notes = {arg.arg: arg.annotation for arg in takes} | {"return": signature.returns}
    texts = {ident: ast.unparse(note) if note else "" for ident, note in notes.items()}
    return texts if any("Node" in text for text in texts.values()) else {}


def _function(
    test: Test, n: int, problem: Problem, policy: str, given: Any, is_json: bool, expected: Any, answer_is: str,
    asked: dict[str, Any],
) -> Check:  # fmt: skip
    if not isinstance(given, (list, tuple, dict)):
        raise SchemaError(
            f"problem {problem.id!r}: the input of test {n} must be a list of arguments such as [1, 2], "
            f'or an object of named ones such as {{"a": 1}}; it is {test.input[:60]!r}'
        )
    args, kwargs = ([], given) if isinstance(given, dict) else (list(given), {})
    if is_json and isinstance(given, list) and "{" not in test.input:  # JSON already, with nothing to tag
        more = json.dumps({"plain": True} | asked).encode()
        data = b'{"args": %s, "kwargs": {}, %s' % (test.input.encode(), more[1:])
    else:
        task = {"args": [values.encode(a) for a in args], "kwargs": {k: values.encode(v) for k, v in kwargs.items()}}
        data = json.dumps(task | asked).encode()

    def judge(output: bytes, helpers: Helpers) -> Match:
        answer = values.answer(output)
        either = answer_is == "either" and answer["r"] is None and not isinstance(answer.get("m"), UNCHANGEABLE)
        changed = answer_is == "argument" or either
        got = answer["m"] if changed and "m" in answer else answer["r"]
        if problem.compare.checker:
            return helpers.check(given, natural(got), expected)
        return compare_value(got, expected, policy, problem.compare, from_json=True)

    return Check(data, judge, time_s=test.time_limit_s)


def natural(value: Any) -> Any:
    """Convert a value to JSON's types: decimals and fractions to numbers, a deque to a tuple."""
    kind = type(value)
    if kind in values.SCALARS or kind is int:
        return value
    if isinstance(value, dict):
        return {natural(k): natural(v) for k, v in value.items()}
    if kind in (list, values.Array):
        return kind(map(natural, value))
    if kind in (tuple, values.Named, set, frozenset):
        return (tuple if kind is values.Named else kind)(map(natural, value))
    if kind.__name__ in ("deque", "range", "dict_keys"):
        return tuple(map(natural, value))
    if kind.__name__ == "Fraction":
        return value.numerator if value.denominator == 1 else _to_float(value)
    if kind.__name__ == "Decimal":
        whole = value.is_finite() and value.adjusted() < 60 and value == int(value)
        return int(value) if whole else _to_float(value)
    return value


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _assertion(probe: Probe, policy: str, rules: Compare, helpers: Helpers) -> Check:
    if probe.op == "inside":
        return _inside(probe, probe.before)
    task: dict[str, Any] = {"before": probe.before, "expr": probe.ask, "alias": probe.alias, "entry": probe.entry}
    if probe.given:
        task["given"] = {name: json.loads(text) for name, text in probe.given.items()}
    expected: Any = None
    if probe.expected and probe.op != "rest":
        expected = _expected(probe, helpers)
    if isinstance(expected, values.Opaque):  # only the candidate's own process can compare such a thing
        return _inside(probe, probe.whole or f"{probe.before}\nassert {probe.text}")

    def judge(output: bytes, helpers: Helpers) -> Match:
        got = values.answer(output)["r"]
        if probe.op == "rest" or probe.made:
            if not isinstance(got, tuple) or any(map(_opaque, got)):
                return NO_PLAIN_VALUE
            expression = probe.made or f"bool({probe.expected})"
            got = helpers.evaluate(probe.outside, expression, **{ANSWERS: got})
        match = _judged(probe, got, expected, policy, rules)
        if not match.strategy and probe.again:
            return NO_PLAIN_VALUE
        known = match.strategy or match is NO_PLAIN_VALUE
        return match if known else Match("", f"{match.message} in `assert {probe.text:.120}`")

    otherwise = _inside(probe, probe.whole) if probe.whole else None
    return Check(json.dumps(task).encode(), judge, inside=probe.tells, otherwise=otherwise)


def _expected(probe: Probe, helpers: Helpers) -> Any:
    if probe.fact is not None:
        return values.decode(json.loads(probe.fact.text)) if probe.fact.text else values.Opaque("a value that fails")
    return ast.literal_eval(probe.expected)


def _judged(probe: Probe, got: Any, expected: Any, policy: str, rules: Compare) -> Match:
    """Decide an assertion on plain values."""
    if probe.op == "pair":
        if not (isinstance(got, tuple) and len(got) == 2):
            return Match("", f"not a pair: {show(got)}")
        if any(_opaque(one, values.Opaque) for one in got):
            return NO_PLAIN_VALUE
        return compare_value(*got, policy, rules)
    if probe.op == "==":
        return compare_value(got, expected, policy, rules)
    if probe.op == "raises":
        classes = got[0] if isinstance(got, tuple) and got else []
        holds = isinstance(classes, list) and any(name in classes for name in expected)
        what = classes[0] if isinstance(classes, list) and classes else "nothing"
        return Match("equal", "") if holds else Match("", f"{show(what)} was raised")
    holds = got is True if probe.op == "rest" else _holds(probe.op, got, expected, policy, rules)
    return Match("equal", "") if holds else Match("", f"got {show(got)}")


def _opaque(value: Any, *kinds: type) -> bool:
    """Whether a value, or a part of it, is opaque: known by its name only."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, kinds or (values.Opaque, values.Member)):
            return True
        if isinstance(item, dict):
            stack += item.keys()
            stack += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack += item
    return False


def _inside(probe: Probe, statements: str) -> Check:
    """Decide an assertion that ran in the candidate's process, by what that process reports."""

    def judge(output: bytes, _: Helpers) -> Match:
        passed = values.answer(output)["r"] is True
        return Match("inside", "") if passed else Match("", f"`assert {probe.text:.120}` failed")

    task = {"before": statements, "expr": "True", "alias": probe.alias, "entry": probe.entry}
    return Check(json.dumps(task).encode(), judge, inside=True)


def _holds(op: str, got: Any, expected: Any, policy: str, rules: Compare) -> bool:
    """An assertion other than equality, on plain values."""
    if op == "runs":
        return True
    if isinstance(got, values.Opaque):  # an object of whatever kind: true, and nothing that is known
        return op in ("truth", "is not", "!=", "not in")
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
        return bool({"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[op](got, expected))
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return False


def _items(container: Any, item: Any) -> Any:
    if isinstance(container, str):  # substring test
        return [item] if isinstance(item, str) and item in container else []
    return container


@contextmanager
def _many_digits() -> Iterator[None]:
    """Allow long integers in expected values; a program's answer is limited (values.answer)."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(MAX_EXPECTED_DIGITS)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


def _literal(text: str, problem: Problem) -> tuple[Any, bool]:
    """The value that a test's text stands for, and whether it is JSON: else a Python literal, else the text itself."""
    with _many_digits():
        try:
            return json.loads(text), True
        except RecursionError:
            raise SchemaError(f"problem {problem.id!r}: a test is nested too deeply: {text[:60]}") from None
        except ValueError as error:
            if "set_int_max_str_digits" in str(error):
                raise SchemaError(
                    f"problem {problem.id!r}: a test has an integer of over {MAX_EXPECTED_DIGITS:,} digits: {text[:60]}"
                ) from None
        try:
            return ast.literal_eval(text.strip()), False
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text, False
