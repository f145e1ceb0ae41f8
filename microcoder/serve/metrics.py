"""What the service has done, counted, in the text that Prometheus reads."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator

from ..judge.execution import Ran
from ..schema import Verdict

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)  # seconds


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
