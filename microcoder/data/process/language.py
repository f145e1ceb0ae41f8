"""Identify the language of the prose (py3langid), and translate it into English through a language model.

The result is in problem.language and notes["language_probability"]. A short text in plain letters counts as English
unless the identifier is sure of another language: seven words with a name among them are too few to be sure.

A translator does not see code, formulas, samples, names and numbers, so it cannot change them. They are replaced by
marks such as ⟦3⟧, and each mark must come back exactly once. If that fails, or if the answer is not English, the model
is asked again with the reason. If the endpoint cannot be reached, its error is raised, and the problem is not dropped.

Drops: needs_translation (no endpoint), translation_changed_code (marks lost or doubled), translation_failed.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import Any, Protocol

from ..endpoint import NoAnswer
from ..record import Dropped, Record, package
from .samples import blocks, inline, label, prose

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    "the of and to is given write find return that with for are from which each you your print if not by this can be"
    " number string list function array integer input output check whether all between than have has it its".split()
)  # fmt: skip
_LOOKED_AT = 2_000  # characters


def identify(record: Record) -> Record:
    """Set the language of the statement, and note its probability."""
    record.problem.language, probability = language_of(record.problem.statement)
    record.notes["language_probability"] = round(probability, 3)
    return record


@lru_cache(maxsize=8)  # a text that did not change is asked for again
def language_of(text: str) -> tuple[str, float]:
    """Return language and probability, such as ("en", 0.98), of the words outside code, samples and formulas."""
    spoken = prose(text)
    if not _WORD.search(spoken):
        spoken = text  # all of it looks like code: a docstring
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


# --- translation

Message = dict[str, str]


class Translator(Protocol):
    """A language model that answers messages, such as microcoder.data.endpoint.Endpoint."""

    def ask(self, messages: list[Message], *, key: str) -> str: ...


_TASK = (
    "You translate programming problems into English. Translate all of the user's text faithfully: add nothing, leave"
    " nothing out, solve nothing. Keep the Markdown and the division into lines. Marks such as ⟦3⟧ stand for code,"
    " formulas and data: each must appear in your translation exactly once, unchanged, where it belongs."
    " Answer with the translation only."
)
_MARK = re.compile(r"⟦\d{1,6}⟧")
_QUOTED = r""""[^"\n]{1,80}"|'[^'\n]{1,40}'|“[^”\n]{1,80}”"""
# In Chinese or Russian, plain letters are names and numbers; in Spanish, only what cannot be a word.
_PLAIN_RUN = re.compile(r"[⟦⟧]+|[!-~≤≥≠×⋅…]+(?: [!-~≤≥≠×⋅…]+)*")
_NAME = re.compile(
    rf"[⟦⟧]+|{_QUOTED}|\b\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z]{{2,}}\b|\b[A-Zb-dfghj-np-tv-xz]\b"
    r"|[-+]?\d[\d.,^]*(?: ?[-+*/<>=≤≥≠^]{1,2} ?\w+)*"
)


def translate(record: Record, *, endpoint: Translator | None = None, tries: int = 3) -> Record:
    """Translate statement and title, unless they are English."""
    problem = record.problem
    foreign = problem.language
    if foreign == "en":
        return record
    if endpoint is None:
        probability = record.notes.get("language_probability", 0.0)
        raise Dropped("needs_translation", f"language is {foreign} ({probability:.2f})")
    problem.statement = _translated(problem.statement, endpoint, tries)
    if not problem.title.isascii():
        problem.title = _translated(problem.title, endpoint, tries, short=True)
    record.notes["translated_from"] = foreign
    record.did(f"process: translated from {foreign}")
    return identify(record)


def _translated(text: str, endpoint: Translator, tries: int, short: bool = False) -> str:
    masked, kept = mask(text)
    messages = [{"role": "system", "content": _TASK}, {"role": "user", "content": masked}]
    fault = Dropped("translation_failed", "it was not tried")
    for attempt in range(tries):
        try:
            answer = endpoint.ask(messages, key=f"translate {attempt}").strip()
        except NoAnswer as error:
            raise Dropped("translation_failed", str(error)) from None
        wrong = _wrong_marks(answer, len(kept))
        if wrong:
            fault = Dropped("translation_changed_code", f"after {attempt + 1} tries, not once each: {wrong}")
            complaint = f"These marks must appear exactly once each, and do not: {wrong}. Translate it again."
        else:
            translated = unmask(answer, kept)
            language, probability = language_of(translated)
            if language == "en" or short:
                return translated
            fault = Dropped("translation_failed", f"the answer is in {language} ({probability:.2f}): {answer!r:.60}")
            complaint = "That is not English. Translate the whole text into English."
        messages = [*messages[:2], {"role": "assistant", "content": answer}, {"role": "user", "content": complaint}]
    raise fault


def mask(text: str) -> tuple[str, list[str]]:
    """Replace what must not be translated by marks; return the text and the originals of the marks."""
    kept: list[str] = []
    letters = [char for char in text if char.isalpha()]
    latin = sum(char < "\u0250" for char in letters) > 0.8 * len(letters)
    names = _NAME if latin else _PLAIN_RUN

    def keep(what: str) -> str:
        kept.append(what)
        return f"⟦{len(kept)}⟧"

    def keep_name(match: re.Match[str]) -> str:
        # a name, a number, or text that looks like a mark; punctuation alone is part of the sentence
        matters = any(char.isalnum() or char in "⟦⟧" for char in match.group())
        return keep(match.group()) if matters else match.group()

    out: list[str] = []
    for block in blocks(text):
        if block.kind == "prose":
            pieces = inline(block.text)
            out += [names.sub(keep_name, piece.text) if piece.kind == "prose" else keep(piece.text) for piece in pieces]
            continue
        lines = block.text.splitlines(keepends=True) if label(block.text) else [block.text]
        for line in lines:  # "Входные данные: a = [1, 2]": the label is prose
            body = line.rstrip("\n")
            data = body.removeprefix(label(line))
            out += [label(line), keep(data) if data else "", line[len(body) :]]
    return "".join(out), kept


def unmask(text: str, kept: list[str]) -> str:
    return _MARK.sub(lambda match: kept[int(match.group()[1:-1]) - 1], text)


def _wrong_marks(answer: str, count: int) -> str:
    found = Counter(_MARK.findall(answer))
    wanted = [f"⟦{n}⟧" for n in range(1, count + 1)]
    wrong = [mark for mark in wanted if found[mark] != 1] + sorted(set(found) - set(wanted))
    return ", ".join(wrong[:10])
