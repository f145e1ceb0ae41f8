"""Spaces of function and assert problems."""

from __future__ import annotations

import datetime
import itertools
import json
import random
import re

import pytest

from microcoder.data.forge.arguments import domains, trees
from microcoder.data.forge.arguments.functions import function_space
from microcoder.data.forge.space import NoSpace
from microcoder.schema import Problem, Test


def problem(signature, constraints, *tests, body=""):
    return Problem(
        id="p",
        kind="function",
        statement=f"{body}\n\nConstraints:\n\n{constraints}",
        starter_code=f"class Solution:\n    def f(self, {signature}) -> int:",
        entry_point="Solution.f",
        tests=[Test(json.dumps(list(test)), "0") for test in tests],
    )


def drawn(space, count=60):
    out = []
    for n in range(count):
        one = space.draw(random.Random(n), n % 10 / 12)
        if one is not None:
            assert space.fault(one.input) == ""
            out.append(json.loads(one.input))
    assert len(out) > count // 2
    return out


def test_draws_keep_to_the_bounds_and_reach_them():
    space = function_space(
        problem(
            "nums: List[int], k: int", "1 <= nums.length <= 50\n-3 <= nums[i] <= 3\n1 <= k <= nums.length", ([1, 2], 1)
        )
    )
    assert space.bounded_by == "constraints" and space.unread == []
    found = drawn(space, 200)
    assert all(1 <= len(nums) <= 50 and 1 <= k <= len(nums) and -3 <= min(nums) and max(nums) <= 3 for nums, k in found)
    assert {len(nums) for nums, _ in found} > {1, 2, 3}
    assert {x for nums, _ in found for x in nums} == set(range(-3, 4))
    limit = space.draw(random.Random(1), 1.0)
    assert limit.by == "limit" and len(json.loads(limit.input)[0]) >= 45


def test_empty_words_alone_do_not_keep_a_draw_from_ending():
    """A text is now and then made of the words of a list; of empty words none would ever be long enough."""
    bounds = "words.length == 1\n0 <= words[i].length <= 1\n1 <= s.length <= 2"
    found = drawn(function_space(problem("words: List[str], s: str", bounds, ([""], "a"))))
    assert all(words == [""] and s for words, s in found)


def test_the_same_seed_gives_the_same_input():
    space = function_space(
        problem(
            "s: str, words: List[str]",
            "1 <= s.length <= 9\n1 <= words.length <= 9\n1 <= words[i].length <= 9\n"
            "s and words[i] consist of lowercase English letters.",
            ("ab", ["a", "b"]),
        )
    )
    one, other = (space.draw(random.Random(7), 0.5) for _ in range(2))
    assert one == other
    assert space.near(one.input, random.Random(3)) == space.near(one.input, random.Random(3))


def test_faults_name_what_is_broken():
    space = function_space(
        problem(
            "nums: List[int]", "1 <= nums.length <= 3\n0 <= nums[i] <= 9\nnums is sorted in ascending order.", ([1, 2],)
        )
    )
    assert space.fault("[[1, 2, 2]]") == ""
    assert "nums[i]" in space.fault("[[1, 10]]")
    assert "length" in space.fault("[[1, 2, 3, 4]]")
    assert "sorted" in space.fault("[[2, 1]]")
    assert "whole number" in space.fault('[["a"]]')
    assert space.fault("[1") and space.fault("[[1], 2]")


def test_a_constraint_that_a_test_breaks_is_dropped_and_told():
    space = function_space(
        problem(
            "nums: List[int], k: int",
            "1 <= nums.length <= 3\n0 <= nums[i], k <= 9\nAll the values of nums are unique.",
            ([4, 4], 1),
        )
    )
    assert space.unread == ["All the values of nums are unique."]
    assert space.fault("[[4, 4], 1]") == ""


@pytest.mark.parametrize(
    ("fact", "holds"),
    [
        ("All the integers of nums are unique.", lambda nums: len(set(nums)) == len(nums)),
        (
            "nums is sorted in strictly increasing order.",
            lambda nums: nums == sorted(set(nums)),
        ),
        ("nums is a permutation of [0, 1, ..., n - 1].", lambda nums: sorted(nums) == list(range(len(nums)))),
    ],
)
def test_lists_keep_the_properties_that_are_told(fact, holds):
    space = function_space(
        problem("nums: List[int]", f"1 <= nums.length <= 20\n0 <= nums[i] <= 99\n{fact}", ([0, 1, 2],))
    )
    assert all(holds(nums) for (nums,) in drawn(space))


def test_trees_of_edges():
    space = function_space(
        problem(
            "n: int, edges: List[List[int]]",
            "2 <= n <= 30\nedges.length == n - 1\nedges[i].length == 2\n0 <= ai, bi < n\nai != bi\n"
            "edges represents a valid tree.",
            (3, [[0, 1], [1, 2]]),
            body="edges[i] = [ai, bi] is an edge.",
        )
    )
    found = drawn(space)
    assert all(len(edges) == n - 1 and trees.components(n, edges) == 1 for n, edges in found)
    assert len({n for n, _ in found}) > 5


def test_names_of_lengths_and_equal_lengths():
    space = function_space(
        problem(
            "a: List[int], b: List[int], g: List[List[int]]",
            "n == a.length == b.length\n1 <= n <= 9\n0 <= a[i], b[i] < n\n"
            "n == g.length\nm == g[i].length\n1 <= m <= 4\n0 <= g[i][j] <= 1",
            ([0, 1], [1, 0], [[0, 1], [1, 1]]),
        )
    )
    for a, b, g in drawn(space):
        assert len(a) == len(b) == len(g) and len({len(row) for row in g}) == 1 and max(a + b) < len(a)


def test_arguments_of_a_guarantee_that_is_not_understood_stay_as_they_are_in_the_tests():
    text = "1 <= nums.length <= 10^5\n0 <= nums[i], k <= 10^9\nThe wombats agree with nums."
    space = function_space(problem("nums: List[int], k: int", text, ([5, 6, 7], 2), ([1], 3)))
    assert space.unread == ["The wombats agree with nums."]
    found = [space.draw(random.Random(n), 0.2) for n in range(20)]
    assert all(one is None or one.by.startswith("mutated") for one in found)
    given = [json.loads(one.input) for one in found if one is not None]
    assert {tuple(nums) for nums, _ in given} == {(5, 6, 7), (1,)} and len({k for _, k in given}) > 4


@pytest.mark.parametrize("sentence", ["The wombats agree with nums.", "It is guaranteed that the wombats agree."])
def test_a_guarantee_about_everything_that_is_not_understood_leaves_no_space(sentence):
    with pytest.raises(NoSpace, match="wombats"):
        function_space(problem("nums: List[int]", f"1 <= nums.length <= 9\n0 <= nums[i] <= 9\n{sentence}", ([5, 6],)))


def test_without_constraints_the_hull_of_the_tests_is_kept():
    asserts = ["assert f([1, 2, 3], (4, 'a')) == 1", "assert f([7], (2, 'b')) == 0"]
    space = function_space(
        Problem(
            id="p", kind="assert", statement="Do it.", entry_point="f", starter_code="def f(xs, pair):", asserts=asserts
        )
    )
    assert space.bounded_by == "hull"
    for xs, (number, letter) in drawn(space):
        assert len(xs) <= 3 and all(0 <= x <= 7 for x in xs) and 0 <= number <= 4 and set(letter) <= {"a", "b"}
    assert space.call('[[1], [3, "a"]]') == "f([1], (3, 'a'))"


def test_trees_of_levels():
    asserts = [
        "assert Solution().f(root=tree_node([2, 1, 3])) == 1",
        "assert Solution().f(root=tree_node([1, None, 2])) == 0",
    ]
    nodes = "The number of nodes in the tree is in the range [1, 40]."
    statement = f"Given the root of a binary search tree.\n\nConstraints:\n\n{nodes}\n0 <= Node.val <= 99"
    starter = "class Solution:\n    def f(self, root: Optional[TreeNode]) -> int:"
    space = function_space(
        Problem(
            id="p", kind="assert", statement=statement, entry_point="Solution.f", starter_code=starter, asserts=asserts
        )
    )
    found = drawn(space)
    for (tree,) in found:
        assert trees.level_faults(tree) == "" and domains.ordered(trees.inorder(tree), "strictly ascending")
    assert len({len(tree) for (tree,) in found}) > 4
    assert space.call("[[1, null, 2]]") == "Solution().f(tree_node([1, None, 2]))"
    assert "no parent" in space.fault("[[1, null, null, 2]]")


def test_nothing_to_learn_from_is_a_reason():
    with pytest.raises(NoSpace, match="plain"):
        function_space(Problem(id="p", kind="assert", entry_point="f", asserts=["assert f(open('x')) == 1"]))


def test_near_changes_little_and_keeps_equal_lengths():
    space = function_space(
        problem(
            "a: List[int], b: List[int], n: int",
            "n == a.length == b.length\n1 <= n <= 9\n0 <= a[i], b[i] <= 9",
            ([1, 2, 3], [4, 5, 6], 3),
        )
    )
    seen = set()
    for n in range(80):
        new = space.near("[[1, 2, 3], [4, 5, 6], 3]", random.Random(n))
        if new is not None:
            a, b, count = json.loads(new.input)
            assert len(a) == len(b) == count
            seen.add((new.by, count))
    assert {count for _, count in seen} > {2, 3} and len({by for by, _ in seen}) >= 3


def test_size_grows_with_the_input():
    space = function_space(problem("nums: List[int]", "1 <= nums.length <= 1000\n0 <= nums[i] <= 9", ([1],)))
    sizes = [space.size_of(json.dumps([[1] * n])) for n in (1, 10, 1000)]
    assert 0 <= sizes[0] < sizes[1] < sizes[2] == 1


def test_what_the_tests_show_is_kept_where_a_guarantee_is_not_understood():
    free = "1 <= nums.length <= 9\n0 <= nums[i] <= 9\n1 <= zoo <= 9\nThe wombats can read the zoo."
    space = function_space(problem("nums: List[int], zoo: int", free, ([1, 5, 7], 1), ([2, 3, 9, 9], 2)))
    lists = [json.loads(one.input)[0] for n in range(40) if (one := space.draw(random.Random(n), 0.3))]
    assert lists and all(nums == sorted(nums) for nums in lists)


def test_half_of_a_length_bounds_a_number():
    space = function_space(
        problem("s: str, k: int", "2 <= s.length <= 30\n1 <= 2 * k <= s.length\ns consists of digits.", ("12", 1))
    )
    assert space.bounded_by == "constraints"
    found = drawn(space)
    assert all(1 <= k <= len(s) // 2 for s, k in found) and len({k for _, k in found}) > 3


def test_a_test_that_breaks_the_constraints_does_not_unmake_them():
    tests = [([n % 9],) for n in range(20)] + [([10],)]
    space = function_space(problem("nums: List[int]", "1 <= nums.length <= 3\n0 <= nums[i] <= 9", *tests))
    assert space.bounded_by == "constraints" and space.fault("[[10]]")


def test_a_number_that_is_the_length_of_a_list_in_all_tests_stays_so_without_constraints():
    asserts = ["assert f([1, 2, 3], 3, 1) == 1", "assert f([7, 8], 2, 0) == 0", "assert f(['a', 'b'], 2, 1) == 0"]
    space = function_space(
        Problem(
            id="p", kind="assert", statement="Do.", entry_point="f", starter_code="def f(xs, n, k):", asserts=asserts
        )
    )
    found = drawn(space)
    assert all(len(xs) == n and k < n and len({type(x) for x in xs}) == 1 for xs, n, k in found)
    assert {type(xs[0]) for xs, _, _ in found} == {int, str}


def test_lost_exponents_are_restored_before_limits_are_read():
    space = function_space(
        problem("nums: List[int], k: int", "1 <= nums.length <= 105\n0 <= nums[i] <= 109\n1 <= k < 27", ([5], 100))
    )
    assert space.bounded_by == "constraints" and space.unread == []
    assert space.fault(json.dumps([[10**9] * 1000, 127])) == "" and space.fault("[[1], 128]")


@pytest.mark.parametrize(
    ("signature", "constraints", "tests", "holds"),
    [
        (
            "q: List[List[int]]",
            "1 <= q.length <= 9\nq[i].length == 2\n0 <= q[i][j] <= 3\nAll q[i] are unique.",
            [([[1, 1], [2, 1]],)],
            lambda q: len({*map(tuple, q)}) == len(q),
        ),
        (
            "nums: List[int]",
            "nums.length == n + 2\n3 <= n <= 9\n0 <= nums[i] < n\n"
            "The input is generated such that nums contains exactly two repeated elements.",
            [([0, 1, 2, 1, 0],), ([3, 0, 2, 1, 1, 3],)],
            lambda nums: sorted({*nums}) == list(range(len(nums) - 2)),
        ),
        (
            "date: str",
            "date.length == 10\n"
            "The input is generated such that date represents a valid Gregorian calendar date between Jan 1st, "
            "1950 and Dec 31st, 2050.",
            [("2010-02-28",)],
            lambda date: 1950 <= datetime.date.fromisoformat(date).year <= 2050,
        ),
        (
            "a: List[int]",
            "1 <= a.length <= 9\n0 <= a[i] <= 9\nThere is at least one element i where a[i] == 0.",
            [([0, 5],)],
            lambda a: 0 in a,
        ),
        (
            "p: List[int]",
            "1 <= p.length <= 9\n2 <= p[i] <= 99\np[i] is a prime number.",
            [([2, 7],)],
            lambda p: all(map(domains.is_prime, p)),
        ),
        (
            "a: int, b: int",
            "1 <= a, b <= 10^4\na and b consist of the same number of digits.",
            [(10, 55)],
            lambda a, b: len(str(a)) == len(str(b)),
        ),
        (
            "parts: List[List[int]]",
            "1 <= parts.length <= 9\nparts[i] == [li, ri]\n0 <= li <= ri <= 60\n"
            "The given segments are non-overlapping.",
            [([[5, 7], [1, 2]],)],
            lambda parts: all(a[1] < b[0] for a, b in itertools.pairwise(sorted(parts))),
        ),
        (
            "n: int, boxes: List[List[int]]",
            "3 <= n <= 40\n2 <= boxes.length <= 9\n0 <= boxes[i][0] < boxes[i][2] <= n\n"
            "0 <= boxes[i][1] < boxes[i][3] <= n\nNo two boxes overlap.",
            [(9, [[0, 0, 1, 1], [1, 0, 3, 2]])],
            lambda n, boxes: (
                not any(
                    a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
                    for a, b in itertools.combinations(boxes, 2)
                )
            ),
        ),
        (
            "words: List[str]",
            "1 <= words.length <= 9\n1 <= words[i].length <= 9\n"
            "All strings in words will altogether be composed of no more than 4 unique lowercase letters.",
            [(["ab", "c"],)],
            lambda words: len({*"".join(words)}) <= 4,
        ),
        (
            "words: List[str]",
            "1 <= words.length <= 9\n1 <= words[i].length <= 50\nsum(words[i].length) <= 60\n"
            "words[i] consists of lowercase English letters.",
            [(["ab", "c"],)],
            lambda words: len("".join(words)) <= 60,
        ),
        (
            "events: List[List[int]]",
            "1 <= events.length <= 9\nevents[i] = [whoi, timei]\n1 <= whoi, timei <= 99\n"
            "The input is generated such that events is sorted in increasing order of timei.",
            [([[4, 2], [1, 5], [3, 9]],)],
            lambda events: [t for _, t in events] == sorted({t for _, t in events}),
        ),
        (
            "edges1: List[List[int]], edges2: List[List[int]]",
            "2 <= n, m <= 9\nedges1.length == n - 1\nedges2.length == m - 1\n"
            "edges1[i].length == edges2[i].length == 2\nedges1[i] = [ai, bi]\n0 <= ai, bi < n\n"
            "edges2[i] = [ui, vi]\n0 <= ui, vi < m\n"
            "The input is generated such that edges1 and edges2 represent valid trees.",
            [([[0, 1], [1, 2]], [[0, 1]])],
            lambda *both: all(trees.components(len(edges) + 1, edges) == 1 for edges in both),
        ),
        (
            "parent: List[int]",
            "n == parent.length\n1 <= n <= 30\n0 <= parent[i] <= n - 1 for all i >= 1.\nparent[0] == -1\n"
            "parent represents a valid tree.",
            [([-1, 0, 0],)],
            lambda parent: (
                parent[0] == -1 and trees.components(len(parent), [[n, up] for n, up in enumerate(parent) if n]) == 1
            ),
        ),
        (
            "q: List[List[int]]",
            "1 <= q.length <= 9\nq[i] = [li, ri]\n0 <= li < ri <= 9\n"
            "There are no two queries such that i != j and q[i][0] < q[j][0] < q[i][1] < q[j][1].",
            [([[1, 2], [3, 5]],)],
            lambda q: not any(a[0] < b[0] < a[1] < b[1] for a in q for b in q),
        ),
        (
            "xs: List[int], ys: List[int]",
            "1 <= xs.length == ys.length <= 9\n0 <= xs[i], ys[i] <= 2\nAll the given points are unique.",
            [([1, 1], [0, 2])],
            lambda xs, ys: len({*zip(xs, ys, strict=True)}) == len(xs),
        ),
        (
            "s: str, t: str",
            "1 <= s.length, t.length <= 9\ns[i] is either 0 or 1.\nBoth strings consist of digits.",
            [("01", "29")],
            lambda s, t: {*s} <= {*"01"} and t.isdigit(),
        ),
        (
            "n: int, tasks: List[int]",
            "1 <= tasks.length <= 9\ntasks[i] will be an integer between 1 and 9.\nmax(tasks[i]) <= n <= 3 x 10^3",
            [(5, [5, 1])],
            lambda n, tasks: 1 <= min(tasks) <= max(tasks) <= min(n, 9) and n <= 3000,
        ),
        (
            "cell: str",
            "cell.length == 2\n'a' <= cell[0] <= 'h'\n'1' <= cell[1] <= '8'",
            [("a1",), ("c3",)],
            lambda cell: "a" <= cell[0] <= "h" and "1" <= cell[1] <= "8",
        ),
        (
            "at: List[List[int]], x: int, y: int",
            "1 <= at.length <= 3\nat[i].length == 2\n0 <= at[i][0], at[i][1], x, y <= 2\n"
            "The input is generated such that at[i] != [x, y] for all 0 <= i < at.length.",
            [([[1, 1]], 0, 0)],
            lambda at, x, y: [x, y] not in at,
        ),
    ],
)
def test_guarantees_that_are_understood_are_kept(signature, constraints, tests, holds):
    space = function_space(problem(signature, constraints, *tests))
    assert space.open == [] and space.unread == []
    found = drawn(space)
    assert all(holds(*given) for given in found)
    assert len({json.dumps(given) for given in found}) > 10
    for n, given in enumerate(found[:20]):
        new = space.near(json.dumps(given), random.Random(n))
        assert new is None or holds(*json.loads(new.input))


def test_a_relation_that_the_tests_break_is_no_longer_believed_to_be_all():
    text = "1 <= nums.length <= 9\n0 <= nums[i], k <= 9\nnums[i] == nums[0] + i"
    space = function_space(problem("nums: List[int], k: int", text, ([4, 7], 1)))
    assert space.guarded and space.open == ["nums[i] == nums[0] + i"]


def test_the_sum_of_the_lengths_of_a_list_may_be_the_length_of_another():
    text = "1 <= arr.length <= 9\nsum(pieces[i].length) == arr.length\n1 <= pieces.length, pieces[i].length <= 9\n"
    space = function_space(
        problem(
            "arr: List[int], pieces: List[List[int]]",
            text + "0 <= arr[i], pieces[i][j] <= 9",
            ([1, 2, 3], [[1], [2, 3]]),
        )
    )
    assert space.fault("[[1, 2, 3], [[1], [2, 3]]]") == "" and space.fault("[[1, 2], [[1], [2, 3]]]")


def test_texts_are_often_made_of_the_words_of_a_list():
    text = "1 <= s.length <= 30\n1 <= words.length, words[i].length <= 4\ns and words[i] consist of lowercase letters."
    space = function_space(problem("s: str, words: List[str]", text, ("ab", ["a", "b"])))
    found = drawn(space, 100)
    made = [s for s, words in found if len(s) > 4 and re.fullmatch("(?:" + "|".join(map(re.escape, words)) + ")*", s)]
    assert len(made) > 5


def asserted(statement, *calls):
    asserts = [f"assert f({call}) == 1" for call in calls]
    return function_space(
        Problem(id="p", kind="assert", statement=statement, entry_point="f", starter_code="def f(x):", asserts=asserts)
    )


def test_zero_and_nothing_are_tried_where_no_constraints_are_told():
    assert [0] in drawn(asserted("Do it.", "8", "18", "7"), 200)
    assert [[]] in drawn(asserted("Do it.", "[8, 1]", "[18]", "[3, 2, 1]"), 200)
    assert [0] not in drawn(asserted("Do it.", "80", "18", "70"), 200)
    assert [""] not in drawn(asserted("Do it.", "'a'", "'b'", "'x'"), 200)


def test_zero_has_no_sign_so_it_is_left_out_where_signs_matter():
    found = drawn(asserted("Do it.", "8", "-18", "-7"), 100)
    assert [0] not in found and min(found) < [0] < max(found)
    assert [0] in drawn(asserted("Do it.", "8", "-18", "0"), 100)


def test_a_sorted_array_stays_sorted_where_only_the_prose_tells_it():
    calls = ("[1, 2, 2, 5]", "[3, 9, 11]", "[4, 7]")
    assert all(x == sorted(x) for (x,) in drawn(asserted("Find it in the given sorted array.", *calls)))
    assert any(x != sorted(x) for (x,) in drawn(asserted("Find it in the given array.", *calls)))


def test_the_task_of_a_statement_without_constraints_is_no_guarantee():
    space = asserted("Write a function to check whether the given list is sorted or not.", "[1, 2, 4]", "[3, 1, 2]")
    assert not space.guarded and any(x != sorted(x) for (x,) in drawn(space))
    with pytest.raises(NoSpace, match="sorted"):
        asserted("It is guaranteed that the list is sorted by wombats.", "[1, 2, 4]", "[3, 1, 2]")


@pytest.mark.parametrize(
    ("statement", "calls", "bad"),
    [
        ("You are given two positive integers n and m.", ("1, 5", "7, 13", "2, 4"), [0, 5]),
        ("brazilian(n) = n! * (n - 1)! where n > 0", ("1", "4", "8"), [0]),
        ("Return the first of a non-empty list.", ("[8, 1]", "[18]", "[3, 2, 1]"), [[]]),
        ("From a list of numbers (of length at least two) take one.", ("[8, 1]", "[3, 2, 1]"), [[8]]),
        ("The array will not contain\n    duplicate values.", ("[8, 1]", "[3, 2, 1]"), [[8, 8]]),
        ("Split groups of nested parentheses.", ("'(())()'", "'()'", "'((()))'"), [")("]),
        ("Apply the operators.", "[1, 2], [3]", [[1], [3]]),
    ],
)
def test_what_a_statement_without_constraints_says_of_its_inputs_is_kept(statement, calls, bad):
    calls = ("[1, 2], [3]", "[1, 2, 3], [3, 1]", "[1], []") if isinstance(calls, str) else calls
    space = asserted(statement, *calls)
    assert space.fault(json.dumps(bad)) and not space.fault(json.dumps(list(space.examples[0].values())))
    assert len({json.dumps(one) for one in drawn(space, 40)}) > 5


def test_a_guarantee_of_which_a_part_is_not_understood_leaves_no_space():
    with pytest.raises(NoSpace, match="not a prime"):
        asserted("Return the largest prime factor of n. Assume n > 1 and is not a prime.", "15", "27", "63")


def test_what_you_can_do_may_be_a_guarantee():
    reach = "nums: List[int]", "1 <= nums.length <= 9\n0 <= nums[i] <= 9\n{}", ([2, 3, 1],)
    with pytest.raises(NoSpace, match="reach"):
        function_space(problem(reach[0], reach[1].format("It's guaranteed that you can reach nums[n - 1]."), reach[2]))
    function_space(problem(reach[0], reach[1].format("You can jump over any number."), reach[2]))


def test_named_arguments_are_changed_as_others_are():
    named = problem("s: str, t: str", "1 <= t.length <= 5", body="It is guaranteed that the string s zorks.")
    named.tests = [Test('{"s": "abba", "t": "abc"}', "6"), Test('{"t": "b", "s": "qq"}', "3")]
    space = function_space(named)
    found = [json.loads(space.near(named.tests[0].input, random.Random(n)).input) for n in range(9)]
    assert {s for s, _ in found} == {"abba"} and len({t for _, t in found}) > 2
    assert space.size_of('{"s": "abba"}') == 0 and space.near('{"s": "abba"}', random.Random(1)) is None
