"""Problems whose asserts compare linked lists get asserts of the same form."""

from __future__ import annotations

import pytest

from microcoder.data.forge import ForgeOptions, forge
from microcoder.data.forge.search import Effort
from microcoder.data.record import Record
from microcoder.judge import Judge
from microcoder.schema import Problem

SETUP = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


def list_node(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head


def is_same_list(one, other):
    while one and other:
        if one.val != other.val:
            return False
        one, other = one.next, other.next
    return one is None and other is None
"""
STATEMENT = """Turn a linked list round.

Constraints:

- The number of nodes in the list is in the range [0, 50].
- -100 <= Node.val <= 100
"""
RIGHT = """class Solution:
    def turned(self, head):
        before = None
        while head:
            head.next, before, head = before, head, head.next
        return before
"""
WRONG = """class Solution:
    def turned(self, head):
        if head and head.next:
            head.val, head.next.val = head.next.val, head.val
        return head
"""


@pytest.fixture(scope="module")
def judge():
    with Judge(workers=2) as found:
        yield found


def test_asserts_about_linked_lists_are_written_and_refuse_what_the_old_ones_accepted(judge):
    given = Problem(
        "p",
        kind="assert",
        statement=STATEMENT,
        entry_point="Solution.turned",
        setup=SETUP,
        starter_code="class Solution:\n    def turned(self, head: Optional[ListNode]) -> Optional[ListNode]:\n",
        asserts=[
            "assert is_same_list(Solution().turned(head=list_node([1, 2])), list_node([2, 1]))",
            "assert is_same_list(Solution().turned(head=list_node([3])), list_node([3]))",
        ],
        solutions=[{"code": RIGHT}],
    )
    assert judge.check(given, code=WRONG).accepted
    (record,) = forge([Record(given)], judge, options=ForgeOptions(Effort(tests=8, candidates=64, mutants=24)))
    made = record.problem
    assert "reason" not in made.extra["forge"]
    new = made.asserts[2:]
    assert len(new) >= 4
    assert all(one.startswith("assert is_same_list(Solution().turned(") and "list_node([" in one for one in new)
    assert judge.check(made, code=RIGHT).accepted
    assert not judge.check(made, code=WRONG).accepted
