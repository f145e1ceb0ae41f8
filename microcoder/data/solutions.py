"""Which of a problem's solutions can be run, and what each should get. The one place that says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..schema import ACCEPTED, VERDICTS, Problem


def references(problem: Problem) -> list[str]:
    """The Python programs that are not known to be wrong."""
    return [solution["code"] for solution in usable(problem) if expected(solution) == ACCEPTED and is_python(solution)]


def usable(problem: Problem) -> Iterator[dict[str, Any]]:
    """Those that have code, in any language. Foreign data may hold anything here, and then has none."""
    for solution in problem.solutions if isinstance(problem.solutions, list) else []:
        if isinstance(solution, dict) and isinstance(solution.get("code"), str) and solution["code"].strip():
            yield solution


def expected(solution: dict[str, Any]) -> str:
    """The verdict that it should get; accepted where none is given, nothing where it is none that a judge gives."""
    verdict = str(solution.get("verdict") or ACCEPTED).strip().lower()
    return verdict if verdict in VERDICTS and verdict != "internal_error" else ""


def is_python(solution: dict[str, Any]) -> bool:
    """Python 3, as far as the name tells: "", "python", "Python 3.11", "py3", "PyPy 3-64"; not "python2"."""
    name = str(solution.get("language") or "python").lower()
    digits = [character for character in name if character.isdigit()]
    return name.startswith("py") and digits[:1] != ["2"]
