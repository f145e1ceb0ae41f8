"""Ask a language model whether the statement can be understood and nothing is missing; optional.

    unreadable_by_model    it says no, and why

An answer that is not the JSON asked for says nothing about the problem: it is noted, and the problem stays.
"""

from __future__ import annotations

import json
from typing import Any

from ..endpoint import Asks, NoAnswer
from ..record import Dropped, Record

MOST = 20_000  # characters of a statement that are shown
QUESTION = """Below is the statement of a programming problem, between two lines of equals signs. It is to be solved by
someone who sees nothing else: no picture, no link, no earlier problem.

Judge two things only; whether the problem is hard, interesting or elegantly put does not matter.
readable: it is text that makes sense, not garbled, not cut off, not a mixture of several problems.
complete: it says what to calculate, and what input and output look like (or the function's arguments and value).

Answer with one JSON object and nothing else:
{"readable": true or false, "complete": true or false, "reason": "what is wrong, in at most 20 words, or empty"}"""


def readable(record: Record, *, endpoint: Asks) -> Record:
    """Ask about the statement, or raise Dropped. Note: reading ("ok", or "no answer")."""
    problem = record.problem
    line = "=" * 20
    starter = f"\n\nThe answer begins with:\n{problem.starter_code}" if problem.starter_code else ""
    text = f"{QUESTION}\n{line}\n{str(problem.statement)[:MOST]}{starter}\n{line}"
    try:
        answer = _answer(endpoint.ask([{"role": "user", "content": text}], key="reading"))
    except NoAnswer:
        answer = None
    record.notes["reading"] = "ok" if answer is not None else "no answer"
    for what in ("readable", "complete"):
        if answer is not None and answer[what] is False:
            raise Dropped("unreadable_by_model", f"not {what}: {str(answer.get('reason', ''))[:200]}")
    return record


def _answer(text: str) -> dict[str, Any] | None:
    """The JSON object in an answer, whatever stands around it; None unless it says both readable and complete."""
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return None
    said = isinstance(found, dict) and all(isinstance(found.get(what), bool) for what in ("readable", "complete"))
    return found if said else None
