"""Exponents that a page lost with its superscripts: "1 <= n <= 105" on LeetCode means 10^5.

Only there, only in the lines of constraints, only where no "^" shows that exponents survived, and only for the powers
that such limits are made of: 10^3 ... 10^9, 10^10, 10^12, 10^15, 10^18, 2^31, 2^63.
"""

from __future__ import annotations

import re

from ..record import Record

_HEADING = re.compile(r"^[\s#*_]{0,8}Constraints\W{0,8}$", re.M | re.I)
_POWER = re.compile(r"(?<![\w.^])(?:(10)([3-9]|10|12|15|18)|(2)(31|63))(?![\w.])")


def restore(record: Record) -> Record:
    problem = record.problem
    headings = list(_HEADING.finditer(problem.statement)) if problem.platform == "leetcode" else []
    if not headings:
        return record
    at = headings[-1].end()
    before, limits = problem.statement[:at], problem.statement[at:]
    if "^" not in limits and "<sup" not in limits:
        lines = [_POWER.sub(_written, line) if "<" in line else line for line in limits.split("\n")]
        if (restored := "\n".join(lines)) != limits:
            problem.statement = before + restored
            record.did("process: exponents restored")
    return record


def _written(match: re.Match[str]) -> str:
    return "^".join(filter(None, match.groups()))
