"""Remove images that only illustrate; drop a problem that cannot be understood without its images.

An image is needed if it is part of a sentence (in place of a word or a formula), if the text says that something "is
shown in the figure" (in the task itself, not in an example), and if there is little text beside it. An image with a
formula as alternative text (alt="x^2") becomes the formula.

Drops: needs_image.
"""

from __future__ import annotations

import re

from ..record import Dropped, Record
from .samples import blocks, prose

_IMAGE = re.compile(
    r"!\[(?P<alt>[^\]\n]{0,300})\]\([^()\n]{0,400}(?:\([^()\n]{0,100}\)[^()\n]{0,100})?\)"
    r"|<im(?:g|age)\b[^<>\n]{0,500}>|\[image\]|\\includegraphics(?:\[[^\]\n]{0,100}\])?\{[^{}\n]{0,200}\}",
    re.I,
)
_FORMULA = re.compile(r"[\\^_=]|\b[a-z] ?[-+*/<>] ?[a-z0-9]\b")
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
_SHOWN = re.compile(
    r"\b(?:shown|given|depicted|described|defined|displayed|represented|drawn|presented|specified|illustrated|indicated)"
    r" (?:in|on|by) (?:(?:the|this|these|following|above|below|attached|next|chess) ){0,3}"
    r"(?:figure|picture|image|diagram|drawing|illustration|photo|screenshot)s?\b", re.I,
)  # fmt: skip
_EXAMPLE = re.compile(r"\b(?:examples?|samples?|some|instance|e\.g|test case)\b", re.I)
_ASIDE = re.compile(r"[#*_ ]{0,8}(?:examples?|samples?|notes?|explanations?|hints?)\b.{0,30}", re.I)
_FOLLOWS = re.compile(r"\b(?:formula|equation|expression|recurrence|defined as|equals?|function)\b[^.]{0,60}", re.I)
_INPUT = re.compile(r"^[#*_ ]{0,8}input(?: (?:format|description|specification))?[*_: ]{0,8}$", re.I | re.M)
_EMPTY = re.compile(r"[\s|:-]*")  # the rest of a line or table of images


def remove(record: Record, *, words_beside: int = 12) -> Record:
    """Remove images; drop a problem with fewer than `words_beside` words beside them, or before the input."""
    problem = record.problem
    if not _IMAGE.search(problem.statement) and not _SHOWN.search(problem.statement):
        return record
    out: list[str] = []
    images = 0
    task = True  # until the examples and remarks begin
    above = ""  # the last line that is not empty
    for part in blocks(problem.statement):
        lines: list[str] = []
        for line in part.text.split("\n") if part.kind == "prose" else ():
            task = task and not _ASIDE.fullmatch(line.strip()[:60])
            found = [match for match in _IMAGE.finditer(line) if not _formula(match)]
            if task:
                _refuse(line, above, found)
            images += len(found)
            rest = _IMAGE.sub(_formula, line)
            ruled = bool(rest.strip()) and above.startswith(("!", "<im", "|"))  # the frame of a table of images
            if not (_EMPTY.fullmatch(rest) and (found or (ruled and _IMAGE.search(above)))):
                lines.append(rest.strip() if found else rest)
            above = line if line.strip() else above
        out.append("\n".join(lines) if part.kind == "prose" else part.text)
    statement = "".join(out)
    if images and len(prose(_INPUT.split(statement, maxsplit=1)[0]).split()) < words_beside:
        raise Dropped("needs_image", f"{images} images and hardly a word beside them")
    if statement != problem.statement:
        problem.statement = statement
        record.notes["images_removed"] = record.notes.get("images_removed", 0) + images
        record.did("process: images removed")
    return record


def _formula(image: re.Match[str]) -> str:
    """Return the formula in an image's alternative text; "" if that is no formula."""
    alt = (image["alt"] or "").strip().strip("$")
    return f"${alt}$" if "$" not in alt and _FORMULA.search(alt) and "." not in alt[-5:] else ""


def _refuse(line: str, above: str, images: list[re.Match[str]]) -> None:
    """Drop the problem if this line of the task cannot be understood without an image."""
    for sentence in _SENTENCE_END.split(line):
        shown = _SHOWN.search(sentence)
        if shown and not _EXAMPLE.search(sentence):
            raise Dropped("needs_image", f"it says {shown.group()!r}")
    for image in images:
        before, after = line[: image.start()].rstrip(), line[image.end() :].lstrip()
        if _EMPTY.fullmatch(before.strip("*>")):
            goes_on = bool(_FOLLOWS.search(above[-80:]))
        else:
            goes_on = before[-1] not in ".!?:|"
        if goes_on or after[:1].islower() or after[:1] in (",", ".", ";"):
            raise Dropped("needs_image", f"an image within a sentence: {before[-40:]!r} ... {after[:40]!r}")
