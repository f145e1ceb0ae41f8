"""The layout of a text on stdin: lines of fields, blocks that repeat, and the counts that announce them.

    Field     one value, or as many values as an expression says ("a_1 ... a_n")
    Line      fields on one line
    Block     a body that is repeated as often as an expression says: rows, queries, test cases
    Choice    one of several lines, told apart by its first word: queries of several types
    Scope     the values that were read: names to values, and for each block the scopes of its repetitions
    Expression  "n - 1", "2n", "N(N-1)/2", "min(n, m)", "|s|", "a_{i+1}": written as in statements

`read` turns a text into a Scope or raises Misfit; `write` is its inverse.
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


class Misfit(ValueError):
    """A text that the layout does not fit."""


class Unknown(Exception):
    """A value that is not there (yet)."""


# --- expressions


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


# --- layouts


@dataclass(frozen=True, slots=True)
class Field:
    """One value, or `count` values. `length`: of a word, where another value announces it."""

    name: str
    count: Expression | None = None
    kind: str = "int"  # "int", "real", "word", "auto"; "tag": always its name; "rest": ints up to the line's end
    length: Expression | None = None
    start: int = 1  # the index of the first value


@dataclass(frozen=True, slots=True)
class Line:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    lines: tuple[Line, ...]  # each begins with a tag
    key: str


@dataclass(frozen=True, slots=True)
class Block:
    count: Expression
    body: tuple[Node, ...]
    key: str  # where a Scope keeps the scopes of the repetitions: "#1"


Node: TypeAlias = Line | Block | Choice


class Scope(dict[str, Any]):
    """The values of one repetition: its own, and those around it through `parent`."""

    __slots__ = ("env", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        super().__init__()
        self.parent = parent
        self.env: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope:
                return scope[name]
            scope = scope.parent
        raise Unknown(name)

    def look(self, name: str, sub: str) -> Any:
        return self.find(f"{name}_{sub}" if sub else name)


class _Source:
    """The words of a text, line by line; or, where `flat`, without regard to lines."""

    def __init__(self, text: str, flat: bool) -> None:
        self.lines = [text.split()] if flat else [line.split() for line in text.split("\n")]
        self.flat, self.at, self.word = flat, 0, 0

    def line(self, needed: int) -> list[str]:
        if self.flat:
            self.word += needed
            return self.lines[0][self.word - needed : self.word]
        if needed == 0:
            if self.at < len(self.lines) and not self.lines[self.at]:
                self.at += 1
            return []
        while self.at < len(self.lines) and not self.lines[self.at]:
            self.at += 1
        if self.at == len(self.lines):
            raise Misfit("it ends too early")
        self.at += 1
        return self.lines[self.at - 1]

    def first(self) -> str:
        if self.flat:
            return self.lines[0][self.word] if self.word < len(self.lines[0]) else ""
        return next((line[0] for line in self.lines[self.at :] if line), "")

    def finish(self) -> None:
        left = self.lines[0][self.word :] if self.flat else [line for line in self.lines[self.at :] if line]
        if left:
            raise Misfit(f"it goes on after its end: {left[0]!r:.40}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The nodes of a text. `flat`: lines may be broken anywhere."""

    body: tuple[Node, ...]
    flat: bool = False

    def read(self, text: str) -> Scope:
        source, scope = _Source(text, self.flat), Scope()
        self._read(self.body, source, scope)
        source.finish()
        return scope

    def _read(self, nodes: tuple[Node, ...], source: _Source, scope: Scope) -> None:
        for node in nodes:
            if isinstance(node, Line):
                self._line(node, source, scope)
            elif isinstance(node, Block):
                scope[node.key] = repetitions = []
                for _ in range(counted(node.count, scope)):
                    repetitions.append(child := Scope(scope))
                    self._read(node.body, source, child)
            else:
                first = source.first()
                line = next((line for line in node.lines if line.fields[0].name == first), None)
                if line is None:
                    raise Misfit(f"no line begins with {first!r:.40}")
                scope[node.key] = node.lines.index(line)
                self._line(line, source, scope)

    def _line(self, line: Line, source: _Source, scope: Scope) -> None:
        needed, announced = 0, {}
        try:
            for field in line.fields:
                announced[field.name] = 1 if field.count is None else counted(field.count, scope)
                needed += announced[field.name] if field.kind != "rest" else 1
        except Misfit:
            needed = 1  # a count stands on this very line
        words = source.line(needed)
        at = 0
        for field in line.fields:
            if field.kind == "rest":
                count = len(words) - at
            else:
                count = 1 if field.count is None else counted(field.count, scope)
            taken = words[at : at + count]
            if len(taken) < count:
                if not self.flat:
                    raise Misfit(f"{field.name}: {len(taken)} values in place of {count}")
                taken += source.line(count - len(taken))
                if len(taken) < count:
                    raise Misfit("it ends too early")
            at += count
            if field.kind == "tag":
                if taken != [field.name]:
                    raise Misfit(f"{field.name} in place of {taken}")
                continue
            found = [parsed(word, field.kind) for word in taken]
            scope[field.name] = found if field.count is not None or field.kind == "rest" else found[0]
        if at < len(words):
            raise Misfit(f"{len(words)} words in place of {at}")

    def write(self, scope: Scope) -> str:
        lines: list[str] = []
        self._write(self.body, scope, lines)
        return "\n".join(lines) + "\n"

    def _write(self, nodes: tuple[Node, ...], scope: Scope, lines: list[str]) -> None:
        for node in nodes:
            if isinstance(node, Block):
                for child in scope[node.key]:
                    self._write(node.body, child, lines)
                continue
            line = node if isinstance(node, Line) else node.lines[scope[node.key]]
            words: list[str] = []
            for field in line.fields:
                value = field.name if field.kind == "tag" else scope[field.name]
                words += map(str, value) if isinstance(value, list) else [str(value)]
            lines.append(" ".join(words))


def counted(count: Expression, scope: Scope) -> int:
    """The value of a count, as read so far."""
    try:
        value = count.value(scope.look)
    except (Unknown, TypeError, ValueError):
        raise Misfit(f"{count.text} is not known") from None
    if not 0 <= value <= 5_000_000:
        raise Misfit(f"{count.text} is {value}")
    return value


INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,3999})")
REAL = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")


def parsed(word: str, kind: str) -> Any:
    """A word as the value of a field: an int, or the word itself."""
    if kind == "auto":
        return int(word) if INTEGER.fullmatch(word) else word
    if kind in ("int", "rest"):
        if not INTEGER.fullmatch(word):
            raise Misfit(f"{word!r:.40} is no integer")
        return int(word)
    if kind == "real" and not REAL.fullmatch(word):
        raise Misfit(f"{word!r:.40} is no number")
    return word


def fields(nodes: tuple[Node, ...], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Every field, with the keys of the blocks around it."""
    for node in nodes:
        if isinstance(node, Block):
            yield from fields(node.body, (*path, node.key))
        else:
            for line in (node,) if isinstance(node, Line) else node.lines:
                yield from ((path, field) for field in line.fields if field.kind != "tag")


def scopes(scope: Scope, path: tuple[str, ...]) -> Iterator[Scope]:
    """Every scope at the end of a path of blocks."""
    if not path:
        yield scope
    else:
        for child in scope.get(path[0], ()):
            yield from scopes(child, path[1:])
