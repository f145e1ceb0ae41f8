"""What the workload knows of one benchmark problem: how to make its inputs, and programs that are right or wrong.

The last input that `inputs` makes is special: it is the only one on which a `late` program fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Spec:
    """One problem. For `stdin` a program is a body that defines solve(lines) -> lines; the workload adds the reading
    and the printing in the many ways people do. For `function` it is the whole program."""

    id: str
    kind: str  # "stdin" or "function"
    statement: str
    inputs: Callable[[random.Random, int], list[str]]  # (rng, number of tests) -> inputs, easiest checks first
    right: list[str]
    early: list[str]  # wrong on the first tests
    late: list[str]  # wrong on the last test only
    entry_point: str = ""
    late_kind: str = "wrong_answer"
    heavy: bool = False  # hundreds of kilobytes to megabytes of output
    also_right: list[str] = field(default_factory=list)  # right, and printed or returned in another permitted form
