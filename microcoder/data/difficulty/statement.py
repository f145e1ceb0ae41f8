"""What a statement shows without being understood: its length, how it reads, and the words it uses."""

from __future__ import annotations

import math
import re
from collections import Counter

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
    """What varies over orders of magnitude is on a logarithmic scale."""
    prose, samples = _parts(statement)
    words = WORD.findall(prose)
    sentences = max(1, len(SENTENCE_END.findall(prose)))
    count, characters = max(1, len(words)), max(1, len(prose))
    lower = " ".join(prose.lower().split())
    known = set(WORD.findall(lower))
    letters = Counter(prose)  # by character: much faster than one after the other
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
        **{f"words_{name}": float(sum(_occurs(t, lower, known) for t in terms)) for name, terms in GROUPS.items()},
    }


def _occurs(term: str, lower: str, known: set[str]) -> bool:
    return term in known if term.isalpha() else term in lower


def _parts(statement: str) -> tuple[str, str]:
    """(prose, samples with what explains them); the constraints are in neither."""
    found = SAMPLES.search(statement)
    section = statement.rfind("Constraints")
    end = section if section > 0 else len(statement)
    at = min(found.start() if found else end, end)
    return statement[:at], statement[at:end]
