"""Normal forms of statements, programs and tests, for comparisons.

`words` are the visible words in lower case, with numbers and without markup and LaTeX commands. `blind` is the same
with every variable and proper name as "#", so that "Alice has n coins" and "Bob has k coins" are one text. `code` does
that to a program, and `cases` to tests of any kind. All of them take time linear in the text, even for hostile texts.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from ...schema import Problem
from ..record import Dropped, Record

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # written without spaces: each character counts as a word
_WORD = re.compile(rf"[{_CJK}]|[^\W\d_{_CJK}]+|\d+")
_LATEX = re.compile(r"\\[A-Za-z]+")
_NAME = re.compile(r"\w+")
_CAPITAL = re.compile(r"(?<=[\w,'\"(] )[A-Z][a-z]+\b")  # in a sentence: a name, if it never occurs in lower case
# A string that is never closed ends with its line or its file: repeated searches for its end would be quadratic.
_STRING = r'"""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?'
_REST = rf"(?P<string>{_STRING})|\d[\w.]*|(?P<name>[^\W\d]\w*)|[^\w\s]"
_PYTHON = re.compile(rf"(?P<comment>#[^\n]*)|{_REST}")
_CURLY = re.compile(rf"(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))|{_REST}")
_BOUND = re.compile(r"\b([^\W\d]\w*)[ \t]*=(?!=)|\bfor[ \t]+([^\W\d]\w*)|\bdef[ \t]+(\w+[ \t]*\([^()]{0,500})")
_KNOWN = {*keyword.kwlist, *dir(builtins), "self", *"auto char const do double long switch void".split()}
_VALUE = re.compile(rf"#[^\n]*|(?P<string>{_STRING})|-?\d[\w.]*|(?P<name>[^\W\d]\w*)|==")
_BREAKS = {"assert": "\0assert", "==": "\0=="}  # unlike any value
_CONSTANTS = {"True": "true", "False": "false", "None": "none", "true": "true", "false": "false", "null": "none"}


def statement(record: Record) -> str:
    """Return the statement; drop a problem whose statement is no text."""
    text = record.problem.statement
    if not isinstance(text, str):
        raise Dropped("malformed", f"the statement is of type {type(text).__name__}, not text")
    return text


def words(text: str) -> list[str]:
    return _WORD.findall(_plain(text).lower())


def blind(text: str) -> list[str]:
    """Return words with every identifier (x, a_i, maxSum, x2) and proper name as "#", consecutive ones as one."""
    text = _plain(text)
    tokens = _NAME.findall(text)
    distinct = set(tokens)
    proper = {name for name in _CAPITAL.findall(text) if name.lower() not in distinct}
    known = {t: ["#"] if t in proper or _identifier(t) else _WORD.findall(t.lower()) for t in distinct}
    out: list[str] = []
    for token in tokens:
        form = known[token]
        if form != ["#"] or out[-1:] != form:
            out += form
    return out


def identifiers(text: str) -> set[str]:
    """Return the names of variables and functions in a text, without those of one letter."""
    return {token for token in set(_NAME.findall(text)) if len(token) > 1 and _identifier(token)}


def _plain(text: str) -> str:
    if not text.isascii():  # in pieces: Python takes quadratic time to sort many combining marks
        text = "".join(unicodedata.normalize("NFKC", text[n : n + 1000]) for n in range(0, len(text), 1000))
    return _LATEX.sub(" ", text)


def _identifier(token: str) -> bool:
    if not token.isascii() or token.isdigit():
        return False
    return len(token) == 1 or not token.isalpha() or not (token[1:].islower() or token.isupper())


def code(text: str, language: str = "python") -> list[str]:
    """Return the tokens of a program without comments and docstrings, with every user-defined name as "v"."""
    bound = {name for match in _BOUND.findall(text) for part in match for name in _NAME.findall(part)}
    kept = _KNOWN - (bound - {"self"})  # after `max = 0`, or `def f(list)`, these are user-defined
    out: list[str] = []
    for match in (_PYTHON if language in ("", "py") or "python" in language.lower() else _CURLY).finditer(text):
        token = match[0]
        if match.lastgroup == "string":
            if not token.startswith(('"""', "'''")):
                out.append(token.strip("\"'"))
        elif match.lastgroup == "name":
            method = out[-1:] == ["."] and out[-2:-1] != ["self"]
            out.append(token if method or token in kept else "v")
        elif match.lastgroup != "comment" and token not in "(),;":  # these depend on the formatting
            out.append(token)
    return out


def cases(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield (input, output) of each test as bare values without names and brackets, in one form for all kinds."""
    parts: Callable[[str], Iterable[str]] = str.split if problem.kind == "stdin" else _values
    for test in problem.tests:
        yield " ".join(parts(test.input)), " ".join(parts(test.output))
    for program in problem.asserts:
        yield from _asserted(program)


def _values(text: str) -> Iterator[str]:
    """Yield the literals of a Python or JSON text, and marks between assertions and their sides."""
    for match in _VALUE.finditer(text):
        token = match[0]
        if match.lastgroup == "string":
            yield token.strip("\"'")
        elif token in _BREAKS:
            yield _BREAKS[token]
        elif match.lastgroup == "name":
            if token in _CONSTANTS:
                yield _CONSTANTS[token]
        elif token[0] != "#":
            yield token


def _asserted(program: str) -> Iterator[tuple[str, str]]:
    """Yield (input, expected value) of each assertion: the values before and after its last `==`."""
    equals = _BREAKS["=="]
    parts: list[list[str]] = []
    for token in _values(program):
        if token == _BREAKS["assert"]:
            parts.append([])
        elif parts:
            parts[-1].append(token)
    for part in parts:
        middle = len(part) - 1 - part[::-1].index(equals) if equals in part else len(part)
        yield " ".join(part[:middle]), " ".join(part[middle + 1 :])
