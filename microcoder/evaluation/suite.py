"""The values of an evaluation: suites of problems, samples of a model, and marks (verdicts of a sample under a limit).

The tests of a suite may take gigabytes, and an evaluation needs few at a time, so they can stay on the disk. This
module does not load torch.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import math
import re
import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import IO, Any, cast

from ..schema import Problem, bands, in_order, nearest

RECENT = 1 << 29  # bytes of tests that are kept in memory
NONE = "none"  # label of problems without a platform or difficulty
Parse = Callable[[bytes, str], Problem]  # (line, its place for messages) -> problem


class EvaluationError(ValueError):
    """An evaluation that cannot be run, read or compared as asked; the message says why and what to type instead."""


def check_temperature(temperature: float) -> None:
    if temperature and not 1e-3 <= temperature < math.inf:  # logits are divided by it
        raise EvaluationError(f"--temperature {temperature:g}: it must be 0, or from 0.001 to a finite number")


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion for one problem, generated up to the largest limit."""

    problem_id: str
    number: int  # among the samples of its problem, from 0
    text: str  # the completion; or, with `is_code`, a program
    tokens: int | None = None  # its length; None: not known, as of a file of completions
    truncated: bool = False  # stopped by the largest limit
    cuts: dict[str, int] = field(default_factory=dict)  # limit below `tokens` -> characters of the text that fit in it
    ids: list[int] = field(default_factory=list)  # the tokens, where they are known
    is_code: bool = False

    @property
    def id(self) -> str:
        return f"{self.problem_id}#{self.number}"


@dataclass(frozen=True, slots=True)
class Mark:
    """The verdicts on one sample under one limit: both policies, from one execution."""

    problem_id: str
    number: int
    limit: int  # tokens; 0: none was set, as for a file of completions
    robust: str  # verdict under the policy robust
    exact: str  # and under exact, LiveCodeBench's rule
    strategy: str = ""  # the most lenient comparison that robust needed
    robust_message: str = ""
    exact_message: str = ""
    tokens: int | None = None  # at most the limit
    truncated: bool = False
    robust_base: str = ""  # the verdicts on the base tests alone, in a suite that has such
    exact_base: str = ""

    @property
    def id(self) -> str:
        return f"{self.problem_id}#{self.number}"


class Problems(Sequence[Problem]):
    """The problems of a suite. Large tests are left on the disk and read again for judging."""

    def __init__(self, light: Sequence[Problem]) -> None:
        self.light = list(light)

    def __getitem__(self, n: Any) -> Any:
        return self.light[n]

    def __len__(self) -> int:
        return len(self.light)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.light)

    def whole(self, n: int) -> Problem:
        """Return the n-th problem with its tests."""
        return self.light[n]


@dataclass(frozen=True)
class Suite:
    name: str  # shown to the user: "livecodebench v6"
    style: str  # its own, of prompts and of the extraction of programs: a name in microcoder.prompts.STYLES
    problems: Problems
    digest: str  # changes with anything that a score depends on: which problems, in which order, with which tests
    tries: int = 4  # default number of samples for each problem
    temperature: float = 0.2
    limits: tuple[int, ...] = (1024,)  # tokens in a response
    time_limit_s: float = 6.0  # CPU seconds for each test of a problem that names none
    reuse: bool = False  # whether a program's tests share a process, as the suite's own runner has it
    tests: str = ""  # in which way the tests are not those that the suite's name stands for
    others: tuple[str, ...] = ()  # the ids of its problems that were not asked for, as by --first

    @property
    def base_tests(self) -> dict[str, int]:
        """{problem: how many of its first tests are the base tests}; empty for a suite without such."""
        return {problem.id: problem.extra["base_tests"] for problem in self.problems if "base_tests" in problem.extra}


def about_tests(problems: Sequence[Problem]) -> str:
    """Say where problems have forged tests, or the public tests of LiveCodeBench alone, or lack some."""
    public = sum(bool(problem.extra.get("public_tests_only")) for problem in problems)
    forged = sum(bool((problem.extra.get("forge") or {}).get("tests")) for problem in problems)
    left_out = sum(problem.extra.get("left_out", 0) for problem in problems)
    notes = []
    if public:
        part = "" if public == len(problems) else f" in {public} of {len(problems)} problems"
        notes.append(f"public tests only{part}: not a LiveCodeBench score")
    if forged:
        notes.append("with forged tests" + ("" if forged == len(problems) else f" in {forged} of {len(problems)}"))
    if left_out:
        notes.append(f"{left_out} tests with too large outputs left out")
    return "; ".join(notes)


def problem_digest(problem: Problem) -> str:
    """Hash everything that a prompt or a verdict depends on; return 64 hex digits.

    Each test is hashed after its length, so that two lists of tests with the same joined text differ.
    """
    rules = (problem.setup, problem.time_limit_s, problem.memory_mb, dataclasses.asdict(problem.compare))
    asked = (problem.id, problem.kind, problem.statement, problem.starter_code, problem.entry_point, problem.asserts)
    hasher = hashlib.sha256(json.dumps([asked, rules]).encode())
    for text in (text for test in problem.tests for text in (test.input, test.output)):
        data = text.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.hexdigest()


def suite_digest(problems: Iterable[str]) -> str:
    """Hash the digests of a suite's problems, in order."""
    return hashlib.sha256(" ".join(problems).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Stored:
    """A problem without its tests, and the place of its whole line in a file."""

    problem: Problem
    path: Path
    line: int
    offset: int  # bytes
    digest: str  # with its tests


class StoredProblems(Problems):
    """Problems whose tests are read from the disk when needed; a cache keeps up to `recent` bytes of them."""

    def __init__(self, stored: Sequence[Stored], parse: Parse, recent: int = RECENT) -> None:
        super().__init__([one.problem for one in stored])
        self._stored, self._parse, self._recent = list(stored), parse, recent
        self._kept: OrderedDict[int, Problem] = OrderedDict()  # the one asked for last is at the end
        self._bytes = 0
        self._lock = threading.Lock()

    def whole(self, n: int) -> Problem:
        """Return the n-th problem with its tests. Threads that ask at the same time share one read."""
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
            with _opened(stored.path) as file:
                file.seek(stored.offset)
                line = file.readline()
        except OSError as error:
            raise EvaluationError(f"cannot read {where} again: {error.strerror or error}; begin again") from None
        whole = self._parse(line, where)
        if problem_digest(whole) != stored.digest:
            raise EvaluationError(f"{where} has changed since the evaluation began; leave the file alone, begin again")
        return whole


def read_lines(path: Path, parse: Parse) -> Iterator[Stored]:
    """Read every line of a file once, so that errors appear at the beginning; skip blank lines."""
    offset = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    whole = parse(line, f"{path}:{number}")
                    yield Stored(replace(whole, tests=[]), path, number, offset, problem_digest(whole))
                offset += len(line)
    except (OSError, EOFError, zlib.error) as error:
        raise EvaluationError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.name.endswith(".gz") else open(path, "rb")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A filter of a suite's problems by date, platform and difficulty, and then a maximum number of them."""

    start: str = ""  # YYYY-MM-DD; both ends count
    end: str = ""
    platforms: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()  # labels, bands, or scores, which stand for their band
    first: int | None = None

    def __post_init__(self) -> None:
        for option, day in (("--from", self.start), ("--to", self.end)):
            if day and not _is_day(day):
                raise EvaluationError(f"{option} {day} is no day; write it as YYYY-MM-DD, such as 2024-08-01")
        if self.start and self.end and self.start > self.end:
            raise EvaluationError(f"--from {self.start} is after --to {self.end}, so no problem fits; swap them")
        if self.first is not None and self.first < 1:
            raise EvaluationError(f"--first {self.first} leaves no problem; give 1 or more")

    def choose(self, problems: Sequence[Problem]) -> list[int]:
        """Return the indices of the problems that pass, in order. Raise EvaluationError if none does."""
        platforms = [problem.platform or NONE for problem in problems]
        levels = [band or NONE for band in bands(problems)]
        wanted = {_band_named(word, problems, levels) for word in self.difficulties}
        if unknown := [word for word in self.platforms if word not in platforms]:
            raise EvaluationError(_nothing_has("--platform", unknown[0], platforms, problems))
        undated = sum(not _is_day(problem.date) for problem in problems)
        if undated and (self.start or self.end):
            raise EvaluationError(
                f"{undated} of {len(problems)} problems have no date such as 2024-08-01, so whether they fit {self} "
                "cannot be told; leave out --from and --to"
            )
        kept = [
            n
            for n, problem in enumerate(problems)
            if (not self.start or self.start <= problem.date)
            and (not self.end or problem.date <= self.end)
            and (not self.platforms or platforms[n] in self.platforms)
            and (not wanted or levels[n] in wanted)
        ]
        if not kept:
            raise EvaluationError(f"none of {len(problems)} problems fits {self}; {_census(problems)}")
        return kept[: self.first]

    def __str__(self) -> str:
        words = [f"from {self.start}"] * bool(self.start) + [f"to {self.end}"] * bool(self.end)
        words += [" and ".join(names) for names in (self.platforms, self.difficulties) if names]
        return ", ".join(words + [f"first {self.first}"] * (self.first is not None))


def _band_named(word: str, problems: Sequence[Problem], levels: Sequence[str]) -> str:
    """Return the band that `word` names: a label in any case, a band, or a score inside a band."""
    named = {level.casefold(): level for level in levels}
    if word.casefold() in named:
        return named[word.casefold()]
    try:  # the banding depends on all the problems, so the score is put among them, as a score and as a rating
        more = [Problem("", difficulty_score=float(word)), Problem("", difficulty=word)]
        found = next((band for one in more if (band := bands([*problems, one])[-1]) in levels), "")
    except (ValueError, OverflowError):
        found = ""
    if not found:
        raise EvaluationError(_nothing_has("--difficulty", word, levels, problems))
    return found


def _nothing_has(option: str, word: str, known: Iterable[str], problems: Sequence[Problem]) -> str:
    return f"{option} {word}: no problem has it{nearest(word, set(known))}; {_census(problems)}"


def _is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text) and date.fromisoformat(text))
    except ValueError:
        return False


def _census(problems: Sequence[Problem]) -> str:
    """List the platforms and difficulties to choose from."""
    platforms = Counter(problem.platform or NONE for problem in problems).most_common(12)
    levels = Counter(band or NONE for band in bands(problems))
    ordered = [(level, levels[level]) for level in in_order(levels)][:12]
    shown = [", ".join(f"{word} {count}" for word, count in each) for each in (platforms, ordered)]
    days = sorted(problem.date for problem in problems if problem.date)
    dates = f"{days[0]} to {days[-1]}" if days else "none"
    return f"there are {len(problems)}: platforms {shown[0]}; difficulties {shown[1]}; dates {dates}"
