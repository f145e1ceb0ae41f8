"""The bounds that a statement declares: `1 <= n <= 2 * 10^5` says more of the wanted algorithm than its story does.

Read are `10^5`, `10^{5}`, `10**5`, `10⁵`, `2 * 10^5` (also with \\cdot or ×), `1e9`, `200,000`, `2^31 - 1`, after a
comparison or in words (`in the range [1, 100]`, `does not exceed`); and `105` for 10^5 where a page lost its
superscripts on the way (as in LeetCodeDataset), if no exponent is written near it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

SIZES = {"n", "m", "q", "t", "k", "rows", "cols", "length", "size", "len"}  # what counts things; the rest are values
DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}")
REWRITE = [  # into one spelling; every repetition is bounded, for statements can be hostile
    (re.compile(r"&lt;|\\lt(?![a-z])"), "<"),
    (re.compile(r"\\le(?:q|qslant)?(?![a-z])|≤|⩽|&le;|< {0,2}=|=<"), "<="),
    (re.compile(r"\\(?:cdot|times)(?![a-z])|[⋅·×∙]"), "*"),
    (re.compile(r"(?<=\d)(?<!\[\d)(?<!\[\d\d)(?:\{,\}|\\,|[,_])(?=\d{3}(?!\d))"), ""),  # 200,000 but not [1,100]
    (re.compile(r"\\(?:text|mathrm|mathit)(?![a-z])|[$`{}]"), ""),
    (re.compile(r"\*\*(?=\d)"), "^"),
]
NUMBER = (
    r"(?:(?P<times>\d{1,6}) ?\* ?)?"
    r"(?:(?P<base>\d{1,3}) ?\^ ?(?P<exponent>\d{1,3})|(?P<plain>\d{1,20})(?:e(?P<zeros>\d{1,2}))?)(?!\w|\.\d)"
)
UPPER = re.compile(
    r"(?:<=?|(?:not|never) exceeds?|at most|up to|no more than|range \[[^,\]\n]{1,12},|between \S{1,12} and) {0,3}"
    rf"{NUMBER}",
    re.IGNORECASE,
)
NAME = re.compile(r"([a-z_][\w.\[\]|]*) *(?:do |does )?$", re.IGNORECASE)
BEFORE = 60  # characters before a bound that are looked at for what it bounds
BELOW_ZERO = re.compile(r"(?:^|[\n(,;:] ?| )[-−]\d[^<\n]{0,12}<")  # a sign, not the minus of `n - 1 <= 5`
LOST = re.compile(r"10([2-9]|1[0-8])")  # 10^2 ... 10^18 without their superscript; 100 and 1000 are themselves
LOST_TWO = {"231": 31, "232": 32, "263": 63, "264": 64}


class Bound(NamedTuple):
    name: str  # what is bounded: "n", "nums.length", "nums[i]", or nothing
    log10: float
    size: bool  # it bounds how many, not how large


def bounds(statement: str) -> list[Bound]:
    """The upper bounds in the order of the text: of the section of constraints, or of all of it where there is none."""
    text = plain(statement)
    section = text.rfind("Constraints")
    return (_bounds(text[section:]) if section >= 0 else []) or _bounds(text)


def below_zero(statement: str) -> bool:
    """Does a lower bound below zero occur?"""
    return BELOW_ZERO.search(plain(statement)) is not None


@lru_cache(maxsize=1)  # both ask for the same text
def plain(statement: str) -> str:
    """The comparisons and numbers in one spelling."""
    text = SUPERSCRIPT.sub(lambda found: "^" + found[0].translate(DIGITS), statement.replace("\xa0", " "))
    for pattern, by in REWRITE:
        text = pattern.sub(by, text)
    return text


def _bounds(text: str) -> list[Bound]:
    lost, found = "^" not in text, []
    for match in UPPER.finditer(text):
        value = _log10(match, lost)
        if value is not None:
            before = text[max(0, match.start() - BEFORE) : match.start()].rpartition("\n")[2]
            named = NAME.search(before)
            name = named[1] if named else ""
            size = name.rpartition(".")[2].strip("|").lower() in SIZES or "number of" in before
            found.append(Bound(name, value, size))
    return found


def _log10(match: re.Match[str], lost: bool) -> float | None:
    """None for 0, which bounds nothing from above that could be large."""
    digits, factor = match["plain"], math.log10(max(1, int(match["times"] or 1)))
    if digits is None:
        base, exponent = int(match["base"]), int(match["exponent"])
    elif lost and (gone := LOST.fullmatch(digits)):
        base, exponent = 10, int(gone[1])
    elif lost and digits in LOST_TWO:
        base, exponent = 2, LOST_TWO[digits]
    else:
        base, exponent = int(digits), 1
        factor += int(match["zeros"] or 0)
    return factor + exponent * math.log10(base) if base > 0 else None
