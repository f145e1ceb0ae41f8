"""Judges that are at fault, each time or for one completion, and note what they are asked."""

from __future__ import annotations

from concurrent.futures import Future

from microcoder import Judge, Problem, Test
from microcoder.judge.base import Judging, failed, solution_of

FAULT = "```python\nprint('the judge fails on this')\n```"


class Faulty(Judging):
    """A judge that is at fault each time, and counts what it is asked."""

    workers, sandbox = 1, "full"

    def __init__(self):
        self.asked = []

    def submit(self, problem, completion=None, *, code=None):
        self.asked.append(completion)
        future = Future()
        future.set_result(failed(solution_of(problem, completion, code), "it is broken"))
        return future

    def drop(self, future): ...
    def close(self, cancel=False): ...


class Counting(Judge):
    """The judge, with a list of what it was given. FAULT meets a problem that no judge can judge."""

    asked: list[tuple[str, str]]

    def submit(self, problem, completion):
        self.asked.append((problem.id, completion))
        unusable = Problem("broken", kind="function", entry_point="f", tests=[Test("not JSON", "1")])
        return super().submit(unusable if completion == FAULT else problem, completion)
