"""A whole file of problems: forged one after the other, written down as they are done, gone on with after a stop.

Beside the output lies a journal while the work is under way, `.stronger.parquet.forging`: a line about the settings and
the input, then a line for each problem that is done, in order. The same command goes on behind the last of them. Memory
does not grow with the number of problems.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...files import BadLine, FileError, json_line, kind_of, lock, read_problems, write_problems
from ...judge.base import Judging
from ...judge.remote import open_judge
from ...schema import Problem
from ..endpoint import Asks, endpoint_for
from ..parts import stamp
from ..record import DataError, Record
from . import ForgeOptions, forge
from .adversaries import AdversaryStore, files_of
from .llm import LONGEST, Author
from .search import Effort

if TYPE_CHECKING:
    from ..settings import ForgeConfig, Pipeline


NAMED = 1000  # unreadable lines that a summary keeps


@dataclass
class ForgeSummary:
    """What became of all problems of a file."""

    problems: int = 0
    forged: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # why problems stay as they are
    left_out: Counter[str] = field(default_factory=Counter)  # why inputs were not used
    before: Counter[str] = field(default_factory=Counter)  # over problems that were forged: tests, mutants, alive, ...
    after: Counter[str] = field(default_factory=Counter)
    bounded_by: Counter[str] = field(default_factory=Counter)
    llm: Counter[str] = field(default_factory=Counter)  # what became of the generators of a language model
    contradictions: list[str] = field(default_factory=list)  # examples of statements that a reference contradicts
    unreadable: list[str] = field(default_factory=list)  # the first NAMED lines that hold no problem, and why
    bad_lines: int = 0
    adversaries: str = ""  # how many programs were read, and how many records hold none
    seconds: float = 0.0
    resumed: int = 0

    def add(self, problem: Problem) -> None:
        about = problem.extra.get("forge")
        self.problems += 1
        named = about.get("contradictions", []) if isinstance(about, dict) else []
        self.contradictions += [f"{problem.id}: {text}" for text in named]
        if not isinstance(about, dict) or "reason" in about:
            self.reasons[str((about or {}).get("reason", "not_forged"))] += 1
            return
        self.forged += 1
        for name in ("before", "after"):
            counts = {key: value for key, value in about[name].items() if isinstance(value, int)}
            getattr(self, name).update(counts)
        self.left_out.update(about.get("left_out", {}))
        self.bounded_by[about.get("bounded_by", "")] += 1
        self.llm.update([about["llm"]] if "llm" in about else [])
        self.before["silent"] += about.get("silent", 0)

    def to_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in found.items()}


@contextlib.contextmanager
def forge_with(
    settings: ForgeConfig, judge: Judging, summary: ForgeSummary | None = None, endpoint: Asks | None = None
) -> Iterator[Callable[[Iterable[Record]], Iterator[Record]]]:
    """A function that forges records, by the settings. `summary` is told what adversaries there are.

    endpoint   a language model that writes generators
    """
    effort = Effort(
        settings.tests, settings.mutants, settings.candidates, seconds=settings.seconds, slowest_s=settings.slowest_s,
        test_kb=settings.test_kb, answer_kb=settings.answer_kb, large=settings.large, seed=settings.seed,
    )  # fmt: skip
    author = Author(endpoint, min(settings.test_kb << 10, LONGEST)) if endpoint is not None else None
    options = ForgeOptions(effort, settings.references, time_multiple=settings.time_multiple, author=author)
    store = AdversaryStore(settings.adversaries, settings.most_adversaries) if settings.adversaries else None
    if store is not None and summary is not None:
        passed = f"; {store.passed_over:,} records without a Python program passed over" if store.passed_over else ""
        summary.adversaries = f"{store.count:,} programs{passed}"
    try:
        others: Callable[[str], Iterable[tuple[str, str]]] = store.of if store else lambda ident: ()
        yield partial(forge, judge=judge, options=options, adversaries=others)
    finally:
        if store is not None:
            store.close()


def stamps(paths: Sequence[str]) -> str:
    """A digest of the files that adversaries are read from: other ones make another result."""
    found = [f"{file} {stamp(str(file))}" for path in paths for file in files_of(Path(path))]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if paths else ""


def author_settings(settings: Pipeline) -> str:
    """The settings of the endpoint as JSON, if the forge is to ask it; else ""."""
    if not settings.forge.endpoint:
        return ""
    if not settings.endpoint.base_url:
        raise DataError("forge.endpoint is true, but there is none; set endpoint.base_url and endpoint.model")
    return json.dumps(settings.endpoint.model_dump(), sort_keys=True)


def forge_file(
    problems: str | Path,
    output: str | Path,
    settings: Pipeline,
    *,
    fresh: bool = False,
    progress: Callable[[bool], None] = lambda done_before: None,
) -> ForgeSummary:
    """Forge all problems of a file into another one. Called again after a stop, it goes on.

    progress   called after each problem: whether it was done before
    """
    problems, output = Path(problems), Path(output)
    kind_of(output)
    if output.is_dir():
        raise FileError(f"-o {output} is a folder; name a file in it, such as {output / 'stronger.parquet'}")
    if not output.parent.is_dir():
        raise FileError(f"there is no folder {output.parent} to write {output.name} in; make it, or name another file")
    if problems.exists() and output.exists() and problems.samefile(output):
        raise FileError(f"-o {output} is the file to read; name another one for the stronger tests")
    summary, started = ForgeSummary(), time.monotonic()
    with Journal(output, _digest(problems, settings), fresh) as journal:
        for problem in journal.done():
            summary.add(problem)
            summary.resumed += 1
            progress(True)
        rest = islice(_read(problems, summary), summary.resumed, None)
        with (
            open_judge(settings.judge.options()) as judge,
            forge_with(settings.forge, judge, summary, endpoint_for(author_settings(settings))) as forged,
        ):
            for record in forged(map(Record, rest)):
                journal.append(record.problem)
                summary.add(record.problem)
                progress(False)
        if summary.problems:
            write_problems(output, journal.done())
    journal.path.unlink()
    if not summary.problems:
        first = f"; the first of {summary.bad_lines:,} lines: {summary.unreadable[0]}" if summary.bad_lines else ""
        raise FileError(f"{problems} holds no problem that can be used{first}")
    summary.seconds = time.monotonic() - started
    return summary


def _read(path: Path, summary: ForgeSummary) -> Iterator[Problem]:
    for found in read_problems(path):
        if isinstance(found, BadLine):
            summary.bad_lines += 1
            summary.unreadable += [str(found)] if len(summary.unreadable) < NAMED else []
        else:
            yield found


def _digest(problems: Path, settings: Pipeline) -> str:
    judged = {
        name: value for name, value in settings.judge.model_dump().items() if name not in ("on", "workers", "queue")
    }
    parts = [
        str(problems.resolve()),
        stamp(str(problems)),
        settings.forge.model_dump(),
        judged,
        author_settings(settings),
    ]
    text = json.dumps([*parts, stamps(settings.forge.adversaries)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal:
    """The problems that are done, in a file that is only appended to.

    One of other settings or another input gives way to the first problem that is done, not to a mistyped command.
    """

    def __init__(self, output: Path, digest: str, fresh: bool) -> None:
        self.path = output.with_name(f".{output.name}.forging")
        self.head = json_line({"digest": digest})
        self.fresh = fresh

    def __enter__(self) -> Journal:
        try:
            self.file: IO[bytes] = open(self.path, "a+b")
            lock(self.file, self.path)
            self.file.seek(0)
            self.goes_on = not self.fresh and self.file.readline() == self.head
            if self.goes_on:
                self._recover()
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror or error}") from None
        return self

    def _recover(self) -> None:
        """Drop a last line that was cut off."""
        at = self.file.tell()
        for line in self.file:
            if not line.endswith(b"\n"):
                break
            at += len(line)
        self.file.truncate(at)

    def append(self, problem: Problem) -> None:
        try:
            if not self.goes_on:
                self.file.truncate(0)
                self.file.write(self.head)
                self.goes_on = True
            self.file.write(json_line(Record(problem).to_dict()))
            self.file.flush()
        except OSError as error:
            said = f"cannot write {self.path}: {error.strerror or error}"
            raise FileError(f"{said}; make room and type the same command again: what is done is kept") from None

    def done(self) -> Iterator[Problem]:
        with open(self.path, "rb") as file:
            file.readline()
            for line in file if self.goes_on else ():
                yield Record.from_dict(json.loads(line)).problem

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # of a write that failed before
            self.file.close()
