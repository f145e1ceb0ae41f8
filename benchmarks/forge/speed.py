"""The forge over a whole file, as `microcoder forge` runs it: problems a second, CPU seconds, memory, tests and living
mutants before and after. Stopped and typed again, it goes on; the problems with their new tests are in the output.

python -m benchmarks.forge speed leetcode-train-v0.2.0.jsonl.gz --stride 20 -o stronger.parquet
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any

from benchmarks.forge.measure import parser
from benchmarks.forge.weak import processed
from microcoder.api import forge
from microcoder.data.collection import layout_of, read
from microcoder.data.record import Record
from microcoder.data.settings import Source
from microcoder.files import write_problems

SHOWN = 50  # problems between two lines about the way so far
MB = 1024  # of ru_maxrss, which counts in KB


def main() -> None:
    options = parser(__doc__)
    options.add_argument("file")
    options.add_argument("-o", "--output", type=Path, help="where the forged problems go; by default into the folder")
    options.add_argument("--stride", type=int, default=1, help="only every n-th problem")
    options.add_argument("settings", nargs="*", metavar="section.key=value")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    output = args.output or args.folder / "stronger.parquet"
    problems = args.folder / f"{Path(args.file).name}-{args.stride}-{args.first or 'all'}.jsonl"
    if not problems.exists():
        source = Source(path=args.file)
        found = [one for one in read(source, layout_of(source)) if isinstance(one, Record)][:: args.stride]
        write_problems(problems, [record.problem for record in processed(iter(found[: args.first]))])
    count = len(problems.read_text(encoding="utf-8").splitlines())
    progress = Shown(count)
    workers = [f"judge.workers={args.workers}"] if args.workers else []
    summary = forge(problems, output, *workers, *args.settings, progress=progress)
    done, seconds = summary.problems - summary.resumed, max(summary.seconds, 1e-9)
    print(f"{done} problems in {seconds:.0f} s: {done / seconds:.2f} a second; {progress.peak():.0f} MB at most")
    if summary.resumed:
        print(f"  {summary.resumed} were done before")
    for name in ("tests", "mutants", "alive", "adversaries", "adversaries_alive"):
        print(f"  {name:18} {summary.before[name]:8} before {summary.after[name]:8} after")
    print(f"  not forged: {json.dumps(summary.reasons)}")
    waits = ", ".join(f"{wait:.1f} s" for wait in sorted(progress.waits, reverse=True)[:10])
    print(f"  longest between two problems: {waits}")
    print(f"  written: {output}")
    result: dict[str, Any] = {**summary.to_dict(), "mb": progress.peak(), "memory": progress.memory}
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))


class Shown:
    """What is printed on the way, and measured: the wait for each problem, and the memory of this process so far."""

    def __init__(self, count: int) -> None:
        self.count, self.done, self.started = count, 0, time.monotonic()
        self.last = self.started
        self.waits: list[float] = []
        self.memory: list[float] = []  # MB, after each SHOWN problems

    def __call__(self, before: bool) -> None:
        if before:
            return
        now = time.monotonic()
        self.waits.append(now - self.last)
        self.last, self.done = now, self.done + 1
        if self.done % SHOWN == 0:
            self.memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB)
            speed = self.done / (now - self.started)
            print(f"  {self.done} of {self.count}, {speed:.2f} a second, {self.memory[-1]:.0f} MB", flush=True)

    def peak(self) -> float:
        """MB of this process, or of the largest of those that it started."""
        return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / MB
