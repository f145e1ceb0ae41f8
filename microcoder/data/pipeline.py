"""The pipeline: run steps one after the other, in worker processes part by part; finished parts are never made again.

A step is one of three kinds:

    each     a function of one record; the cores share the parts
    ordered  slow work on the cores (`work`), then decisions in order in this process (`decide`), as for duplicates
    stream   a function of all records in order, with its own workers, as for the judge

Only a few parts are in memory at a time, so memory does not grow with the number of problems, except for what a step
itself has to keep (`decide`, `prepare`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ..judge.remote.ray_nodes import connected, reason_of
from .parts import (
    Counts,
    Loss,
    begin,
    count_part,
    kept_parts,
    name_of,
    read_lines,
    read_records,
    record_of,
    write_json,
    write_part,
)
from .record import DataError, Dropped, Record

STAGES = ("collect", "process", "filter", "forge", "verify")
AHEAD = 4  # parts in work for each core: enough that no core waits for a slow part of another
Each = Callable[..., Record]


@dataclass(frozen=True)
class PipelineStep:
    """A step of a stage: one of `each`, `work` with `decide`, or `stream`."""

    stage: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)  # the settings that its results depend on, as JSON values
    each: Each | None = None  # (record, **options) -> record, or raises Dropped
    work: Callable[..., Any] | None = None  # (record, **options) -> payload
    decide: Callable[..., Callable[[str, Any], Dropped | None]] | None = None  # (**options) -> (id, payload) -> why not
    stream: Callable[..., Any] | None = None  # (**options) -> context whose value takes records and gives results
    prepare: Callable[..., dict[str, Any]] | None = None  # (parts, cores, **options) -> more options, from all records

    @property
    def folder(self) -> str:
        return f"{self.stage}/{self.name}"


class StepProgress(Protocol):
    """Receives the progress of steps: when one begins, after each part, and when it is done."""

    def step(self, name: str, parts: int) -> None: ...
    def part(self, counts: Counts) -> None: ...
    def done(self, name: str, counts: Counts, seconds: float, again: bool) -> None: ...


def run(
    out: Path,
    steps: Sequence[PipelineStep],
    first: list[Path],
    digest: str,
    workers: int | Cores,
    progress: StepProgress,
) -> list[Path]:
    """Run all steps on the parts `first`, whose digest is `digest`; return the parts of the last step."""
    parts = first
    with Cores(workers) if isinstance(workers, int) else workers as cores:
        for step in steps:
            digest = chained(digest, step)
            parts = run_step(out / step.folder, step, parts, digest, cores, progress)
    return parts


class WorkerProcess(SpawnProcess):
    """A worker process that does not import the user's script, which would call `build_dataset` again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # multiprocessing's hook for starting a process
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # without a file that could be imported
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = script


class WorkerContext(SpawnContext):
    """A context of spawned processes for a pool. Their functions must not be defined in the user's script."""

    Process = WorkerProcess


def worker_pool(count: int) -> ProcessPoolExecutor:
    """Return a pool of worker processes that end with this process, even if it is killed."""
    return ProcessPoolExecutor(count, WorkerContext(), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Watch the parent, in a worker process: without it, a worker would wait for work for ever."""

    def watch() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cores:
    """Worker processes that all steps share, started on first use."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to items in the worker processes; yield results in order, read items lazily."""
        if self.count < 2:
            yield from map(function, items)
            return
        self.pool = self.pool or worker_pool(self.count)
        waiting: deque[Future[Any]] = deque()
        for item in items:
            waiting.append(self.pool.submit(function, item))
            if len(waiting) >= AHEAD * self.count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def __enter__(self) -> Cores:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def run_step(
    folder: Path, step: PipelineStep, parts: list[Path], digest: str, cores: Cores, progress: StepProgress
) -> list[Path]:
    """Run one step and return its kept parts. Parts of an earlier run stay."""
    finished = begin(folder, digest)
    if finished is not None:
        progress.done(step.folder, Counts.of(finished["kept"], finished["dropped"]), finished["seconds"], again=True)
        return kept_parts(folder)
    started = time.monotonic()
    progress.step(step.folder, len(parts))
    cores = cores if len(parts) > 1 else Cores(1)  # one part is not worth starting processes
    options = dict(step.options)
    if step.prepare is not None:
        options |= step.prepare(parts, cores, **options)
    total = Counts()
    for counts in _results(folder, step, options, parts, cores):
        total.add(counts)
        progress.part(counts)
    seconds = time.monotonic() - started
    write_json(folder / "done.json", {**total.to_dict(), "seconds": round(seconds, 2), "digest": digest})
    progress.done(step.folder, total, seconds, again=False)
    return kept_parts(folder)


def chained(before: str, step: PipelineStep) -> str:
    """Return a digest of a step's settings and of all earlier steps."""
    text = json.dumps([before, step.stage, step.name, step.options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _results(
    folder: Path, step: PipelineStep, options: dict[str, Any], parts: list[Path], cores: Cores
) -> Iterable[Counts]:
    if step.stream is not None:
        return _streamed(folder, step.stream(**options), parts)
    if step.each is not None:
        return cores.map(partial(each_part, folder, step.each, options), parts)
    assert step.work is not None and step.decide is not None
    decide = step.decide(**options)
    worked = cores.map(partial(work_part, step.work, options), parts)
    decided = ((part, [decide(*item) for item in items]) for part, items in zip(parts, worked, strict=True))
    return cores.map(partial(settle_part, folder), decided)


def _streamed(folder: Path, context: Any, parts: list[Path]) -> Iterator[Counts]:
    """Run all parts as one stream, so that no worker waits at the end of a part."""
    before = {part: count_part(folder, name_of(part)) for part in parts}
    with context as stream:
        results = stream(record for part in parts if before[part] is None for record in read_records(part))
        for part in parts:
            size = sum(1 for _ in read_lines(part))
            yield before[part] or write_part(folder, name_of(part), islice(results, size))


def each_part(folder: Path, function: Each, options: dict[str, Any], part: Path) -> Counts:
    """Process one part, in a worker process."""
    name = name_of(part)
    work = partial(function, **options)
    return count_part(folder, name) or write_part(folder, name, (attempt(line, work) for line in read_lines(part)))


def work_part(work: Callable[..., Any], options: dict[str, Any], part: Path) -> list[tuple[str, Any]]:
    """Compute the values to decide by for one part, in a worker process."""
    return [(record.problem.id, work(record, **options)) for record in read_records(part)]


def settle_part(folder: Path, decided: tuple[Path, list[Dropped | None]]) -> Counts:
    """Write a decided part, in a worker process. An existing part has the same decisions and stays."""
    part, losses = decided
    found = zip(read_records(part), losses, strict=True)
    return count_part(folder, name_of(part)) or write_part(
        folder, name_of(part), (record if loss is None else (record, loss) for record, loss in found)
    )


def attempt(line: bytes, function: Each) -> Record | Loss:
    """Apply the function to a record. An error in our code becomes a drop that can be counted and read."""
    try:
        return function(record_of(line))
    except Dropped as loss:
        return record_of(line), loss  # the record as it was before the step
    except DataError:
        raise
    except Exception as error:
        return record_of(line), Dropped("failed", f"{type(error).__name__}: {error}")


# --- on a Ray cluster


class ClusterCores(Cores):
    """The cores of a Ray cluster in place of worker processes here, for `data run --ray`.

    Parts are files, so every node must see the working folder and the output folder under the same names. If a node is
    lost, another node makes its part again; parts are written atomically.
    """

    def __init__(self, address: str, out: Path) -> None:
        self._exit = ExitStack()
        self.ray = self._exit.enter_context(connected(address))
        super().__init__(max(1, int(self.ray.cluster_resources().get("CPU", 0))))
        try:
            self._check(out)
        except BaseException:
            self._exit.close()
            raise

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        work = self.ray.remote(there).options(scheduling_strategy="SPREAD")
        sent, waiting = self.ray.put((os.getcwd(), function)), deque[Any]()
        try:
            for item in items:
                waiting.append(work.remote(sent, item))
                if len(waiting) >= AHEAD * self.count:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for each in waiting:
                self.ray.cancel(each, force=True)

    def _result(self, ref: Any) -> Any:
        try:
            return self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as from a local process
        except self.ray.exceptions.RayError as error:
            why = reason_of(error)
            raise DataError(f"a part failed on the Ray cluster: {why} The same command goes on from here") from None

    def _check(self, out: Path) -> None:
        """Raise DataError unless all nodes see the same files."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        out.mkdir(parents=True, exist_ok=True)
        nodes = [node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        with tempfile.NamedTemporaryFile(dir=out, prefix=".seen-by-all-") as marker:
            asked = {
                node: self.ray.remote(unseen)
                .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), num_cpus=0)
                .remote(os.getcwd(), [os.getcwd(), marker.name])
                for node in nodes
            }
            for node, ref in asked.items():
                if missing := self._result(ref):
                    raise DataError(
                        f"node {node[:8]} of the Ray cluster does not see {missing}; output.folder, and the folder in "
                        "which you type this, must be on a disk that all nodes share under the same name (NFS, Lustre)"
                    )

    def __exit__(self, *_: Any) -> None:
        self._exit.close()


def there(sent: tuple[str, Callable[..., Any]], item: Any) -> Any:
    """Call the function on a node, in the working folder of the command: file names may be relative."""
    folder, function = sent
    os.chdir(folder)
    return function(item)


def unseen(folder: str, paths: list[str]) -> str:
    """Return the first of the paths that a node does not see."""
    return next((path for path in paths if not Path(folder, path).exists()), "")
