"""White space normalised where it means nothing: in prose. In samples only odd spaces are; in code nothing is."""

from __future__ import annotations

import re

from ..record import Record
from .samples import blocks

_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")  # no spaces to a tokenizer
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z,.;:!?)])[ \t]{2,}(?=[A-Za-z(])")
_ITEM = re.compile(r"(?:\*|\d{1,2}\.) \S")
_NEXT_ITEM = re.compile(r"(?<=\S)[ \t]{3,20}(?=(?:\*|\d{1,2}\.) \S)")
_BLANKS = re.compile(r"\n{3,}")


def normalise(record: Record) -> Record:
    """Title and statement."""
    problem = record.problem
    title, statement = " ".join(problem.title.split()), normal(problem.statement)
    if (title, statement) != (problem.title, problem.statement):
        problem.title, problem.statement = title, statement
        record.did("process: white space normalised")
    return record


def normal(text: str) -> str:
    """No spaces at the ends of lines, one blank line at most, odd spaces as plain ones."""
    parts = []
    for part in blocks(text):
        if part.kind == "prose":
            parts.append(_BLANKS.sub("\n\n", "\n".join(map(_line, part.text.split("\n")))))
        else:
            parts.append(_SPACES.sub(" ", part.text) if part.kind == "sample" else part.text)
    return "".join(parts).strip("\n").rstrip()


def _line(line: str) -> str:
    line = _SPACES.sub(" ", line).rstrip()
    words = line.lstrip()
    indent = line[: len(line) - len(words)]
    if indent == " " and words[0].isalnum():
        return _line(words)
    if _ITEM.match(words):  # "* one    * two": a list that lost its lines
        return indent + _NEXT_ITEM.sub(f"\n{indent}", words)
    prose = len(indent) < 4 and words.count(" ") > 5  # else it may be a drawing or a table
    return indent + _BETWEEN_WORDS.sub(" ", words) if prose else line
