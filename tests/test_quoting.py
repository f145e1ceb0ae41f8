"""Programs that name the inputs of their tests, and programs that do not."""

from __future__ import annotations

import pytest

from microcoder.quoting import Quoted
from microcoder.schema import Problem, Test


def function(*inputs: str) -> Problem:
    return Problem("p", "function", tests=[Test(text, "1") for text in inputs], entry_point="f")


LISTS = function("[[2, 7, 11, 15], 9]", "[[3, 2, 4], 6]")
NUMBERS = function("[3]", "[10]")
STDIN = Problem("p", "stdin", tests=[Test("5 7\n1 2 3\n", "6\n")])
ASSERTS = Problem("p", "assert", asserts=["assert f([1, 2, 3], 4) == 5", "assert f('abcd', 4) == 5"])


@pytest.mark.parametrize(
    "problem, code",
    [
        (LISTS, "def f(a, b):\n    if a == [2, 7, 11, 15]:\n        return [0, 1]\n    return [1, 2]"),
        (LISTS, "def f(a, b):\n    if tuple(a) == (3, 2, 4): return 1"),
        (LISTS, "def f(a, b):\n    return {(2, 7, 11, 15): 1, (3, 2, 4): 2}[tuple(a)]"),
        (LISTS, "def f(a, b):\n    return a in [[2, 7, 11, 15], [1]]"),
        (LISTS, "def f(a, b):\n    if b == 9: return 1\n    if b == 6: return 2"),
        (NUMBERS, "def f(n):\n    match n:\n        case 3: return 1\n        case 10: return 2"),
        (LISTS, "def f(a, b):\n    return 1 if [3, 2, 4] == a else 2"),
        (STDIN, "s = input()\nif input() == '1 2 3': print(6)"),
        (ASSERTS, "def f(x, k):\n    if x == 'abcd': return 5"),
    ],
)
def test_a_program_that_names_an_input_quotes(problem: Problem, code: str) -> None:
    assert Quoted(problem)(code)


@pytest.mark.parametrize(
    "problem, code",
    [
        (LISTS, "def f(a, b):\n    if a == []: return 0\n    return [2, 7, 11, 15]"),  # it returns it
        (LISTS, "def f(a, b):\n    if b == 9: return 1"),  # one of two, and small
        (NUMBERS, "def f(n):\n    if n == 3: return 1\n    return f(n - 1)"),  # a base case
        (function("[3]"), "def f(n):\n    if n == 3: return 1"),  # of a single test
        (NUMBERS, "def f(n):\n    return 3 <= n < 10"),  # limits
        (LISTS, "def f(a, b):\n    return 9 <= b and 6 < b"),
        (STDIN, "print(sum(map(int, input().split())))"),
        (LISTS, "def f(a, b:"),
        (LISTS, ""),
        (Problem("p", "function", tests=[Test("not json", "1")], entry_point="f"), "x = 1 == 2"),
    ],
)
def test_other_programs_do_not(problem: Problem, code: str) -> None:
    assert not Quoted(problem)(code)
