"""The bounds that a statement gives."""

from __future__ import annotations

import math

import pytest

from microcoder.data.difficulty.statement import below_zero, bounds


@pytest.mark.parametrize(
    ("text", "log10"),
    [
        ("1 <= n <= 10^5", [5]),
        ("1 ≤ n ≤ 10⁵", [5]),
        (r"$1 \le n \leq 2 \cdot 10^{5}$", [math.log10(2e5)]),
        ("1 &lt;= n &lt;= 2×10^5", [math.log10(2e5)]),
        ("0 <= k <= 1e9", [9]),
        ("n <= 3 * 10**4", [math.log10(3e4)]),
        ("n <= 200,000", [math.log10(2e5)]),
        (r"n \leqslant 100\,000", [5]),
        ("-2^31 <= x <= 2^31 - 1", [31 * math.log10(2)]),
        ("(2 ≤ n ≤ 10^5, 1 ≤ k ≤ 10^9)", [5, 9]),
        ("The sum of n does not exceed $10^6$.", [6]),
        ("The number of nodes is in the range [1,100].", [2]),
        ("between 1 and 50,000", [math.log10(5e4)]),
        ("At most 100 calls", [2]),
        ("n <= 100.", [2]),
        ("i < j and a < b", []),
        ("x <= 1.5", []),
        ("x <= 0", []),
        ("x <= 3rd", []),
    ],
)
def test_bounds_are_read_in_every_spelling(text, log10):
    assert [bound.log10 for bound in bounds(text)] == pytest.approx(log10)


def test_a_lost_superscript_is_put_back_unless_the_page_kept_others():
    assert [b.log10 for b in bounds("1 <= n <= 105\n-109 <= nums[i] <= 109\nm <= 2 * 104")] == pytest.approx(
        [5, 9, math.log10(2e4)]
    )
    assert [b.log10 for b in bounds("-231 <= n <= 231 - 1")] == pytest.approx([31 * math.log10(2)])
    assert [b.log10 for b in bounds("n <= 105, k <= 10^9")] == pytest.approx([math.log10(105), 9])
    assert [b.log10 for b in bounds("n <= 100, k <= 1000")] == [2, 3]


def test_the_section_of_constraints_comes_first_and_sizes_are_told_from_values():
    text = "If x <= 7, stop.\n\nConstraints:\n\n1 <= nums.length <= 10^5\n-10^9 <= nums[i] <= 10^9"
    assert [(b.name, b.size) for b in bounds(text)] == [("nums.length", True), ("nums[i]", False)]
    assert below_zero(text)
    assert not below_zero("1 <= n - 1 <= 5")
    assert bounds("Constraints are harsh: none is told. But n <= 50") == bounds("n <= 50")
    (nodes, value) = bounds("The number of nodes is in the range [1, 50].\n1 <= Node.val <= 9")
    assert (nodes.size, value.size) == (True, False)
