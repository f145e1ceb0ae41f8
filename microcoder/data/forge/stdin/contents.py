"""What a line contains, in prose: "two integers n and m", "n space-separated integers a_1, ..., a_n"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..reading.terms import Expression, expression
from .shape import Field, InputLine

NUMBERS = {"a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
           "eight": 8, "nine": 9, "ten": 10, "pair": 2}  # fmt: skip
_CUT = re.compile(
    (
        r",? (?:where|denoting|which|such that|meaning|whose|representing|describing"
        r"|indicating|separated|respectively|specifying|"
        r"that|if|so that|consisting|made up|either|composed|of \[|of numbers"
        r"|of the numbers|of integers from|of structure|from [\d'\"]|each of (?:them"
        r"|which)|corresponding|giving|equal to|means|as described|in (?:the )?(?:order"
        r"|format|form)|in (?:non|in|as|de)|in row|is the|are the|with the|satisfying)\b"
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
    r"|unique|lowercase|uppercase|lower case|upper case|ASCII|capital|small|Latin|English|more|natural"
    r"|space|additional|non-empty|non-zero|odd|even|prime|other|digit|floating"
    r"|point|floating-point|short)[ ,]{1,2}){0,4}"
)
_NOUN = (
    r"(?P<noun>integers?|numbers?|strings?|words?|characters?|letters?|symbols?"
    r"|digits?|values?|elements?|names?|pairs of integers|reals?|permutation"
    r"|array|sequence|bits?|lines|[a-z]{3,14}s(?=,? (?:all )?(?:space-)?separated\b))\b"
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
    r" |uppercase |lower case |upper case |ASCII |Latin |English |binary )*(?:characters?|letters?|symbols?"
    r"|digits?)|length-(?P<c>\w{1,3}) "
)


def counted_by(text: str) -> Expression | None:
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


def contents(content: str, names: set[str], unnamed: Iterator[int]) -> Iterator[InputLine]:
    """The ways to understand what a line contains."""
    whole = content
    cut = _CUT.split(content)[0]
    if columns := _columns(whole):
        yield columns
    for text in dict.fromkeys((cut, whole)):
        fields = _fields(text, whole, names, unnamed)
        if fields:
            yield InputLine(tuple(fields))
            arrays = [f for f in fields if f.count is not None]
            if arrays and len(fields) == 1:
                yield InputLine(tuple(Field(f.name, None, "auto", f.count) for f in fields))  # written without spaces
            if (
                len(fields) == 1
                and arrays == []
                and re.search(r"elements|integers|numbers|values|sequence|array", text)
            ):
                yield InputLine((Field(fields[0].name, None, "rest"),))
            if len(fields) == 1 and fields[0].length is not None:
                yield InputLine((Field(fields[0].name, fields[0].length, "auto"),))


_COLUMN = re.compile(r"(?:the|its|their|an?) (?:\w+ ){0,2}?(?P<noun>[a-z]{3,20})(?: of (?:the|that|this|each) \w+)?")


def _columns(text: str) -> InputLine | None:
    """ "the name of the dog, the weight and the price": values that go by a word."""
    text = re.sub(r"^\s*(?:will )?(?:contains?|has|have|holds?|gives?|consists? of|with)\s+", "", text)
    parts = re.split(r",? and |, ", text.strip(" .:"))
    found = [_COLUMN.fullmatch(part.strip()) for part in parts]
    nouns = [one["noun"] for one in found if one]
    if len(nouns) < len(parts) or len(set(nouns)) < len(nouns) or len(nouns) < 2 or re.search("number|integer", text):
        return None
    return InputLine(tuple(Field(noun, None, "auto") for noun in nouns))


def _fields(text: str, whole: str, names: set[str], unnamed: Iterator[int]) -> list[Field]:
    found: list[tuple[int, Field]] = []
    taken: list[tuple[int, int]] = []

    def free(start: int, end: int) -> bool:
        return all(end <= a or start >= b for a, b in taken)

    for length in _LENGTH.finditer(text):
        taken.append(length.span())
    spoken = _LENGTH.search(whole)
    long = counted_by(spoken["a"] or spoken["b"] or spoken["c"]) if spoken else None
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
        if len(word) == 1 and word in "ijk" and re.search(rf"[A-Za-z]_\{{?{word}\b", text):
            continue  # an index
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
                many = counted_by(word)
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
            many = counted_by(word)
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
    if not found and spoken:  # "with n letters", and nothing else
        found.append((0, Field(f"v{next(unnamed)}", None, "auto", long)))
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
