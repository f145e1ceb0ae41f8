"""Runs the steps one after the other: parts go through worker processes, finished ones are never done again.

A step is one of three kinds:

    each     a function of one record; parts are dealt out to the cores
    ordered  what costs time is worked out on the cores (`work`), and decided in order here (`decide`): twins
    stream   a function of all records of a part, which brings its own workers: the judge
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from .parts import Counts, Loss, begin, count_part, kept_parts, read_records, write_json, write_part
from .record import DataError, Dropped, Record

STAGES = ("collect", "process", "filter", "verify")
Each = Callable[..., Record]


@dataclass(frozen=True)
class Step:
    stage: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)  # what its results depend on, as JSON can carry it
    each: Each | None = None  # (record, **options) -> record, or raises Dropped
    work: Callable[..., Any] | None = None  # (record, **options) -> payload
    decide: Callable[..., Callable[[Record, Any], Record]] | None = None  # (**options) -> (record, payload) -> record
    stream: Callable[..., Any] | None = None  # (**options) -> context whose value takes records and gives results
    prepare: Callable[..., dict[str, Any]] | None = None  # (parts, **options) -> more options, from all records

    @property
    def folder(self) -> str:
        return f"{self.stage}/{self.name}"


class Observer(Protocol):
    """Who is told how it goes."""

    def step(self, name: str, parts: int) -> None: ...
    def part(self, counts: Counts) -> None: ...
    def done(self, name: str, counts: Counts, seconds: float, again: bool) -> None: ...


def run(
    out: Path, steps: Sequence[Step], first: list[Path], digest: str, workers: int, observer: Observer
) -> list[Path]:
    """All steps from the parts `first`, which `digest` stands for. Returns the parts of the last one."""
    parts = first
    with Cores(workers) as cores:
        for step in steps:
            digest = chained(digest, step)
            parts = run_step(out / step.folder, step, parts, digest, cores, observer)
    return parts


class Cores:
    """Worker processes that all steps share; none are started for a single part."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[..., Any], items: list[Any]) -> Iterable[Any]:
        """The results in order, as they come."""
        if self.count < 2 or len(items) < 2:
            return map(function, items)
        self.pool = self.pool or ProcessPoolExecutor(self.count, get_context("spawn"))
        return self.pool.map(function, items)

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
    options = dict(step.options)
    if step.prepare is not None:
        options |= step.prepare(parts, **options)
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
) -> Iterator[Counts]:
    if step.stream is not None:
        with step.stream(**options) as stream:
            for part in parts:
                name = _name(part)
                yield count_part(folder, name) or write_part(folder, name, stream(read_records(part)))
        return
    if step.each is not None:
        yield from cores.map(partial(each_part, folder, step.each, options), parts)
        return
    assert step.work is not None and step.decide is not None
    decide = step.decide(**options)
    for part, payloads in zip(parts, cores.map(partial(work_part, step.work, options), parts), strict=True):
        name = _name(part)
        before = count_part(folder, name)
        results = _decided(read_records(part), payloads, decide)
        if before is None:
            yield write_part(folder, name, results)
        else:  # it was decided already; deciding again brings the memory of it back
            for _ in results:
                pass
            yield before


def each_part(folder: Path, function: Each, options: dict[str, Any], part: Path) -> Counts:
    """A part in a worker process."""
    name = _name(part)
    return count_part(folder, name) or write_part(
        folder, name, (attempt(record, partial(function, record, **options)) for record in read_records(part))
    )


def work_part(work: Callable[..., Any], options: dict[str, Any], part: Path) -> list[Any]:
    return [work(record, **options) for record in read_records(part)]


def _decided(
    records: Iterable[Record], payloads: Iterable[Any], decide: Callable[[Record, Any], Record]
) -> Iterator[Record | Loss]:
    for record, payload in zip(records, payloads, strict=True):
        yield attempt(record, partial(decide, record, payload))


def attempt(record: Record, function: Callable[[], Record]) -> Record | Loss:
    """What the function makes of the record. A fault of ours is a drop that can be counted and read, not the end."""
    before = record.copy()
    try:
        return function()
    except Dropped as loss:
        return before, loss
    except DataError:
        raise
    except Exception as error:
        return before, Dropped("failed", f"{type(error).__name__}: {error}")


def to_json(counts: Counts) -> dict[str, Any]:
    return {"kept": counts.kept, "dropped": dict(counts.dropped.most_common())}


def from_json(data: dict[str, Any]) -> Counts:
    counts = Counts(data["kept"])
    counts.dropped.update(data["dropped"])
    return counts


def _name(part: Path) -> str:
    return part.name.removesuffix(".jsonl.gz")
