"""Constraints as statements give them."""

from __future__ import annotations

import pytest

from microcoder.data.forge.arguments.quantities import with_powers
from microcoder.data.forge.reading.constraints import read
from microcoder.data.forge.reading.facts import alphabet, choices
from microcoder.data.forge.reading.relations import Checker, relations


def said(text):
    return [f"{one.left} {one.op} {one.right}" for one in relations(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 <= nums.length <= 10^5", ["1 <= len(nums)", "len(nums) <= 10 ** 5"]),
        ("-2^31 <= x <= 2^31 - 1", ["-2 ** 31 <= x", "x <= 2 ** 31 - 1"]),
        ("1 <= n, m <= 2 * 10^5", ["1 <= n", "1 <= m", "n <= 2 * 10 ** 5", "m <= 2 * 10 ** 5"]),
        ("1 <= a <= 5, 1 <= b <= 7", ["1 <= a", "a <= 5", "1 <= b", "b <= 7"]),
        (r"1 \leq A_i \leq N", ["1 <= A[i]", "A[i] <= N"]),
        (r"$1 \le |S| \le 2 \times 10^{5}$", ["1 <= len(S)", "len(S) <= 2 * 10 ** 5"]),
        ("0 <= ai, bi <= n - 1 and ai != bi", ["0 <= ai", "0 <= bi", "ai <= n - 1", "bi <= n - 1", "ai != bi"]),
        ("1 <= k <= min(n, 2n)", ["1 <= k", "k <= min(n, 2 * n)"]),
        ("edges.length = n - 1", ["len(edges) == n - 1"]),
        ("1 ≤ n ≤ 200 000", ["1 <= n", "n <= 200000"]),
        ("It is said to be so", []),
        ("0 <= up[i] <= n - 1 for all i >= 1.", ["0 <= up[i + 1]", "up[i + 1] <= n - 1"]),
        ("p[i] != [x, y] for all 0 <= i < p.length", ["p[i] != [x, y]"]),
        ("The sum of words[i].length is smaller than or equal 10^5.", ["total(words) <= 10 ** 5"]),
        ("sum(nums[i]) <= 300", ["sum(nums) <= 300"]),
        ("1 <= team_id, desk_id <= 9", ["1 <= team_id", "1 <= desk_id", "team_id <= 9", "desk_id <= 9"]),
    ],
)
def test_relations_are_read_in_every_spelling(text, expected):
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("0 <= nums[i] <= 3", {"nums": [0, 3]}, True),
        ("0 <= nums[i] <= 3", {"nums": [0, 4]}, False),
        ("nums[i] != nums[i + 1]", {"nums": [1, 2, 1]}, True),
        ("nums[i] != nums[i + 1]", {"nums": [1, 1]}, False),
        ("g[i][j] == g[j][i]", {"g": [[0, 1], [1, 0]]}, True),
        ("g[i][j] == g[j][i]", {"g": [[0, 1], [2, 0]]}, False),
        ("edges.length == n - 1", {"edges": [[0, 1]], "n": 2}, True),
        ("edges.length == n - 1", {"edges": [[0, 1]], "n": 3}, False),
    ],
)
def test_a_relation_holds_for_all_of_its_indices(text, values, holds):
    assert all(Checker(one, set(values)).holds(values) for one in relations(text)) is holds


def test_code_in_a_statement_is_no_relation():
    assert relations("__import__('os').system('x') <= 5") == []
    assert relations("(lambda: 1)() <= n") == []
    assert relations("x.__class__ <= n") == []


@pytest.mark.parametrize(
    ("text", "chars"),
    [
        ("lowercase English letters.", "abcdefghijklmnopqrstuvwxyz"),
        ("digits", "0123456789"),
        ("'a', 'b', and '*'", "*ab"),
        ("only vowels", "aeiou"),
        ("#, ., ?", "#.?"),
    ],
)
def test_alphabets(text, chars):
    assert alphabet(text) == chars


def test_choices_are_literal_values_and_nothing_else():
    assert choices("either 0, 1, or 2.") == [0, 1, 2]
    assert choices("'L' or 'R'") == ["L", "R"]
    assert choices("greater than 0 or 1 of them") is None


def test_facts_columns_and_what_could_not_be_read():
    found = read(
        "There is a tree. edges[i] = [ai, bi] joins two nodes.\n\nConstraints:\n\n2 <= n <= 10^4\n"
        "All the values of nums are unique.\nnums is sorted in ascending order.\nedges represents a valid tree.\n"
        "The wombat is always hungry on Tuesdays.\n"
    )
    assert found.columns == {"edges": ("ai", "bi")}
    facts = {(fact.name, subject) for fact in found.facts for subject in fact.subjects}
    assert {("distinct", "nums"), ("sorted", "nums"), ("tree", "edges")} <= facts
    assert found.unread == ["The wombat is always hungry on Tuesdays."]


def test_a_guarantee_outside_of_the_section_that_is_not_understood_is_told():
    found = read("Find a pair.\nIt is guaranteed that the wombats agree.\n\nConstraints:\n\n1 <= n <= 5")
    assert found.unread == ["It is guaranteed that the wombats agree."]


def test_properties_of_lengths_and_of_nodes_are_facts_too():
    found = read("Do it.\n\nConstraints:\n\narr.length is even.\nNode.val is either 0 or 1.\ns contains no duplicates.")
    assert [(fact.name, fact.value) for fact in found.facts if fact.name != "distinct"] == [
        ("even", "even"),
        ("choices", [0, 1]),
    ]
    assert found.unread == []


def test_what_holds_for_some_or_for_no_pair_is_not_taken_for_all():
    found = read(
        "Do.\n\nConstraints:\n\nThere is at least one element i where a[i] == 0.\n"
        "There are no two wombats such that a[i] < b[i]."
    )
    assert found.relations == []
    assert [(fact.name, fact.subjects) for fact in found.facts] == [("exists", ("a[i]",)), ("no_pair", ("wombats",))]


def test_marks_that_nobody_sees_are_no_constraint():
    assert read("Do.\n\nConstraints:\n\n1 <= n <= 5\n\u200b\u200b").unread == []


@pytest.mark.parametrize(
    ("text", "again"),
    [("nums[i] < 27", "2 ** 7"), ("n <= 1014", "10 ** 14"), ("n <= 2 * 105", "2 * 10 ** 5"), ("n <= 26", "2 ** 6")],
)
def test_numbers_that_may_have_been_powers(text, again):
    (relation,) = relations(text)
    assert with_powers(relation).right == again
    assert with_powers(relations("n <= 100")[0]) is None


def test_columns_with_subscripts_are_columns():
    found = read(
        "queries, where queries[i] = [l_i, r_{i}]. Select indices in [l_i, r_i].\n\n"
        "Constraints:\n\n0 <= l_i <= r_i < nums.length"
    )
    assert found.columns == {"queries": ("li", "ri")} and found.unread == []
    assert {name for one in found.relations for name in (one.left, one.right)} >= {"li", "ri"}
