r"""Write LaTeX in one notation ($x$ inline, $$x$$ displayed), turn LaTeX for text into Markdown, restore exponents.

`$$$x$$$` (Codeforces), `\(x\)` and `\[x\]` become dollars; the formula between them (\le, \frac) is kept. Outside
formulas \textbf{x}, \emph{x}, \texttt{x}, sections and items become Markdown, and \text{x} becomes x.

Exponents are restored where a page lost them with its superscripts:
1. In the constraints of LeetCode, "1 <= n <= 105" and "in the range [1, 5 * 104]" mean 10^5 and 10^4. Only there, only
   in lines that give a limit, only where no "^" shows that exponents survived, and only for the powers that such limits
   are made of: 10^3 ... 10^16, 10^18, 2^31, 2^63.
2. "modulo 109 + 7" means 10^9 + 7 in any place. 109 + 7 without a modulo is not changed.
3. On a line about 32-bit or 64-bit integers, -231, "231 - 1" and "< 231" mean 2^31; 2^63 likewise.
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
    """Normalise the LaTeX of the statement; the title is not changed."""
    problem = record.problem
    statement = on_prose(normal(problem.statement), _unwrapped, within=True)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: latex normalised")
    return record


def normal(text: str) -> str:
    """Return the text with every formula between dollars."""
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
        escaped = before.isalnum() or before in ("_", "/", "]")  # in a link, such as wiki/Path_\(graph_theory\)
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
_LIMIT = re.compile(r"<|\b(?:range|less than|smaller than|fewer than|at most|up to|not exceed)\b")
_POWER = re.compile(r"(?<![\w.^])(?:(10)([3-9]|1[0-68])|(2)(31|63))(?!\w|\.\d)")
_PRIME = r"(?<![\w.^])109 ?\+ ?[79](?!\w|\.\d)"
_MODULO = re.compile(rf"(?:\bmod(?:ulo|ulus)?\b|%|\bremainder\b|\bdivid\w{{2,5}}\b)[^.\n]{{0,40}}?{_PRIME}", re.I)
_MODULUS = re.compile(rf"(?={_PRIME})(10)(9)")
# "1018 modulo (10^9 + 7)": the number 1018 would need no modulo
_REDUCED = re.compile(r"(?<![\w.^])(10)(1[0-68])(?= (?:modulo|mod|%) \(?10\^9 ?\+)")
_BITS = re.compile(r"\b(?:32|64)[- ]bit\b", re.I)
_WORD_SIZE = re.compile(r"(?<![\w.^])(?:(?<=-)(?<!\w-)|(?<=< )|(?=2\d\d ?- ?1(?!\w|\.\d)))(2)(31|63)(?!\w|\.\d)")


def restore_exponents(record: Record) -> Record:
    """Restore the exponents of limits, of the modulus 10^9 + 7, and of the sizes of machine words."""
    problem = record.problem
    statement = restored_limits(problem.statement) if problem.platform == "leetcode" else problem.statement
    if _MODULO.search(statement):
        statement = on_prose(statement, lambda text: _REDUCED.sub(_written, _MODULUS.sub(_written, text)))
    if _BITS.search(statement):
        statement = on_prose(statement, _restored_bits)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: exponents restored")
    return record


def restored_limits(statement: str) -> str:
    """Restore the powers in the last section of constraints."""
    headings = list(_HEADING.finditer(statement))
    at = headings[-1].end() if headings else len(statement)
    before, limits = statement[:at], statement[at:]
    if "^" in limits or "<sup" in limits:
        return statement
    lines = [_POWER.sub(_written, line) if _LIMIT.search(line) else line for line in limits.split("\n")]
    return before + "\n".join(lines)


def _restored_bits(text: str) -> str:
    return "\n".join(_WORD_SIZE.sub(_written, line) if _BITS.search(line) else line for line in text.split("\n"))


def _written(match: re.Match[str]) -> str:
    return "^".join(filter(None, match.groups()))
