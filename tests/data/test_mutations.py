"""Mutants: one small mistake each, spread over the program, and none where the tests never come."""

from __future__ import annotations

import ast
import difflib

import pytest

from microcoder.data.verify.mutations import KINDS, mutants

COUNT = """
def count(values, low, high):
    total = 0
    for i in range(len(values)):
        value = values[i]
        if low <= value and value < high:
            total += 1
        elif value == 7:
            total = total - 2
    rest = values[low:high]
    return total * 3 + len(rest)
"""


def changes(code, **settings):
    return {mutant.change for mutant in mutants(code, most=1000, **settings)}


def test_every_mutant_is_another_program_with_one_place_changed():
    original = ast.unparse(ast.parse(COUNT)).splitlines()
    found = mutants(COUNT, most=1000)
    assert len({mutant.code for mutant in found}) == len(found)
    for mutant in found:
        blocks = difflib.SequenceMatcher(None, original, mutant.code.splitlines(), autojunk=False).get_opcodes()
        assert sum(tag != "equal" for tag, *_ in blocks) == 1, mutant
        compile(mutant.code, "mutant", "exec")


def test_the_line_is_that_of_the_original_program():
    lines = COUNT.splitlines()
    assert all("value == 7" in lines[m.line - 1] for m in mutants(COUNT, most=1000) if "value == 7" in m.change)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("return a + b", "`a + b` -> `a - b`"),
        ("return a * b", "`a * b` -> `a // b`"),
        ("return a < b", "`a < b` -> `a <= b`"),
        ("return a == b", "`a == b` -> `a != b`"),
        ("return a and b", "`a and b` -> `a or b`"),
        ("return [i for i in range(a)]", "`range(a)` -> `range(a - 1)`"),
        ("return [i for i in range(a)]", "`range(a)` -> `range(1, a)`"),
        ("return b[a:]", "`a:` -> `a + 1:`"),
        ("return a % 2", "`2` -> `3`"),
        ("return sorted(a, reverse=True)", "`True` -> `False`"),
        ("return 1 if a else b", "`a` -> `not a`"),
        ("return [i for i in a if i]", "`i` -> `True`"),
        ("return a < b", "`a < b` -> `True`"),
        ("return [a, b]", "`[a, b]` -> `[a, b][:-1]`"),
        ("return f(a)", "`f(a)` -> `[]`"),
        ("a.sort()\n    return a", "`a.sort()` -> `pass`"),
        ("a += b\n    return a", "`a += b` -> `a -= b`"),
    ],
)
def test_each_kind_of_mistake_is_made(code, change):
    assert change in changes(f"def f(a, b):\n    {code}\n")


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("if a > b:\n        b = a\n    return b", "`a > b` -> `a >= b`"),
        ("return a if a > b else b", "`a > b` -> `a >= b`"),
        ("if a < b:\n        return a\n    else:\n        return b", "`a < b` -> `a <= b`"),
        ("return (a + b) % (10 ** 9 + 7)", "`7` -> `8`"),
        ("return (a + b) % 1000007", "`1000007` -> `1000008`"),
        ("c = [0] * (a + 1)\n    return c[b]", "`1` -> `2`"),
        ("return a + 'x'", "`a + 'x'` -> `a - 'x'`"),
        ("c = a\n    return c", "`c = a` -> `pass`"),
        ("assert a > 0\n    return b", "`a > 0` -> `a >= 0`"),
        ("import sys\n    sys.setrecursionlimit(100)\n    return a", "`100` -> `101`"),
        ("while a:\n        a -= 1\n    return b", "`a` -> `True`"),
        ("unused = 5\n    return a", "`5` -> `6`"),
        ("return []", "`[]` -> `[][1:]`"),
    ],
)
def test_what_no_test_could_notice_or_every_test_would_is_left_out(code, never):
    assert never not in changes(f"def f(a, b):\n    {code}\n")


def test_code_that_the_tests_never_enter_is_left_alone():
    code = (
        "def helper(n):\n    return n + 1\n"
        "def unused(n):\n    return n + 2\n"
        "class Solution:\n"
        "    def solve(self, n, start=3):\n        return helper(n) * 4\n"
        "    def other(self, n):\n        return n + 5\n"
        "print(Solution().other(6))\n"
        "if __name__ == '__main__':\n    print(helper(7))\n"
    )
    lines = {mutant.line for mutant in mutants(code, entry_point="Solution.solve", most=1000)}
    assert lines == {2, 7}


def test_of_a_program_that_prints_all_that_runs_is_changed_and_its_answer_too():
    code = "def twice(n):\n    return n * 2\ndef unused(n):\n    return n + 3\nprint(twice(int(input())))\n"
    found = mutants(code, prints=True, most=1000)
    assert {mutant.line for mutant in found} == {2, 5}
    assert "`twice(int(input()))` -> `0`" in {mutant.change for mutant in found}


def test_a_few_are_chosen_from_all_kinds_and_from_the_whole_program_the_same_every_time():
    long = "def f(a, b):\n" + "    if a[0] < b:\n        b += len(a[b:])\n" * 40 + "    return b\n"
    found = mutants(long, most=18)
    assert found == mutants(long, most=18)
    assert len(found) == 18
    assert {mutant.kind for mutant in found} == set(KINDS)
    thirds = {(mutant.line - 2) * 3 // 81 for mutant in found if mutant.kind in ("operator", "bound", "constant")}
    assert thirds == {0, 1, 2}


@pytest.mark.parametrize(
    "code", ["", "def f(:", "x = '\0'", "(" * 500 + ")" * 500, "x = 1\n" * 20_000, "-" * 5000 + "1"]
)
def test_what_is_no_program_or_mostly_a_table_has_no_mutants(code):
    assert mutants(code) == []
