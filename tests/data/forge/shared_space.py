"""A problem with weak tests, and its inputs: lists of small numbers."""

import json
import random

from microcoder.data.forge.space import Candidate
from microcoder.schema import Problem, Test

LARGEST = """
class Solution:
    def largest(self, nums: List[int]) -> int:
        best = nums[0]
        for value in nums:
            if value > best:
                best = value
        return best
"""


def weak(**fields):
    """The largest of some numbers, with one test that nearly anything passes."""
    about = {
        "kind": "function",
        "entry_point": "Solution.largest",
        "starter_code": "class Solution:\n    def largest(self, nums: List[int]) -> int:\n        pass\n",
        "tests": [Test("[[7]]", "7")],
        "solutions": [{"code": LARGEST}],
    }
    return Problem("largest", **{**about, **fields})


class Numbers:
    """A space of lists of up to 20 numbers from -9 to 9; size 1: 200 of them."""

    bounded_by, unread = "constraints", ()

    def draw(self, rng: random.Random, size: float) -> Candidate:
        count = 200 if size == 1 else rng.randint(1, 2 + int(20 * size))
        return Candidate(json.dumps([[rng.randint(-9, 9) for _ in range(count)]]), "random", 1)

    def near(self, input: str, rng: random.Random) -> Candidate:
        (nums,) = json.loads(input)
        return Candidate(json.dumps([[*nums, rng.randint(-9, 9)]]), "mutated: sizes", 2)

    def fault(self, input: str) -> str:
        return ""

    def size_of(self, input: str) -> float:
        return min(1.0, len(input) / 600)

    def call(self, input: str) -> str:
        return f"largest({json.loads(input)[0]})"
