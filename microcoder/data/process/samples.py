"""Split a statement into prose, code, samples and formulas. Cleaning must change prose only.

`blocks` splits a text into parts of whole lines, `inline` splits prose further; the joined parts are the text again. A
sample is recognised by its heading ("Sample Input 1"; "Examples" and below it "Input"; "输入样例"), by the line itself
("Input: nums = [1]" below "Example 1:"), or by a doctest's ">>>". Code is fenced, or Python that begins with def, class
or import in the first column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

Kind = Literal["prose", "code", "sample", "formula"]
Mode = Literal["", "examples", "data", "line", "doctest"]


class Part(NamedTuple):
    kind: Kind
    text: str


_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$")
_PYTHON = re.compile(r"(?:async )?def \w+ ?\(|class \w+ ?[:(]|import \w[\w., ]*$|from [\w.]+ import [\w(*]|@\w+")
_SAMPLE = "samples?|examples?|样例|示例|範例|例|пример[ыа]?|예제|ejemplos?|exemplos?|exemples?|beispiele?"
_IO = "inputs?|outputs?|输入|输出|入力|出力|입력|출력|входные данные|выходные данные|entrada|salida|sa[íi]da"
_EXAMPLE = re.compile(
    rf"(?:{_SAMPLE})(?: (?:test )?(?:cases?|data|tests?|input/output|inputs? and outputs?))?(?: ?#?\d+)?", re.I
)
_DATA = re.compile(rf"(?:(?:{_SAMPLE}) ?(?:{_IO})|(?:{_IO}) ?(?:{_SAMPLE}))(?: ?#?\d+)?", re.I)
_INPUT = re.compile(rf"(?:{_IO})(?: ?#?\d+)?", re.I)
_LABEL = re.compile(rf"([\s*_]{{0,8}}(?:{_IO})[*_]{{0,3}} ?[:：][*_]{{0,3}}\s?)\S", re.I)
_EXPLAINED = re.compile(r"[\s*_]{0,8}(?:explanation|explication|解释|解説|пояснение)\b", re.I)
_AFTERWARDS = re.compile(  # headings that end the samples
    r"(?:notes?|explanations?|hints?|remarks?|constraints?|limits|scoring|subtasks?|sources?|tags|follow-?up|interaction"
    r"|time limit|memory limit|input format|output format|提示|说明|数据范围|примечани[ея]|制約|解説)\b[^\n]{0,40}",
    re.I,
)
_SENTENCE = re.compile(r"[A-Z](?:[^\s]+ ){6,400}[^\s]+[.:!?]")
_INLINE = re.compile(
    r"(?P<code>(?<!`)(?!``[^`'\n]{1,400}'')(?P<ticks>`{1,2})(?!`)[^`\n]{1,2000}(?P=ticks)(?!`))"  # ``x'' is quoted
    r"|(?<!\$)(?:\${6}[^$]{1,4000}\${6}|\${3}[^$]{1,4000}\${3}|\$\$[^$]{1,4000}\$\$)(?!\$)"
    r"|(?<!\\)\$(?![\s$])[^$\n]{0,600}(?<![\s\\])\$(?!\d)"
    r"|\\\((?:[^\n\\]|\\[^()\n]){1,600}\\\)|\\\[(?:[^\\]|\\[^\[\]]){1,1000}\\\]"
)


@lru_cache(maxsize=8)  # each step uses the same text
def blocks(text: str) -> tuple[Part, ...]:
    """Split a text into parts of whole lines: prose, code and samples."""
    lines = _LINE.findall(text)
    kinds: list[Kind] = []
    unclosed: dict[str, int] = {}  # fence character: a length for which no end was found; searched for only once
    mode: Mode = ""
    while (at := len(kinds)) < len(lines):
        end = _fenced(lines, at, unclosed) or _python(lines, at)
        if end:
            kinds += ["code"] * (end - at)
            continue
        kind, mode = _read(lines[at].rstrip(), mode, after_blank=at > 0 and not lines[at - 1].strip())
        kinds.append(kind)
    grouped = groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0])
    return tuple(Part(kind, "".join(line for _, line in group)) for kind, group in grouped)


def inline(text: str) -> list[Part]:
    """Split lines of prose into prose, code in backticks and formulas."""
    if not any(mark in text for mark in "`$\\"):
        return [Part("prose", text)] if text else []
    parts: list[Part] = []
    at = 0
    for match in _INLINE.finditer(text):
        parts.append(Part("prose", text[at : match.start()]))
        parts.append(Part("code" if match["code"] else "formula", match.group()))
        at = match.end()
    parts.append(Part("prose", text[at:]))
    return [part for part in parts if part.text]


def on_prose(text: str, change: Callable[[str], str], *, within: bool = False) -> str:
    """Apply `change` to the prose of a text only; with `within`, only to the words outside code and formulas."""
    parts: Iterable[Part] = blocks(text)
    if within:
        parts = (piece for part in parts for piece in (inline(part.text) if part.kind == "prose" else [part]))
    return "".join(change(part.text) if part.kind == "prose" else part.text for part in parts)


def label(line: str) -> str:
    """Return the label "Input: " of `Input: nums = [1]`; "" for any other line."""
    match = _LABEL.match(line[:200])
    return match[1] if match else ""


@lru_cache(maxsize=8)
def prose(text: str) -> str:
    """Return the words of a text without code, samples and formulas."""
    spoken = "".join(part.text if part.kind == "prose" else "\n" for part in blocks(text))
    return "".join(piece.text if piece.kind == "prose" else " " for piece in inline(spoken))


def _read(line: str, mode: Mode, after_blank: bool) -> tuple[Kind, Mode]:
    """Return the kind of a line, and the mode for the next line.

    Modes: below the heading "Examples"; in the data below its "Input"; in "Input: x" or a doctest, up to a blank line.
    """
    heading = line.strip(" \t#*_>:：.【】") if len(line) < 80 else ""
    if _DATA.fullmatch(heading) or (mode and _INPUT.fullmatch(heading)):
        return "prose", "data"
    if _EXAMPLE.fullmatch(heading):
        return "prose", "examples"
    if mode in ("examples", "data") and _AFTERWARDS.fullmatch(heading):
        return "prose", ""
    if mode == "data":
        over = after_blank and _SENTENCE.fullmatch(line[:2000])
        return ("prose", "") if over else ("sample", "data")
    if mode in ("examples", "line") and _EXPLAINED.match(line[:80]):
        return "prose", "examples"
    if mode == "examples" and label(line):
        return "sample", "line"
    if mode in ("line", "doctest"):
        return ("sample", mode) if line else ("prose", "examples" if mode == "line" else "")
    return ("sample", "doctest") if line.lstrip().startswith(">>> ") else ("prose", mode)


def _fenced(lines: list[str], at: int, unclosed: dict[str, int]) -> int:
    """Return the end of the fenced code that begins at line `at`; 0 if none begins there or it never ends."""
    opening = _FENCE.match(lines[at].rstrip())
    if not opening:
        return 0
    mark, length = opening[1][0], len(opening[1])
    if length >= unclosed.get(mark, length + 1):
        return 0
    for n in range(at + 1, len(lines)):
        closing = lines[n].strip()
        if closing.startswith(mark * length) and not closing.strip(mark):
            return n + 1
    unclosed[mark] = length
    return 0


def _python(lines: list[str], at: int) -> int:
    """Return the end of the unfenced Python that begins at line `at`; 0 if none begins there."""
    if not _PYTHON.match(lines[at]):
        return 0
    end = n = at + 1
    while n < len(lines) and (not lines[n].strip() or lines[n][0] in " \t#)]}" or _PYTHON.match(lines[n])):
        n += 1
        if lines[n - 1].strip():
            end = n
    return end
