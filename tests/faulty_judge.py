"""A judge whose every verdict is its own fault."""

from __future__ import annotations

from concurrent.futures import Future

from microcoder.judge.base import Judging, failed, solution_of


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
