"""A table as text for the terminal, as Markdown and as LaTeX; and words made safe for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 100
NARROW = 8  # a column of words is not cut further
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "×": r"$\times$"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}


@dataclass(frozen=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1  # columns of words; those of numbers follow


def known(form: str, value: Any, otherwise: str = "-") -> str:
    return otherwise if value is None else form.format(value)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent(share: float | None, digits: int = 1) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def plain(words: str) -> str:
    """Put words on one line, without control characters, half surrogates or whatever else a terminal might obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def for_markdown(words: str) -> str:
    """Escape words so that Markdown shows them as they are, in a table or out of it."""
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", plain(words))


def for_latex(words: str) -> str:
    return re.sub(r"[\\~^×<>|&%$#_{}]", lambda found: _LATEX.get(found[0], "\\" + found[0]), plain(words))


def piped(table: Table) -> str:
    """Write a table in Markdown."""
    line = ["---"] * table.words + ["---:"] * (len(table.head) - table.words)
    rows = [map(for_markdown, table.head), line, *(map(for_markdown, row) for row in table.rows)]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows) if table.rows else ""
    return f"## {table.title}\n\n{body}".rstrip()


def aligned(table: Table, most: int | None = None, rest: str = "") -> str:
    """Write a table as text, at most `most` rows; `rest` says where the others are.

    The widest columns of words are cut where it is too wide.
    """
    rows = [[plain(each) for each in row] for row in (table.head, *table.rows[:most])]
    widths = [min(WIDTH, max(map(len, column))) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * len(widths) > WIDTH and max(widths[: table.words], default=0) > NARROW:
        widths[widths.index(max(widths[: table.words]))] -= 1
    lines = [table.title]
    for row in rows if table.rows else ():
        cells = (_fitted(each, width, n < table.words) for n, (each, width) in enumerate(zip(row, widths, strict=True)))
        lines.append("  " + "  ".join(cells).rstrip())
    hidden = len(table.rows) - len(rows) + 1
    return "\n".join(lines) + (f"\n  and {hidden:,} more{rest}" if hidden else "")


def tabular(table: Table, caption: str = "") -> str:
    """Write a table in LaTeX; it needs the package booktabs. The caption is LaTeX already; else it is the title."""
    lines = [" & ".join(map(for_latex, row)) + r" \\" for row in (table.head, *table.rows)]
    return in_latex("l" * table.words + "r" * (len(table.head) - table.words), lines[:1], lines[1:],
                    caption or for_latex(table.title))  # fmt: skip


def in_latex(columns: str, head: Sequence[str], rows: Sequence[str], caption: str) -> str:
    """Put lines that are LaTeX already into a table with rules."""
    start = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{columns}}}"]
    end = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*start, r"\toprule", *head, r"\midrule", *rows, *end]) + "\n"


def _fitted(words: str, width: int, left: bool) -> str:
    words = words if len(words) <= width else words[: width - 3] + "..."
    return words.ljust(width) if left else words.rjust(width)
