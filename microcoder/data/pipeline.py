"""Runs the steps one after the other: parts go through worker processes, finished ones are never done again.

A step is one of three kinds:

    each     a function of one record; parts are dealt out to the cores
    ordered  what costs time is worked out on the cores (`work`), then decided in order here (`decide`): twins
    stream   a function of all records one after the other, which brings its own workers: the judge

Only a few parts are under way at a time, so memory does not grow with the number of problems, but for what a step
itself has to remember (`decide`, `prepare`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from .parts import (
    Counts,
    Loss,
    begin,
    count_part,
    kept_parts,
    read_lines,
    read_records,
    record_of,
    write_json,
    write_part,
)
from .record import DataError, Dropped, Record

STAGES = ("collect", "process", "filter", "verify")
AHEAD = 4  # parts for each core that are under way: enough that none waits for a slow one of another
Each = Callable[..., Record]


@dataclass(frozen=True)
class Step:
    stage: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)  # what its results depend on, as JSON can carry it
    each: Each | None = None  # (record, **options) -> record, or raises Dropped
    work: Callable[..., Any] | None = None  # (record, **options) -> payload
    decide: Callable[..., Callable[[str, Any], Dropped | None]] | None = None  # (**options) -> (id, payload) -> why not
    stream: Callable[..., Any] | None = None  # (**options) -> context whose value takes records and gives results
    prepare: Callable[..., dict[str, Any]] | None = None  # (parts, cores, **options) -> more options, from all records

    @property
    def folder(self) -> str:
        return f"{self.stage}/{self.name}"


class Observer(Protocol):
    """Who is told how it goes."""

    def step(self, name: str, parts: int) -> None: ...
    def part(self, counts: Counts) -> None: ...
    def done(self, name: str, counts: Counts, seconds: float, again: bool) -> None: ...


def run(
    out: Path, steps: Sequence[Step], first: list[Path], digest: str, workers: int | Cores, observer: Observer
) -> list[Path]:
    """All steps from the parts `first`, which `digest` stands for. Returns the parts of the last one."""
    parts = first
    with Cores(workers) if isinstance(workers, int) else workers as cores:
        for step in steps:
            digest = chained(digest, step)
            parts = run_step(out / step.folder, step, parts, digest, cores, observer)
    return parts


class Cores:
    """Worker processes that all steps share, started when they are first needed."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        """The results in order, as they come; items are taken as there is room for them."""
        if self.count < 2:
            yield from map(function, items)
            return
        self.pool = self.pool or ProcessPoolExecutor(self.count, get_context("spawn"))
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
    folder: Path, step: Step, parts: list[Path], digest: str, cores: Cores, observer: Observer
) -> list[Path]:
    """One step. What it left complete before stays; returns its kept parts."""
    finished = begin(folder, digest)
    if finished is not None:
        observer.done(step.folder, from_json(finished), finished["seconds"], again=True)
        return kept_parts(folder)
    started = time.monotonic()
    observer.step(step.folder, len(parts))
    cores = cores if len(parts) > 1 else Cores(1)  # not worth starting processes for
    options = dict(step.options)
    if step.prepare is not None:
        options |= step.prepare(parts, cores, **options)
    total = Counts()
    for counts in _results(folder, step, options, parts, cores):
        total.add(counts)
        observer.part(counts)
    seconds = time.monotonic() - started
    write_json(folder / "done.json", {**to_json(total), "seconds": round(seconds, 2), "digest": digest})
    observer.done(step.folder, total, seconds, again=False)
    return kept_parts(folder)


def chained(before: str, step: Step) -> str:
    """A digest of a step's settings and of everything before it."""
    text = json.dumps([before, step.stage, step.name, step.options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _results(
    folder: Path, step: Step, options: dict[str, Any], parts: list[Path], cores: Cores
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
    """All parts as one stream, so that no worker waits at the end of a part."""
    before = {part: count_part(folder, _name(part)) for part in parts}
    with context as stream:
        results = stream(record for part in parts if before[part] is None for record in read_records(part))
        for part in parts:
            size = sum(1 for _ in read_lines(part))
            yield before[part] or write_part(folder, _name(part), islice(results, size))


def each_part(folder: Path, function: Each, options: dict[str, Any], part: Path) -> Counts:
    """A part in a worker process."""
    name = _name(part)
    work = partial(function, **options)
    return count_part(folder, name) or write_part(folder, name, (attempt(line, work) for line in read_lines(part)))


def work_part(work: Callable[..., Any], options: dict[str, Any], part: Path) -> list[tuple[str, Any]]:
    """What there is to decide by, in a worker process."""
    return [(record.problem.id, work(record, **options)) for record in read_records(part)]


def settle_part(folder: Path, decided: tuple[Path, list[Dropped | None]]) -> Counts:
    """A part that was decided, in a worker process. One that was written before was decided in the same way."""
    part, losses = decided
    found = zip(read_records(part), losses, strict=True)
    return count_part(folder, _name(part)) or write_part(
        folder, _name(part), (record if loss is None else (record, loss) for record, loss in found)
    )


def attempt(line: bytes, function: Each) -> Record | Loss:
    """What the function makes of the record. A fault of ours is a drop that can be counted and read, not the end."""
    try:
        return function(record_of(line))
    except Dropped as loss:
        return record_of(line), loss  # as it came in
    except DataError:
        raise
    except Exception as error:
        return record_of(line), Dropped("failed", f"{type(error).__name__}: {error}")


def to_json(counts: Counts) -> dict[str, Any]:
    return {"kept": counts.kept, "dropped": dict(counts.dropped.most_common())}


def from_json(data: dict[str, Any]) -> Counts:
    counts = Counts(data["kept"])
    counts.dropped.update(data["dropped"])
    return counts


def _name(part: Path) -> str:
    return part.name.removesuffix(".jsonl.gz")
