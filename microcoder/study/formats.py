"""Starter problems whose expected answers are written as collections from many places write them.

For about six in ten of them, chosen by their ids, each expected answer of a kind that has another format gets it:

    tuple     a returned list is expected as a tuple: [1, 2] as (1, 2)
    lines     printed items are expected one a line: 1 2 as 1, 2 below each other
    float     an integer is expected as a calculation in floating point leaves it: 25 as 25.000000000000007

A right program stays right: `robust` accepts it (sequence, tokens, numbers), LiveCodeBench's rule, `exact`, does not.
Texts have no other format that a careful comparison could accept, and stay as they are.
"""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

from ..files import count_records, write_problems
from ..schema import Problem, Test
from ..starter import operations, problems

PLACE = "{varied}"  # stands for their file in the settings of a study
SHARE = 0.6
LARGEST = 10**5  # of an integer as a float: one more or less is then far beyond the tolerance of 1e-6
NOISE = 1 + 2**-52


def varied(problem: Problem) -> Problem:
    """The problem with its answers in another format, or as it is."""
    if random.Random(f"varied {problem.id}").random() >= SHARE:
        return problem
    gives = operations()[problem.lineage[-1]].gives
    if gives == "int" and any(abs(int(test.output)) >= LARGEST for test in problem.tests):
        return problem
    tests = [Test(test.input, _rewritten(test.output, gives, problem.kind)) for test in problem.tests]
    return dataclasses.replace(problem, tests=tests)


def _rewritten(output: str, gives: str, kind: str) -> str:
    end = "\n" if kind == "stdin" else ""
    if gives == "int":
        return f"{int(output) * NOISE!r}{end}"
    if gives in ("numbers", "words"):
        return repr(tuple(json.loads(output))) if kind == "function" else "\n".join(output.split()) + end
    return output


def write_varied(path: Path, count: int) -> None:
    """Write the first `count` training problems in varied formats, unless the file has as many."""
    if not path.exists() or count_records(path) < count:
        write_problems(path, map(varied, problems("train", count)))
