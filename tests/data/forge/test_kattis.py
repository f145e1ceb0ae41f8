"""Statements in the manner of Kattis: prose without a format, points for groups of tests, values without bounds."""

from __future__ import annotations

import random

import pytest

from microcoder.data.forge.reading.headings import sections
from microcoder.data.forge.space import NoSpace
from microcoder.data.forge.stdin.layouts import StdinSpace, stdin_space
from microcoder.schema import Problem, Test


def space(told: str, inputs: list[str], more: str = "") -> StdinSpace:
    statement = f"## Input\n{told}\n\n## Output\nPrint it.\n\n{more}"
    return stdin_space(Problem("p", statement=statement, tests=[Test(text, "") for text in inputs]), [])


def made(found: StdinSpace, text: str) -> list[list[list[str]]]:
    rng = random.Random(3)
    drawn = [found.draw(rng, size) for size in (0.0, 0.1, 0.2) * 8] + [found.near(text, rng) for _ in range(16)]
    texts = {one.input for one in drawn if one}
    assert len(texts) > 3
    return [[line.split() for line in one.splitlines()] for one in texts]


@pytest.mark.parametrize(
    ("told", "text", "broken"),
    [
        ("Input consists of two lines.\nThe former line consists of a single integer n ($1 \\le n \\le 9$), the days.\n"
         "The latter line consists of a single integer m ($1 \\le m \\le 9$), the nights.", "8\n3\n", "8 3\n"),
        ("The input contains a single positive integer $n$ ($1 \\le n \\le 50$), the apples.", "12\n", "51\n"),
        ("Input consists of one line containing one integer $n$ ($1 \\le n \\le 50$), all different.", "12\n", "x\n"),
        ("The input consists of three lines, each containing one integer $x_i$ ($0 \\le x_i \\le 9$).", "1\n2\n3\n",
         "1\n2\n"),
        ("The first line contains an integer $n$ ($1 \\le n \\le 9$). Then follow $n$ lines, each containing a single"
         " integer $x_i$ satisfying $2 \\le x_i \\le 7$.", "2\n3\n4\n", "1\n8\n"),
        ("The input starts with two integers $h, w$ ($1 \\le h, w \\le 5$).\nNext there are $h$ lines, each with $w$"
         " characters. These characters are `.` or `\\#`.", "2 3\n.#.\n..#\n", "1 1\nx\n"),
        ("One line contains an integer $n$ ($1 \\le n \\le 5$). The next line contains $n$ integers"
         " $0 \\leq k_j \\leq 15$, the number of people on day $j$.", "2\n3 4\n", "1\n16\n"),
        ("One line contains three integers $r$, $g$ and $b$. It will hold that $0 \\le r, g, b \\le 255$.", "1 2 3\n",
         "1 2 256\n"),
        ("The input consist of:\n- One line with two integers $n$ and $m$ ($1 \\le n, m \\le 9$).\n"
         "- $m$ lines, each with two integers $a$ and $b$ ($1 \\le a, b \\le n$).", "3 1\n1 2\n", "1 1\n1 2\n"),
    ],
)  # fmt: skip
def test_prose_is_read(told, text, broken):
    found = space(told, [text])
    assert (found.fault(text), found.bounded_by, found.unread) == ("", "constraints", [])
    assert found.fault(broken)
    made(found, text)


def test_the_last_group_of_points_gives_constraints():
    table = (
        "## Scoring\n\\begin{tabular}{|l|l|l|}\n\\hline\nGroup & Points & Constraints \\\\ \\hline\n"
        "1 & 40 & $n = 1$ \\\\ \\hline\n2 & 60 & $1 \\leq n \\leq 500$ \\\\ \\hline\n\\end{tabular}\n"
    )
    found = space("The first line contains an integer $n$.", ["7\n"], table)
    assert (found.bounded_by, found.fault("500\n")) == ("constraints", "")
    assert found.fault("501\n")


def test_the_input_of_an_example_is_no_section():
    statement = "\\begin{Input}\nOne line with an integer n.\n\\end{Input}\n\n## Example\n\nInput\n\n```\n2\n```\n"
    assert sections(statement)[0].strip() == "One line with an integer n."


EDGES = (
    "The first line contains two integers $n$ and $m$ ($1 \\le n \\le 9$, $1 \\le m \\le 5$).\n"
    "Each of the next $m$ lines contains two integers $u$ and $v$."
)


def test_values_without_bounds_stay_below_what_they_are_below_in_all_tests():
    text = "5 3\n1 2\n2 3\n4 5\n"
    for lines in made(space(EDGES, [text]), text):
        assert all(1 <= int(u) < int(v) <= int(lines[0][0]) for u, v in lines[1:])


def test_words_without_an_alphabet_are_not_made_up_and_refer_to_what_they_refer_to():
    told = (
        "The first line contains two integers $n$ and $m$ ($2 \\le n \\le 3$, $1 \\le m \\le 5$).\n"
        "The next line contains $n$ names.\n"
        "Each of the next $m$ lines contains two strings $a$ and $b$."
    )
    text = "3 4\nada bo cy\nada bo\nbo cy\ncy ada\nbo ada\n"
    for lines in made(space(told, [text]), text):
        assert set(lines[1]) <= {"ada", "bo", "cy"}
        assert all(set(row) <= set(lines[1]) and row[0] != row[1] for row in lines[2:])


def test_lines_that_break_elsewhere_than_the_statement_says_leave_no_space():
    with pytest.raises(NoSpace, match="does not fit"):
        space("The first line contains four integers a, b, c and d.", ["1 2\n3 4\n"])


def test_numbers_far_beyond_64_bits_are_drawn():
    found = space("Input consists of a single integer $x$ ($1 \\le x \\le 10^{100}$).", ["10\n"])
    assert max(int(found.draw(random.Random(seed), 0.5).input) for seed in range(20)) > 10**90
