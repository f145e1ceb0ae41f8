"""Choose tests: no two alike, none too large, at most the longest 15, in the order of the file.

Two tests are alike if their inputs are. Asserts are handled in the same way, as separate statements or as the body of a
check(candidate), if there are only asserts: other statements between them may affect them.

Drops: contradicting_tests (one input, two outputs), tests_too_large (all of them).
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...schema import Problem
from ..record import Dropped, Record
from .format import arguments, parsed

_PUNCTUATION = re.compile(r"([\[\]{},:])")  # of JSON: put between spaces, so that white space does not matter


class Case(NamedTuple):
    input: str  # equal for equal inputs
    output: str
    size: int  # of the input
    whole: int  # of both


def choose(record: Record, *, most: int = 15, test_kb: int = 64) -> Record:
    """Keep at most `most` tests, none over `test_kb` KB."""
    problem = record.problem
    check = _check_body(problem)
    if problem.kind != "assert":
        cases = [_of_test(problem, test.input, test.output) for test in problem.tests]
    elif check is not None:
        cases = [_of_assert(node.test, ast.unparse(node.test)) for node in check]
    else:
        cases = _of_statements(problem.asserts)
    keep = _chosen(cases, most, test_kb * 1024, bool(problem.compare.checker or problem.compare.unordered))
    removed = len(cases) - len(keep)
    if not removed:
        return record
    if problem.kind != "assert":
        problem.tests = [problem.tests[n] for n in keep]
    elif check is not None:
        problem.asserts = [_without(problem.asserts[0], [node for n, node in enumerate(check) if n not in keep])]
    else:
        problem.asserts = [problem.asserts[n] for n in keep]
    record.notes["tests_removed"] = record.notes.get("tests_removed", 0) + removed
    record.did(f"process: {removed} of {len(cases)} tests removed")
    return record


def _chosen(cases: Sequence[Case], most: int, largest: int, many_answers: bool) -> list[int]:
    """Return the indices of the cases that stay."""
    first: dict[str, int] = {}
    for n, case in enumerate(cases):
        if case.whole > largest:
            continue
        twin = cases[first.setdefault(case.input, n)]
        if not many_answers and not _agree(twin.output, case.output):
            raise Dropped("contradicting_tests", f"one input, two outputs: {twin.output!r:.60} and {case.output!r:.60}")
    if cases and not first:
        smallest = min(case.whole for case in cases)
        raise Dropped("tests_too_large", f"the smallest of {len(cases)} has {smallest / 1024:.0f} KB")
    return sorted(sorted(first.values(), key=lambda n: -cases[n].size)[:most])


def _of_test(problem: Problem, given: str, expected: str) -> Case:
    whole = len(given) + len(expected)
    if problem.kind == "function":
        found = arguments(given)
        value = given.strip() if found is None else json.dumps(found, sort_keys=True)
        return Case(value, _PUNCTUATION.sub(r" \1 ", expected), len(given), whole)
    return Case(given.rstrip(), expected, len(given), whole)


def _of_assert(test: ast.expr, text: str) -> Case:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            try:
                asked = ast.unparse(left)
                return Case(asked, repr(ast.literal_eval(right)), len(asked), len(text))
            except (ValueError, TypeError, MemoryError, RecursionError):
                pass  # the expected value is computed: two expressions need not contradict each other
    return Case(text, "", len(text), len(text))


def _of_statements(asserts: list[str]) -> list[Case]:
    """Return a case for each assert; [] if there are other statements among them."""
    cases = []
    for text in asserts:
        tree = parsed(text)
        match tree.body if tree else []:
            case [ast.Assert(test=test)]:
                cases.append(_of_assert(test, text))
            case _:
                return []
    return cases


def _check_body(problem: Problem) -> list[ast.Assert] | None:
    """Return the asserts of a check(candidate) with nothing else, each on its own lines."""
    if problem.kind != "assert" or len(problem.asserts) != 1 or "def check(" not in problem.asserts[0]:
        return None
    tree = parsed(problem.asserts[0])
    checks = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"] if tree else []
    if len(checks) != 1:
        return None
    body = [node for node in checks[0].body if isinstance(node, ast.Assert)]
    ends = [checks[0].lineno, *(node.end_lineno or 0 for node in body)]
    apart = all(end < node.lineno for end, node in zip(ends, body, strict=False))
    return body if body and apart and len(body) == len(checks[0].body) else None


def _without(program: str, nodes: list[ast.Assert]) -> str:
    gone = {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return "\n".join(line for n, line in enumerate(program.split("\n"), 1) if n not in gone)


def _agree(one: str, other: str) -> bool:
    """Whether two outputs are equal except for white space and the rounding of decimals."""
    if one == other:
        return True
    left, right = one.split(), other.split()
    return len(left) == len(right) and all(a == b or _close(a, b) for a, b in zip(left, right, strict=True))


def _close(one: str, other: str) -> bool:
    if "." not in one + other:
        return False
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-6)
    except ValueError:
        return False
