"""Everything about verifying that can be set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    solutions: int = 8  # at most so many right ones are run, and as many wrong ones
    runs: int = 2  # of each right one
    chance_runs: int = 6  # of a right one that mentions a source of chance
    patience_s: float = 10.0  # CPU seconds that a right one may take for a test
    agree: float = 2 / 3  # the share of solutions that must agree where there is no expected output
    mutants: int = 24  # at most; 0: strength is not measured
    alive: float = 0.35  # the share of mutants that may be accepted
    least: int = 6  # with fewer mutants nothing is said
    mutants_s: float = 60.0  # CPU seconds for a problem's mutants; where the reference is slow there are fewer of them
    window: int = 0  # records in work at a time; 0: four for each worker of the judge


DEFAULTS = Options()
