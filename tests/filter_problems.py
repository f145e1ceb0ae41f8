"""Problems written for the tests of `data/filter`, and what makes duplicates of them."""

from __future__ import annotations

from microcoder.data.record import Record
from microcoder.schema import Problem, Test

COINS = Problem(
    id="coins",
    kind="stdin",
    statement="""Alice keeps n coins in a long row on her table, and the coin at position i has the value v_i. Every
morning she may take one coin from either end of the row, but never two coins from the same end on two mornings in a
row unless only that end is left. Her brother Robert counts the money in the evening and wants to know how much she can
collect at most within k mornings if she plays as well as possible.

Input
The first line contains two integers n and k (1 <= k <= n <= 2000). The second line contains n integers, the values
of the coins from left to right, each between 1 and 1000000.

Output
Print one integer: the largest total value that can be collected.""",
    tests=[Test("5 3\n4 1 9 2 7\n", "15\n"), Test("3 3\n10 20 30\n", "60\n"), Test("6 2\n8 8 1 1 5 3\n", "11\n")],
)
BRIDGES = Problem(
    id="bridges",
    kind="stdin",
    statement="""A kingdom of m islands is joined by wooden bridges, some of which are rotten. A rotten bridge carries
one traveller only and then falls into the sea. The queen wants to send her messengers from the first island to the last
one, each by a way of his own, and asks how many of them can arrive when they choose their ways wisely.

Input
The first line holds the numbers m and b of islands and bridges, at most 300 and 5000. Then b lines follow, each with
two islands and the word sound or rotten.

Output
One number, or the word all if there is no limit to it.""",
    tests=[Test("3 2\n1 2 rotten\n2 3 sound\n", "1\n"), Test("2 1\n1 2 sound\n", "all\n")],
)
WINDOW = Problem(
    id="window",
    kind="function",
    entry_point="longest_calm",
    starter_code="def longest_calm(speeds: list[int], limit: int) -> int:",
    statement="""Given a list of wind speeds and a limit, return the length of the longest run of consecutive hours in
which the difference between the strongest and the weakest wind stays within the limit. If the list is empty the answer
is zero.""",
    tests=[Test("[[3, 4, 9, 8, 8, 1], 2]", "3"), Test("[[], 5]", "0"), Test("[[7, 7, 7, 7], 0]", "4")],
    solutions=[
        {
            "code": """from collections import deque

def longest_calm(speeds, limit):
    high, low = deque(), deque()
    best = start = 0
    for end, speed in enumerate(speeds):
        while high and speeds[high[-1]] < speed:
            high.pop()
        while low and speeds[low[-1]] > speed:
            low.pop()
        high.append(end)
        low.append(end)
        while speeds[high[0]] - speeds[low[0]] > limit:
            start += 1
            if high[0] < start:
                high.popleft()
            if low[0] < start:
                low.popleft()
        best = max(best, end - start + 1)
    return best
""",
            "language": "python",
            "verdict": "accepted",
        }
    ],
)
RUNS = Problem(
    id="runs",
    kind="assert",
    entry_point="squeeze",
    statement="Write a function to replace every run of equal letters in a word by the letter and its count.",
    asserts=[
        "assert squeeze('aaabcc') == 'a3b1c2'",
        "assert squeeze('') == ''",
        "assert squeeze('zzzzzzzzzz') == 'z10'",
    ],
    solutions=[
        {
            "code": """def squeeze(word):
    out = []
    for letter in word:
        if out and out[-1][0] == letter:
            out[-1][1] += 1
        else:
            out.append([letter, 1])
    return ''.join(letter + str(count) for letter, count in out)
""",
            "language": "python",
        }
    ],
)
ALL = (COINS, BRIDGES, WINDOW, RUNS)


def record(problem: Problem, **changes: object) -> Record:
    """A copy on its way, with other fields."""
    copy = Record(problem).copy()
    for name, value in changes.items():
        setattr(copy.problem, name, value)
    return copy


def simple(ident: str, statement: str, asserts: list[str], code: str = "") -> Record:
    """A problem of one sentence."""
    solutions = [{"code": code, "language": "python"}] if code else []
    return Record(Problem(ident, "assert", statement=statement, asserts=asserts, solutions=solutions))


GARBAGE = (None, 0, -1.5, True, b"bytes", [], {}, [None], {"a": []}, object(), "\ud800", "\0", "x" * 100_000)
