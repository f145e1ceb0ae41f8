"""Verify: judge solutions and mutants of each problem, to check that its tests are right and strong.

    with Judge() as judge:
        for result in verify(records, judge):
            ...  # a Record that stays, or (record, Dropped)

    agreement     expected outputs by vote, if a problem has none
    references    right solutions accepted every time, wrong ones rejected, time limits plausible
    strength      mutants of the reference rejected
    readable      a language model can read the statement, if an endpoint is given

Each record has its own thread, many at a time, so that the judge's workers never wait. Results come in the order of the
records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

from ...judge import JudgeError
from ...judge.base import Judging
from ..endpoint import Asks, NoAnswer
from ..record import DataError, Dropped, Idle, Record, in_order
from .agreement import AnswerRecorder, agreement
from .programs import DEFAULTS, Options
from .references import references
from .strength import strength

__all__ = ["Options", "agreement", "readable", "references", "strength", "verify"]
Result = Record | tuple[Record, Dropped]


MOST = 20_000  # characters of a statement that are shown
QUESTION = """Below is the statement of a programming problem, between two lines of equals signs. It is to be solved by
someone who sees nothing else: no picture, no link, no earlier problem.

Judge two things only; whether the problem is hard, interesting or elegantly put does not matter.
readable: it is text that makes sense, not garbled, not cut off, not a mixture of several problems.
complete: it says what to calculate, and what input and output look like (or the function's arguments and value).

Answer with one JSON object and nothing else:
{"readable": true or false, "complete": true or false, "reason": "what is wrong, in at most 20 words, or empty"}"""


def verify(
    records: Iterable[Record], judge: Judging, *, options: Options = DEFAULTS, endpoint: Asks | None = None
) -> Iterator[Result]:
    """Yield each record in order: kept, or with the reason of its drop. An error in our code is a drop `failed`."""
    window = options.window or 4 * judge.workers
    recorders = Idle(partial(AnswerRecorder, judge.sandbox))
    work = partial(_verified, judge=judge, recorders=recorders, options=options, endpoint=endpoint)
    try:
        yield from in_order(records, work, window)
    finally:
        recorders.close()


def _verified(
    record: Record, *, judge: Judging, recorders: Idle[AnswerRecorder], options: Options, endpoint: Asks | None
) -> Result:
    try:
        with recorders.one() as recorder:
            agreement(record, recorder=recorder, options=options)
        references(record, judge=judge, options=options)
        if options.mutants:
            strength(record, judge=judge, options=options)
        if endpoint is not None:
            readable(record, endpoint=endpoint)
        return record
    except Dropped as loss:
        return record, loss
    except (JudgeError, DataError, CancelledError):  # not the fault of a record: the run ends
        raise
    except Exception as error:
        return record, Dropped("failed", f"{type(error).__name__}: {error}")


def readable(record: Record, *, endpoint: Asks) -> Record:
    """Ask a language model whether the statement is readable; else raise Dropped. Note: reading ("ok", "no answer")."""
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
    """Return the JSON object in an answer, with any text around it; None unless it has both readable and complete."""
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return None
    said = isinstance(found, dict) and all(isinstance(found.get(what), bool) for what in ("readable", "complete"))
    return found if said else None
