"""Faults of the format: tests, starter code and reference that do not belong together."""

from __future__ import annotations

import json

from benchmarks.faults.run import Draw, Kind, solved
from benchmarks.faults.tests import few_tests, function
from microcoder.schema import Problem, Test


def called_stdin(problem: Problem, draw: Draw) -> bool:
    """The kind is wrong, and the starter code or the entry point tells."""
    problem.kind = "stdin"
    if problem.starter_code.strip() and draw.random() < 0.5:
        problem.entry_point = problem.entry_point.replace("Solution.", "Solution().")
    return True


def contract(problem: Problem) -> tuple[str, str, str]:
    return problem.kind, problem.entry_point, problem.starter_code


def another_entry(problem: Problem, draw: Draw) -> bool:
    """Tests call a function that the reference has not."""
    owner, dot, name = problem.entry_point.rpartition(".")
    new = draw.choice([f"{name}Fast", f"compute_{name}", "main_solution", f"{name}2"])
    problem.entry_point, problem.starter_code = f"{owner}{dot}{new}", problem.starter_code.replace(name, new)
    problem.asserts = [text.replace(name, new) for text in problem.asserts]
    return name in problem.solutions[0]["code"]


def standard_input(problem: Problem, draw: Draw) -> bool:
    """Tests of standard input, though the reference is a function that prints nothing."""
    tests = [(json.loads(test.input), test.output) for test in problem.tests]
    problem.tests = [Test("\n".join(map(json.dumps, given)) + "\n", f"{output}\n") for given, output in tests]
    problem.kind, problem.entry_point = "stdin", ""
    problem.starter_code = draw.choice([problem.starter_code, ""])
    return "print" not in problem.solutions[0]["code"]


def no_arguments(problem: Problem, draw: Draw) -> bool:
    """Inputs that are no arguments of this function: one too many, or no JSON."""
    if draw.random() < 0.5:
        problem.tests = [Test(json.dumps([*json.loads(test.input), 0]), test.output) for test in problem.tests]
    else:
        problem.tests = [Test(test.input[1:-1].replace(", ", "\n"), test.output) for test in problem.tests]
    return bool(problem.starter_code.strip())


_WRONG = ("wrong_format",)
KINDS = [
    Kind("kind mistaken", called_stdin, (), contract, "process: kind", few_tests, function),
    Kind("entry point unknown", another_entry, _WRONG, among=lambda p: solved(p) and bool(p.entry_point)),
    Kind("tests of another format", standard_input, _WRONG, among=function),
    Kind("no arguments", no_arguments, _WRONG, among=function),
]
