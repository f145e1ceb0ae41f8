r"""Layouts from a format that a statement shows, as AtCoder's do.

    N M                       a line of fields
    A_1 A_2 \ldots A_N        as many fields as the last index says
    L_1 R_1                   a block: rows whose indices run, with dots between them
    \vdots
    L_M R_M
    \mathrm{case}_1 ...       a block whose body is the next format ("Each case is given in the following format")

Several formats that begin with different words are the types of a query.
"""

from __future__ import annotations

import re
from itertools import count

from ..reading.headings import plain
from ..reading.terms import Expression, expression
from .shape import Block, Field, InputLine, Layout, Node, OneOf

_INNER = re.compile(r"(?:case|query|test|testcase|text|operation|event|dataset|input)s?", re.I)
_NAME = re.compile(r"([A-Za-z]+'?)(?:_(\{[^{}]*\}|\w+))?")
_WORD = re.compile(r"[A-Za-z]+'?(?:_\{[^{}]*\}|_\w)?|\d+|[?!+#-]|\.\.\.|:")
Row = list[tuple[str, str]]  # (name, index) for each word; (":", "") for dots


class NoFormat(ValueError):
    """A format that is not understood."""


def format_layout(section: str) -> Layout:
    """The layout that an Input section shows; NoFormat where it shows none that is understood."""
    groups = _groups(plain(section))
    if not groups:
        raise NoFormat("there is no format")
    reader = _FormatReader(groups)
    body = reader.nodes(groups[0])
    return Layout(tuple(body))


def _groups(text: str) -> list[list[Row]]:
    """The formats in the text: runs of lines that hold nothing but names, numbers and dots."""
    found: list[list[Row]] = []
    run: list[Row] = []
    announced = False
    for line in [*text.split("\n"), ""]:
        row = _row(line.strip()) if announced else None
        if row:
            run.append(row)
            continue
        if run:
            found.append(run)
            run = []
        if line.strip():
            announced = bool(re.search(r"format|form\b|forms\b|follow|types?\b", line)) or (announced and ":" in line)
    return found


def _row(line: str) -> Row | None:
    if line in ("...", ":", "(dots)"):
        return [(":", "")]
    words: Row = []
    for part in re.sub(r"_\{([^{}]*)\}", lambda m: "_{" + m[1].replace(" ", "") + "}", line).split():
        pieces = _WORD.findall(part)
        if "".join(pieces) != part:
            return None
        for n, piece in enumerate(pieces):
            if piece in ("...", ":"):
                words.append((":", "glued" if len(pieces) > 1 else ""))
            else:
                name = _NAME.fullmatch(piece)
                base, index = (name[1], (name[2] or "").strip("{}")) if name else (piece, "")
                if name and not index and len(base) > 6 and base.islower():
                    return None
                if n and not (name and index):
                    return None  # words of a sentence, not values side by side
                words.append((base, index + ("&" if n else "")))  # &: glued to the one before
    return words or None


class _FormatReader:
    def __init__(self, groups: list[list[Row]]) -> None:
        self.groups, self.next, self.keys = groups, 1, count(1)

    def nodes(self, rows: list[Row]) -> list[Node]:
        nodes: list[Node] = []
        at = 0
        while at < len(rows):
            dots = next((n for n in range(at, len(rows)) if rows[n] == [(":", "")]), len(rows))
            size, start = self._period(rows, at, dots)
            if size == 0:
                if dots == at:
                    raise NoFormat("dots after nothing")
                nodes.append(self._line(rows[at]))
                at += 1
                continue
            if start > at:
                nodes.append(self._line(rows[at]))
                at += 1
                continue
            nodes.append(self._block(rows[start], rows[dots + 1 : dots + 1 + size]))
            at = dots + 1 + size
        return nodes

    def _period(self, rows: list[Row], at: int, dots: int) -> tuple[int, int]:
        """(how many rows repeat before and after these dots, where the first of them is); (0, 0) without any."""
        for size in range(1, 6):
            first, last = rows[dots - size : dots], rows[dots + 1 : dots + 1 + size]
            if dots - size < at or len(last) < size:
                break
            if _shape(first) == _shape(last) and last[0][0][1] and not last[0][0][1].split(",")[0].isdigit():
                start = dots - size
                while start - size >= at and _shape(rows[start - size : start]) == _shape(last):
                    start -= size
                return size, start
        return 0, 0

    def _block(self, first: Row, last: list[Row]) -> Block:
        start, end = first[0][1].split(",")[0].rstrip("&"), last[0][0][1].split(",")[0].rstrip("&")
        repeated = _span(start, end)
        base = last[0][0][0]
        key = f"#{next(self.keys)}"
        if len(last) == 1 and len(last[0]) == 1 and _INNER.fullmatch(base) and self.next < len(self.groups):
            return Block(repeated, tuple(self._inner()), key)
        return Block(repeated, tuple(self._line(row, end) for row in last), key)

    def _inner(self) -> list[Node]:
        groups, self.next = self.groups[self.next :], len(self.groups)
        tagged = [g for g in groups if len(g) == 1 and (g[0][0][0].isdigit() or not g[0][0][0].isalnum())]
        rows = [row for group in groups for row in group]
        tags = [row[0][0] for row in rows]
        if (len(tagged) == len(groups) or len(rows) == len(groups[0])) and len(set(tags)) == len(tags) > 1:
            if all(tag.isdigit() or not tag.isalnum() for tag in tags):
                lines = tuple(
                    InputLine((Field(row[0][0], kind="tag"), *self._line(row[1:]).fields)) if row[1:] else
                    InputLine((Field(row[0][0], kind="tag"),))
                    for row in rows
                )  # fmt: skip
                return [OneOf(lines, f"#{next(self.keys)}")]
        self.next = len(self.groups) - len(groups) + 1
        return self.nodes(groups[0])

    def _line(self, row: Row, outer: str = "") -> InputLine:
        """The fields of a row. `outer`: the last index of the block around it, which is no part of a name."""
        fields: list[Field] = []
        at = 0
        while at < len(row):
            dots = next((n for n in range(at, len(row)) if row[n][0] == ":"), len(row))
            if dots + 1 < len(row) and dots > at:
                last = row[dots + 1]
                begin = next((n for n in range(at, dots) if row[n][0] == last[0]), None)
                if begin == at:
                    low, high = (_own(index, outer) for index in (row[at][1], last[1]))
                    repeated = _span(low, high, outer)
                    glued = (
                        row[dots][1] == "glued" or last[1].endswith("&") or (dots > at + 1 and "&" in row[at + 1][1])
                    )
                    if glued:
                        fields.append(Field(last[0], None, "auto", repeated))
                    else:
                        fields.append(Field(last[0], repeated, "auto", start=int(low)))
                    at = dots + 2
                    continue
            name, index = row[at]
            if name == ":":
                raise NoFormat("dots that are not understood")
            index = _own(index.rstrip("&"), outer)
            fields.append(Field(f"{name}_{index}" if index else name, None, "auto"))
            at += 1
        return InputLine(tuple(fields))


def _shape(rows: list[Row]) -> list[list[str]]:
    return [[name for name, _ in row if name != ":"][:1] + sorted({name for name, _ in row}) for row in rows]


def _own(index: str, outer: str) -> str:
    """The part of an index that does not belong to the block around the row."""
    index = index.rstrip("&")
    if not outer:
        return index
    if index == outer:
        return ""
    return index.removeprefix(outer + ",").removesuffix("," + outer) if "," in index else index


def _span(low: str, high: str, outer: str = "") -> Expression:
    """How many indices there are from one to the other. K_N, in the N-th row, is the K of that row."""
    high = re.sub(rf"_\{{?{re.escape(outer)}\}}?(?![\w])", "", high) if outer else high
    high = f"({high})" if re.search(r"[-+]", high) else high
    try:
        if not low.isdigit():
            raise NoFormat(f"an index that begins at {low!r}")
        shift = 1 - int(low)
        text = high if not shift else f"{high} + {shift}" if shift > 0 else f"{high} - {-shift}"
        return expression(text)
    except ValueError as error:
        raise NoFormat(str(error)) from None
