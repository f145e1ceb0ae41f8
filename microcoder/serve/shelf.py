"""The problems that were sent, by key: as many as fit, the ones not asked for longest making room."""

from __future__ import annotations

from collections import OrderedDict

from ..schema import Problem
from .asking import Refused
from .room import weight


class Shelf:
    """Losing a problem is no fault: whoever names one that is not here is told to send it again."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.bytes = most_bytes, 0
        self.problems: OrderedDict[str, tuple[Problem, int]] = OrderedDict()

    def get(self, key: str) -> Problem:
        found = self.problems.get(key)
        if found is None:
            raise Refused(404, f"problem {key[:80]!r} is not here (any more): PUT it to /v1/problems/, then ask again")
        self.problems.move_to_end(key)
        return found[0]

    def put(self, key: str, right: str, problem: Problem) -> None:
        """`right`: the key of the bytes that came."""
        if key != right:
            raise Refused(422, f"the key of these bytes is their SHA-256, {right}, not {key[:80]!r}")
        if key in self.problems:
            self.problems.move_to_end(key)
            return
        size = weight(problem)
        self.problems[key] = problem, size
        self.bytes += size
        while self.bytes > self.most_bytes and len(self.problems) > 1:
            _, (_, size) = self.problems.popitem(last=False)
            self.bytes -= size
