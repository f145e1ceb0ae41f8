"""Problems whose tests stay on the disk: gigabytes of them, of which a bench needs a few at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..schema import Problem
from .digest import problem_digest
from .records import BenchError, Problems

RECENT = 1 << 29  # bytes of tests that are kept at hand
Parse = Callable[[bytes, str], Problem]  # a line, and where it stands for messages


@dataclass(frozen=True, slots=True)
class Stored:
    """A problem without its tests, and where it is whole."""

    problem: Problem
    path: Path
    line: int
    offset: int  # bytes
    digest: str  # with its tests


class StoredProblems(Problems):
    """Whole ones are read again from their line; the last ones read are kept, up to `recent` bytes."""

    def __init__(self, stored: Sequence[Stored], parse: Parse, recent: int = RECENT) -> None:
        super().__init__([one.problem for one in stored])
        self._stored, self._parse, self._recent = list(stored), parse, recent
        self._kept: OrderedDict[int, Problem] = OrderedDict()  # the one asked for last is at the end
        self._bytes = 0
        self._lock = threading.Lock()

    def whole(self, n: int) -> Problem:
        """With its tests. Threads may ask at the same time; a problem is read once for all of them."""
        with self._lock:
            if n not in self._kept:
                self._kept[n] = self._read(self._stored[n])
                self._bytes += self._kept[n].size()
            self._kept.move_to_end(n)
            while self._bytes > self._recent and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].size()
            return self._kept[n]

    def _read(self, stored: Stored) -> Problem:
        where = f"{stored.path}:{stored.line}"
        try:
            with open(stored.path, "rb") as file:
                file.seek(stored.offset)
                line = file.readline()
        except OSError as error:
            raise BenchError(f"cannot read {where} again: {error.strerror or error}; begin again") from None
        whole = self._parse(line, where)
        if problem_digest(whole) != stored.digest:
            raise BenchError(f"{where} is not what it was when the bench began; leave the file alone, and begin again")
        return whole


def read_lines(path: Path, parse: Parse) -> Iterator[Stored]:
    """Every line of a file once, so that nothing unreadable is left for later; blank ones do not count."""
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    whole = parse(line, f"{path}:{number}")
                    yield Stored(replace(whole, tests=[]), path, number, offset, problem_digest(whole))
                offset += len(line)
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror or error}") from None
