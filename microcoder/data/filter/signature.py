"""Signatures: 600 bytes for each problem, from its text, reference solution and tests, to find duplicates.

A signature has three sketches, because a duplicate may change one or two of the three: a text is reworded or
translated, a program is rewritten, tests are drawn again. It also has what sketches cannot show: the amount of each,
and the words and literals in which similar texts of different problems differ (`duplicates.twins`).

A sketch is a MinHash: two sketches agree in a slot with a probability equal to the Jaccard similarity of the two sets.
16 bits of each minimum are kept (unrelated sets agree by chance in one slot of 65,536), so 120 slots take 240 bytes.
The hashes are the same in every process and on every machine, unlike Python's own.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...schema import ACCEPTED, Problem, Test
from ..record import Record, expected, usable
from . import forms

Array = npt.NDArray[Any]

_ROUND = 2048  # items hashed at a time, which limits the memory for a huge text
_STEP = np.uint64(0x9E3779B97F4A7C15)
_RANDOM = np.random.default_rng(0)
_FACTORS = _RANDOM.integers(0, 2**63, 128, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS = _RANDOM.integers(0, 2**63, 128, dtype=np.uint64)


def number(text: str) -> int:
    """Return a 64-bit hash of a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def grams(tokens: Sequence[str], n: int) -> Array:
    """Return the distinct n-grams as 64-bit numbers, sorted; fewer than n tokens are one gram."""
    if not tokens:
        return np.empty(0, np.uint64)
    known = {token: zlib.crc32(token.encode("utf-8", "surrogatepass")) for token in set(tokens)}
    values = np.array([known[token] for token in tokens], np.uint64)  # (tokens,)
    total = np.zeros(max(1, len(values) - n + 1), np.uint64)
    for k in range(min(n, len(values))):
        total = (total ^ values[k : k + len(total)]) * _STEP
        total ^= total >> np.uint64(29)
    return np.unique(total)


def sketch(items: Array, slots: int) -> Array:
    """Return the MinHash sketch (slots,) of 16-bit numbers; all zero for an empty set."""
    return leaders(items, slots)[0]


def leaders(items: Array, slots: int) -> tuple[Array, Array]:
    """Return the sketch, and for each of its slots the item with the least hash."""
    best = np.full(slots, np.iinfo(np.uint64).max, np.uint64)
    where = np.zeros(slots, np.int64)
    for start in range(0, len(items), _ROUND):
        mixed = items[start : start + _ROUND, None] * _FACTORS[:slots] + _SHIFTS[:slots]  # (items, slots)
        mixed = (mixed ^ mixed >> np.uint64(31)) * _STEP
        least = mixed.argmin(axis=0)
        value = mixed[least, np.arange(slots)]
        where = np.where(value < best, start + least, where)
        best = np.minimum(value, best)
    return ((best >> np.uint64(7)) * (len(items) > 0)).astype(np.uint16), where


# --- words that differ between problems of one template: minimum or maximum, square or rhombus, easy or hard.
# Two similar texts with different words of one line are two problems.

CHOICES = """
    minimum maximum
    min max
    minimize maximize
    minimal maximal
    smallest largest
    least most
    lowest highest
    shortest longest
    smaller larger bigger
    lower higher upper
    fewer more
    less greater
    sum product difference quotient division
    add subtract multiply divide
    addition subtraction multiplication division
    even odd
    first second third last
    left right
    top bottom
    front back
    start end
    starting ending
    begin end
    before after
    increasing decreasing
    ascending descending
    row column
    rows columns
    horizontal vertical
    clockwise counterclockwise anticlockwise
    prefix suffix substring
    subarray subsequence substring
    inorder preorder postorder
    uppercase lowercase
    positive negative
    profit loss
    push pop
    insert delete
    union intersection
    mean median mode
    binary octal decimal hexadecimal
    celsius fahrenheit
    area perimeter volume circumference diameter
    square rectangle rhombus rombus triangle circle trapezium parallelogram pentagon hexagon octagon
    cube cuboid cone cylinder sphere
    triangular pentagonal hexagonal heptagonal octagonal nonagonal decagonal tetrahedral
    one two three four five six seven eight nine ten
    easy_version simple_version easier_version medium_version hard_version harder_version extreme_version
"""
_LINES = [line.split() for line in CHOICES.strip().splitlines()]
_BIT = {word: n for n, word in enumerate(dict.fromkeys(word for line in _LINES for word in line))}
_MASKS = [sum(1 << _BIT[word] for word in line) for line in _LINES]
_VERSION = re.compile(r"\bthis is (?:an?|the) (\w+ version)\b")
BYTES = 32


def choices(words: Collection[str], text: str) -> int:
    """Return the words of the table that a text uses, as bits; `text`, in lower case, is searched for the version."""
    versions = {version.replace(" ", "_") for version in _VERSION.findall(text)}
    return sum(1 << _BIT[word] for word in _BIT.keys() & {*words, *versions})


def choose_differently(a: int, b: int) -> bool:
    """Whether two texts use different words of one line of the table."""
    return any(a & ~b & mask and b & ~a & mask for mask in _MASKS)


# --- signatures

SHINGLE = 5  # words, or tokens of a program
SHORT = 20  # shingles: a text with fewer says hardly more than a name
SIGNATURE = np.dtype([
    ("exact", "<u8"),  # hash of the statement without case, spaces and "^"; 0: there is none
    ("program", "<u8"),  # hash of the solution without names; 0: there is none
    ("shingles", "<u2"),  # number of different shingles of the text
    ("tokens", "<u2"),  # the same for the program
    ("cases", "<u2"),  # number of tests
    ("evidence", "<u2"),  # their compressed size in bytes
    ("text", "<u2", (120,)),
    ("code", "<u2", (60,)),
    ("inputs", "<u2", (48,)),
    ("outputs", "u1", (48,)),  # output of the input with the least hash in each slot
    ("versions", "?"),  # whether the text says that it has several versions
    ("choices", "u1", (BYTES,)),  # see `choices`
    ("literals", "u1", (32,)),  # numbers and quoted strings of the text, each as one bit
])  # fmt: skip
_QUOTED = re.compile(r"""(?<!\w)["']([^\s"'\w]{1,12}|\w{1,12})["']""")
_MOST = 4096  # most characters of a test that count as evidence


def signature(record: Record) -> bytes:
    """Return the signature of a problem. Missing or unreadable parts are empty, and similar to nothing."""
    row = np.zeros((), SIGNATURE)
    _of_text(row, record.problem.statement)
    right = (solution for solution in usable(record.problem) if expected(solution) == ACCEPTED)
    _of_code(row, next(((one["code"], str(one.get("language") or "")) for one in right), None))
    _of_tests(row, record.problem)
    return row.tobytes()


def _of_text(row: Array, statement: object) -> None:
    words = forms.blind(statement) if isinstance(statement, str) else []
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
        literals |= forms.identifiers(statement)
    row["literals"] = _bits(literals, row["literals"].size)


def _of_code(row: Array, solution: tuple[str, str] | None) -> None:
    tokens = forms.code(*solution) if solution else []
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
    cases = {given: expected for given, expected in forms.cases(readable) if given or expected}
    if cases:
        said = "\n".join(sorted(f"{given[:_MOST]} {expected[:_MOST]}" for given, expected in cases.items()))
        row["cases"] = min(len(cases), 65535)
        row["evidence"] = min(len(zlib.compress(said.encode("utf-8", "surrogatepass"), 1)) - 8, 65535)
        row["inputs"], where = leaders(np.array([number(given) for given in cases], np.uint64), row["inputs"].size)
        row["outputs"] = np.array([number(expected) & 0xFF for expected in cases.values()], np.uint8)[where]


def _bits(values: Iterable[str], size: int) -> Array:
    """Return bytes (size,) with one bit set for each value."""
    bits = np.zeros(8 * size, np.uint8)
    bits[[number(value) % (8 * size) for value in values]] = 1
    return np.packbits(bits)
