"""Which language the prose is in: problem.language and notes["language_probability"] (py3langid).

A short text in plain letters counts as English unless the identifier is sure of another language: of seven words with a
name in them nobody can be sure.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from ..record import Record, package
from .samples import prose

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    "the of and to is given write find return that with for are from which each you your print if not by this can be"
    " number string list function array integer input output check whether all between than have has it its".split()
)  # fmt: skip
_LOOKED_AT = 2_000  # characters


def identify(record: Record) -> Record:
    record.problem.language, probability = language_of(record.problem.statement)
    record.notes["language_probability"] = round(probability, 3)
    return record


@lru_cache(maxsize=8)  # it is asked for again where a text came back unchanged
def language_of(text: str) -> tuple[str, float]:
    """("en", 0.98) of the words in the text, without code, samples and formulas."""
    spoken = prose(text)
    if not _WORD.search(spoken):
        spoken = text  # all of it looked like code: a docstring
    words = _WORD.findall(spoken[:_LOOKED_AT])
    ranked = _identifier().rank(" ".join(words))
    language, probability = ranked[0]
    plain = sum(word.isascii() for word in words)
    if language != "en" and plain >= 0.9 * len(words):
        english = sum(word.lower() in _ENGLISH for word in words)
        if english >= 0.15 * len(words) or len(words) < 6:
            return "en", float(dict(ranked)["en"])
    return str(language), float(probability)


@cache
def _identifier() -> Any:
    langid = package("py3langid.langid")
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
