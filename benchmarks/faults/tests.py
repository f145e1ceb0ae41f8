"""Faults of tests that show without running anything: missing, twice, too large, contradicting."""

from __future__ import annotations

import ast
import json
from typing import Any

from benchmarks.faults.run import Draw, Kind
from microcoder.schema import Problem, Test

ROOM = 15  # tests, at most which process keeps


def tested(problem: Problem) -> bool:
    return bool(problem.tests) and all(len(test.input) + len(test.output) < 20_000 for test in problem.tests)


def function(problem: Problem) -> bool:
    return problem.kind == "function" and tested(problem)


def stdin(problem: Problem) -> bool:
    return problem.kind == "stdin" and tested(problem)


def asserted(problem: Problem) -> bool:
    return problem.kind == "assert" and len(problem.asserts) > 1 and bool(problem.entry_point)


def few_tests(problem: Problem, draw: Draw) -> bool:
    """The control: room for some more of them, and none twice."""
    first = {test.input.strip(): test for test in problem.tests}
    problem.tests = list(first.values())[: ROOM - 5]
    problem.asserts = list(dict.fromkeys(problem.asserts))[: ROOM - 5]
    return True


def tests_of(problem: Problem) -> list[Any]:
    return [problem.asserts, *((test.input.strip(), test.output.strip()) for test in problem.tests)]


def no_tests(problem: Problem, draw: Draw) -> bool:
    problem.tests = []
    problem.asserts = draw.choice([[], ["pass"], ["print('ok')"]]) if problem.asserts else []
    return True


def no_outputs(problem: Problem, draw: Draw) -> bool:
    empty = draw.choice(["", "\n", "  "])
    problem.tests = [Test(test.input, empty) for test in problem.tests]
    return True


def twice(problem: Problem, draw: Draw) -> bool:
    """Some tests come again, with other white space."""
    for _ in range(draw.randint(1, 3)):
        if problem.tests:
            test = draw.choice(problem.tests)
            given = test.input.replace(", ", ",") if problem.kind == "function" else f"{test.input.rstrip()}\n\n"
            problem.tests.append(Test(given, f"{test.output}\n"))
        else:
            problem.asserts.append(ast.unparse(ast.parse(draw.choice(problem.asserts))))
    return True


def oversized(problem: Problem, draw: Draw) -> bool:
    """One test of a hundred kilobytes."""
    numbers = [draw.randrange(10**9) for _ in range(12_000)]
    if problem.kind == "function":
        width = len(json.loads(problem.tests[0].input))
        problem.tests.append(Test(json.dumps([numbers] * width), "0"))
    else:
        problem.tests.append(Test(f"{len(numbers)}\n{' '.join(map(str, numbers))}\n", "0\n"))
    return True


def contradicting(problem: Problem, draw: Draw) -> bool:
    """One input, two outputs."""
    if problem.tests:
        test = draw.choice(problem.tests)
        problem.tests.append(Test(test.input, other_output(test.output, problem.kind, draw)))
        return True
    return contradicted(problem, draw, replace=False)


def contradicted(problem: Problem, draw: Draw, replace: bool) -> bool:
    """Another value on the right side of one assert, in its place or beside it."""
    n = draw.randrange(len(problem.asserts))
    tree = ast.parse(problem.asserts[n])
    match tree.body:
        case [ast.Assert(test=ast.Compare(ops=[ast.Eq()], comparators=[right]) as test)]:
            try:
                value = other_value(ast.literal_eval(right), draw)
            except (ValueError, TypeError):
                return False
            test.comparators = [ast.parse(repr(value), mode="eval").body]
        case _:
            return False
    problem.asserts[n : n + replace] = [ast.unparse(tree)]
    return True


def other_output(output: str, kind: str, draw: Draw) -> str:
    if kind == "function":
        return json.dumps(other_value(json.loads(output), draw))
    words = output.split()
    n = draw.randrange(len(words)) if words else 0
    words[n : n + 1] = [str(int(words[n]) + 1) if words[n:] and words[n].lstrip("-").isdigit() else "surely_wrong"]
    return " ".join(words) + "\n"


def other_value(value: Any, draw: Draw) -> Any:
    """Of the same type, and wrong beyond any tolerance."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return value + draw.choice([-2, -1, 1, 2]) * (1 if isinstance(value, int) else 1 + abs(value))
    if isinstance(value, str):
        return value[:-1] if len(value) > 2 and draw.random() < 0.5 else f"{value}x"
    if isinstance(value, (list, tuple)) and value:
        return type(value)([*value[:-1], other_value(value[-1], draw)])
    return [None, None] if isinstance(value, (list, tuple)) else {**value, "x": 1} if isinstance(value, dict) else "x"


def either(problem: Problem) -> bool:
    return tested(problem) or asserted(problem)


KINDS = [
    Kind("no tests", no_tests, ("missing_tests",), among=either),
    Kind("no outputs", no_outputs, ("missing_outputs",), among=tested),
    Kind("tests twice", twice, (), tests_of, "tests removed", few_tests, either),
    Kind("a test too large", oversized, (), tests_of, "tests removed", few_tests, tested),
    Kind("contradicting tests", contradicting, ("contradicting_tests",), control=few_tests, among=either),
]
