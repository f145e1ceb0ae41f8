"""Which problems faults are planted in: a half of every file, in an order that seed, kind and id decide."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from microcoder.data.record import Record
from microcoder.data.sources import SourceError, collect, detect
from microcoder.schema import Problem

HALVES = ("dev", "test")


def read(files: list[str], half: str) -> dict[str, list[Problem]]:
    """The problems of one half, by file."""
    found: dict[str, list[Problem]] = {}
    for file in files:
        layout = detect(file)
        if layout is None:
            raise SourceError(f"{file} has none of the known layouts; give files such as mbpp.jsonl")
        problems = [record.problem for record in collect(layout, file) if isinstance(record, Record)]
        found[Path(file).name] = [problem for problem in problems if half_of(problem) == half]
    return found


def half_of(problem: Problem) -> str:
    """The same whatever the seed: what was looked at once stays in its half."""
    return HALVES[rank("half", problem.id) % 2]


def drawn(pools: dict[str, list[Problem]], key: str, among: Callable[[Problem], bool]) -> Iterator[Problem]:
    """The problems in turns from each file, in an order of their own for each key."""
    orders = [
        sorted((p for p in pool if among(p)), key=lambda problem: rank(key, problem.id)) for pool in pools.values()
    ]
    for turn in itertools.zip_longest(*orders):
        yield from (problem for problem in turn if problem is not None)


def look_alikes(problems: Sequence[Problem], pools: dict[str, list[Problem]]) -> list[Problem]:
    """For each problem another one, of those not among them, that shares the most words with it; none comes twice."""
    taken = {problem.id for problem in problems}
    others = {problem.id: problem for pool in pools.values() for problem in pool if problem.id not in taken}
    said = {ident: _words(other) for ident, other in others.items()}
    found = []
    for problem in problems:
        own = _words(problem)
        best = max(said, key=lambda ident: len(own & said[ident]) / len(own | said[ident]))
        found.append(Record(others[best]).copy().problem)
        del said[best]
    return found


def _words(problem: Problem) -> set[str]:
    return set(problem.statement.lower().split()) or {""}


def rank(key: str, ident: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{key} {ident}".encode(), digest_size=8).digest())
