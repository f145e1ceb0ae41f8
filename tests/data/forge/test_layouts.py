"""Layouts of stdin problems: read from a format or from prose, drawn from, and checked against real kinds of input."""

from __future__ import annotations

import random

import pytest

from microcoder.data.forge.space import NoSpace
from microcoder.data.forge.stdin.layouts import stdin_space
from microcoder.schema import Problem, Test

INTERVALS = r"""There are N roads.

Input

The input is given from Standard Input in the following format:
N M
L_1 R_1
L_2 R_2
\vdots
L_M R_M

Output

Print the answer.

Constraints

- 2 \leq N \leq 10^{12}
- 0 \leq M \leq 2 \times 10^4
- 1 < L_i \leq R_i < N (1 \leq i \leq M)
- R_i < L_{i+1} (1 \leq i \leq M - 1)
- All input values are integers.
"""
CASES = """Input

Each test contains multiple test cases. The first line contains the number of test cases $t$ ($1 \\le t \\le 10^4$).

The first line of each test case contains two integers $n$ and $k$ ($1 \\le k \\le n \\le 2 \\cdot 10^5$) — sizes.

The second line of each test case contains $n$ integers $a_1, a_2, \\ldots, a_n$ ($-10^9 \\le a_i \\le 10^9$).

The third line contains a string $s$ of length $n$ consisting of lowercase Latin letters.

It is guaranteed that the sum of $n$ over all test cases does not exceed $2 \\cdot 10^5$.

Output

Print it.
"""
TREE = """Input

The first line contains two integers n and q (2 ≤ n ≤ 100000, 1 ≤ q ≤ 1000) — the number of vertices and of queries.

Each of the next n - 1 lines contains two integers u and v (1 ≤ u, v ≤ n). It is guaranteed that the edges form a tree.

The next line contains n integers p_1, p_2, …, p_n. It is guaranteed that p is a permutation.

Each of the next q lines contains two integers l and r (1 ≤ l ≤ r ≤ n).

Output

Print it.
"""
QUERIES = r"""Input

The input is given from Standard Input in the following format:
Q
\mathrm{query}_1
\mathrm{query}_2
\vdots
\mathrm{query}_Q

Each query is given in one of the following formats:
1 x

2

Output

Print it.

Constraints

- 1 \leq Q \leq 100
- 1 \leq x \leq 10^9
- There is at least one query of type 2.
"""
GRID = r"""Input

The input is given from Standard Input in the following format:
H W
S_{1,1}S_{1,2}\ldots S_{1,W}
\vdots
S_{H,1}S_{H,2}\ldots S_{H,W}

Output

Print it.

Constraints

- 1 \leq H,W
- HW \leq 1000
- Each S_{i,j} is one of #, ., @.
"""
GRAPH = r"""Input

The input is given from Standard Input in the following format:
N M
u_1 v_1
\vdots
u_M v_M

Output

Print it.

Constraints

- 2 \le N \le 2\times 10^5
- N-1 \le M \le \min\left(\frac{N(N-1)}{2},\,2\times 10^5\right)
- 1 \le u_i < v_i \le N
- The given graph is simple and connected.
"""
KNOWN = {
    "intervals": (INTERVALS, ["24 2\n7 8\n17 20\n", "30 0\n"]),
    "cases": (CASES, ["2\n3 1\n1 2 3\nabc\n1 1\n-5\nz\n"]),
    "tree": (TREE, ["3 1\n1 2\n3 1\n2 3 1\n1 3\n", "2 2\n2 1\n1 2\n1 1\n2 2\n"]),
    "queries": (QUERIES, ["3\n1 5\n2\n1 7\n"]),
    "graph": (GRAPH, ["3 2\n1 2\n1 3\n"]),
    "grid": (GRID, ["2 3\n#.@\n...\n"]),
}


def space(name: str):
    statement, inputs = KNOWN[name]
    return stdin_space(problem(statement, inputs), [])


def problem(statement: str, inputs: list[str]) -> Problem:
    return Problem("p", statement=statement, tests=[Test(text, "") for text in inputs])


@pytest.mark.parametrize("name", KNOWN)
def test_the_tests_have_no_fault_and_bounds_are_read(name):
    found = space(name)
    assert [found.fault(text) for text in KNOWN[name][1]] == [""] * len(KNOWN[name][1])
    assert found.unread == []
    assert found.bounded_by == "constraints"


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("intervals", "24 2\n7 8\n", "ends too early"),
        ("intervals", "24 1\n8 7\n", "against"),
        ("intervals", "24 2\n7 9\n9 10\n", "against"),
        ("intervals", "24 1\n7 24\n", "against"),
        ("cases", "1\n3 4\n1 2 3\nabc\n", "against"),
        ("cases", "1\n3 1\n1 2 3\nab\n", "not as long as n"),
        ("cases", "1\n3 1\n1 2 3\nabC\n", "letter"),
        ("cases", "1\n3 1\n1 2 3 4\nabc\n", "words in place"),
        ("cases", "1\n1 1\n1000000001\na\n", "against"),
        ("tree", "3 1\n1 2\n2 1\n2 3 1\n1 3\n", "simple"),
        ("tree", "4 1\n1 2\n3 4\n1 2\n1 2 3 4\n1 3\n", "simple"),
        ("tree", "3 1\n1 2\n3 1\n2 3 3\n1 3\n", "permutation"),
        ("tree", "3 1\n1 2\n3 1\n2 3 1\n3 1\n", "against"),
        ("queries", "1\n1 5\n", "at least one"),
        ("queries", "1\n3\n", "no line begins with '3'"),
        ("grid", "1 2\n#x\n", "letter"),
        ("grid", "1 2\n#\n", "not as long as W"),
    ],
)
def test_a_fault_is_named(name, text, fault):
    assert fault in space(name).fault(text)


def test_the_sum_over_all_test_cases_is_limited():
    large = "150000 1\n" + "1 " * 150_000 + "\n" + "a" * 150_000 + "\n"
    assert space("cases").fault("1\n" + large) == ""
    assert "sum of n" in space("cases").fault("2\n" + large * 2)


@pytest.mark.parametrize("name", KNOWN)
def test_draws_and_changes_keep_to_the_constraints_and_differ(name):
    found = space(name)
    rng = random.Random(3)
    drawn = [found.draw(rng, size) for size in (0, 0.1, 0.2, 0.3) * 6]
    changed = [found.near(KNOWN[name][1][0], rng) for _ in range(24)]
    texts = {one.input for one in [*drawn, *changed] if one}
    assert None not in drawn
    assert len(texts) > 20
    assert [text for text in texts if found.fault(text)] == []


def test_an_input_at_the_limits_is_large_and_a_small_one_is_small():
    found = space("cases")
    limit = [found.draw(random.Random(seed), 1.0) for seed in range(4)]
    small = [found.draw(random.Random(seed), 0.0) for seed in range(8)]
    assert max(found.size_of(one.input) for one in limit if one) > 0.5
    assert max(found.size_of(one.input) for one in small if one) < 0.01


def test_the_vertices_of_a_graph_are_part_of_its_size():
    found = space("graph")
    drawn = [found.draw(random.Random(seed), 0.1) for seed in range(20)]
    assert max(int(one.input.split()[0]) for one in drawn if one) < 40


def test_the_same_seed_gives_the_same_input():
    one, two = (space("tree").draw(random.Random(5), 0.3) for _ in range(2))
    assert one == two


def test_where_a_guarantee_is_not_understood_only_whole_test_cases_are_exchanged():
    statement = CASES.replace("It is guaranteed that the sum", "It is guaranteed that a is a beautiful array. The sum")
    text = "3\n3 1\n1 2 3\nabc\n1 1\n-5\nz\n2 2\n7 7\nxy\n"
    found = stdin_space(problem(statement, [text]), [])
    cases = {("3 1", "1 2 3", "abc"), ("1 1", "-5", "z"), ("2 2", "7 7", "xy")}
    assert any("beautiful" in one for one in found.unread)
    for seed in range(10):
        made = found.draw(random.Random(seed), 0.3)
        lines = made.input.splitlines()
        assert {tuple(lines[n : n + 3]) for n in range(1, len(lines), 3)} <= cases


def test_without_cases_an_unknown_guarantee_leaves_no_space():
    statement = TREE.replace(
        "It is guaranteed that p is a permutation.", "It is guaranteed that p is a beautiful array."
    )
    with pytest.raises(NoSpace, match="beautiful"):
        stdin_space(problem(statement, KNOWN["tree"][1]), [])


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("Input\n\nThe first line contains one integer n.\n\nOutput\n\nIt.", "does not fit the tests"),
        ("Guess the number that I think of.", "no layout"),
    ],
)
def test_no_space_says_why(statement, reason):
    with pytest.raises(NoSpace, match=reason):
        stdin_space(problem(statement, ["3\n1 2 3\n"]), [])


def test_a_value_without_bounds_stays_within_the_hull():
    statement = "Input\n\nThe first line contains two integers n and m (1 ≤ n ≤ 10).\n\nOutput\n\nIt."
    found = stdin_space(problem(statement, ["3 40\n", "5 60\n"]), [])
    assert found.bounded_by == "hull"
    assert found.unread == ["no bounds for m"]
    rng = random.Random(1)
    drawn = [found.draw(rng, 0.3) for _ in range(30)] + [found.near("3 40\n", rng) for _ in range(30)]
    values = [int(one.input.split()[1]) for one in drawn if one]
    assert 40 <= min(values) <= max(values) <= 60


def test_a_constraint_that_a_test_breaks_was_misread():
    statement = "Input\n\nThe first line contains one integer n (1 ≤ n ≤ 10).\n\nOutput\n\nIt."
    found = stdin_space(problem(statement, ["3\n", "11\n"]), [])
    assert found.fault("11\n") == ""


FORMAT = "Input\n\nThe input is given in the following format:\n{}\n\nConstraints\n\n{}\n"


@pytest.mark.parametrize(
    ("layout", "constraints", "inputs", "broken"),
    [
        ("A B C D", "- 1 ≤ A, B, C, D ≤ 3\n- (A, B) ≠ (C, D)", ["1 2 2 1\n"], "1 2 1 2\n"),
        ("R C", "- -2 ≤ R, C ≤ 2\n- (R,C) ≠ (0,0)", ["1 2\n"], "0 0\n"),
        ("N\nA_1 \\ldots A_N", "- 1 ≤ N ≤ 5\n- A_i ∈ \\{ 0, 1 \\} (1 ≤ i ≤ N)", ["3\n0 1 1\n"], "2\n0 2\n"),
        (
            "N M\nB_1 \\ldots B_N",
            "- 1 ≤ N, M ≤ 5\n- Each B_i is -1 or an integer between 1 and M, inclusive.",
            ["3 2\n-1 1 2\n"],
            "1 2\n0\n",
        ),
        ("N K", "- 1 ≤ K ≤ N ≤ 9\n- \\color{red}{K=1}", ["3 1\n"], "3 2\n"),
        ("N K", "- 1 ≤ K ≤ N ≤ 10^6\n- \\dbinom{N}{K} ≤ 10^6", ["3 1\n", "1000 999\n"], "1000 500\n"),
        (
            "S\nT",
            "- Each of S and T is a string of length between 1 and 4.\n- S and T consist of lowercase letters.",
            ["ab\nabc\n"],
            "ab\nabcde\n",
        ),
        ("N\nu_1 v_1\n\\vdots\nu_{N-1} v_{N-1}", "- 3 ≤ N ≤ 9\n- 1 ≤ u_i < v_i ≤ N\n- The given graph is a tree.",
         ["3\n1 2\n1 3\n"], "3\n1 2\n1 2\n"),
        ("N\nS", "- 1 ≤ N ≤ 9\n- S is a string of length N consisting of digits from 1 through 9.", ["3\n121\n"],
         "2\n10\n"),
    ],
)  # fmt: skip
def test_constraints_of_many_spellings_are_kept_to(layout, constraints, inputs, broken):
    found = stdin_space(problem(FORMAT.format(layout, constraints), inputs), [])
    assert (found.unread, found.bounded_by) == ([], "constraints")
    assert found.fault(broken)
    rng = random.Random(2)
    drawn = {one.input for one in [found.draw(rng, size) for size in (0.0, 0.2, 0.4) * 8] if one}
    assert len(drawn) > 3


LINE = "Input\n\nThe only line contains {}.\n\nOutput\n\nPrint it.\n"


@pytest.mark.parametrize(
    ("line", "known", "broken"),
    [
        ("an odd integer n (1 ≤ n ≤ 99)", ["7\n", "15\n"], ["8\n"]),
        ("a prime number p (2 ≤ p ≤ 99)", ["7\n", "13\n"], ["9\n"]),
        ("two integers x and y (2 ≤ x, y ≤ 99, both are even)", ["2 4\n", "8 6\n"], ["2 3\n", "3 2\n"]),
        ("a pair of numbers n and m (2 ≤ n, m ≤ 99, n, m — even integers)", ["2 4\n", "8 6\n"], ["2 3\n"]),
        ("three distinct integers a, b, c (1 ≤ a, b, c ≤ 9)", ["1 2 3\n", "4 2 1\n"], ["1 2 1\n", "2 2 1\n"]),
        ("two integers a and b (1 ≤ a, b ≤ 9, a and b are distinct)", ["1 2\n", "4 2\n"], ["2 2\n"]),
    ],
)
def test_what_is_said_of_numbers_where_their_line_is_described_is_kept(line, known, broken):
    space = stdin_space(Problem("p", statement=LINE.format(line), tests=[Test(one, "1") for one in known]))
    assert not any(map(space.fault, known)) and all(map(space.fault, broken)) and not space.restricted
    rng = random.Random(1)
    assert len({space.draw(rng, 0.1).input for _ in range(30)}) > 2


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("a string s (1 ≤ |s| ≤ 9), a palindrome of lowercase English letters", "aba\n"),
        ("a regular bracket sequence s (1 ≤ |s| ≤ 9)", "(())\n"),
        ("two coprime integers a and b (1 ≤ a, b ≤ 9)", "3 4\n"),
        ("an integer n (1 ≤ n ≤ 99), n is a power of two", "8\n"),
        ("two integers l and r (1 ≤ l ≤ r ≤ 9), r - l is even", "3 5\n"),
        ("a composite number n (4 ≤ n ≤ 99) — the size of the tree", "6\n"),
        ("an integer n (1 ≤ n ≤ 99), not divisible by 10", "6\n"),
        ("a string s (1 ≤ |s| ≤ 9) of lowercase letters in which no two adjacent letters are equal", "abab\n"),
        ("a string s (1 ≤ |s| ≤ 9) of lowercase letters that starts with 'a'", "abab\n"),
    ],
)
def test_what_is_not_understood_where_a_line_is_described_leaves_no_space(line, known):
    with pytest.raises(NoSpace, match="not understood"):
        stdin_space(Problem("p", statement=LINE.format(line), tests=[Test(known, "1")]))


def test_what_a_value_is_for_demands_nothing_of_it():
    line = "an integer n (1 ≤ n ≤ 99) — the number of different vertices of the tree, each at least one"
    assert stdin_space(Problem("p", statement=LINE.format(line), tests=[Test("6\n", "1")])).bounded_by == "constraints"


def test_parents_make_a_tree():
    statement = (
        "Input\n\nThe first line contains n (2 ≤ n ≤ 9).\n\nThe second line contains n - 1 integers p_2, p_3, ..., p_n "
        "(1 ≤ p_i ≤ n), where p_i is the parent of the i-th vertex in the tree.\n\nOutput\n\nPrint it.\n"
    )
    space = stdin_space(Problem("p", statement=statement, tests=[Test("5\n3 1 5 2\n", "1"), Test("2\n1\n", "1")]))
    assert space.fault("2\n2\n") and space.fault("3\n3 2\n") and not space.fault("4\n4 2 1\n")
    rng = random.Random(1)
    assert len({space.draw(rng, 0.3).input for _ in range(30)}) > 15
