"""The starter problems: an endless supply of small problems with tests, generated from a seed, no data needed.

    from microcoder.starter import problems, corpus

    train = problems("train", 1000)       # Problems with tests, a reference and wrong solutions
    for problem, text in corpus(50_000):  # answers with mistakes, to train a small model on first

A problem is one to six operations in a row (`tables/`), and its depth is its difficulty.
"""

from .drafts import DEPTHS, Draft, OperationError, draw, operations, split_of
from .generate import StarterError, answer, corpus, habits, problems

__all__ = [
    "DEPTHS",
    "Draft",
    "OperationError",
    "StarterError",
    "answer",
    "corpus",
    "draw",
    "habits",
    "operations",
    "problems",
    "split_of",
]
