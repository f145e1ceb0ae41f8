"""Which of a suite's problems count: by date, platform, difficulty, and the first so many of those."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ..schema import Problem, nearest
from .records import BenchError


@dataclass(frozen=True, slots=True)
class Narrowing:
    start: str = ""  # YYYY-MM-DD; both ends count
    end: str = ""
    platforms: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    first: int | None = None

    def __post_init__(self) -> None:
        for option, day in (("--from", self.start), ("--to", self.end)):
            if day and not _is_day(day):
                raise BenchError(f"{option} {day} is no day; write it as YYYY-MM-DD, such as 2024-08-01")
        if self.start and self.end and self.start > self.end:
            raise BenchError(f"--from {self.start} is after --to {self.end}, so no problem fits; exchange them")
        if self.first is not None and self.first < 1:
            raise BenchError(f"--first {self.first} leaves no problem; give 1 or more")

    def choose(self, problems: Sequence[Problem]) -> list[int]:
        """The places of the problems that stay, in order. None left is an error."""
        self._check(problems)
        kept = [n for n, problem in enumerate(problems) if self._fits(problem)]
        if not kept:
            raise BenchError(f"none of {len(problems)} problems fits {self}; {_census(problems)}")
        return kept[: self.first]

    def _check(self, problems: Sequence[Problem]) -> None:
        for option, wanted, field in (
            ("--platform", self.platforms, "platform"),
            ("--difficulty", self.difficulties, "difficulty"),
        ):
            known = {getattr(problem, field) for problem in problems}
            for word in wanted:
                if word not in known:
                    raise BenchError(f"{option} {word}: no problem has it{nearest(word, known)}; {_census(problems)}")
        undated = sum(not _is_day(problem.date) for problem in problems)
        if undated and (self.start or self.end):
            raise BenchError(
                f"{undated} of {len(problems)} problems have no date such as 2024-08-01, so whether they fit {self} "
                "cannot be told; leave out --from and --to"
            )

    def _fits(self, problem: Problem) -> bool:
        return (
            (not self.start or self.start <= problem.date)
            and (not self.end or problem.date <= self.end)
            and (not self.platforms or problem.platform in self.platforms)
            and (not self.difficulties or problem.difficulty in self.difficulties)
        )

    def __str__(self) -> str:
        words = [f"from {self.start}"] * bool(self.start) + [f"to {self.end}"] * bool(self.end)
        words += [" and ".join(names) for names in (self.platforms, self.difficulties) if names]
        return ", ".join(words + [f"first {self.first}"] * (self.first is not None))


def _is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text) and date.fromisoformat(text))
    except ValueError:
        return False


def _census(problems: Sequence[Problem]) -> str:
    """What there is to choose from."""
    counts = [Counter(getattr(p, field) or "none" for p in problems) for field in ("platform", "difficulty")]
    days = sorted(problem.date for problem in problems if problem.date)
    dates = f"{days[0]} to {days[-1]}" if days else "none"
    shown = [", ".join(f"{word} {count}" for word, count in each.most_common(12)) for each in counts]
    return f"there are {len(problems)}: platforms {shown[0]}; difficulties {shown[1]}; dates {dates}"
