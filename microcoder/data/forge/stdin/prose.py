"""Layouts from prose: "The first line contains two integers n and m", "Each of the next m lines contains ...".

A sentence may be understood in several ways, and some sentences speak of lines that others describe again. So
`prose_layouts` yields layouts, the likeliest first, and the existing tests tell which of them is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, product

from ..reading.headings import plain, sentences
from ..reading.terms import Expression, expression
from .contents import contents, counted_by
from .shape import Block, Field, InputLine, Layout, Node, OneOf

_QUANTITY = (
    r"(?P<count>(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|[^\s,.;:()]{1,12}(?: ?[-+*/] ?[^\s,.;:"
    r"()]{1,8}){0,3}?)"
)
_QUANTITY2 = _QUANTITY.replace("count", "count2")
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
    r"|former|latter|next|last|only|single|following|final|one|another|\d+(?:-?(?:th|st"
    r"|nd|rd))|first and only|only one)"
)
_ROWS = re.compile(
    (r"\b(?:(?:in )?(?:each|every|the \S{1,8}-th|\S{1,8}-th) (?:line )?(?:of"
r"|in|among) )?(?:the )?(?:(?:next|following|subsequent|last|remaining"
rf"|other) {_QUANTITY}(?: more)? lines|{_QUANTITY2} (?:next|following"
r"|subsequent) lines|(?:next|following) lines)\b"
    r"|(?:\bthen |\bnext |^|\bthere (?:are|follow) |\bby |\bfollow(?:s)? )(?:(?:there )?(?:come"
r"|follow|are|follows|will be) )?(?P<count3>\S{1,12}(?: ?[-+*/] ?\S{1,6})?) lines\b(?: follow"
r"| describe|,| contain)?"),
    re.I,
)  # fmt: skip
_INPUT_IS = re.compile(
    r"^(?:the )?input (?:will )?(?:consists? (?:only )?of|contains?|is|be|starts with|begins with)"
    r"(?: (?:only |exactly )?(?:one|a single|a) line\b)?(?! (?:multiple|several|many|some|the)\b)",
    re.I,
)
_ROWS_OF_INPUT = re.compile(
    rf"^(?:the )?input (?:will )?(?:consists? of|contains?) {_QUANTITY} lines(?:,? (?:where )?each\b|\.?$)", re.I
)
_LINE_BY_LINE = re.compile(  # one name a line
    r"^the (?:first |next |following )?(?:(?P<count>two|three|four|five|six|\d) )?lines contain the"
    r" (?:strings|integers|words|numbers) (?P<names>[A-Za-z](?:_\w)?"
    r"(?:(?:, and |, | and | respectively )[A-Za-z](?:_\w)?)+)"
    r"(?:,? (?:in that order|respectively))?\.?$",
    re.I,
)
_ROWS_FOLLOW = re.compile(rf"\b{_QUANTITY} lines (?:follow|describing|each)\b", re.I)
_ONE = re.compile(
    (
        rf"\b(?:{_ORDINAL} (?:input |and only |text )?line\b|line \d+\b|a (?:single "
        r"|new )?line\b|(?:each|every) (?:of these |of them |such |query |of the )?lines?\b"
        r"|\S{1,8}-th (?:of (?:these|them|those)(?: lines)?|(?:such )?line"
        r"|one|query|operation|event|row|pair|string|test case|edge)\b|(?:each"
        r"|every) (?:\w+ is (?:described|given) by|of them|of which|test ?case|query|containing|contain|with|having)\b"
        r"|each of these\b)"
    ),
    re.I,
)
_EACH = re.compile(r"each|every|-th\b|of them|of these", re.I)
_CASES = re.compile(
    (
        r"number of (?:\w+ )?(?:test|data|input|sets|cases|testcases|scenarios"
        r"|games|melod|quer|instances|independent|tasks|problems)|test ?cases"
        r"|how many test"
    ),
    re.I,
)
_PER_CASE = re.compile(
    r"\b(?:each|every|a|the|per|of) (?:test|data ?set|set of input|case|input data set|game|scenario|melody|testcase)",
    re.I,
)
_ASIDE = re.compile(r"\s(?:—|–|--)\s?|\s?—\s?|\s-\s(?=[a-zA-Z]{2,})|\s?–\s(?=[a-z]{2,})")
_LITERAL = re.compile(
    r"^[\"'“`]?(?P<tag>\d|[?!+^#&|-]|[A-Z]{1,8})[\"'”]?((?: (?:[a-z]\w{0,2}'?(?:_\w)?))*)[\"'”`]?(?= ?[.:;,"
    r"(—–-]| ?$| where)"
)


@dataclass(slots=True)
class _Part:
    """What a sentence says of one line, or of several."""

    lines: list[InputLine]  # ways to understand it
    rows: Expression | None = None  # so many of them
    each: bool = False  # it describes the lines that were announced before
    cases: str = ""  # the name of the number of test cases, if this line gives it
    tag: bool = False
    per_case: bool = False
    announces: bool = field(default=False)


def prose_layouts(section: str, limit: int = 300) -> Iterator[Layout]:
    """Layouts that the prose may mean."""
    parts = _parts(section)
    seen: set[tuple[Node, ...]] = set()
    for cases in (True, False) if any(part.cases for part in parts) else (False,):
        for n, chosen in enumerate(_choices(parts)):
            if n >= limit:
                break
            body = tuple(_assembled(chosen, cases))
            if body and body not in seen:
                seen.add(body)
                yield Layout(body)


def _choices(parts: list[_Part]) -> Iterator[list[tuple[_Part, InputLine | None]]]:
    """One way to understand each part; the fewest departures from the likeliest first."""
    ways: list[list[InputLine | None]] = [
        [*part.lines, *([None] if len(parts) > 1 else [])] or [None] for part in parts
    ]
    most = min(3, len(parts))
    for departures in range(most + 1):
        for marks in product((0, 1), repeat=len(parts)) if len(parts) <= 12 else [(0,) * len(parts)]:
            if sum(marks) != departures:
                continue
            options = [way[1:] if mark else way[:1] for way, mark in zip(ways, marks, strict=True)]
            for chosen in product(*options):
                yield list(zip(parts, chosen, strict=True))


def _assembled(chosen: list[tuple[_Part, InputLine | None]], cases: bool) -> Iterator[Node]:
    keys = count(1)
    top: list[Node] = []
    body = top
    name = ""
    pending: Expression | None = None
    tags: list[InputLine] = []

    def close() -> None:
        nonlocal pending
        if tags and pending is not None:
            body.append(Block(pending, (OneOf(tuple(tags), f"#{next(keys)}"),), f"#{next(keys)}"))
        tags.clear()
        pending = None

    for part, line in chosen:
        if part.tag:
            if line is not None and pending is not None:
                tags.append(line)
            continue
        if tags:
            close()
        if line is None and part.rows is not None:
            pending = part.rows
            continue
        if line is None:
            continue
        if part.rows is not None:
            body.append(Block(part.rows, (line,), f"#{next(keys)}"))
        elif pending is not None and part.each:
            body.append(Block(pending, (line,), f"#{next(keys)}"))
            pending = None
        else:
            body.append(line)
        if cases and part.cases and not name:
            name, body = part.cases, []
    close()
    if name and body:
        top.append(Block(expression(name), tuple(body), "#0"))
    yield from top


def _parts(section: str) -> list[_Part]:
    parts: list[_Part] = []
    names = {
        found
        for formula in re.findall(r"\$([^$]{1,200})\$", section)
        for found in re.findall(r"[A-Za-z]{2,8}", plain(formula))
    }
    unnamed = count(1)
    for sentence in sentences(plain(section)):
        if re.search(
            (
                r"lines (?:contain|describe|are|consist of|give)?s? ?(?:the )?(?:descriptions? of )?(?:the )?(?:input"
                r" )?(?:each )?(?:test ?cases?|descriptions? of)"
            ),
            sentence,
            re.I,
        ):
            continue
        if re.match(
            r"(?:it is|it's|is it|it was)?(?: also)? ?guaranteed|additional constraint|the sum of|note that|if ",
            sentence,
            re.I,
        ):
            continue
        tag = _LITERAL.match(sentence)
        if tag and not re.match(r"[A-Z]\w* (?:line|single|integer)", sentence) and (not tag["tag"].isalpha() or parts):
            if not tag["tag"].isalpha() or any(part.announces for part in parts):
                fields = [Field(tag["tag"], kind="tag"), *(Field(name, None, "auto") for name in tag[2].split())]
                parts.append(_Part([InputLine(tuple(fields))], tag=True))
                continue
        if apart := _LINE_BY_LINE.match(sentence):
            own = re.split(r", and |, | and | respectively ", apart["names"])
            if not apart["count"] or counted_by(apart["count"]) == counted_by(str(len(own))):
                parts += [_Part([InputLine((Field(name, None, "auto"),))]) for name in own]
                continue
        parts += _of_sentence(sentence, names, unnamed)
    return parts


def _of_sentence(sentence: str, names: set[str], unnamed: Iterator[int]) -> Iterator[_Part]:
    bare = _without_brackets(sentence)
    marks = [
        (found.start(), found.end(), found)
        for pattern in (_ROWS, _ROWS_FOLLOW, _ONE, _INPUT_IS, _ROWS_OF_INPUT)
        for found in pattern.finditer(bare)
    ]
    marks.sort(key=lambda mark: (mark[0], -mark[1]))
    kept: list[tuple[int, int, re.Match[str]]] = []
    for mark in marks:
        if not kept or mark[0] >= kept[-1][1]:
            kept.append(mark)
    last_rows: Expression | None = None
    for n, (_, end, found) in enumerate(kept):
        stop = kept[n + 1][0] if n + 1 < len(kept) else len(bare)
        content = bare[end:stop]
        said = _ASIDE.split(content)[0]
        rows = _rows(found)
        lines = list(contents(said, names, unnamed))
        each = rows is None and bool(_EACH.search(found[0]))
        single = (
            lines[0].fields[0].name if lines and len(lines[0].fields) == 1 and lines[0].fields[0].count is None else ""
        )
        cases = single if single and (_CASES.search(sentence) or single.lower() == "t") and rows is None else ""
        if found.re not in (_ONE, _INPUT_IS) and rows is None:
            continue
        if not lines and rows is None:
            continue
        yield _Part(lines, rows, each, cases, announces=rows is not None)
        last_rows = rows or last_rows


def _rows(found: re.Match[str]) -> Expression | None:
    if found.re in (_ONE, _INPUT_IS):
        return None
    groups = found.groupdict()
    text = next((value for key, value in groups.items() if key.startswith("count") and value), "")
    return counted_by(text)


def _without_brackets(text: str) -> str:
    """The text without what stands in round brackets; brackets of formulas, as in 2(n-1), are kept."""
    out, depth, start = [], 0, 0
    for n, letter in enumerate(text):
        if letter == "(":
            if depth == 0:
                out.append(text[start:n])
                start = n
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
            if depth == 0:
                inner = text[start : n + 1]
                short = len(inner) <= 8 and not re.search(r"[≤<≥>]|[a-z]{3}", inner)
                out.append(inner if short else " ")
                start = n + 1
    out.append(text[start:] if depth == 0 else "")
    return re.sub(r"\s+([,.;])", r"\1", re.sub(r" {2,}", " ", "".join(out)))
