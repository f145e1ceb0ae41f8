"""Labels: what a forged test expects, said by the references and confirmed by the judge.

1. An input is kept only where every reference answers, quickly, and all answer alike, by the problem's comparison or
   its checker. A reference that answers otherwise than most is named.
2. The chosen tests then go through the judge: each reference must be accepted on all of them, twice, or six times with
   other seeds where it uses chance. A test on which that fails is left out, and counted.
3. A time limit follows from the slowest of them, a multiple of what the references take. It only lowers the limit of a
   problem that names none, and never goes below FLOOR_S: a right program may be slower than the reference. Where a
   reference computes with numpy, the limit stays.
4. So does a limit for each test, not below SMALL_S: a program that loops for ever mostly does so on the first small
   input, and there it need not be waited for as long as for a large one.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from ...judge.base import Judging
from ...judge.languages import imported
from ...schema import Problem, Test, Verdict
from ..verify.programs import judged
from ..verify.references import CHANCE, LIMIT_S
from .run import UNWRITTEN, Behaviour, asks_checker, checks_of, differs, gives_null, value_of

SLOW, LONG, FAILS = "the reference is slow", "the answer is long", "the reference fails"
IN_C = ("numpy", "scipy", "pandas")
FLOOR_S = 2.0  # no time limit of a problem is set below this
SMALL_S = 0.5  # nor one of a test below this
DISPUTES = 60  # inputs on which references disagree, whose answers are kept
CHANCE_RUNS = 6  # of a reference that uses chance
ROUNDS = 6  # tests that the judge refuses are left out, and the others tried again, so often


@dataclass(frozen=True, slots=True)
class Labelled:
    """An input with the answer of the references."""

    input: str
    output: str  # as in Test.output; for an assert problem a Python expression
    reply: Behaviour  # of the first reference
    cpu_s: float  # of the slowest reference


@dataclass(slots=True)
class Dissent:
    """Where the references disagree with each other."""

    outvoted: Counter[int] = field(default_factory=Counter)  # by number: how often one stands alone against two or more
    disputes: list[list[Any]] = field(default_factory=list)  # the answers of all, as values, to some of the inputs

    def add(self, problem: Problem, answers: Sequence[Behaviour], other: Sequence[bool]) -> None:
        if len(answers) > 2 and sum(other) == 1:
            self.outvoted[other.index(True)] += 1
        elif len(answers) > 2 and sum(other) == len(answers) - 1 and len({reply.answer for reply in answers[1:]}) == 1:
            self.outvoted[0] += 1
        if len(self.disputes) < DISPUTES:
            self.disputes.append([value_of(problem, reply) for reply in answers])


Accepts = Callable[[str, Sequence[Behaviour], Behaviour], Sequence[bool | None]]  # (input, answers, the expected one)


def labelled(
    problem: Problem, replies: Sequence[Sequence[Behaviour]], inputs: Sequence[str], left_out: Counter[str],
    dissent: Dissent, accepts: Accepts,
) -> list[Labelled | None]:  # fmt: skip
    """The label of each input, from the replies of all references; None where it is left out for a reason."""
    found: list[Labelled | None] = []
    for n, given in enumerate(inputs):
        first = replies[0][n]
        answers = [replace(row[n], answer=first.answer) if row[n].status == "same" else row[n] for row in replies]
        reason, output = _agreed(problem, given, answers, dissent, accepts)
        if reason:
            left_out[reason] += 1
        slowest = max((reply.cpu_s for reply in answers), default=0.0)
        found.append(None if reason else Labelled(given, output, answers[0], slowest))
    return found


def _agreed(
    problem: Problem, given: str, answers: Sequence[Behaviour], dissent: Dissent, accepts: Accepts
) -> tuple[str, str]:
    """(the reason to leave an input out, the output that the references agree on)."""
    reasons = {"late": SLOW, "long": LONG, "unknown": "the reference did not run"}
    for reply in answers:
        if reply.status not in ("ok", "same"):
            return reasons.get(reply.status, FAILS), ""
    output = written(problem, answers[0])
    if output is None:
        return "the answer is null or no plain value", ""
    if problem.kind == "stdin" and not output.strip():
        return "the answer is empty", ""
    if any(reply.status == "ok" for reply in answers[1:]):
        check = checks_of(problem, [(given, output)])[0]
        other = [reply.status == "ok" and differs(check, reply) for reply in answers]
        if any(other) and asks_checker(problem):
            asked = [n for n, differs_too in enumerate(other) if differs_too]
            for n, accepted in zip(asked, accepts(given, [answers[n] for n in asked], answers[0]), strict=True):
                other[n] = accepted is not True
        if any(other):
            dissent.add(problem, answers, other)
            return "references disagree", ""
    return "", output


def written(problem: Problem, reply: Behaviour) -> str | None:
    """An answer as the output of a test; None if it cannot be written so that it reads back as the same value."""
    value = value_of(problem, reply)
    if value is UNWRITTEN:
        return None
    if problem.kind == "stdin":
        return str(value)
    if _fragile(value):
        return None
    if problem.kind == "assert":
        known = _answer_types(tuple(problem.asserts))
        return repr(value) if not known or type(value).__name__ in known else None
    if value is None:  # a null among the outputs would tell the judge that null is an answer, not a changed argument
        return "null" if gives_null(problem) else None
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=64)
def _answer_types(asserts: tuple[str, ...]) -> frozenset[str]:
    """The types of the values that asserts compare with (int and float are one); none if one of them is not told."""
    found: set[str] = set()
    for source in asserts:
        try:
            tests = [node.test for node in ast.parse(source).body if isinstance(node, ast.Assert)]
            for test in tests:
                if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
                    return frozenset()
                found.add(type(ast.literal_eval(test.comparators[0])).__name__)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return frozenset()
    return frozenset(found | ({"int", "float"} if found & {"int", "float"} else set()))


def _fragile(value: Any) -> bool:
    """Whether it holds a float that is no number, or so large that its rounding is an accident."""
    if isinstance(value, float):
        return not math.isfinite(value) or abs(value) > 1e15
    if isinstance(value, dict):
        return any(map(_fragile, value.values()))
    return isinstance(value, (list, tuple, set, frozenset)) and any(map(_fragile, value))


# --- the references themselves


def trusted(
    problem: Problem, references: Sequence[str], judge: Judging, patience_s: float
) -> tuple[list[str], list[str], float]:
    """The references that the judge accepts on the tests there are, words about the others, and the CPU seconds of a
    test at most."""
    target = judged(problem, max(patience_s, problem.time_limit_s or 0))
    verdicts = [future.result() for future in [judge.submit(target, code=code) for code in references]]
    right = [code for code, verdict in zip(references, verdicts, strict=True) if verdict.accepted]
    refused = [
        f"reference {n}: {verdict.verdict} {verdict.message}"[:200]
        for n, verdict in enumerate(verdicts, 1)
        if not verdict.accepted
    ]
    slowest = max((test.cpu_s for verdict in verdicts if verdict.accepted for test in verdict.tests), default=0.0)
    return right, refused, slowest


def confirmed(
    problem: Problem,
    references: Sequence[str],
    tests: list[Labelled],
    judge: Judging,
    left_out: Counter[str],
    patience_s: float,
) -> tuple[list[Labelled], float]:
    """The tests that the judge accepts for every reference, in all of its runs, and CPU seconds of the slowest."""
    slowest = 0.0
    for _ in range(ROUNDS):
        if not tests:
            break
        target = judged(with_tests(problem, tests, only=True), patience_s)
        runs = [code for reference in references for code in runs_of(reference)]
        verdicts = [future.result() for future in [judge.submit(target, code=code) for code in runs]]
        bad = sorted({(_refused(verdict), verdict.verdict) for verdict in verdicts if not verdict.accepted})
        if not bad:
            slowest = max(test.cpu_s for verdict in verdicts for test in verdict.tests)
            break
        for _, name in bad:
            left_out[_why(name)] += 1
        dropped = {number for number, _ in bad}
        tests = [] if None in dropped else [test for n, test in enumerate(tests) if n not in dropped]
    else:
        left_out["the judge refuses the reference"] += len(tests)
        tests = []
    return tests, slowest


def _refused(verdict: Verdict) -> int | None:
    """The number of the test on which a verdict was given; None if it is of no test."""
    found = re.match(r"test (\d+):", verdict.message)
    return int(found[1]) if found and verdict.verdict != "internal_error" else None


def _why(verdict: str) -> str:
    return {
        "wrong_answer": "two runs of the reference differ",
        "time_limit": SLOW,
        "memory_limit": "the reference needs much memory",
        "runtime_error": FAILS,
    }.get(verdict, "the judge cannot use it")


def runs_of(code: str) -> list[str]:
    """The program as often as it is to be run; with other seeds where it mentions a source of chance."""
    chance = CHANCE & set(re.findall(r"[A-Za-z_]\w*", code))
    if "random" not in chance or "__future__" in code:
        return [code] * (CHANCE_RUNS if chance else 2)
    return [code, *(f"import random; random.seed({n})\n{code}" for n in range(1, CHANCE_RUNS))]


# --- tests


def with_tests(problem: Problem, tests: Sequence[Labelled], only: bool = False) -> Problem:
    """The problem with forged tests behind its own, or with these alone."""
    if problem.kind == "assert":
        form = assertion(problem)
        lines = [form(test.input, test.output) for test in tests] if form else []
        return replace(problem, asserts=[*([] if only else problem.asserts), *lines])
    made = [Test(test.input, test.output) for test in tests]
    return replace(problem, tests=[*([] if only else problem.tests), *made])


def in_c(references: Sequence[str]) -> bool:
    """Whether a reference leaves its work to a package in C: right programs in plain Python are many times slower."""
    return any(imported(code, IN_C) for code in references)


def time_limit(problem: Problem, slowest_s: float, multiple: float, references: Sequence[str] = ()) -> float | None:
    """A lower time limit for a problem that names none; None if there is nothing to lower."""
    if problem.time_limit_s is not None or not multiple or not slowest_s or in_c(references):
        return None
    limit = max(FLOOR_S, math.ceil(10 * multiple * slowest_s) / 10)
    return limit if limit < LIMIT_S else None


def limit_tests(problem: Problem, references: Sequence[str], judge: Judging, multiple: float) -> None:
    """Give each test a limit of its own, `multiple` times what the slowest reference takes on it.

    A test keeps its problem's limit where that is lower, where a reference leaves its work to C or is not accepted, and
    in an assert problem, whose tests are lines of text.
    """
    if problem.kind == "assert" or not multiple or not references or in_c(references):
        return
    patient = judged(problem, max(2 * LIMIT_S, problem.time_limit_s or 0))
    verdicts = [future.result() for future in [judge.submit(patient, code=code) for code in references]]
    if not all(verdict.accepted for verdict in verdicts):
        return
    for n, test in enumerate(problem.tests):
        limit = max(SMALL_S, math.ceil(10 * multiple * max(verdict.tests[n].cpu_s for verdict in verdicts)) / 10)
        test.time_limit_s = limit if limit < (problem.time_limit_s or LIMIT_S) else None


# --- asserts

_FALSE = ("False", "None", "0", "0.0", "-0.0", "''", "[]", "()", "{}", "set()", "frozenset()", "b''")


def assertion(problem: Problem) -> Callable[[str, str], str] | None:
    """How an assert problem writes its asserts: (call, value) -> statement; None where that cannot be told.

    `assert f(x) == y`, and what may stand around both sides (set, sorted, Counter, round to so many places), isclose
    and `abs(f(x) - y) < e`; `is_same_list(f(x), list_node(y))` and the same of trees. Where there is nothing but
    `assert f(x)` and `assert not f(x)`, a right program may return anything that is true or false.
    """
    forms = set()
    name = problem.entry_point.rpartition(".")[2]
    calls = re.compile(rf"\b(?:{re.escape(name)}|candidate)\(")
    for text in problem.asserts:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert) and calls.search(ast.unparse(node)):
                forms.add(_form(node.test, name))
    if not forms:
        return None
    if forms == {"truth"}:
        return lambda call, answer: f"assert {'not ' if answer in _FALSE else ''}{call}"
    known = {"plain", "truth"}
    if forms <= known:
        return lambda call, answer: f"assert {call} == {answer}"
    rest = forms - known
    form = rest.pop() if len(rest) == 1 and "plain" not in forms else ""
    if not form:
        return None
    return partial(_asserted, form)


def _asserted(form: str, call: str, answer: str) -> str:
    if "_node(" in form and answer == "None":
        answer = "[]"  # LeetCode's word for no nodes
    return "assert " + form.replace("\0call", call).replace("\0answer", answer)


def _form(test: ast.expr, name: str) -> str:
    """An assert with marks for the call and the answer: `set(\\0call) == set(\\0answer)`; "" for one unknown."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            for one in (left, right):
                if _calls(one, name):
                    return "plain"
                match one:
                    case ast.Call(func=ast.Name(id=wrap), args=[inner, *more], keywords=[]) if _calls(inner, name):
                        places = "".join(f", {ast.unparse(arg)}" for arg in more)
                        if wrap in ("set", "sorted", "Counter", "tuple", "list", "round", "frozenset"):
                            return f"{wrap}(\0call{places}) == {wrap}(\0answer{places})"
        case ast.UnaryOp(op=ast.Not(), operand=call) if _calls(call, name):
            return "truth"
        case ast.Call(func=func, args=[one, _], keywords=keywords) if ast.unparse(func).endswith("isclose"):
            if _calls(one, name):
                named = "".join(f", {ast.unparse(keyword)}" for keyword in keywords)
                return f"{ast.unparse(func)}(\0call, \0answer{named})"
        case ast.Call(
            func=ast.Name(id="is_same_list" | "is_same_tree" as same),
            args=[one, ast.Call(func=ast.Name(id="list_node" | "tree_node" as node))],
            keywords=[],
        ) if _calls(one, name):
            return f"{same}(\0call, {node}(\0answer))"
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=one, op=ast.Sub())]),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[most],
        ) if _calls(one, name):
            return f"abs(\0call - \0answer) < {ast.unparse(most)}"
        case _ if _calls(test, name):
            return "truth"
    return ""


def _calls(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=called)):
            return called in (name, "candidate")
        case ast.Call(func=ast.Attribute(attr=called)):
            return called == name
    return False
