"""Into English through a language model, with code, formulas, samples, names and numbers kept out of its hands.

They are replaced by marks such as ⟦3⟧, each of which must come back exactly once; so what they stand for cannot change.
An answer that fails this, or is not English, is asked for again with the reason. An endpoint that cannot be reached is
no fault of the problem: its error passes through.

Drops: needs_translation (no endpoint), translation_changed_code (marks lost or doubled), translation_failed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Protocol

from ..endpoint import NoAnswer
from ..record import Dropped, Record
from .language import identify, language_of
from .samples import blocks, inline

Message = dict[str, str]


class Endpoint(Protocol):
    """What is needed of microcoder.data.endpoint.Endpoint."""

    def ask(self, messages: list[Message], *, key: str) -> str: ...


_TASK = (
    "You translate programming problems into English. Translate all of the user's text faithfully: add nothing, leave"
    " nothing out, solve nothing. Keep the Markdown and the division into lines. Marks such as ⟦3⟧ stand for code,"
    " formulas and data: each must appear in your translation exactly once, unchanged, where it belongs in the sentence."
    " Answer with the translation only."
)
_MARK = re.compile(r"⟦\d{1,6}⟧")
_QUOTED = r""""[^"\n]{1,80}"|'[^'\n]{1,40}'|“[^”\n]{1,80}”"""
_PLAIN_RUN = re.compile(r"[⟦⟧]+|[!-~]+(?: [!-~]+)*")  # in Chinese or Russian, plain letters are names and numbers
_NAME = re.compile(  # in Spanish, only what cannot be a word
    rf"[⟦⟧]+|{_QUOTED}|\b\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z]{{2,}}\b|\b[A-Zb-dfghj-np-tv-xz]\b"
    r"|[-+]?\d[\d.,^]*(?: ?[-+*/<>=≤≥≠^] ?\w+)*"
)


def translate(record: Record, *, endpoint: Endpoint | None = None, tries: int = 3) -> Record:
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


def _translated(text: str, endpoint: Endpoint, tries: int, short: bool = False) -> str:
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
            complaint = f"These marks must appear exactly once each, and do not: {wrong}. Translate it again, with them."
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
    """The text with marks in the place of all that must not be translated, and what they stand for."""
    kept: list[str] = []
    letters = [char for char in text if char.isalpha()]
    latin = sum(char < "\u0250" for char in letters) > 0.8 * len(letters)
    names = _NAME if latin else _PLAIN_RUN

    def keep(what: str) -> str:
        kept.append(what)
        return f"⟦{len(kept)}⟧"

    out: list[str] = []
    for block in blocks(text):
        if block.kind != "prose":
            body = block.text.rstrip("\n")
            out += [keep(body) if body else "", block.text[len(body) :]]
            continue
        for piece in inline(block.text):
            if piece.kind != "prose":
                out.append(keep(piece.text))
            else:
                out.append(names.sub(lambda match: keep(match.group()) if _matters(match.group()) else match.group(), piece.text))
    return "".join(out), kept


def unmask(text: str, kept: list[str]) -> str:
    return _MARK.sub(lambda match: kept[int(match.group()[1:-1]) - 1], text)


def _matters(text: str) -> bool:
    """Whether there is a name or number in it, or what looks like a mark: not mere punctuation."""
    return any(char.isalnum() or char in "⟦⟧" for char in text)


def _wrong_marks(answer: str, count: int) -> str:
    found = Counter(_MARK.findall(answer))
    wanted = [f"⟦{n}⟧" for n in range(1, count + 1)]
    wrong = [mark for mark in wanted if found[mark] != 1] + sorted(set(found) - set(wanted))
    return ", ".join(wrong[:10])
