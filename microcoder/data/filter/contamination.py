"""Decontamination: find training problems that overlap with evaluation problems.

`overlap` is the share of a statement's distinct 16-grams of words that occur in one evaluation problem, or the share of
that problem's 16-grams that occur in the statement, whichever is more: the first finds a copy in a short candidate,
the second a short evaluation problem inside a long candidate. 0.22 or more is contaminated, as in the paper.

1. A statement of fewer than 16 words is one gram: it overlaps only with exactly the same words. "Write a function to
   find the sum of squares" inside a longer sentence is another problem.
2. 16-grams that more than `common` evaluation problems share are boilerplate ("the input is given from standard input
   in the following format...") and do not count, on either side.
3. One shared gram may be a common phrase: at least two distinct ones are needed, unless one side has only one gram.
4. The signatures of `duplicates` find what 16-grams cannot: renamed variables, other words, a translation.
5. Evaluation problems are processed like the candidates, so the same 15 of a hundred tests are compared on both sides.

Reasons: `contaminated`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ...schema import Problem
from ..process import process
from ..record import Dropped, Record
from .duplicates import Index, signature
from .forms import words
from .signature import Array, grams

LENGTH = 16


class Overlap(NamedTuple):
    id: str
    overlap: float  # share of 16-grams, or the similarity of the matching part
    by: str  # "16-grams", "exact", "text", "tests" or "solution"


class EvaluationSet:
    """Evaluation problems to compare with: 12 bytes for each 16-gram, 1 KB for each problem. Can be pickled."""

    def __init__(self, grams: Array, owners: Array, sizes: Array, common: Array, index: Index) -> None:
        self._grams, self._owners = grams, owners  # (n,) sorted, and the problem of each
        self._sizes = sizes  # (problems,) number of 16-grams of each
        self._common = common  # 16-grams that do not count
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    @classmethod
    def build(
        cls,
        problems: Iterable[Problem],
        common: int = 10,
        threshold: float = 0.8,
        spread: Callable[..., Iterable[tuple[str, bytes, Array]]] = map,
    ) -> EvaluationSet:
        """Build the set from evaluation problems. `spread` is a `map` that may use several cores."""
        index, every = Index(threshold), []
        for ident, mark, own in spread(_looked_at, problems):
            index.add(ident, mark)
            every.append(own)
        owners = np.repeat(np.arange(len(every), dtype=np.int32), [len(each) for each in every])
        flat = np.concatenate([np.empty(0, np.uint64), *every])
        values, counts = np.unique(flat, return_counts=True)
        boilerplate = values[counts > common]
        kept = ~np.isin(flat, boilerplate)
        flat, owners = flat[kept], owners[kept]
        order = np.argsort(flat, kind="stable")
        sizes = np.bincount(owners, minlength=len(every))
        return cls(flat[order], owners[order], sizes, boilerplate, index)

    def match(self, record: Record, overlap: float = 0.22) -> Overlap | None:
        """Return the evaluation problem with the largest overlap, if it is enough; else its twin among them."""
        return self._overlapping(record.problem, overlap) or self._twin(record)

    def _overlapping(self, problem: Problem, least: float) -> Overlap | None:
        own = _grams(problem)
        own = own[~np.isin(own, self._common)]
        first, last = (np.searchsorted(self._grams, own, side) for side in ("left", "right"))
        found = np.concatenate([self._owners[a:b] for a, b in zip(first, last, strict=True) if a < b] or [own[:0]])
        if not len(found):
            return None
        owners, shared = np.unique(found.astype(np.int64), return_counts=True)
        fewest = np.minimum(self._sizes[owners], len(own))
        share = np.where(shared >= np.minimum(2, fewest), shared / fewest, 0.0)
        best = int(share.argmax())
        if share[best] < least:
            return None
        return Overlap(self._index.ids[owners[best]], round(float(share[best]), 3), "16-grams")

    def _twin(self, record: Record) -> Overlap | None:
        twin = self._index.match(signature(record))
        return Overlap(*twin) if twin else None


def contamination(record: Record, *, evaluation: EvaluationSet, overlap: float = 0.22) -> Record:
    match = evaluation.match(record, overlap)
    if match:
        how = "overlap" if match.by == "16-grams" else f"the same {match.by},"
        raise Dropped("contaminated", f"{how} {match.overlap:.2f} with {match.id}")
    return record


def _looked_at(problem: Problem) -> tuple[str, bytes, Array]:
    problem = _processed(problem)
    return problem.id, signature(Record(problem)), _grams(problem)


def _processed(problem: Problem) -> Problem:
    """Return the problem after `process`; unchanged if it would be dropped."""
    try:
        return process(Record(problem).copy()).problem
    except Dropped:
        return problem


def _grams(problem: Problem) -> Array:
    return grams(words(problem.statement) if isinstance(problem.statement, str) else [], LENGTH)
