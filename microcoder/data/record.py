"""Records: problems on their way through the stages, with notes; and the solutions of a problem.

    Record     a problem and its notes
    Dropped    the reason why a record leaves the pipeline
    DataError  a fault outside of the records: the run ends, and the message says what to change

A step takes a record and returns it, or raises Dropped.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ..schema import ACCEPTED, VERDICTS, Compare, Problem, Test

_FIELDS = {each.name for each in dataclasses.fields(Problem)}


class Closes(Protocol):
    def close(self) -> None: ...


R = TypeVar("R")
T = TypeVar("T", bound=Closes)


@dataclass(slots=True)
class Record:
    """A problem with notes. It may be incomplete, and fail `Problem.check`, until `process` has checked it."""

    problem: Problem
    notes: dict[str, Any] = field(default_factory=dict)  # measurements of the stages: numbers and short words, by name

    def did(self, what: str) -> None:
        """Add a change to the problem's lineage."""
        self.problem.lineage.append(what)

    def to_dict(self) -> dict[str, Any]:
        return {"problem": self.problem.to_dict(), "notes": self.notes}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Record:
        fields = dict(data["problem"])
        fields["tests"] = [Test(**test) for test in fields.get("tests", [])]
        fields["compare"] = Compare(**fields.get("compare", {}))
        extra = {**fields.pop("extra", {}), **{name: fields.pop(name) for name in list(fields) if name not in _FIELDS}}
        return cls(Problem(**fields, extra=extra), data["notes"])

    def copy(self) -> Record:
        return Record.from_dict({"problem": dataclasses.asdict(self.problem), "notes": dict(self.notes)})


class DataError(ValueError):
    """A fault that ends the run: the message says what to change. Never a reason to drop a record."""


class Dropped(Exception):
    """Raised to drop a record. `reason` is one of a few words, for counting; `detail` says what was found."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


# --- many records at a time


def in_order(records: Iterable[Record], work: Callable[[Record], R], window: int) -> Iterator[R]:
    """Yield work(record) for each record in order; each has a thread of its own, `window` at a time."""
    pool = ThreadPoolExecutor(window, thread_name_prefix="record")
    waiting: deque[Future[R]] = deque()
    try:
        for record in records:
            waiting.append(pool.submit(work, record))
            if len(waiting) >= 2 * window:  # finished records wait here for a slow one before them
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Idle(Generic[T]):
    """A pool of things that are dear to make: a thread borrows one and gives it back."""

    def __init__(self, make: Callable[[], T]) -> None:
        self.make = make
        self.things: list[T] = []

    @contextmanager
    def one(self) -> Iterator[T]:
        """Lend an idle one, or a new one."""
        try:
            thing = self.things.pop()
        except IndexError:
            thing = self.make()
        try:
            yield thing
        finally:
            self.things.append(thing)

    def close(self) -> None:
        """Close all that are idle."""
        while self.things:
            self.things.pop().close()


# --- solutions


def references(problem: Problem) -> list[str]:
    """Return the code of the Python solutions that are not known to be wrong."""
    return [solution["code"] for solution in usable(problem) if expected(solution) == ACCEPTED and is_python(solution)]


def usable(problem: Problem) -> Iterator[dict[str, Any]]:
    """Yield the solutions that have code, in any language; skip other values, which foreign data may contain."""
    for solution in problem.solutions if isinstance(problem.solutions, list) else []:
        if isinstance(solution, dict) and isinstance(solution.get("code"), str) and solution["code"].strip():
            yield solution


def expected(solution: dict[str, Any]) -> str:
    """Return the expected verdict of a solution: accepted if none is given, "" for one that no judge gives."""
    verdict = str(solution.get("verdict") or ACCEPTED).strip().lower()
    return verdict if verdict in VERDICTS and verdict != "internal_error" else ""


def is_python(solution: dict[str, Any]) -> bool:
    """Whether the language's name means Python 3: "", "python", "Python 3.11", "py3", "PyPy 3-64"; not "python2"."""
    name = str(solution.get("language") or "python").lower()
    digits = [character for character in name if character.isdigit()]
    return name.startswith("py") and digits[:1] != ["2"]


# --- packages


def package(name: str) -> Any:
    """Import a package of the extra `data`, or raise a DataError that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        top = name.partition(".")[0]
        raise DataError(f"the package {top} is missing; install it with: pip install 'microcoder[data]'") from None
