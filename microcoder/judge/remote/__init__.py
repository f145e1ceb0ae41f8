"""Where programs are judged: on this machine, by a service, or on a Ray cluster. `judge.on` says which.

with open_judge(config.judge.options()) as judge:
    verdict = judge.check(problem, completion)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from ...schema import Problem, Solution, Verdict
from .. import JudgeError
from ..base import Judging, solution_of
from ..extract import code_block
from ..languages import NAMES

HERE = "here"


def open_judge(options: dict[str, Any]) -> Judging:
    """Open the judge that `options` (from `JudgeConfig.options`) ask for. All kinds give the same verdicts."""
    given = dict(options)
    on, remember = given.pop("on", HERE), given.pop("remember", 0)
    judge = _judge(on, given)
    return Remembering(judge, remember) if remember else judge


def _judge(on: str, given: dict[str, Any]) -> Judging:
    if on == HERE:
        from .. import Judge

        return Judge(**given)
    if on.startswith(("http://", "https://")):
        from .http import RemoteJudge

        return RemoteJudge(on, **given)
    if on.startswith("ray:"):
        from .ray_judge import RayJudge

        return RayJudge(on.removeprefix("ray:"), **given)
    raise JudgeError(f'judge.on is {on!r}; it is "here", the address of a service (http://...), or ray:ADDRESS')


class Remembering(Judging):
    """A judge that keeps the verdicts of the last `most` programs, and does not run these again for the same tests.

    A fault of the judge is not kept. What is being judged is not known yet: asked for twice, it is judged twice.
    """

    def __init__(self, judge: Judging, most: int) -> None:
        self.judge, self.most, self.workers, self.sandbox = judge, most, judge.workers, judge.sandbox
        self._known: OrderedDict[tuple[str, str, str], Verdict] = OrderedDict()
        self._tests: dict[str, str] = {}  # a problem's fingerprint -> the one that it would have without its id
        self._lock = threading.Lock()

    def submit(
        self, problem: Problem, completion: str | Solution | None = None, *, code: str | None = None
    ) -> Future[Verdict]:
        solution = solution_of(problem, completion, code)
        program = solution.code
        if program is None and solution.language in NAMES:
            program = code_block(solution.completion or "", solution.language)
        if program is None:
            return self.judge.submit(problem, solution)
        key = (self._of(problem), solution.language, program)
        with self._lock:
            verdict = self._known.get(key)
            if verdict is not None:
                self._known.move_to_end(key)
        if verdict is None:
            future = self.judge.submit(problem, solution)
            future.add_done_callback(partial(self._keep, key))
        else:
            future = Future()
            future.set_result(replace(verdict, problem_id=problem.id, id=solution.id))
        return future

    def drop(self, future: Future[Verdict]) -> None:
        if not future.done():
            self.judge.drop(future)

    def close(self, cancel: bool = False) -> None:
        self.judge.close(cancel)

    def _of(self, problem: Problem) -> str:
        whole = problem.fingerprint()
        if whole not in self._tests:
            if len(self._tests) >= self.most:
                self._tests.clear()
            self._tests[whole] = replace(problem, id="").fingerprint()
        return self._tests[whole]

    def _keep(self, key: tuple[str, str, str], future: Future[Verdict]) -> None:
        if future.cancelled() or future.exception() or future.result().verdict == "internal_error":
            return
        with self._lock:
            self._known[key] = future.result()
            while len(self._known) > self.most:
                self._known.popitem(last=False)
