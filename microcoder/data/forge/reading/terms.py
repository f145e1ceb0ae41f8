"""Formulas of statements: "n - 1", "2n", "N(N-1)/2", "min(n, m)", "|s|", "a_{i+1}".

expression("2n + 1").value(look)    # `look` gives the value of a name with its subscript
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z]+'?(?:_\{[^{}]*\}|_[A-Za-z]{2,}\b|_\d+|_[A-Za-z])?)|(?P<sign>[-+*/^(),|]))"
)
LARGE = 4000  # digits of a number, and bits of an exponent, that are still worked with
Look: TypeAlias = Callable[[str, str], Any]  # (name, subscript) -> value; Unknown where there is none


class Unknown(Exception):
    """A value that is not there (yet)."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula over names, as a tree: ("number", 3), ("name", "a", "i+1"), ("-", left, right), ("length", x)."""

    tree: tuple[Any, ...]
    text: str

    def value(self, look: Look) -> int:
        return int(_value(self.tree, look))

    def names(self) -> list[tuple[str, str]]:
        """Every (name, subscript) in it."""
        return list(_names(self.tree))

    @property
    def single(self) -> tuple[str, str] | None:
        """(name, subscript) where the expression is nothing but a name."""
        return (self.tree[1], self.tree[2]) if self.tree[0] == "name" else None


def expression(text: str, known: Mapping[str, Any] | None = None) -> Expression:
    """Read an expression; ValueError where it is none. With `known`, "nm" is a product if n and m are known."""
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise ValueError(f"no expression: {text!r}")
        tokens += _split(found, known)
        at = found.end()
    parser = _Parser(tokens)
    tree = parser.sum()
    if parser.at != len(tokens):
        raise ValueError(f"no expression: {text!r}")
    return Expression(tree, text)


def _split(found: re.Match[str], known: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    kind = str(found.lastgroup)
    word = found[kind]
    if kind == "name" and word not in ("min", "max") and known is not None:
        base = word.partition("_")[0]
        if len(base) > 1 and base not in known and word not in known:
            if not (base.isalpha() and all(letter in known for letter in base)):
                raise ValueError(f"{word!r} is no name")
            return [("name", letter) for letter in base[:-1]] + [("name", base[-1] + word[len(base) :])]
    return [(kind, word)]


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens, self.at = tokens, 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, word: str) -> bool:
        if self.peek() == ("sign", word):
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise ValueError(f"{word!r} is missing")

    def sum(self) -> tuple[Any, ...]:
        tree = self.product()
        while self.peek() in (("sign", "+"), ("sign", "-")):
            sign = self.tokens[self.at][1]
            self.at += 1
            tree = (sign, tree, self.product())
        return tree

    def product(self) -> tuple[Any, ...]:
        tree = self.factor()
        while True:
            if self.take("*"):
                tree = ("*", tree, self.factor())
            elif self.take("/"):
                tree = ("/", tree, self.factor())
            elif self.peek()[0] in ("number", "name") or self.peek() == ("sign", "("):
                tree = ("*", tree, self.factor())
            else:
                return tree

    def factor(self) -> tuple[Any, ...]:
        if self.take("-"):
            return ("-", ("number", 0), self.factor())
        tree = self.atom()
        return ("^", tree, self.factor()) if self.take("^") else tree

    def atom(self) -> tuple[Any, ...]:
        kind, word = self.peek()
        self.at += 1
        if kind == "number" and len(word) < LARGE:
            return ("number", int(word))
        if kind == "name" and word in ("min", "max"):
            self.need("(")
            parts = [self.sum()]
            while self.take(","):
                parts.append(self.sum())
            self.need(")")
            return (word, *parts)
        if kind == "name":
            base, _, sub = word.partition("_")
            return ("name", base, sub.strip("{}").replace(" ", ""))
        if (kind, word) == ("sign", "("):
            tree = self.sum()
            self.need(")")
            return tree
        if (kind, word) == ("sign", "|"):
            tree = self.sum()
            self.need("|")
            return ("length", tree)
        raise ValueError(f"{word!r} is no value")


def _value(tree: tuple[Any, ...], look: Look) -> Any:
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "name":
        try:
            return look(tree[1], tree[2])
        except Unknown:
            if len(tree[1]) == 1 or not tree[1].isalpha():
                raise
            product = 1  # NK: N times K
            for letter in tree[1][:-1]:
                product *= look(letter, "")
            return product * look(tree[1][-1], tree[2])
    parts = [_value(part, look) for part in tree[1:]]
    if kind == "length":
        return len(parts[0]) if isinstance(parts[0], (str, list)) else abs(parts[0])
    if not all(isinstance(part, (int, float)) for part in parts):
        raise Unknown(f"{kind} of a text")
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(parts)
    left, right = parts
    if kind == "+":
        return left + right
    if kind == "-":
        return left - right
    if kind == "*":
        return left * right
    if kind == "/":
        if not right:
            raise Unknown("a division by 0")
        return left // right
    if not 0 <= right <= LARGE or abs(left) > 1 << 64:
        raise Unknown("a power beyond all limits")
    return left**right


def _names(tree: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    if tree[0] == "name":
        yield tree[1], tree[2]
    elif tree[0] != "number":
        for part in tree[1:]:
            yield from _names(part)
