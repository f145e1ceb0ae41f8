"""Simple sentences of guarantee: each is read, kept by every draw, and told apart from an input that breaks it."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter

import pytest

from microcoder.data.forge.arguments.functions import function_space
from microcoder.data.forge.arguments.quantities import with_powers
from microcoder.data.forge.reading.constraints import read
from microcoder.data.forge.reading.relations import relations
from microcoder.data.forge.space import NoSpace
from microcoder.schema import Problem

from .test_functions import drawn, problem

NUMBERS = "1 <= nums.length <= 12\n-9 <= nums[i] <= 9\n"
TEXT = "1 <= s.length <= 12\ns consists of lowercase English letters and spaces ' '.\n"
LETTERS = "1 <= s.length <= 12\ns consists of lowercase English letters.\n"
WORDS = "1 <= words.length <= 6\n1 <= words[i].length <= 5\nwords[i] consists of lowercase English letters.\n"
GRID = "1 <= grid.length, grid[i].length <= 4\ngrid[i][j] is either 0 or 1.\n"


@pytest.mark.parametrize(
    ("signature", "constraints", "sentence", "test", "bad"),
    [
        ("nums: List[int]", NUMBERS, "Each element in nums appears twice except for one element which appears once.",
         [[4, 1, 4]], [[4, 1, 4, 1]]),
        ("nums: List[int]", NUMBERS, "Every integer in nums appears exactly three times.", [[4, 4, 4]], [[4, 4]]),
        ("nums: List[int]", NUMBERS, "You may assume that the majority element always exists in the array.",
         [[4, 1, 4]], [[4, 1]]),
        ("nums: List[int]", NUMBERS, "The frequency of each element is in the range [1, 2].", [[4, 1, 4]], [[4, 4, 4]]),
        ("nums: List[int]", "3 <= nums.length <= 9\n0 <= nums[i] <= 20\n", "nums is guaranteed to be a mountain array.",
         [[1, 3, 2]], [[1, 3, 3]]),
        ("nums: List[int]", NUMBERS, "nums is an ascending array that is possibly rotated.", [[3, 1, 2]], [[1, 3, 2]]),
        ("nums: List[int], k: int", NUMBERS + "-9 <= k <= 9\n", "k is not in nums.", [[3, 1], 2], [[3, 1], 1]),
        ("s: str", TEXT, "There is at least one word in s.", ["ab c"], ["  "]),
        ("s: str", LETTERS, "s can be rearranged into a palindrome.", ["aab"], ["ab"]),
        ("s: str", LETTERS, "No letter occurs more than once in s.", ["ab"], ["aa"]),
        ("s: str", "1 <= s.length <= 9\ns consists of lowercase English letters and '?'.\n",
         "It is guaranteed that there are no consecutive repeating characters in s except for '?'.", ["a??b"], ["aab"]),
        ("s: str", "1 <= s.length <= 9\ns consists of digits and the characters '(', ')', '+'.\n",
         "It is guaranteed that s is a VPS.", ["(1)+2"], [")1("]),
        ("s: str, t: str", LETTERS + "1 <= t.length <= 12\nt consists of lowercase English letters.\n",
         "t is an anagram of s.", ["abc", "cab"], ["abc", "abd"]),
        ("s: str, c: str", LETTERS + "c.length == 1\nc consists of lowercase English letters.\n",
         "It is guaranteed that c occurs at least once in s.", ["abc", "b"], ["abc", "d"]),
        ("words: List[str]", WORDS, "All the strings are of the same length.", [["ab", "cd"]], [["ab", "c"]]),
        ("words: List[str]", WORDS, "No letter occurs more than once in words[i].", [["ab", "b"]], [["ab", "bb"]]),
        ("grid: List[List[int]]", GRID, "There is at least one wombat in the grid.",
         [[[0, 1], [1, 0]]], [[[0, 0], [0, 0]]]),
        ("r: List[int]", "r.length == 4\n-9 <= r[i] <= 9\n", "r represents a valid rectangle with a non-zero area.",
         [[0, 0, 1, 2]], [[0, 0, 0, 2]]),
        ("a: int, b: int, c: int", "1 <= a, b, c <= 9\n", "a, b, and c have different values.", [1, 2, 3], [1, 2, 1]),
        ("score: List[int]", "1 <= score.length <= 9\n0 <= score[i] <= 20\n",
         "All the scores are guaranteed to be unique.", [[3, 1]], [[3, 3]]),
        ("g: List[List[int]]", "1 <= g.length <= 5\ng[i].length == g.length\n0 <= g[i][j] <= 1\n",
         "g[i][j] == g[j][i]", [[[0, 1], [1, 0]]], [[[0, 1], [0, 0]]]),
        ("g: List[List[int]]", "n == g.length\nn == g[i].length\n1 <= n <= 4\n0 <= g[i][j] < n2\n",
         "Each value g[i][j] is unique.", [[[0, 1], [3, 2]]], [[[0, 1], [1, 0]]]),
        ("g: List[List[int]]", "1 <= g.length, g[i].length <= 4\n0 <= g[i][j] <= 20\n",
         "All the rows and columns of g are guaranteed to be sorted in non-decreasing order.",
         [[[1, 2], [2, 5]]], [[[1, 2], [3, 1]]]),
        ("g: List[List[int]]", "1 <= g.length, g[i].length <= 4\n0 <= g[i][j] <= 20\n",
         "Each row of g is sorted in non-decreasing order.", [[[1, 2], [0, 5]]], [[[1, 2], [3, 1]]]),
        ("parents: List[int]", "n == parents.length\n2 <= n <= 12\n-1 <= parents[i] <= n - 1\nparents[0] == -1\n",
         "parents represents a valid binary tree.", [[-1, 0, 0]], [[-1, 0, 0, 0]]),
        ("root: Optional[TreeNode]",
         "The number of nodes in the tree is in the range [1, 20].\n0 <= Node.val <= 9\n",
         "root is a binary search tree with duplicates.", [[1, None, 2, 2]], [[1, 2]]),
        ("root: Optional[TreeNode]",
         "The number of nodes in the tree is in the range [1, 20].\n0 <= Node.val <= 99\n",
         "root is a valid binary search tree.", [[2, 1, 3]], [[2, 2]]),
        ("day: str", "", "day represents a calendar date between Jan 1st, 1900 and Dec 31th, 2019.",
         ["2012-02-29"], ["2011-02-29"]),
        ("num: int, k: int", "1 <= num <= 10^6\n", "1 <= k <= num.length (taking num as a string)", [240, 2], [24, 3]),
        ("n: int, k: int", "1 <= n <= 9\n", "1 <= k <= 2n - 1", [3, 7], [3, 8]),
        ("lines: List[str]", "1 <= lines.length <= 4\n1 <= lines[i].length <= 12\n"
         "lines[i] consists of lowercase English letters and ' '.\n",
         "All the words in lines[i] are separated by a single space.", [["ab c", "d e f"]], [["ab  c"]]),
    ],
)  # fmt: skip
def test_a_simple_guarantee_is_kept(signature, constraints, sentence, test, bad):
    space = function_space(problem(signature, constraints + sentence, test))
    assert space.open == [] and space.fault(json.dumps(test)) == ""
    assert space.fault(json.dumps(bad))
    found = drawn(space)
    assert len({json.dumps(one) for one in found}) > 10
    with pytest.raises(NoSpace):
        function_space(problem(signature, constraints + "It is guaranteed that all wombats agree.", test))


def test_names_of_the_places_of_a_list():
    statement = "1 <= m, n <= 9\nm == high.length\nn == wide.length\n0 <= high[i], wide[i] <= 5\nstart.length == 2\n"
    space = function_space(
        problem(
            "start: List[int], high: List[int], wide: List[int]",
            statement + "0 <= startrow < m\n0 <= startcol < n",
            ([0, 1], [1], [2, 2]),
            body="You stand at start = [startrow, startcol].",
        )
    )
    assert space.open == [] and space.bounded_by == "constraints"
    found = drawn(space)
    assert all(start[0] < len(high) and start[1] < len(wide) for start, high, wide in found)
    assert max(start[1] for start, _, _ in found) > 2
    assert space.fault("[[1, 1], [1], [2, 2]]")


def test_the_sides_of_the_only_table():
    space = function_space(problem("g: List[List[int]]", "1 <= rows, cols <= 5\n0 <= g[i][j] <= 1", ([[0, 1]],)))
    assert space.open == [] and {len(g) for (g,) in drawn(space)} == {1, 2, 3, 4, 5}
    assert space.fault(json.dumps([[[0] * 6]]))


def test_lost_subscripts():
    space = function_space(problem("a: List[int]", "2 <= a.length <= 9\n0 <= ai <= a.length", ([2, 1],)))
    assert space.open == [] and max(max(a) for (a,) in drawn(space)) > 2
    assert space.fault("[[3, 0]]")


def test_lists_without_constraints_keep_the_length_that_all_tests_share():
    pairs = Problem(
        "p", kind="assert", statement="Compare two pairs.", entry_point="f",
        asserts=["assert f((1, 2), (2, 3)) == 1", "assert f((4, 2), (0, 3)) == 2"],
    )  # fmt: skip
    space = function_space(pairs, ["def f(a, b):\n    return 1"])
    assert all(len(a) == len(b) == 2 for a, b in drawn(space))


def test_words_that_tests_take_from_a_list_of_the_reference():
    reference = "def f(m):\n    return ['Jan', 'Feb', 'Mar', 'Apr'].index(m) or 'none'"
    months = Problem(
        "p", kind="assert", statement="The number of a month.", entry_point="f",
        asserts=["assert f('Feb') == 1", "assert f('Apr') == 3"],
    )  # fmt: skip
    assert {m for (m,) in drawn(function_space(months, [reference]))} == {"Jan", "Feb", "Mar", "Apr"}
    assert function_space(months).fault('["Fab"]') == ""  # without a reference any letters of the tests will do


def test_intervals_that_the_prose_calls_apart():
    body = "You are given an array of non-overlapping intervals spans where spans[i] = [ai, bi]."
    space = function_space(
        problem("spans: List[List[int]]", "1 <= spans.length <= 5\n0 <= ai <= bi <= 50", ([[1, 2], [4, 9]],), body=body)
    )
    assert all(a[1] < b[0] for (spans,) in drawn(space) for a, b in itertools.pairwise(sorted(spans)))
    assert space.fault("[[[1, 5], [4, 9]]]")


def test_numbers_that_may_be_negative_are_often_taken_from_the_lists():
    statement = "1 <= nums.length <= 50\n-10^4 <= nums[i] <= 10^4\n-10^4 <= target <= 10^4"
    space = function_space(problem("nums: List[int], target: int", statement, ([1, 2], 1)))
    assert sum(target in nums for nums, target in drawn(space)) > 5


def test_what_examples_explain_is_no_guarantee():
    text = "Find it.\n\nExample 1:\n\nInput: n = 1\nOutput: 1\nExplanation: it is so.\n7 is guaranteed to be found.\n\n"
    assert read(text + "Constraints:\n\n1 <= n <= 5").unread == []
    assert read(text.replace("Example 1:", "") + "Constraints:\n\n1 <= n <= 5").unread


@pytest.mark.parametrize(
    "sentence",
    [
        "The number of words in s is in the range [1, 9].",  # no bound of s
        "All words in s have the same length and are anagrams of each other.",  # only half of it is understood
        "The start point of each interval is unique.",
    ],
)
def test_half_of_a_sentence_is_not_the_whole(sentence):
    with pytest.raises(NoSpace):
        function_space(problem("s: List[str]", "1 <= s.length <= 5\n1 <= s[i].length <= 9\n" + sentence, (["ab"],)))


def test_relations_of_several_names_between_two_others():
    found = {f"{one.left} {one.op} {one.right}" for one in relations("low <= x1, x2 <= high")}
    assert found == {"low <= x1", "low <= x2", "x1 <= high", "x2 <= high"}
    assert [f"{one.left} {one.op} {one.right}" for one in relations("a <= b, c <= d")] == ["a <= b", "c <= d"]


def test_relations_from_the_second_element_on():
    for text in ("0 <= up[i] <= n - 1 for i != 0", "0 <= up[i] <= n - 1 for i > 0"):
        assert [one.left for one in relations(text)] == ["0", "up[i + 1]"]
    assert with_powers(relations("k <= 2n - 1")[0]).right == "2 ** n - 1"


def test_numbers_that_the_reference_names_are_tried():
    code = "class Solution:\n    def f(self, n):\n        return n >= 4321"
    space = function_space(problem("n: int", "1 <= n <= 10^6", (5,)), [code])
    tried = Counter(json.loads(space.near("[5]", random.Random(n)).input)[0] for n in range(60))
    assert {4320, 4321, 4322} <= set(tried)
