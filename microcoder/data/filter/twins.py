"""When are two signatures those of one problem? Similarity alone does not say: templates breed look-alikes.

"Perimeter of a square" and "perimeter of a rhombus" share text, solution and tests; the easy and the hard version of a
contest problem differ in one number; problems whose tests are `1 -> 1` are legion. So every rule asks for enough
evidence, and three things speak against: tests that give the same input another output, a choice that similar texts
make differently (`choices`), and, where the text is all there is, literals that each has and the other has not.

    exact      the statement is the same, letter for letter
    text       as alike as `threshold`; or one contains the other and little more (an appended line)
    tests      they agree, and say enough (compressed bytes), or the solutions are alike too. More is asked for between
               short texts that are half alike, as a template breeds them, and less between long ones
    solution   the same program, names aside: long enough to be no coincidence, or else with tests or text to match

The numbers were settled on the pairs, looked at one by one, of 3,601 problems of five public data sets.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .choices import choose_differently
from .signature import SHORT
from .sketch import Array

By = Literal["exact", "text", "tests", "solution"]


class Likeness(NamedTuple):
    """How alike two signatures are, part by part: estimated Jaccard similarities, from 0 to 1."""

    text: float
    code: float
    inputs: float
    cases: float  # inputs with their outputs


def likeness(one: Array, many: Array) -> Array:
    """(many, 4) of one signature to each of many, in the order of Likeness."""
    text = (one["text"] == many["text"]).mean(axis=1) * ((many["shingles"] > 0) & (one["shingles"] > 0))  # (many,)
    code = (one["code"] == many["code"]).mean(axis=1) * ((many["tokens"] > 0) & (one["tokens"] > 0))
    shared = (one["inputs"] == many["inputs"]) & ((many["cases"] > 0) & (one["cases"] > 0))[:, None]  # (many, slots)
    agreed = shared & (one["outputs"] == many["outputs"])
    return np.stack([text, code, shared.mean(axis=1), agreed.mean(axis=1)], axis=1)


def twins(a: Array, b: Array, like: Likeness, threshold: float = 0.8) -> tuple[By, float] | None:
    """By what they are one problem, and how alike they are in it; None where they are two, or it cannot be told."""
    shingles, tokens, evidence = (min(int(a[name]), int(b[name])) for name in ("shingles", "tokens", "evidence"))
    if a["exact"] == b["exact"] != 0 and (shingles >= 4 or like.cases >= 0.5):
        return "exact", 1.0
    if like.cases < 0.7 * like.inputs:  # the same input, another output
        return None
    worded_alike = like.text >= 0.15 or shingles < 40  # long texts of other wording make other choices by chance
    if worded_alike and choose_differently(*(_number(row["choices"]) for row in (a, b))):
        return None
    if _same_text(a, b, like, threshold):
        return "text", like.text
    same_program = bool(a["program"] == b["program"] != 0)
    alike = same_program or (like.code >= 0.9 and tokens >= 24)
    if like.cases >= 0.8:
        if evidence >= _enough(like.text, shingles) or alike or (like.code >= 0.75 and tokens >= 32):
            return "tests", like.cases
    if (same_program and tokens >= 56) or (alike and tokens >= 9 and (like.cases >= 0.3 or like.text >= 0.35)):
        return "solution", 1.0 if same_program else like.code
    return None


def _same_text(a: Array, b: Array, like: Likeness, threshold: float) -> bool:
    small, large = sorted((int(a["shingles"]), int(b["shingles"])))
    if small < 6 or (a["versions"] and b["versions"] and like.cases < 0.5):
        return False
    x, y = (_number(row["literals"]) for row in (a, b))
    if x & ~y and y & ~x:
        return False
    contained = like.text * (small + large) / (1 + like.text) / small  # the share of the smaller one's shingles
    return (small >= SHORT and like.text >= threshold) or (contained >= 0.95 and like.text >= threshold - 0.15)


def _enough(text: float, shingles: int) -> int:
    """How many bytes tests have to say."""
    if shingles >= 60:
        return 8 if text >= 0.2 else 24
    return 64 if 0.3 <= text <= 0.65 else 24


def _number(bits: Array) -> int:
    return int.from_bytes(bits.tobytes(), "little")
