"""Layouts from prose: "The first line contains two integers n and m", "Each of the next m lines contains ...".

A sentence may be understood in several ways, and some sentences speak of lines that others describe again. So
`prose_layouts` yields layouts, the likeliest first, and the existing tests tell which of them is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, product

from .headings import plain, sentences
from .shape import Block, Choice, Expression, Field, Layout, Line, Node, expression

NUMBERS = {"a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
           "eight": 8, "nine": 9, "ten": 10, "pair": 2}  # fmt: skip
_QUANTITY = (
    r"(?P<count>(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|[^\s,.;:()]{1,12}(?: ?[-+*/] ?[^\s,.;:"
    r"()]{1,8}){0,3}?)"
)
_QUANTITY2 = _QUANTITY.replace("count", "count2")
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
    r"|next|last|only|single|following|final|one|another|\d+(?:-?(?:th|st"
    r"|nd|rd))|first and only|only one)"
)
_ROWS = re.compile(
    (r"\b(?:(?:in )?(?:each|every|the \S{1,8}-th|\S{1,8}-th) (?:line )?(?:of"
r"|in|among) )?(?:the )?(?:(?:next|following|subsequent|last|remaining"
rf"|other) {_QUANTITY}(?: more)? lines|{_QUANTITY2} (?:next|following"
r"|subsequent) lines|(?:next|following) lines)\b"
    r"|(?:\bthen |\bnext |^|\bthere (?:are|follow) |\bby |\bfollow(?:s)? )(?:(?:come"
r"|follow|are|follows) )?(?P<count3>\S{1,12}(?: ?[-+*/] ?\S{1,6})?) lines\b(?: follow"
r"| describe|,| contain)?"),
    re.I,
)  # fmt: skip
_ROWS_FOLLOW = re.compile(rf"\b{_QUANTITY} lines (?:follow|describing|each)\b", re.I)
_ONE = re.compile(
    (
        rf"\b(?:{_ORDINAL} (?:input |and only |text )?line\b|line \d+\b|a (?:single "
        r"|new )?line\b|(?:each|every) (?:of these |of them |such |query |of the )?lines?\b"
        r"|\S{1,8}-th (?:of (?:these|them|those)(?: lines)?|(?:such )?line"
        r"|one|query|operation|event|row|pair|string|test case|edge)\b|(?:each"
        r"|every) (?:of them|of which|test ?case|query|containing|contain)\b"
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
_CUT = re.compile(
    (
        r",? (?:where|denoting|which|such that|meaning|whose|representing|describing"
        r"|indicating|separated|respectively|specifying|"
        r"that|if|so that|consisting|made up|either|composed|of \[|of numbers"
        r"|of the numbers|of integers from|of structure|from [\d'\"]|each of (?:them"
        r"|which)|corresponding|giving|equal to|means|as described|in (?:the )?(?:order"
        r"|format|form)|in (?:non|in|as|de)|in row|is the|are the|with the)\b"
        r"|"
        r", (?:the|their|its) (?!string|number of|array|length of)|, (?:an? )?description"
    ),
    re.I,
)
_NAME = (
    r"(?:[A-Za-z]{1,2}'?(?:_\{[^{}]{1,16}\}|_\w{1,3})?|[A-Za-z]{3,8}_(?:\{[^{}]{1,16}\}"
    r"|\w{1,3})|(?<=integer )[a-z]{3,4}(?= |$))"
)
_SERIES = re.compile(
    r"(?P<first>[A-Za-z]{1,8}'?)_(?P<low>\d|\{[^{}]{1,12}\})(?P<glue>[,\s]*)(?:(?P=first)_(?:\w|\{[^{}]{1,12}\})[,\s]*){0,4}\.\.\.[,\s]*(?P=first)_(?P<high>\w{1,3}|\{[^{}]{1,24}\})"
)
_ADJECTIVES = (
    r"(?:(?:single|space-separated|separated|distinct|positive|non-negative"
    r"|nonnegative|negative|integer|real|binary|decimal|different|pairwise"
    r"|unique|lowercase|uppercase|capital|small|Latin|English|more|natural"
    r"|space|additional|non-empty|non-zero|odd|even|prime|other|digit|floating"
    r"|point|floating-point|short)[ ,]{1,2}){0,4}"
)
_NOUN = (
    r"(?P<noun>integers?|numbers?|strings?|words?|characters?|letters?|symbols?"
    r"|digits?|values?|elements?|names?|pairs of integers|reals?|permutation"
    r"|array|sequence|bits?|lines)\b"
)
_AMOUNT = re.compile(
    (r"(?<!\w)(?:(?P<count>(?:an?|one|two|three|four|five|six|seven|eight"
rf"|nine|ten|exactly \d+|\d+|the|pair of)\b|{_NAME}(?: ?[-+*/] ?(?:{_NAME}"
rf"|\d{{1,3}}))?|\d{{1,3}} ?\*? ?{_NAME}|\({_NAME} ?[-+*] ?\w\)) )?{_ADJECTIVES}{_NOUN}"),
)  # fmt: skip
_GLUED = re.compile(r"characters?|letters?|symbols?|digits?|bits?")
_LENGTH = re.compile(
    r"(?:of|with|has|have|having) (?:the )?(?:length|size)(?: exactly| of)? (?P<a>[^\s,;.()]{1,10}(?:"
    r" ?[-+*] ?[^\s,;.()]{1,5})?)|(?:of|containing|with) (?:exactly )?(?P<b>[^\s,;.()]{1,10}) (?:lowercase"
    r" |uppercase |Latin |English |binary )*(?:characters?|letters?|symbols?"
    r"|digits?)|length-(?P<c>\w{1,3}) "
)
_LITERAL = re.compile(
    r"^[\"'“`]?(?P<tag>\d|[?!+^#&|-]|[A-Z]{1,8})[\"'”]?((?: (?:[a-z]\w{0,2}'?(?:_\w)?))*)[\"'”`]?(?= ?[.:;,"
    r"(—–-]| ?$| where)"
)


@dataclass(slots=True)
class _Part:
    """What a sentence says of one line, or of several."""

    lines: list[Line]  # ways to understand it
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


def _choices(parts: list[_Part]) -> Iterator[list[tuple[_Part, Line | None]]]:
    """One way to understand each part; the fewest departures from the likeliest first."""
    ways: list[list[Line | None]] = [[*part.lines, *([None] if len(parts) > 1 else [])] or [None] for part in parts]
    most = min(3, len(parts))
    for departures in range(most + 1):
        for marks in product((0, 1), repeat=len(parts)) if len(parts) <= 12 else [(0,) * len(parts)]:
            if sum(marks) != departures:
                continue
            options = [way[1:] if mark else way[:1] for way, mark in zip(ways, marks, strict=True)]
            for chosen in product(*options):
                yield list(zip(parts, chosen, strict=True))


def _assembled(chosen: list[tuple[_Part, Line | None]], cases: bool) -> Iterator[Node]:
    keys = count(1)
    top: list[Node] = []
    body = top
    name = ""
    pending: Expression | None = None
    tags: list[Line] = []

    def close() -> None:
        nonlocal pending
        if tags and pending is not None:
            body.append(Block(pending, (Choice(tuple(tags), f"#{next(keys)}"),), f"#{next(keys)}"))
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
                parts.append(_Part([Line(tuple(fields))], tag=True))
                continue
        parts += _of_sentence(sentence, names, unnamed)
    return parts


def _of_sentence(sentence: str, names: set[str], unnamed: Iterator[int]) -> Iterator[_Part]:
    bare = _without_brackets(sentence)
    marks = [
        (found.start(), found.end(), found)
        for pattern in (_ROWS, _ROWS_FOLLOW, _ONE)
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
        lines = list(_lines(said, names, unnamed))
        each = rows is None and bool(_EACH.search(found[0]))
        single = (
            lines[0].fields[0].name if lines and len(lines[0].fields) == 1 and lines[0].fields[0].count is None else ""
        )
        cases = single if single and (_CASES.search(sentence) or single.lower() == "t") and rows is None else ""
        if found.re is not _ONE and rows is None:
            continue
        if not lines and rows is None:
            continue
        yield _Part(lines, rows, each, cases, announces=rows is not None)
        last_rows = rows or last_rows


def _rows(found: re.Match[str]) -> Expression | None:
    if found.re is _ONE:
        return None
    groups = found.groupdict()
    text = next((value for key, value in groups.items() if key.startswith("count") and value), "")
    return _expression(text)


def _expression(text: str) -> Expression | None:
    text = text.strip().strip(",.:;")
    if text.lower() in NUMBERS:
        return expression(str(NUMBERS[text.lower()]))
    try:
        found = expression(text)
    except ValueError:
        return None
    if any(len(name) > 2 and not sub for name, sub in found.names()):
        return None
    return found


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


def _lines(content: str, names: set[str], unnamed: Iterator[int]) -> Iterator[Line]:
    """The ways to understand what a line contains."""
    whole = content
    cut = _CUT.split(content)[0]
    for text in dict.fromkeys((cut, whole)):
        fields = _fields(text, whole, names, unnamed)
        if fields:
            yield Line(tuple(fields))
            arrays = [f for f in fields if f.count is not None]
            if arrays and len(fields) == 1:
                yield Line(tuple(Field(f.name, None, "auto", f.count) for f in fields))  # written without spaces
            if (
                len(fields) == 1
                and arrays == []
                and re.search(r"elements|integers|numbers|values|sequence|array", text)
            ):
                yield Line((Field(fields[0].name, None, "rest"),))
            if len(fields) == 1 and fields[0].length is not None:
                yield Line((Field(fields[0].name, fields[0].length, "auto"),))


def _fields(text: str, whole: str, names: set[str], unnamed: Iterator[int]) -> list[Field]:
    found: list[tuple[int, Field]] = []
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        return all(end <= a or start >= b for a, b in taken)

    for length in _LENGTH.finditer(text):
        taken.append(length.span())
    spoken = _LENGTH.search(whole)
    long = _expression(spoken["a"] or spoken["b"] or spoken["c"]) if spoken else None
    for series in _SERIES.finditer(text):
        low, high = (series[key].strip("{} ") for key in ("low", "high"))
        if re.fullmatch(r"[ij] ?[a-z0-9]", high) and low[:1] == high[:1]:  # a_{i1} ... a_{im}
            high = high[1:].strip()
        try:
            start = int(low)
            high = f"({high})" if re.search(r"[-+]", high) else high
            repeated = expression(
                high if start == 1 else f"{high} + {1 - start}" if start < 1 else f"{high} - {start - 1}"
            )
        except ValueError:
            first = re.search(r"([^,]+)$", low), re.search(r"([^,]+)$", high)
            try:
                repeated = expression(first[1][1] if first[1] else high)
            except ValueError:
                continue
        glued = series["glue"] == "" and "," not in series[0] and " " not in series[0].split("...")[0].strip()
        name = series["first"]
        found.append(
            (
                series.start(),
                Field(name, None, "auto", repeated)
                if glued
                else Field(name, repeated, "auto", start=int(low) if low.isdigit() else 1),
            )
        )
        taken.append(series.span())
    amounts = []
    for amount in _AMOUNT.finditer(text):
        if not amount["count"] or amount["count"] in _SHORT_WORDS - {"an"}:
            continue
        start, end = amount.start("count"), amount.end("count")
        if not free(start, end):
            continue
        if amount["count"] not in NUMBERS and amount["count"] not in ("the", "pair of"):
            taken.append((start, end))
        amounts.append(amount)
    for name in re.finditer(rf"(?<![\w_'\"]){_NAME}(?![\w_'(]|\.\w|-th|-\w{{3}})", text):
        word = name[0]
        if not free(*name.span()) or not _is_name(word, text, name.end(), names):
            continue
        base, _, sub = word.partition("_")
        sub = sub.strip("{}")
        row = re.sub(r"^[i-n](?:, ?|(?=\d)|$)|^[i-n],? ?[i-n]$|, ?[i-n]$|^[a-z]$", "", sub.strip())
        if row == "" and any(f.name == base for _, f in found):
            row = sub
        found.append((name.start(), Field(f"{base}_{row}" if row else base, None, "auto")))
    for word in names:
        for at in re.finditer(rf"(?<![\w_]){re.escape(word)}(?![\w_])", text):
            if free(*at.span()) and not any(at.start() <= start < at.end() for start, _ in found) and len(word) > 2:
                found.append((at.start(), Field(word, None, "auto")))
    if len(amounts) > 1 and amounts[0]["count"] == "a" and amounts[0]["noun"] in ("sequence", "array", "permutation"):
        amounts = amounts[1:]
    for n, amount in enumerate(amounts):
        stop = amounts[n + 1].start() if n + 1 < len(amounts) else len(text)
        named = [f for start, f in found if amount.end() <= start < stop]
        word = amount["count"].removeprefix("exactly ")
        if word == "pair of":
            word = "two"
        number = NUMBERS.get(word) or (int(word) if word.isdigit() else None)
        noun = amount["noun"]
        if named:
            if (
                re.match(r"strings?|words?", noun)
                and len(named) == 1
                and long is not None
                and named[0].length is None
                and named[0].count is None
            ):
                spot = next(k for k, (_, f) in enumerate(found) if f is named[0])
                found[spot] = (found[spot][0], Field(named[0].name, None, "auto", long))
            elif (
                number is None
                and word != "the"
                and len(named) == 1
                and named[0].count is None
                and named[0].length is None
                and not re.match("lines", noun)
            ):
                many = _expression(word)
                spot = next(k for k, (_, f) in enumerate(found) if f is named[0])
                if many is not None:
                    whole_word = bool(_GLUED.fullmatch(noun))
                    found[spot] = (
                        found[spot][0],
                        Field(named[0].name, None if whole_word else many, "auto", many if whole_word else None),
                    )
            continue
        if word == "the" or noun == "lines":
            continue
        if number is None or number > 4:
            many = _expression(word)
            if many is None:
                continue
            name_ = f"v{next(unnamed)}"
            glued = bool(_GLUED.fullmatch(noun))
            found.append((amount.start(), Field(name_, None if glued else many, "auto", many if glued else None)))
        elif _GLUED.fullmatch(noun) and number > 1:
            found.append((amount.start(), Field(f"v{next(unnamed)}", None, "auto", expression(str(number)))))
        else:
            one = re.match(r"strings?|words?", noun)
            found += [
                (amount.start(), Field(f"v{next(unnamed)}", None, "auto", long if one else None)) for _ in range(number)
            ]
    fields: dict[str, Field] = {}
    for _, one_field in sorted(found, key=lambda pair: pair[0]):
        fields.setdefault(one_field.name, one_field)
    return list(fields.values())


_SHORT_WORDS = set(
    "in of is be or it as at by to on an if no we up do so us he me my go th st id ID OK It In If Is On Or".split()
)


def _is_name(word: str, text: str, end: int, names: set[str]) -> bool:
    if "_" in word:
        return True
    if len(word) > 1:
        return word in names or word not in _SHORT_WORDS
    if word in "aAI":
        after = text[end:]
        return not re.match(r" (?!and\b|or\b)[A-Za-z]{2,}", after) and not re.match(r" \w+-", after)
    return True
