"""Policy `robust` for text: tokens, lines, numbers, words, literals, and unordered lines where declared.

Equal stretches are compared as whole lists inside the interpreter's C code; Python looks at single tokens only where
they differ, and stops at the first difference that nothing can save. Text is split block by block, so that two outputs
of 16 MB never become millions of objects at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...schema import Compare
from . import literal, unordered
from .keys import Words
from .match import Match, differ, shorten, weakest
from .numbers import DEFAULT_TOLERANCE, same_floats, same_token

_SPACE = re.compile(rb"\s")
_BLOCK = 1 << 16
_LITERAL_START = re.compile(rb"""(?m)^[ \t]*(?:[\[({"']|(?:[Tt]rue|[Ff]alse|None|null)\b)""")
_MARKS = (b"[", b"(", b"{", b'"', b"'", b"rue", b"alse", b"None", b"null")  # found faster than the pattern is not


def robust(got: bytes, expected: bytes, rules: Compare, test_input: bytes) -> Match:
    if got == expected:
        return Match("bytes", "")
    if got.rstrip() == expected.rstrip() or _tidy(got) == _tidy(expected):
        return Match("lines" if rules.lines else "tokens", "")
    tokens = Tokens(expected, rules, test_input)
    found = tokens.lines(got, expected) if rules.lines else tokens.stream(got, expected)
    if not found.strategy and any(mark in expected for mark in _MARKS) and _LITERAL_START.search(expected):
        # An equal literal is not many times longer, so the work is bounded by the size of the expected text.
        if len(got) <= 4 * len(expected) + 1000 and _literals(got, expected, tokens):
            found = Match("literal", "")
    if not found.strategy and rules.unordered and unordered.same_lines(got, expected, tokens):
        found = Match("unordered", "")
    return found


class Tokens:
    """Compare the tokens of two texts; `lenient` decides about pairs of tokens that differ."""

    def __init__(self, expected: bytes, rules: Compare, test_input: bytes) -> None:
        self.tolerance = DEFAULT_TOLERANCE if rules.tolerance is None else rules.tolerance
        self.by_line = rules.lines
        self.words = Words(expected, test_input)

    def lenient(self, got: bytes, expected: bytes) -> str:
        if same_token(got, expected, self.tolerance):
            return "numbers"
        return "words" if self.words.same(got, expected) else ""

    def stream(self, got: bytes, expected: bytes) -> Match:
        """All tokens, in order, however they are spread over lines."""
        needed = {"tokens"}
        left, right = _blocks(got), _blocks(expected)
        g: list[bytes] = []
        e: list[bytes] = []
        seen = 0
        while True:
            g = g or next(left, [])
            e = e or next(right, [])
            n = min(len(g), len(e))
            if n == 0:
                break
            if g[:n] != e[:n]:
                unequal = [i for i, (a, b) in enumerate(zip(g, e, strict=False)) if a != b]
                if same_floats([g[i] for i in unequal], [e[i] for i in unequal], self.tolerance):
                    needed.add("numbers")
                    unequal = []
                for i in unequal:
                    strategy = self.lenient(g[i], e[i])
                    if not strategy:
                        return differ(f"token {seen + i + 1}: got {shorten(g[i])}, expected {shorten(e[i])}")
                    needed.add(strategy)
            g, e = g[n:], e[n:]
            seen += n
        if g:
            return differ(f"extra output after token {seen}: {shorten(g[0])}")
        if e:
            return differ(f"output ends after token {seen}, expected {shorten(e[0])}")
        return Match(weakest(needed), "")

    def lines(self, got: bytes, expected: bytes) -> Match:
        """The same, and as many of them on each line; trailing blank lines and spaces do not count."""
        found = self.stream(got, expected)
        if not found.strategy:
            return found
        got, expected = got.rstrip(), expected.rstrip()
        counts = got.count(b"\n") + 1, expected.count(b"\n") + 1
        if counts[0] != counts[1]:
            return differ(f"{counts[0]} lines, expected {counts[1]}")
        for number, (a, b) in enumerate(zip(got.split(b"\n"), expected.split(b"\n"), strict=True), start=1):
            if a != b and len(a.split()) != len(b.split()):
                return differ(f"line {number}: got {shorten(a)}, expected {shorten(b)}")
        return Match("lines", "") if found.strategy == "tokens" else found


def _tidy(text: bytes) -> bytes:
    """Strip trailing white space from the text and from each line."""
    return text.rstrip().replace(b"\r\n", b"\n").replace(b" \n", b"\n")


def _literals(got: bytes, expected: bytes, tokens: Tokens) -> bool:
    """The whole text is one literal, or each line is equal as tokens or as a literal."""
    if not tokens.by_line and _LITERAL_START.match(expected.lstrip()):
        if literal.same(got, expected, tokens.tolerance):
            return True
    g, e = ([line for line in text.split(b"\n") if tokens.by_line or line.strip()] for text in (got, expected))
    if tokens.by_line:
        while g and not g[-1].strip():
            g.pop()
        while e and not e[-1].strip():
            e.pop()
    return len(g) == len(e) and all(
        a == b or tokens.stream(a, b).strategy or (_LITERAL_START.match(b) and literal.same(a, b, tokens.tolerance))
        for a, b in zip(g, e, strict=True)
    )


def _blocks(data: bytes) -> Iterator[list[bytes]]:
    """The tokens of `data`, in non-empty lists from pieces of about 64 KB that end between tokens."""
    start = 0
    while start < len(data):
        cut = _SPACE.search(data, start + _BLOCK)
        end = cut.start() if cut else len(data)
        tokens = data[start:end].split()
        if tokens:
            yield tokens
        start = end
