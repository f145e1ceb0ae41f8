"""Verify: judge solutions and mutants of each problem, to know that its tests are right and strong.

    with Judge() as judge:
        for result in verify(records, judge):
            ...  # a Record that stays, or (record, Dropped)

    agreement     expected outputs by vote, where a problem has none
    references    right solutions accepted every time, wrong ones rejected, time limits plausible
    strength      mutants of the reference rejected
    readability   a language model can read the statement, where an endpoint is given

Each record has a thread of its own, many at a time, so that the judge's workers never wait; results come in the order
of the records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from ...judge import JudgeError
from ...judge.base import Judging
from ..endpoint import Asks
from ..record import DataError, Dropped, Record
from .agreement import Recorders, agreement
from .programs import DEFAULTS, Options
from .readability import readable
from .references import references
from .strength import strength

__all__ = ["Options", "agreement", "readable", "references", "strength", "verify"]
Result = Record | tuple[Record, Dropped]


def verify(
    records: Iterable[Record], judge: Judging, *, options: Options = DEFAULTS, endpoint: Asks | None = None
) -> Iterator[Result]:
    """Yield each record in order: kept, or with the reason why not. A fault in this code is a drop called `failed`."""
    window = options.window or 4 * judge.workers
    recorders = Recorders(judge.sandbox)
    pool = ThreadPoolExecutor(window, thread_name_prefix="verify")
    waiting: deque[Future[Result]] = deque()
    try:
        for record in records:
            waiting.append(pool.submit(_verified, record, judge, recorders, options, endpoint))
            if len(waiting) >= 2 * window:  # those that are done wait here for a slow one before them
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        recorders.close()


def _verified(record: Record, judge: Judging, recorders: Recorders, options: Options, endpoint: Asks | None) -> Result:
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
    except (JudgeError, DataError, CancelledError):  # no record's doing: nothing can go on
        raise
    except Exception as error:
        return record, Dropped("failed", f"{type(error).__name__}: {error}")
