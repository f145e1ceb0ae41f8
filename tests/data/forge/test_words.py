"""Lines of text, words that are copies, values that go by a word, ranges and lengths told in words."""

from __future__ import annotations

import random

import pytest

from microcoder.data.forge.space import NoSpace
from microcoder.data.forge.stdin.layouts import StdinSpace, stdin_space
from microcoder.schema import Problem, Test


def space(told: str, inputs: list[str], more: str = "") -> StdinSpace:
    statement = f"## Input\n{told}\n\n## Output\nPrint it.\n\n{more}"
    return stdin_space(Problem("p", statement=statement, tests=[Test(text, "") for text in inputs]), [])


def drawn(found: StdinSpace, text: str) -> set[str]:
    rng = random.Random(5)
    made = [found.draw(rng, size) for size in (0.1, 0.2, 0.3) * 10] + [found.near(text, rng) for _ in range(20)]
    texts = {one.input for one in made if one}
    assert len(texts) > 3
    return texts


LINES = (
    "The input is a single line consisting of $n$ lower case ASCII letters along with spaces ($1 \\le n \\le 40$).",
    "a bird in the hand\n",
)


def test_a_line_of_text_has_spaces_only_between_words():
    told, text = LINES
    found = space(told, [text])
    assert (found.bounded_by, found.fault("two words\n")) == ("constraints", "")
    for bad in ("Two words\n", "two  words\n", " two words\n", "a" * 41 + "\n"):
        assert found.fault(bad)
    texts = drawn(found, text)
    assert any(" " in one for one in texts) and any(" " not in one for one in texts)
    assert all(" ".join(one.split()) == one.strip("\n") and len(one) <= 41 for one in texts)


def test_spaces_that_only_part_values_make_no_line_of_text():
    with pytest.raises(NoSpace, match="3 words in place of 2"):
        space("One line with two integers $a$ and $b$, separated by spaces.", ["1 2 3\n"])


COPIES = (
    "One line with a string $s$ of lowercase letters ($3 \\le |s| \\le 30$). It is guaranteed that $s$ is the result of"
    " a word being written three times, where possibly one letter was changed to some other letter."
)


def _departures(word: str, times: int) -> int:
    long = len(word) // times
    columns = [word[n::long] for n in range(long)]
    return sum(times - max(map(column.count, column)) for column in columns)


def test_copies_of_a_word_are_drawn():
    found = space(COPIES, ["catcatcat\n", "dogdigdog\n"])
    assert (found.bounded_by, found.unread) == ("constraints", [])
    assert found.fault("dogdigdug\n") and found.fault("catcat\n") and not found.fault("xyxyxz\n")
    words = [one.strip() for one in drawn(found, "dogdigdog\n")]
    assert all(len(word) % 3 == 0 and _departures(word, 3) <= 1 for word in words)
    assert {_departures(word, 3) for word in words} == {0, 1}


@pytest.mark.parametrize("told", [COPIES.replace("changed to some other letter", "doubled"),
                                  COPIES.replace("three times,", "three times, backwards,")])  # fmt: skip
def test_copies_with_a_rule_that_is_not_understood_leave_no_space(told):
    with pytest.raises(NoSpace, match="guarantee"):
        space(told, ["catcatcat\n"])


def test_few_different_letters_and_last_digits():
    told = (
        "One line with a string $S$ ($1 \\le |S| \\le 99$). It has characters from `a`-`z` and"
        " at most 4 distinct characters."
    )
    found = space(told, ["abcd\n", "zz\n"])
    assert found.fault("abcde\n") and not found.fault("zyxw\n")
    assert all(len(set(one.strip())) <= 4 for one in drawn(found, "abcd\n"))
    found = space(
        "One line with an integer $K$ ($1 \\le K \\le 300$). It is guaranteed that $K$ does not end in 7.", ["12\n"]
    )
    assert found.fault("27\n") and not found.fault("72\n")
    assert not any(one.endswith("7\n") for one in drawn(found, "12\n"))


ROWS = (
    "The first line contains an integer $n$ ($1 \\le n \\le 9$), the number of dogs. The next $n$ lines contain one dog"
    " each. Each line contains the name of the dog, the weight and the height. The weight and height are integers from"
    " $0$ to $50$, both ends being inclusive. The name contains only upper and lower case letters along with dots and"
    " underscores. The names are of length at most $12$. No name will appear more than once."
)


def test_values_that_go_by_a_word():
    text = "2\nBig_Al 12 30\nDr.Doolittle 3 50\n"
    found = space(ROWS, [text])
    assert (found.bounded_by, found.unread) == ("constraints", [])
    for bad in ("1\nAl 12 51\n", "1\nAl! 12 30\n", "2\nAl 1 2\nAl 3 4\n", "1\nabcdefghijklm 1 2\n", "1\nAl 3\n"):
        assert found.fault(bad)
    for one in drawn(found, text):
        names = [line.split()[0] for line in one.splitlines()[1:]]
        assert len(set(names)) == len(names)


def test_ends_that_do_not_belong_to_a_range_are_not_drawn():
    text = "2\nBig_Al 12 30\nDr.Doolittle 3 47\n"
    found = space(ROWS.replace("both ends being inclusive", "both ends exclusive"), [text])
    assert found.bounded_by == "hull"


@pytest.mark.parametrize(
    ("told", "text", "broken"),
    [
        ("The first two lines contain the strings $A$ respectively $B$. Both $A$ and $B$ consist of lowercase letters"
         " and are between 1 and 9 characters long.", "abc\nd\n", "abcdefghij\nk\n"),
        ("The input consists of 3 lines. The lines contain the integers $a, b, c$ in that order. The values are"
         " always between 1 and 20, inclusive.", "4\n5\n6\n", "4\n21\n6\n"),
        ("The first line contains an integer $N$ ($1 \\le N \\le 9$). The second line contains $N$ integers"
         " $w_1, w_2, \\dots, w_n$ ($1 \\le w_i \\le 5$).", "3\n1 2 5\n", "2\n1 6\n"),
        ("One line with two integers $n$ and $m$ ($2 \\le n, m \\le 9$). Each of the next $m$ lines contains two"
         " integers $u$ and $v$ ($1 \\le u, v \\le n$, $u \\ne v$).", "3 2\n1 2\n3 1\n", "3 2\n1 1\n3 1\n"),
        ("The input consists of:\n- $3$ lines with $4$ characters, each character being either ``.`' or ``o`'.\n"
         "- One line with an integer $k$ ($1 \\le k \\le 4$).", ".o..\noo..\n....\n2\n", ".o..\nox..\n....\n2\n"),
    ],
)  # fmt: skip
def test_more_prose_is_read(told, text, broken):
    found = space(told, [text])
    assert (found.fault(text), found.bounded_by, found.unread) == ("", "constraints", [])
    assert found.fault(broken)
    drawn(found, text)


def test_the_number_of_lines_must_agree_with_the_names():
    with pytest.raises(NoSpace):
        space("The first three lines contain the strings $A$ and $B$.", ["abc\nd\n"])


def test_cards_are_only_those_of_the_tests():
    told = "The input will contain two lines. Each line will contain three cards, separated by spaces."
    seen = {"K7", "Q2", "J", "A1"}
    for one in drawn(space(told, ["K7 Q2 J\nJ J A1\n"]), "K7 Q2 J\nJ J A1\n"):
        assert set(one.split()) <= seen and [len(line.split()) for line in one.splitlines()] == [3, 3]


LIST = (
    "The first line contains an integer $n$ ($1 \\le n \\le 9$). Each of the next $n$ lines contains two integers $x$"
    " and $y$ ($1 \\le x, y \\le 99$). "
)


def test_rows_of_a_list_are_no_test_cases():
    text = "3\n1 2\n3 4\n5 6\n"
    with pytest.raises(NoSpace, match="guarantee"):
        space(LIST + "It is guaranteed that the town is reachable.", [text])
    found = space(LIST + "It is guaranteed that no two friends would ever quarrel.", [text])
    for one in drawn(found, text):
        rows = one.splitlines()[1:]
        assert rows == sorted(set(rows)) and set(rows) <= set(text.splitlines()[1:])


def test_rows_that_differ_in_one_of_two_values():
    text = "3\n1 2\n1 4\n5 4\n"
    found = space(LIST + "No two guests who came at the same hour stayed for the same time.", [text])
    assert found.unread == [] and found.fault("2\n1 2\n1 2\n") and not found.fault("2\n1 2\n1 3\n")


def test_two_values_of_which_neither_is_shared_are_not_taken_for_pairs():
    text = "3\n1 2\n3 4\n5 6\n"
    for told in (
        "No two guests have the same age or the same name.",
        "No two have the same age, no two the same name.",
    ):
        assert space(LIST + told, [text]).unread[0] == told


def test_signs_that_the_tests_show_belong_to_an_alphabet_with_symbols():
    told = (
        "One line with a word $w$. Only alphabetical letters, digits and the symbols $($ and $)$ appear in it."
        " There are at most $30$ characters in each of $w$."
    )
    found = space(told, ["print(x1)\n"])
    assert not found.fault("a)(b\n") and found.fault("a?b\n") and found.fault("a" * 31 + "\n")


def test_a_letter_or_a_sign():
    told = "One line with a string $s$ ($1 \\le |s| \\le 9$).\n\n## Constraints\n- Each character of $s$ is either %s."
    found = space(told % "a lowercase English letter or -", ["a-b\n"])
    assert not found.fault("--z\n") and found.fault("A-\n")
    with pytest.raises(NoSpace, match="guarantee"):
        space(told % "a lowercase English letter or - after a vowel", ["a-b\n"])
