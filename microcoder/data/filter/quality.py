"""Filter by text quality: the quality of a statement is the worst of its signals.

Each signal is a number with two limits: it is fine (1) from the first limit on, useless (0) at the second, and in
proportion between them. notes["quality"] is the least of all, and a record is dropped unless it is above `least`. The
signals measure prose, the lines with words: samples, grids and formulas have no style. Signals about English words are
measured on English texts only.

Reasons: `low_quality` (the signal, its value, its limit), `malformed` (the statement is no text).
"""

from __future__ import annotations

import re
from collections import Counter

from ..record import Dropped, Record
from .forms import statement, words

# signal: (fine from here on, useless from here on). None of 3,601 statements of five public data sets is useless by
# these; two of them are placeholders.
LIMITS = {
    "few words": (8, 2),
    "many words": (4000, 20000),
    "letters": (0.6, 0.3),  # share of letters among the characters of prose
    "function words": (0.15, 0.05),  # the, of, is: every English text has them
    "words with vowels": (0.7, 0.4),
    "short words": (3.0, 2.2),  # mean length
    "long words": (8.0, 12.0),
    "long sentences": (60.0, 200.0),  # mean words
    "repeated lines": (0.4, 0.7),
    "repeated phrases": (0.45, 0.7),  # of five words
    "one phrase again and again": (15, 30),  # repetitions; a description of single steps has up to 13
    "odd characters": (0.05, 0.2),  # neither letter, digit, punctuation nor mathematics
    "mojibake": (0.0, 0.05),  # per word
    "unbalanced brackets": (0.15, 0.5),  # per word; a code fence that is never closed counts as ten
    "markup": (0.3, 1.0),  # HTML tags per word
}
_FUNCTION_WORDS = frozenset(
    """a all an and are as at be by can each find for from given has have if in is it not of on one or return that the
    there this to two which with write you your""".split()
)
_PLACEHOLDER = re.compile(
    r"\b(?:description|statement|translation) (?:is |was )?(?:not (?:yet )?available|unavailable)\b|\blorem ipsum\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?:;。！？\n]+")
_VOWEL = re.compile(r"[aeiouy]")
_MOJIBAKE = re.compile("\ufffd|Ã[\u0080-¿]|Â[\u0080-¿]|â€|ï¿½|Ð[\u0080-¿]Ñ|å[\u0080-¿][\u0080-¿]")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,10}(?: [^<>]{0,200})?/?>")


def quality(record: Record, *, least: float = 0.0) -> Record:
    text = statement(record)
    if len(text) < 1000 and (found := _PLACEHOLDER.search(text)):
        raise Dropped("low_quality", f"a placeholder: {found[0]!r}")
    values = signals(text, english=record.problem.language in ("", "en"))
    scores = {}
    for name, value in values.items():
        fine, useless = LIMITS[name]
        scores[name] = min(1.0, max(0.0, (value - useless) / (fine - useless)))
    worst = min(scores, key=lambda name: scores[name])
    record.notes["quality"] = round(scores[worst], 3)
    if scores[worst] <= least:
        raise Dropped("low_quality", f"{worst}: {values[worst]:.2f}, where {LIMITS[worst][1]:g} is useless")
    return record


def signals(text: str, english: bool = True) -> dict[str, float]:
    """Measure a text; return the signals by name."""
    lines = [(line.strip(), words(line)) for line in _TAG.sub(" ", text).splitlines()]
    prose = [(line, found) for line, found in lines if sum(map(_wordlike, found)) >= 3]
    found = [word for _, line in prose for word in line]
    long = [word for word in found if len(word) > 1 and word.isalpha()]
    size = sum(len(line) for _, line in lines)
    values = {"few words": float(sum(map(_wordlike, found))), "many words": float(size)}
    if not found:
        return values
    written = "".join("".join(line.split()) for line, _ in prose)
    phrases = [tuple(found[n : n + 5]) for n in range(len(found) - 4)]
    repeated = len(phrases) - len(set(phrases))
    sentences = [s for line, _ in prose for s in _SENTENCE.split(line) if len(s.split()) > 1]
    characters = Counter(written)
    odd = sum(n for c, n in characters.items() if not (c.isalnum() or c.isascii() or _mathematics(c)))
    values |= {
        "letters": sum(n for c, n in characters.items() if c.isalpha()) / len(written),
        "long sentences": len(found) / max(1, len(sentences)),
        "repeated lines": 1 - len({line for line, _ in prose}) / len(prose),
        "repeated phrases": repeated / len(phrases) if phrases else 0.0,
        "one phrase again and again": float(_most_frequent(phrases)) if repeated >= 15 else 0.0,
        "odd characters": odd / len(written),
        "mojibake": len(_MOJIBAKE.findall(text)) / len(found),
        "unbalanced brackets": _unbalanced(text) / size,
        "markup": len(_TAG.findall(text)) / size,
    }
    if english and sum(map(str.isascii, long)) > len(long) / 2:
        length = sum(map(len, long)) / len(long)
        values |= {"short words": length, "long words": length}
        values["function words"] = sum(word in _FUNCTION_WORDS for word in found) / sum(map(str.isalpha, found))
        values["words with vowels"] = sum(n for word, n in Counter(long).items() if _VOWEL.search(word)) / len(long)
    return values


def _wordlike(word: str) -> bool:
    return word.isalpha() and (len(word) > 1 or not word.isascii())


def _most_frequent(phrases: list[tuple[str, ...]]) -> int:
    """Return the count of the most frequent phrase of words; phrases of numbers do not count."""
    return max((count for phrase, count in Counter(phrases).items() if sum(map(_wordlike, phrase)) >= 4), default=0)


def _mathematics(character: str) -> bool:
    """Whether a character is a dash, quote, arrow, operator, box drawing or zero-width space (frequent in LeetCode)."""
    return "\u2010" <= character <= "\u2bff" or character in "\u200b\u200c\u200d\ufeff\u00d7\u00b7\u00b0\u00b1\u2800"


def _unbalanced(text: str) -> int:
    pairs = sum(abs(text.count(a) - text.count(b)) for a, b in ("()", "[]", "{}"))
    return pairs + 10 * (text.count("```") % 2)
