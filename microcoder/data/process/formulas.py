r"""LaTeX in one notation: $x$ in a line and $$x$$ apart; what was LaTeX for text becomes Markdown. Exponents restored.

`$$$x$$$` (Codeforces), `\(x\)` and `\[x\]` become dollars; what stands between them (\le, \frac) is kept. Outside
formulas \textbf{x}, \emph{x}, \texttt{x}, sections and items become Markdown's, and \text{x} is unwrapped.

Exponents are those that a page lost with its superscripts: "1 <= n <= 105" on LeetCode means 10^5. Only there, only in
the lines of constraints, only where no "^" shows that exponents survived, and only for the powers that such limits are
made of: 10^3 ... 10^9, 10^10, 10^12, 10^15, 10^18, 2^31, 2^63.
"""

from __future__ import annotations

import re

from ..record import Record
from .samples import blocks, inline, on_prose

_CODE = re.compile(r"\\(?:texttt|t|verb)\{([^{}`\n]{1,400})\}")
_BOLD = re.compile(r"\\(?:textbf|bf)\{([^{}\n]{1,400})\}")
_ITALIC = re.compile(r"\\(?:textit|textsl|emph|it)\{([^{}\n]{1,400})\}")
_WRAPPED = re.compile(r"\\(?:textrm|textsf|textsc|textnormal|text|mbox)\{([^{}]{0,2000})\}")
_SECTION = re.compile(r"\\(?:sub){0,2}section\*?\{([^{}\n]{1,200})\}")
_LIST = re.compile(r"[ \t]{0,20}\\(?:begin|end)\{(?:itemize|enumerate|center|problem|description)\}[ \t]{0,20}\n?")
_ITEM = re.compile(r"^[ \t]{0,20}\\item[ \t]{0,20}", re.M)
_QUOTED = re.compile(r"``([^`'\n]{1,400})''")
_FORMULA = re.compile(r"[\\^_=<>+]|^\s*[A-Za-z]\s*$")  # not an escaped bracket of Markdown, as in \[1, 2\]


def normalise_latex(record: Record) -> Record:
    """The statement; the title is left alone."""
    problem = record.problem
    statement = on_prose(normal(problem.statement), _unwrapped, within=True)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: latex normalised")
    return record


def normal(text: str) -> str:
    """Every formula between dollars."""
    if "$" not in text and "\\" not in text:
        return text
    out: list[str] = []
    for block in blocks(text):
        if block.kind != "prose":
            out.append(block.text)
            continue
        for part in inline(block.text):
            before = out[-1][-1:] if out else ""
            out.append(_dollars(part.text, before) if part.kind == "formula" else part.text)
    return "".join(out)


def _dollars(formula: str, before: str) -> str:
    if formula.startswith("$$$"):
        inner = formula.strip("$")
        apart = formula.startswith("$$$$") or "\n" in inner or "\\begin" in inner
    elif formula[0] == "\\":
        inner, apart = formula[2:-2], formula[1] == "["
        escaped = before.isalnum() or before in ("_", "/", "]")  # of a link, as in wiki/Path_\(graph_theory\)
        if escaped or (apart and not _FORMULA.search(inner)):
            return formula
    else:
        return formula
    inner = inner.strip()
    if not inner or "$" in inner:
        return formula
    return f"$${inner}$$" if apart else f"${inner}$"


def _unwrapped(text: str) -> str:
    if "\\" not in text and "``" not in text:
        return text
    text = _SECTION.sub(r"## \1", _ITEM.sub("- ", _LIST.sub("", text)))
    text = _ITALIC.sub(r"*\1*", _BOLD.sub(r"**\1**", _CODE.sub(r"`\1`", text)))
    return _QUOTED.sub(r'"\1"', _WRAPPED.sub(r"\1", text))


# --- exponents

_HEADING = re.compile(r"^[\s#*_]{0,8}Constraints\W{0,8}$", re.M | re.I)
_POWER = re.compile(r"(?<![\w.^])(?:(10)([3-9]|10|12|15|18)|(2)(31|63))(?![\w.])")


def restore_exponents(record: Record) -> Record:
    problem = record.problem
    headings = list(_HEADING.finditer(problem.statement)) if problem.platform == "leetcode" else []
    if not headings:
        return record
    at = headings[-1].end()
    before, limits = problem.statement[:at], problem.statement[at:]
    if "^" not in limits and "<sup" not in limits:
        lines = [_POWER.sub(_written, line) if "<" in line else line for line in limits.split("\n")]
        if (restored := "\n".join(lines)) != limits:
            problem.statement = before + restored
            record.did("process: exponents restored")
    return record


def _written(match: re.Match[str]) -> str:
    return "^".join(filter(None, match.groups()))
