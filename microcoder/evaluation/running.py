"""A bench from beginning to end: samples as they come, each judged while others are still being written, then scores.

1. The same program for the same problem is judged once, whatever the number of tries and limits that led to it.
2. Each program runs once for both policies: `verdict` is robust's, `also` exact's.
3. A verdict that the judge itself failed on is asked for again when the bench is run again.
"""

from __future__ import annotations

import json
import platform
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol

from .. import __version__
from ..judge.base import Judging
from ..judge.remote import open_judge
from ..schema import Problem, Solution, Verdict
from .answers import code_of
from .folder import Folder
from .reading import marks_of, verdict_id
from .records import Sample, Suite
from .score import score
from .tables import latex, markdown

QUEUE = 32  # programs for each worker that may wait: more would keep the tests of many problems in memory
FAULT = "internal_error"
Key = tuple[int, str | None]  # number of a problem, program
Make = Callable[[Sequence[str]], Iterable[Sample]]  # ids that are there -> the other samples, as they are finished


class Observer(Protocol):
    def judged(self, before: bool) -> None:
        """There is one verdict more; `before`: it was there already."""


class _Judging:
    """Programs under way, and the tries that wait for each."""

    def __init__(self, judge: Judging, suite: Suite, folder: Folder, observer: Observer | None) -> None:
        self.judge, self.suite, self.folder, self.observer = judge, suite, folder, observer
        self.numbers = {problem.id: n for n, problem in enumerate(suite.problems)}
        self.waiting: dict[Key, list[str]] = {}
        self.found: dict[Key, Verdict] = {}  # without their tests, which may be many
        self.done: queue.SimpleQueue[tuple[Key, Future[Verdict]]] = queue.SimpleQueue()

    def add(self, sample: Sample) -> None:
        """Hand in what is not judged yet, under every limit."""
        n = self.numbers[sample.problem_id]
        for limit in self.folder.ask.limits:
            ident = verdict_id(sample, limit)
            known = self.folder.verdicts.done.get(ident)
            if known is not None and known.verdict != FAULT:
                self._told(before=True)
                continue
            key = n, program(sample, limit, self.suite.style, self.suite.problems[n])
            if key in self.found:
                self._write(key, ident)
            elif key in self.waiting:
                self.waiting[key].append(ident)
            else:
                self.waiting[key] = [ident]
                given = {"completion": ""} if key[1] is None else {"code": key[1]}
                future = self.judge.submit(self.suite.problems.whole(n), Solution(sample.problem_id, **given))
                future.add_done_callback(lambda f, k=key: self.done.put((k, f)))  # type: ignore[misc]
        self.collect(wait=False)

    def collect(self, wait: bool) -> None:
        """Write down the verdicts that are there; with `wait`, all of them."""
        while self.waiting and (wait or not self.done.empty()):
            key, future = self.done.get()
            self.found[key] = replace(future.result(), tests=[])
            for ident in self.waiting.pop(key):
                self._write(key, ident)

    def _write(self, key: Key, ident: str) -> None:
        verdict = replace(self.found[key], id=ident)
        self.folder.verdicts.append(verdict)
        self.folder.verdicts.done[ident] = verdict
        self._told(before=False)

    def _told(self, before: bool) -> None:
        if self.observer is not None:
            self.observer.judged(before)


def run(
    suite: Suite, folder: Folder, make: Make, judge: dict[str, Any], observer: Observer | None = None
) -> dict[str, Any]:
    """The result, which is written into the folder too. `judge`: options of Judge."""
    started = time.monotonic()
    options = {**judge, "policy": "robust", "also": "exact", "queue": judge["workers"] and QUEUE * judge["workers"]}
    with open_judge(options) as pool:
        judging = _Judging(pool, suite, folder, observer)
        for sample in list(folder.samples.values()):
            judging.add(sample)
        for sample in make(list(folder.samples)):
            folder.add(sample)
            judging.add(sample)
        written = time.monotonic()
        judging.collect(wait=True)
        sandbox = pool.sandbox
    marks = marks_of(list(folder.samples.values()), folder.verdicts.done, folder.ask.limits)
    took = {
        "seconds": time.monotonic() - started,  # of this go
        "writing_s": written - started,
        "judging_alone_s": time.monotonic() - written,
        "programs_judged": len(judging.found),
        "programs_cpu_s": sum(verdict.cpu_s for verdict in judging.found.values()),
    }
    result = {
        **folder.ask.to_dict(),
        "problems": len(suite.problems),
        "samples": len(folder.samples),
        "version": __version__,
        "python": platform.python_version(),
        "sandbox": sandbox,
        "took": took,
        "scores": score(marks, suite.problems, list(folder.samples.values())),
    }
    folder.write("scores.json", json.dumps(result, indent=1) + "\n")
    folder.write("report.md", markdown(result))
    folder.write("table.tex", latex(result))
    return result


def program(sample: Sample, limit: int, style: str, problem: Problem) -> str | None:
    """The program that a try comes to under a limit."""
    if sample.is_code:
        return sample.text if sample.text.strip() else None
    return code_of(style, problem, sample.text[: sample.cuts.get(str(limit), len(sample.text))])
