"""A problem as 600 bytes that tell it from others: of its text, of its reference solution and of its tests.

Three sketches, because a duplicate seldom keeps only one of the three: a text is reworded or translated, a program
is rewritten, tests are drawn anew. Beside them stands what sketches cannot say: how much there was of each, and the
words and literals in which a text that is otherwise the same would differ (see `twins`).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

import numpy as np

from ...schema import ACCEPTED, Problem, Test
from ..record import Record, expected, usable
from . import text
from .choices import BYTES, choices
from .sketch import Array, grams, leaders, number, sketch

SHINGLE = 5  # words, or tokens of a program
SHORT = 20  # shingles: a text with fewer hardly says more than a name
SIGNATURE = np.dtype([
    ("exact", "<u8"),  # the statement, case, spaces and "^" aside; 0: there is none
    ("program", "<u8"),  # the solution, names aside; 0: there is none
    ("shingles", "<u2"),  # how many different ones the text has
    ("tokens", "<u2"),  # the same of the program
    ("cases", "<u2"),  # how many tests
    ("evidence", "<u2"),  # what they say, in compressed bytes
    ("text", "<u2", (120,)),
    ("code", "<u2", (60,)),
    ("inputs", "<u2", (48,)),
    ("outputs", "u1", (48,)),  # of the input that leads in each slot
    ("versions", "?"),  # the text says that there are several of it
    ("choices", "u1", (BYTES,)),  # see `choices`
    ("literals", "u1", (32,)),  # numbers and quoted strings of the text, each as one bit
])  # fmt: skip
_QUOTED = re.compile(r"""(?<!\w)["']([^\s"'\w]{1,12}|\w{1,12})["']""")
_MOST = 4096  # characters of a test that are weighed: more says no more


def signature(record: Record) -> bytes:
    """Pure, for worker processes. What is not there or cannot be read counts as nothing, and resembles nothing."""
    row = np.zeros((), SIGNATURE)
    _of_text(row, record.problem.statement)
    right = (solution for solution in usable(record.problem) if expected(solution) == ACCEPTED)
    _of_code(row, next(((one["code"], str(one.get("language") or "")) for one in right), None))
    _of_tests(row, record.problem)
    return row.tobytes()


def _of_text(row: Array, statement: object) -> None:
    words = text.blind(statement) if isinstance(statement, str) else []
    if not isinstance(statement, str) or not words:
        return
    shingles, known = grams(words, SHINGLE), set(words)
    folded = " ".join(statement.lower().replace("^", "").split())  # a page may have lost its superscripts
    row["exact"] = number(folded) or 1
    row["shingles"] = min(len(shingles), 65535)
    row["text"] = sketch(shingles, row["text"].size)
    row["versions"] = "both versions" in folded or "two versions" in folded
    row["choices"] = np.frombuffer(choices(known, folded).to_bytes(BYTES, "little"), np.uint8)
    literals = {word for word in known if word.isdigit()}.union(_QUOTED.findall(statement))
    if len(shingles) < SHORT:
        literals |= text.identifiers(statement)
    row["literals"] = _bits(literals, row["literals"].size)


def _of_code(row: Array, solution: tuple[str, str] | None) -> None:
    tokens = text.code(*solution) if solution else []
    if tokens:
        shingles = grams(tokens, SHINGLE)
        row["program"] = number(" ".join(tokens)) or 1
        row["tokens"] = min(len(shingles), 65535)
        row["code"] = sketch(shingles, row["code"].size)


def _of_tests(row: Array, problem: Problem) -> None:
    tests = problem.tests if isinstance(problem.tests, list) else []
    asserts = problem.asserts if isinstance(problem.asserts, list) else []
    readable = Problem(
        "",
        problem.kind,
        tests=[t for t in tests if isinstance(t, Test) and isinstance(t.input, str) and isinstance(t.output, str)],
        asserts=[a for a in asserts if isinstance(a, str)],
    )
    cases = {given: expected for given, expected in text.cases(readable) if given or expected}
    if cases:
        said = "\n".join(sorted(f"{given[:_MOST]} {expected[:_MOST]}" for given, expected in cases.items()))
        row["cases"] = min(len(cases), 65535)
        row["evidence"] = min(len(zlib.compress(said.encode("utf-8", "surrogatepass"), 1)) - 8, 65535)
        row["inputs"], where = leaders(np.array([number(given) for given in cases], np.uint64), row["inputs"].size)
        row["outputs"] = np.array([number(expected) & 0xFF for expected in cases.values()], np.uint8)[where]


def _bits(values: Iterable[str], size: int) -> Array:
    """(size,) bytes with one bit set for each value."""
    bits = np.zeros(8 * size, np.uint8)
    bits[[number(value) % (8 * size) for value in values]] = 1
    return np.packbits(bits)
