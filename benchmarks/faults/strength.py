"""Faults of what tests can tell: nothing expected and solutions that disagree, types only, one answer to all."""

from __future__ import annotations

import ast
import json

from benchmarks.faults.enrich import enriched
from benchmarks.faults.programs import NO_MUTANTS, begins_with
from benchmarks.faults.run import Draw, Kind
from benchmarks.faults.tests import function
from benchmarks.faults.twins import renamed_code
from microcoder.schema import Problem, Test

MODULES = ("typing", "collections", "itertools", "functools", "math", "heapq", "bisect", "string")
SETUP = "".join(f"from {name} import *\n" for name in MODULES)  # LeetCode has these, and so have tests of functions


def agreeing(problem: Problem, draw: Draw) -> bool:
    """The control: no expected outputs, and three programs that agree."""
    code = problem.solutions[0]["code"]
    other = renamed_code(code, problem.entry_point)
    texts = [code, other, f"{other}\nspare = None"]
    problem.solutions = [{"code": text, "language": "python", "verdict": "accepted"} for text in texts]
    problem.tests = [Test(test.input, "") for test in problem.tests[:6]]
    return other != ast.unparse(ast.parse(code))


def disagreeing(problem: Problem, draw: Draw) -> bool:
    """Two of the three answer something of their own."""
    return all(begins_with(problem, f"return {value!r}", n) for n, value in enumerate(draw.sample(["?", -17, []], 2)))


def rich(problem: Problem, draw: Draw) -> bool:
    """The control of weak tests: inputs varied, with the reference's own answers."""
    return enriched(problem, draw)


def only_types(problem: Problem, draw: Draw) -> bool:
    """Tests that look at no more than the type of an answer, or that there is one."""
    owner, _, name = problem.entry_point.rpartition(".")
    call = f"{owner}().{name}" if owner else name
    form = draw.choice(["assert isinstance({0}, {1})", "assert {0} is not None", "assert type({0}) is {1}"])
    asserts = []
    for test in problem.tests:
        given = ", ".join(map(repr, json.loads(test.input)))
        asserts.append(form.format(f"{call}({given})", type(json.loads(test.output)).__name__))
    answers = [json.loads(test.output) for test in problem.tests]
    problem.kind, problem.asserts, problem.tests = "assert", list(dict.fromkeys(asserts)), []
    problem.setup = SETUP
    return None not in answers


def one_answer(problem: Problem, draw: Draw) -> bool:
    """Only the tests that expect what most of them expect."""
    outputs = [test.output for test in problem.tests]
    common = max(sorted(set(outputs)), key=outputs.count)
    problem.tests = [test for test in problem.tests if test.output == common]
    return len(problem.tests) > 1


_DISAGREE = ("solutions_disagree", "no_expected_output")
_RICH = {"right": ("weak_tests",), "upto": "verify", "among": function, "control": rich, "most": 40}
KINDS = [
    Kind("solutions disagree", disagreeing, _DISAGREE, control=agreeing, among=function, upto="verify",
         settings=NO_MUTANTS),
    Kind("weak tests", only_types, **_RICH),
    Kind("one answer to all tests", one_answer, **_RICH),
]  # fmt: skip
