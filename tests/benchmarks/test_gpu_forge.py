"""The problems of the GPU benchmarks with forged tests: what their references take."""

from __future__ import annotations

from benchmarks.gpu.forge import seconds
from microcoder.schema import Problem, Test


def problem(name: str, code: str | None) -> Problem:
    solutions = [] if code is None else [{"code": code, "language": "python"}]
    return Problem(id=name, statement="Print 1.", tests=[Test("", "1")] * 2, solutions=solutions)


def test_a_reference_takes_the_time_of_all_tests():
    slow = problem("slow", "print(1 if sum(range(3_000_000)) else 0)")
    took = seconds([problem("quick", "print(1)"), slow, problem("none", None)], workers=1)
    assert took["none"] == 0 < took["quick"] < took["slow"]
