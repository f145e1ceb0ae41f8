"""What flows through a bench: samples, and what was found of each. Plain values; nothing here loads torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..schema import Problem


class BenchError(ValueError):
    """A bench that cannot be run, read or compared as asked; the message says why and what to type instead."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One try at one problem, as long as the largest limit allows."""

    problem_id: str
    number: int  # among the tries at its problem, from 0
    text: str  # what the model wrote; or the program itself, with `is_code`
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
    """What was found of one try under one limit. The two verdicts come from one and the same execution."""

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

    @property
    def id(self) -> str:
        return f"{self.problem_id}#{self.number}"


class Problems(Sequence[Problem]):
    """The problems of a suite. Those with large tests are kept without them, and read again when they are judged."""

    def __init__(self, light: Sequence[Problem]) -> None:
        self.light = list(light)

    def __getitem__(self, n: Any) -> Any:
        return self.light[n]

    def __len__(self) -> int:
        return len(self.light)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.light)

    def whole(self, n: int) -> Problem:
        """With its tests."""
        return self.light[n]


@dataclass(frozen=True)
class Suite:
    name: str  # for people: "livecodebench v6"
    style: str  # of its prompts and of how answers are read: a name in microcoder.prompts.STYLES
    problems: Problems
    digest: str  # changes with anything that a score depends on: which problems, in which order, with which tests
    tries: int = 4  # what is usual for it
    temperature: float = 0.2
    limits: tuple[int, ...] = (1024,)  # tokens in a response
    time_limit_s: float = 6.0  # CPU seconds for each test of a problem that names none
