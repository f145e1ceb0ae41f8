"""Features of a statement's text: length, style, vocabulary, and the bounds of its constraints.

`1 <= n <= 2 * 10^5` says more about the needed algorithm than the story does. These forms are read: `10^5`, `10^{5}`,
`10**5`, `10⁵`, `2 * 10^5` (also with \\cdot or ×), `1e9`, `200,000`, `2^31 - 1`, after a comparison or in words (`does
not exceed`, `in the range [1, 100]`); and `105` for 10^5 if a page lost its superscripts (as in LeetCodeDataset) and no
exponent is near it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

WORD = re.compile(r"[A-Za-z]+")
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
NAME = re.compile(r"\w\[|[a-z][A-Z]")  # nums[i], maxCost
SAMPLES = re.compile(r"\n\W{0,20}(?:Example|Sample)|Example 1")
SIGNS = frozenset("<>=+*/^[](){}$\\|")
VOCABULARY = {  # the value of a group is how many of its terms occur
    "graph": "graph|edge|edges|vertex|vertices|node|nodes|neighbors|connected|directed|undirected|cycle|component",
    "tree": "tree|root|subtree|ancestor|leaf|parent|child|descendant|lca",
    "path": "path|shortest path|distance|reach|route|travel|maze",
    "grid": "grid|matrix|cell|cells|board|row|column|adjacent",
    "text": "string|character|characters|letter|letters|word|words|lowercase|vowel",
    "substring": "substring|prefix|suffix|palindrome|palindromic|anagram|concatenation",
    "subsequence": "subsequence|subsequences|subset|subsets|permutation|permutations",
    "subarray": "subarray|contiguous|window|consecutive|segment",
    "ways": "number of ways|different ways|count the number|how many|total number of|distinct",
    "modulo": "modulo|10^9 + 7|10^9+7|109 + 7|1e9 + 7|10^{9} + 7|998244353|1000000007|very large",
    "extreme": "minimum|maximum|largest|smallest|longest|shortest|optimal|maximize|minimize",
    "possible": "minimum possible|maximum possible|as large as possible|as small as possible|if it is impossible",
    "queries": "query|queries|online|update|updates|range|operations",
    "game": "alice|bob|optimally|player|players|turns|winner|game",
    "chance": "probability|expected|random|randomly|uniformly",
    "bits": "xor|bitwise|bit|bits|binary|bitmask|mask",
    "numbers": "prime|gcd|divisor|divisible|factor|factorial|multiple|digits|digit|sum of",
    "geometry": "rectangle|point|points|coordinates|circle|polygon|area|plane|angle|euclidean",
    "order": "sorted|non-decreasing|increasing|decreasing|median|kth|lexicographically|rank|order",
    "intervals": "interval|intervals|schedule|meeting|overlap|time|start|end|deadline",
    "design": "design|implement|class|initializes|called|calls|data structure|iterator|cache",
    "linked": "linked list|head|listnode|pointer",
    "syntax": "expression|parentheses|parse|valid|encoded|bracket|evaluate|operator|format",
    "steps": "following steps|repeat|each step|operation|move|moves|process|simulate|round|rounds",
    "cost": "cost|price|profit|budget|weight|capacity|score|energy",
    "complexity": "time complexity|extra space|o(n)|o(1)|o(log|in-place|without using|constant",
    "simple": "return true|return the sum|given an integer|given two|given a string|convert|check if|count of",
}
GROUPS = {name: terms.split("|") for name, terms in VOCABULARY.items()}


def statement_features(statement: str) -> dict[str, float]:
    """Return length, style and vocabulary of the prose. Values over several orders of magnitude are logarithms."""
    prose, samples = _parts(statement)
    words = WORD.findall(prose)
    sentences = max(1, len(SENTENCE_END.findall(prose)))
    count, characters = max(1, len(words)), max(1, len(prose))
    lower = " ".join(prose.lower().split())
    known = set(WORD.findall(lower))
    letters = Counter(prose)  # counts of characters: much faster than a loop
    return {
        "statement_missing": float(not words),
        "statement_words": math.log1p(len(words)),
        "statement_lines": math.log1p(prose.count("\n")),
        "statement_sentence_words": min(100.0, len(words) / sentences),
        "statement_word_letters": sum(map(len, words)) / count,
        "statement_long_words": sum(len(word) > 7 for word in words) / count,
        "statement_different_words": len(known) / count,
        "statement_signs": sum(letters[c] for c in SIGNS) / characters,
        "statement_digits": sum(count for c, count in letters.items() if c.isdigit()) / characters,
        "statement_names": math.log1p(len(NAME.findall(prose))),
        "samples": float(min(10, samples.lower().count("output"))),
        "samples_characters": math.log1p(len(samples)),
        **{
            f"words_{name}": float(sum(term in (known if term.isalpha() else lower) for term in terms))
            for name, terms in GROUPS.items()
        },
    }


def _parts(statement: str) -> tuple[str, str]:
    """Split into (prose, samples with their explanations); the constraints are in neither."""
    found = SAMPLES.search(statement)
    section = statement.rfind("Constraints")
    end = section if section > 0 else len(statement)
    at = min(found.start() if found else end, end)
    return statement[:at], statement[at:end]


# --- bounds


SIZES = {"n", "m", "q", "t", "k", "rows", "cols", "length", "size", "len"}  # names of counts; other names are values
DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}")
REWRITE = [  # into one spelling; every repetition is bounded, since statements can be hostile
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
BOUNDED = re.compile(r"([a-z_][\w.\[\]|]*) *(?:do |does )?$", re.IGNORECASE)
BEFORE = 60  # characters before a bound that are searched for its name
BELOW_ZERO = re.compile(r"(?:^|[\n(,;:] ?| )[-−]\d[^<\n]{0,12}<")  # a sign, not the minus of `n - 1 <= 5`
LOST = re.compile(r"10([2-9]|1[0-8])")  # 10^2 ... 10^18 without superscript; 100 and 1000 are plain numbers
LOST_TWO = {"231": 31, "232": 32, "263": 63, "264": 64}


class Bound(NamedTuple):
    """An upper bound in a statement."""

    name: str  # the bounded name: "n", "nums.length", "nums[i]", or ""
    log10: float
    size: bool  # whether it bounds a count, not a value


def bounds(statement: str) -> list[Bound]:
    """Return the upper bounds in the order of the text: of the section of constraints, or of all text without one."""
    text = plain(statement)
    section = text.rfind("Constraints")
    return (_bounds(text[section:]) if section >= 0 else []) or _bounds(text)


def below_zero(statement: str) -> bool:
    """Whether there is a lower bound below zero."""
    return BELOW_ZERO.search(plain(statement)) is not None


@lru_cache(maxsize=1)  # both functions use the same text
def plain(statement: str) -> str:
    """Write comparisons and numbers in one spelling."""
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
            named = BOUNDED.search(before)
            name = named[1] if named else ""
            size = name.rpartition(".")[2].strip("|").lower() in SIZES or "number of" in before
            found.append(Bound(name, value, size))
    return found


def _log10(match: re.Match[str], lost: bool) -> float | None:
    """Return the base-10 logarithm of a bound; None for 0."""
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
