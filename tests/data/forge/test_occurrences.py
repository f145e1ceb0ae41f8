"""What statements say of single letters: read, checked, and kept to by every input that is drawn or changed."""

from __future__ import annotations

import random

import pytest

from microcoder.data.forge.space import NoSpace
from microcoder.data.forge.stdin.layouts import stdin_space
from microcoder.schema import Problem, Test

WORD = "Input\n\nThe input is given in the following format:\nN K\nS\n\nConstraints\n\n- 1 ≤ K ≤ N ≤ 12\n{}\n- {}\n"
GRID = (
    "Input\n\nThe input is given in the following format:\nH W\nS_1\n\\vdots\nS_H\n\nConstraints\n\n"
    "- 1 ≤ H, W ≤ 5\n- S_i is a string of length W consisting of {}.\n- {}\n"
)
SLASHED = "- S is a string of length N consisting of 1, 2, and /."


def made(statement: str, inputs: list[str]):
    found = stdin_space(Problem("p", statement=statement, tests=[Test(text, "") for text in inputs]), [])
    rng = random.Random(4)
    drawn = [found.draw(rng, size) for size in (0.0, 0.1, 0.2, 0.3) * 8]
    near = [found.near(inputs[0], rng) for _ in range(16)]
    texts = {one.input for one in [*drawn, *near] if one}
    assert len(texts) > 8
    return found, [text.split() for text in texts]


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("S contains at least one /.", "3 1\n121\n"),
        ("S contains at least K occurrences of /.", "3 2\n1/1\n"),
        ("S contains at least K 1s.", "3 2\n/21\n"),
        ("S contains exactly two /.", "3 1\n1/1\n"),
    ],
)
def test_a_letter_stands_as_often_as_the_statement_says(said, broken):
    found, texts = made(WORD.format(SLASHED, said), ["4 2\n1//1\n", "3 1\n1//\n"])
    assert "letter" in found.fault(broken)
    for _, k, word in texts:
        number = {"one": 1, "two": 2, "K": int(k)}[said.split()[4 if "least" in said else 3]]
        count = word.count("1" if "1s" in said else "/")
        assert count == number if "exactly" in said else count >= number


def test_blocks_of_a_letter_are_counted():
    found, texts = made(
        WORD.format("- S is a string of length N consisting of 0 and 1.", "S contains at least K 1-blocks."),
        ["5 2\n01011\n", "4 2\n1001\n"],
    )
    assert found.fault("5 2\n01110\n")
    assert all(len([run for run in word.split("0") if run]) >= int(k) for _, k, word in texts)


def test_the_letter_of_a_kind_of_cell_need_not_be_known():
    found, texts = made(GRID.format("# and .", "There are at least two floor cells."), ["2 2\n#.\n..\n", "1 3\n#..\n"])
    assert found.fault("1 3\n##.\n")
    assert all("".join(words[2:]).count(".") >= 2 for words in texts)


def test_a_letter_at_a_place_is_kept():
    said = "S_{1,j} and S_{H,j} are # for every 1 ≤ j ≤ W."
    found, texts = made(GRID.format("# and .", said), ["3 2\n##\n.#\n##\n", "2 3\n###\n###\n"])
    assert found.fault("2 2\n##\n#.\n")
    assert all(set(words[2] + words[-1]) == {"#"} for words in texts)


def test_the_first_letter_may_be_forbidden():
    statement = WORD.format("- S is a string of length N consisting of digits.", "The first character of S is not 0.")
    found, texts = made(statement, ["4 2\n1200\n", "3 1\n101\n"])
    assert found.fault("3 1\n012\n")
    assert all(word[0] != "0" for _, _, word in texts)


def test_as_many_of_each_letter_as_the_statement_says():
    statement = WORD.format("- K = 1", "S is a length 2N string consisting of N Ws and N Bs.")
    _, texts = made(statement, ["2 1\nWBBW\n", "1 1\nBW\n"])
    assert all(word.count("W") == word.count("B") == int(n) for n, _, word in texts)


def test_a_letter_at_a_place_that_is_not_understood_leaves_no_space():
    statement = WORD.format(SLASHED, "The first character of S is the one that Bob likes.")
    with pytest.raises(NoSpace, match="Bob"):
        stdin_space(Problem("p", statement=statement, tests=[Test("4 2\n1//1\n", "")]), [])
