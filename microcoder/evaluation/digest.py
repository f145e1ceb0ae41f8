"""A problem in 64 hex digits, and a suite: they change with anything that a prompt or a verdict depends on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable

from ..schema import Problem


def problem_digest(problem: Problem) -> str:
    """Tests go in one after the other, each with its length before it: they may be large, and must not run together."""
    rules = (problem.setup, problem.time_limit_s, problem.memory_mb, dataclasses.asdict(problem.compare))
    asked = (problem.id, problem.kind, problem.statement, problem.starter_code, problem.entry_point, problem.asserts)
    hasher = hashlib.sha256(json.dumps([asked, rules]).encode())
    for text in (text for test in problem.tests for text in (test.input, test.output)):
        data = text.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.hexdigest()


def suite_digest(problems: Iterable[str]) -> str:
    """Of its problems' digests, in order."""
    return hashlib.sha256(" ".join(problems).encode()).hexdigest()
