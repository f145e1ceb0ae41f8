"""Repair characters: broken encodings (ftfy: mojibake, byte order marks, control characters, line ends), white space.

White space is normalised in prose, where it has no meaning. In samples only unusual spaces are replaced; code and tests
are not changed.

Drops: broken_text (characters are lost for good: U+FFFD, "锟斤拷", mojibake that cannot be undone).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..record import Dropped, Record, package
from .samples import blocks, inline

# Turned off in ftfy: quotes and full-width letters are style, and entities are markup.
_ASIDE: dict[str, Any] = {"unescape_html": False, "uncurl_quotes": False, "fix_character_width": False}
_NOTHING = re.compile("[\u200b\u2060\ufeff\u00ad\ufdd0-\ufdef\ufffe\uffff]")  # invisible characters
_SYMBOL = re.compile("\u00e2[^\x00-\x7f]{2}|\u201a[\u00c4\u00c5\u00e0\u00e2\u00e4\u00e3][^\x00-\x7f]")
_CLEAN = re.compile("[\t -~]*")
_LINE_END = re.compile("\r{0,2}\n|\r|\f")
_LOST = re.compile("\ufffd|锟斤拷|烫烫烫")


def repair(record: Record, *, lost: int = 3) -> Record:
    """Repair title and statement; drop the problem if more than `lost` characters cannot be restored."""
    problem = record.problem
    title, statement = repaired(problem.title), repaired(problem.statement)
    starter_code = problem.starter_code.replace("\r\n", "\n")
    for text in (title, statement):
        gone = [match.start() for match in _LOST.finditer(text)]
        if len(gone) > lost:
            place = text[max(0, gone[0] - 20) :][:40]
            raise Dropped("broken_text", f"{len(gone)} characters are lost, as in {place!r}")
        bad = sum(map(_badness, filter(_needs_a_look, text.split("\n"))))
        if bad > lost:
            raise Dropped("broken_text", f"{bad} places look like mojibake that cannot be undone")
    if (title, statement, starter_code) != (problem.title, problem.statement, problem.starter_code):
        problem.title, problem.statement, problem.starter_code = title, statement, starter_code
        record.did("process: encoding repaired")
    return record


def repaired(text: str) -> str:
    lines = _LINE_END.sub("\n", text).split("\n")
    return "\n".join(_line(line) if _needs_a_look(line) else line for line in lines)


def _needs_a_look(line: str) -> bool:
    return not _CLEAN.fullmatch(line)


@lru_cache(maxsize=200)  # ftfy works line by line too, and many lines repeat
def _line(line: str) -> str:
    ftfy = package("ftfy")
    line = ftfy.fix_text(line, ftfy.TextFixerConfig(explain=False, **_ASIDE))
    return _NOTHING.sub("", _SYMBOL.sub(_symbol, line))


def _symbol(match: re.Match[str]) -> str:
    """Restore a mathematical sign from UTF-8 that was read in another encoding, where ftfy is not sure.

    The encodings are Windows-1252 (â‹… is ⋅, â‰¤ is ≤) and Mac Roman (‚â§ is ≤).
    """
    seen = match.group()
    try:
        return seen.encode("sloppy-windows-1252" if seen[0] == "â" else "mac_roman").decode("utf-8")  # ftfy's own codec
    except UnicodeError:
        return seen


@lru_cache(maxsize=200)
def _badness(line: str) -> int:
    return int(package("ftfy.badness").badness(line))


# --- white space

_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")  # no plain space to a tokenizer
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z,.;:!?)])[ \t]{2,}(?=[A-Za-z(])")
_LIST_ITEM = re.compile(r"(?:\*|\d{1,2}\.) \S")
_NEXT_LIST_ITEM = re.compile(r"(?<=\S)[ \t]{3,20}(?=(?:\*|\d{1,2}\.) \S)")
_BLANKS = re.compile(r"\n{3,}")


def normalise_space(record: Record) -> Record:
    """Normalise the white space of title and statement."""
    problem = record.problem
    title, statement = " ".join(problem.title.split()), spaced(problem.statement)
    if (title, statement) != (problem.title, problem.statement):
        problem.title, problem.statement = title, statement
        record.did("process: white space normalised")
    return record


def spaced(text: str) -> str:
    """Remove spaces at line ends, keep at most one blank line, and replace unusual spaces by plain ones."""
    parts = []
    for part in blocks(text):
        if part.kind == "prose":
            parts.append(_BLANKS.sub("\n\n", "\n".join(map(_spaced, part.text.split("\n")))))
        else:
            parts.append(_SPACES.sub(" ", part.text) if part.kind == "sample" else part.text)
    return "".join(parts).strip("\n").rstrip()


def _spaced(line: str) -> str:
    line = _SPACES.sub(" ", line).rstrip()
    words = line.lstrip()
    indent = line[: len(line) - len(words)]
    if indent == " " and words[0].isalnum():
        return _spaced(words)
    if _LIST_ITEM.match(words):  # "* one    * two": a list that lost its line breaks
        return indent + _NEXT_LIST_ITEM.sub(f"\n{indent}", words)
    prose = len(indent) < 4 and words.count(" ") > 5  # else it may be a drawing or a table
    if not prose:
        return line
    pieces = (_BETWEEN_WORDS.sub(" ", part.text) if part.kind == "prose" else part.text for part in inline(words))
    return indent + "".join(pieces)
