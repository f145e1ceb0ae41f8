"""When are two signatures those of one problem? Similarity alone does not say: templates breed look-alikes.

"Perimeter of a square" and "perimeter of a rhombus" share text, solution and tests; the easy and the hard version of a
contest problem differ in one number; problems whose tests are `1 -> 1` are legion. So every rule asks for enough
evidence, and three things speak against: tests that give the same input another output, a choice that the texts make
differently (minimum or maximum: CHOICES), and, where the text is all there is, literals that only one has on either side.

    exact      the statement is the same, letter for letter
    text       as alike as `threshold`; or one contains the other and little more (an appended line)
    tests      they agree, and say enough: the less the texts share, the less is needed, for similar texts with the same
               few tests are what a template breeds
    solution   the same program, names aside: long enough to be no coincidence, or short with tests or text to match
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .signature import MASKS, SHORT
from .sketch import Array

By = Literal["exact", "text", "tests", "solution"]


class Likeness(NamedTuple):
    """How alike signatures are, part by part: estimated Jaccard similarities, from 0 to 1."""

    text: float
    code: float
    inputs: float
    cases: float  # inputs and outputs


def likeness(one: Array, many: Array) -> Array:
    """(many, 4) of one signature to each of many, in the order of Likeness."""
    text = (one["text"] == many["text"]).mean(axis=1) * (many["shingles"] > 0) * (one["shingles"] > 0)  # (many,)
    code = (one["code"] == many["code"]).mean(axis=1) * (many["tokens"] > 0) * (one["tokens"] > 0)
    shared = (one["inputs"] == many["inputs"]) & ((many["cases"] > 0) & (one["cases"] > 0))[:, None]  # (many, slots)
    agreed = shared & (one["outputs"] == many["outputs"])
    return np.stack([text, code, shared.mean(axis=1), agreed.mean(axis=1)], axis=1)


def twins(a: Array, b: Array, like: Likeness, threshold: float = 0.8) -> tuple[By, float] | None:
    """By what they are one problem, and how alike they are in it; None where they are two, or it cannot be told."""
    same_program = bool(a["program"] == b["program"] != 0)
    same_statement = bool(a["exact"] == b["exact"] != 0)
    shingles, tokens, evidence = (min(int(a[name]), int(b[name])) for name in ("shingles", "tokens", "evidence"))
    if same_statement and (shingles >= 4 or like.cases >= 0.5):
        return "exact", 1.0
    template = like.text >= 0.15 or shingles < 40  # long texts of other wording make different choices by chance
    if like.cases < 0.7 * like.inputs or template and choose_differently(a, b):
        return None
    if same_text(a, b, like, threshold):
        return "text", like.text
    alike = same_program or like.code >= 0.9 and tokens >= 24
    long, bred = shingles >= 60, 0.3 <= like.text <= 0.65  # a short text with another word in it: bred by a template
    enough = 8 if long and like.text >= 0.5 else 64 if bred and not long else 24
    if like.cases >= 0.8 and (evidence >= enough or alike or like.code >= 0.75 and tokens >= 32):
        return "tests", like.cases
    if same_program and tokens >= 56 or alike and tokens >= 9 and (like.cases >= 0.3 or like.text >= 0.35):
        return "solution", 1.0 if same_program else like.code
    return None


def same_text(a: Array, b: Array, like: Likeness, threshold: float) -> bool:
    sizes = sorted((int(a["shingles"]), int(b["shingles"])))
    several = a["versions"] and b["versions"] and like.cases < 0.5
    if sizes[0] < 6 or several or differ(a, b, "literals"):
        return False
    contained = like.text * sum(sizes) / (1 + like.text) / sizes[0]  # the share of the smaller one
    return sizes[0] >= SHORT and like.text >= threshold or contained >= 0.95 and like.text >= threshold - 0.15


def choose_differently(a: Array, b: Array) -> bool:
    only_a, only_b = _only(a, b, "choices")
    return any(only_a & mask and only_b & mask for mask in MASKS)


def differ(a: Array, b: Array, name: str) -> bool:
    """Each has bits that the other has not."""
    return all(_only(a, b, name))


def _only(a: Array, b: Array, name: str) -> tuple[int, int]:
    x, y = (int.from_bytes(np.asarray(row[name]).tobytes(), "little") for row in (a, b))
    return x & ~y, y & ~x
