"""What is counted: the memory that clients' requests and answers take, and what was done, for Prometheus.

There is so much memory in all, and half of it for one client. A problem that several candidates of a client
name is counted once, however it came here.
"""

from __future__ import annotations

import bisect
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..judge.execution import Ran
from ..schema import Problem, Solution, Verdict
from .requests import BadRequest

SOON = 1  # seconds to wait before asking again: room becomes free all the time
LITTLE = 1 << 18  # bytes, which a client may have however much others do
EACH = 400  # bytes, about, that go with a test or with its verdict


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)  # seconds


class Room:
    def __init__(self, most: int) -> None:
        self.most, self.per_client = most, most // 2
        self.taken: Counter[str] = Counter()  # by client, what it sent
        self.unread: Counter[str] = Counter()  # by client, answers that it has not read
        self.problems: Counter[tuple[str, int]] = Counter()  # by client and id(), how many candidates have it

    @property
    def total(self) -> int:
        return self.taken.total() + self.unread.total()

    def take(self, client: str, size: int, busy: int = 429, own: int = 0) -> None:
        """BadRequest where there is no room. A client that has nothing here may have one request of any size.

        `own`: what the same request has taken.
        """
        held = self.taken[client] + self.unread[client]
        if held - own > LITTLE and held + size > self.per_client:
            words = f"{held >> 20} MB of yours are here, of {self.per_client >> 20} that a client may have"
            raise BadRequest(busy, f"{words}; wait for answers and read them (--queue-mb)", SOON)
        if self.total + size > self.most and self.total > held and held + size > LITTLE:
            words = f"{self.total >> 20} MB are held, of {self.most >> 20} that may be (--queue-mb)"
            raise BadRequest(busy, words, SOON)
        self.taken[client] += size

    def give(self, client: str, size: int) -> None:
        _less(self.taken, client, size)

    def hold(self, client: str, problem: Problem, own: int) -> int:
        """One more candidate of the client's has the problem. Return what that takes."""
        size = 0 if (client, id(problem)) in self.problems else weight(problem)
        self.take(client, size, own=own)
        self.problems[client, id(problem)] += 1
        return size

    def let_go(self, client: str, problem: Problem) -> None:
        _less(self.problems, (client, id(problem)), 1)
        if (client, id(problem)) not in self.problems:
            self.give(client, weight(problem))

    def answered(self, client: str, size: int) -> None:
        self.unread[client] += size

    def read(self, client: str, size: int) -> None:
        _less(self.unread, client, size)

    def crowded(self, client: str) -> bool:
        """So much of the client's is unread that nothing more is run for it."""
        return self.unread[client] > self.per_client


def weight(thing: Problem | Solution | Verdict | Ran | None) -> int:
    """Estimate the bytes that a value takes in memory; text with a wide character takes four for each."""
    if isinstance(thing, Problem):
        texts = [thing.id, thing.setup, thing.entry_point, thing.starter_code, thing.compare.checker, *thing.asserts]
        texts += [text for test in thing.tests for text in (test.input, test.output)]
        return EACH * (1 + len(thing.tests)) + sum(map(sys.getsizeof, texts))
    if isinstance(thing, Solution):
        return EACH + sys.getsizeof(thing.code) + sys.getsizeof(thing.completion)
    if isinstance(thing, Ran):
        return EACH + sys.getsizeof(thing.stdout) + sys.getsizeof(thing.stderr)
    return EACH * (1 + len(thing.tests)) if isinstance(thing, Verdict) else 0


def _less(counts: Counter[Any], key: Any, size: int) -> None:
    """Decrease a count, and remove it at zero: there may be many clients."""
    counts[key] -= size
    if counts[key] <= 0:
        del counts[key]


class Metrics:
    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()  # of /run_code, by how they ended
        self.refused: Counter[str] = Counter()  # by status
        self.dropped = 0  # candidates whose client went away
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def answered(self, answer: Verdict | Ran, seconds: float) -> None:
        """`seconds`: from when a candidate was taken to when its answer was known."""
        if isinstance(answer, Verdict):
            self.verdicts[answer.verdict] += 1
        else:
            self.runs[answer.status] += 1
        self.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def text(self, gauges: dict[str, float]) -> str:
        return "".join(f"{line}\n" for line in self._lines(gauges))

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        for name, label, counts, words in (
            ("verdicts", "verdict", self.verdicts, "Candidates judged."),
            ("runs", "status", self.runs, "Programs run without being judged."),
            ("refused", "status", self.refused, "Requests turned away."),
        ):
            yield from _head(f"microcoder_{name}_total", "counter", words)
            for value, count in sorted(counts.items()):
                yield f'microcoder_{name}_total{{{label}="{value}"}} {count}'
        yield from _head("microcoder_dropped_total", "counter", "Candidates dropped because their client went away.")
        yield f"microcoder_dropped_total {self.dropped}"
        for name, now in gauges.items():
            yield from _head(f"microcoder_{name}", "gauge", f"{name.replace('_', ' ').capitalize()} now.")
            yield f"microcoder_{name} {now:g}"
        yield from _head("microcoder_seconds", "histogram", "From taking a candidate to its answer.")
        total = 0
        for edge, inside in zip((*BUCKETS, "+Inf"), self.buckets, strict=True):
            total += inside
            yield f'microcoder_seconds_bucket{{le="{edge}"}} {total}'
        yield f"microcoder_seconds_sum {self.seconds:.6f}"
        yield f"microcoder_seconds_count {total}"


def _head(name: str, kind: str, words: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"
