"""A problem as 600 bytes that can tell it from every other: of its text, of its reference solution and of its tests.

Three sketches, because a duplicate seldom keeps only one of the three: a text is reworded or translated, a program
is rewritten, tests are drawn anew. Beside them stands what sketches cannot say: how much there was of each, and which
words and literals a text that is otherwise the same would differ in (see `twins`).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

import numpy as np

from ...schema import Problem, Test
from ..record import Record
from . import text
from .sketch import Array, grams, leaders, number, sketch

TEXT, CODE, TESTS = 120, 60, 48  # slots
SHINGLE = 5  # words, or tokens of a program
SHORT = 20  # shingles
LITERAL_BITS = 256
SIGNATURE = np.dtype([
    ("exact", "<u8"),  # the statement, spaces and case aside
    ("program", "<u8"),  # the solution, names aside; 0: there is none
    ("shingles", "<u2"),  # how many different ones the text has
    ("tokens", "<u2"),  # the same of the program
    ("cases", "<u2"),  # how many tests
    ("evidence", "<u2"),  # what they say, in compressed bytes
    ("text", "<u2", (TEXT,)),
    ("code", "<u2", (CODE,)),
    ("inputs", "<u2", (TESTS,)),
    ("outputs", "u1", (TESTS,)),  # of the input that leads in each slot
    ("versions", "?"),  # the text says that there are several of it
    ("choices", "u1", (32,)),  # the words of CHOICES that the text has
    ("literals", "u1", (LITERAL_BITS // 8,)),  # its numbers and quoted strings
])  # fmt: skip

# Of each line, two different problems may name one word each where they otherwise say the same.
CHOICES = tuple(
    tuple(line.split())
    for line in """
    minimum maximum
    min max
    minimize maximize
    minimal maximal
    smallest largest
    least most
    lowest highest
    shortest longest
    smaller larger bigger
    lower higher
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
    increasing decreasing
    ascending descending
    row column
    rows columns
    prefix suffix substring
    horizontal vertical
    inorder preorder postorder
    uppercase lowercase
    upper lower
    positive negative
    profit loss
    clockwise counterclockwise anticlockwise
    before after
    subarray subsequence substring
    union intersection
    mean median mode
    area perimeter volume circumference diameter
    square rectangle rhombus rombus triangle circle trapezium parallelogram pentagon hexagon octagon
    cube cuboid cone cylinder sphere
    triangular pentagonal hexagonal heptagonal octagonal nonagonal decagonal tetrahedral
    binary octal decimal hexadecimal
    one two three four five six seven eight nine ten
    celsius fahrenheit
    push pop
    insert delete
    easy_version simple_version easier_version medium_version hard_version harder_version extreme_version
    """.strip().splitlines()
)
_BIT = {word: n for n, word in enumerate(dict.fromkeys(word for line in CHOICES for word in line))}
MASKS = tuple(sum(1 << _BIT[word] for word in line) for line in CHOICES)
_QUOTED = re.compile(r"""(?<!\w)["']([^\s"'\w]{1,12}|\w{1,12})["']""")
_VERSION = re.compile(r"\bthis is (?:an?|the) (\w+ version)\b")
_MOST = 4096  # characters of a test that are weighed: more says no more


def signature(record: Record) -> bytes:
    """Pure, for worker processes. What is not there or cannot be read counts as nothing, and resembles nothing."""
    problem = record.problem
    row = np.zeros((), SIGNATURE)
    _of_text(row, problem.statement if isinstance(problem.statement, str) else "")
    _of_code(row, problem)
    _of_tests(row, problem)
    return row.tobytes()


def _of_text(row: Array, statement: str) -> None:
    words = text.blind(statement)
    if not words:
        return
    shingles, known = grams(words, SHINGLE), set(words)
    folded = " ".join(statement.lower().split())
    row["exact"] = number(folded) or 1
    row["versions"] = "both versions" in folded or "two versions" in folded
    row["shingles"] = min(len(shingles), 65535)
    row["text"] = sketch(shingles, TEXT)
    versions = {version.replace(" ", "_") for version in _VERSION.findall(folded)}
    row["choices"] = _bits((_BIT[word] for word in _BIT.keys() & (known | versions)), row["choices"])
    literals = {word for word in known if word.isdigit()}.union(_QUOTED.findall(statement))
    if len(shingles) < SHORT:  # hardly more than a name: "decodes what f encoded"
        literals |= text.identifiers(statement)
    row["literals"] = _bits((number(literal) % LITERAL_BITS for literal in literals), row["literals"])


def _of_code(row: Array, problem: Problem) -> None:
    solution = reference(problem)
    tokens = text.code(*solution) if solution else []
    if tokens:
        shingles = grams(tokens, SHINGLE)
        row["program"] = number(" ".join(tokens)) or 1
        row["tokens"] = min(len(shingles), 65535)
        row["code"] = sketch(shingles, CODE)


def reference(problem: Problem) -> tuple[str, str] | None:
    """(code, language) of the first solution that is not known to be wrong."""
    for solution in problem.solutions if isinstance(problem.solutions, list) else []:
        if isinstance(solution, dict) and solution.get("verdict", "") in ("", "accepted"):
            code, language = solution.get("code"), solution.get("language", "")
            if isinstance(code, str) and isinstance(language, str) and code.strip():
                return code, language
    return None


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
        inputs = np.array([number(given) for given in cases], np.uint64)
        answers = np.array([number(expected) & 0xFF for expected in cases.values()], np.uint8)
        row["cases"] = min(len(cases), 65535)
        row["evidence"] = min(len(zlib.compress(said.encode("utf-8", "surrogatepass"), 1)) - 8, 65535)
        row["inputs"], where = leaders(inputs, TESTS)
        row["outputs"] = answers[where]


def _bits(which: Iterable[int], like: Array) -> Array:
    value = 0
    for bit in which:
        value |= 1 << bit
    return np.frombuffer(value.to_bytes(like.size, "little"), np.uint8)
