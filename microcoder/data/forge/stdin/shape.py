"""The layout of a text on stdin: lines of fields, blocks that repeat, and the counts that announce them.

    Field     one value, or as many values as an expression says ("a_1 ... a_n")
    InputLine  fields on one line
    Block     a body that is repeated as often as an expression says: rows, queries, test cases
    OneOf     one of several lines, told apart by its first word: queries of several types
    Scope     the values that were read: names to values, and for each block the scopes of its repetitions

`read` turns a text into a Scope or raises Misfit; `write` is its inverse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from ..reading.terms import Expression, Unknown


class Misfit(ValueError):
    """A text that the layout does not fit."""


class Retry(Exception):
    """No value fits what was drawn before."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value, or `count` values. `length`: of a word, where another value announces it."""

    name: str
    count: Expression | None = None
    kind: str = "int"  # "int", "real", "word", "auto"; "tag": always its name; "rest": ints up to the line's end
    length: Expression | None = None
    start: int = 1  # the index of the first value
    spaces: bool = False  # the whole line, a text with spaces; it stands alone on its line


@dataclass(frozen=True, slots=True)
class InputLine:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    lines: tuple[InputLine, ...]  # each begins with a tag
    key: str


@dataclass(frozen=True, slots=True)
class Block:
    count: Expression
    body: tuple[Node, ...]
    key: str  # where a Scope keeps the scopes of the repetitions: "#1"


Node: TypeAlias = InputLine | Block | OneOf


class Scope(dict[str, Any]):
    """The values of one repetition: its own, and those around it through `parent`."""

    __slots__ = ("env", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
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
        self.raw = text.split("\n")
        self.lines = [text.split()] if flat else [line.split() for line in self.raw]
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

    def text(self) -> str:
        """The next line as it is."""
        if self.flat:
            raise Misfit("a line of text without lines")
        self.line(1)
        return self.raw[self.at - 1].rstrip("\r")

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
            if isinstance(node, InputLine):
                self._line(node, source, scope)
            elif isinstance(node, Block):
                repetitions: list[Scope] = []
                scope[node.key] = repetitions
                if not self.flat and len(node.body) == 1 and isinstance(node.body[0], InputLine):
                    if all(
                        f.count is None and not f.spaces and f.kind not in ("rest", "tag") for f in node.body[0].fields
                    ):
                        self._rows(node.body[0], source, scope, counted(node.count, scope), repetitions)
                        continue
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

    def _rows(self, line: InputLine, source: _Source, scope: Scope, number: int, rows: list[Scope]) -> None:
        """So many lines of single values."""
        width, fields = len(line.fields), [(field.name, field.kind) for field in line.fields]
        for _ in range(number):
            words = source.line(width)
            if len(words) < width:
                raise Misfit(f"{fields[len(words)][0]}: 0 values in place of 1")
            if len(words) > width:
                raise Misfit(f"{len(words)} words in place of {width}")
            rows.append(child := Scope(scope))
            for (name, kind), word in zip(fields, words, strict=True):
                child[name] = parsed(word, kind)

    def _line(self, line: InputLine, source: _Source, scope: Scope) -> None:
        if line.fields and line.fields[0].spaces:
            scope[line.fields[0].name] = source.text()
            return
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
            found = _numbers(taken) if field.kind == "int" else None
            found = found or [parsed(word, field.kind) for word in taken]
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
            line = node if isinstance(node, InputLine) else node.lines[scope[node.key]]
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


def _numbers(words: list[str]) -> list[int] | None:
    """Words as integers, where all are written as Python would; quicker than one by one."""
    try:
        found = list(map(int, words))
    except ValueError:
        return None
    return found if list(map(str, found)) == words else None


INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,3999})")
REAL = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")


def parsed(word: str, kind: str) -> Any:
    """A word as the value of a field: an int, or the word itself."""
    if kind == "auto":
        return int(word) if INTEGER.fullmatch(word) else word
    if kind in ("int", "rest"):
        if word.isdecimal() and word.isascii() and word[0] != "0" and len(word) < 19:
            return int(word)
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
            for line in (node,) if isinstance(node, InputLine) else node.lines:
                yield from ((path, field) for field in line.fields if field.kind != "tag")


def listed(value: Any) -> list[Any]:
    """A list as it is, one value as a list."""
    return value if isinstance(value, list) else [value]


def scopes(scope: Scope, path: tuple[str, ...]) -> Iterator[Scope]:
    """Every scope at the end of a path of blocks."""
    if not path:
        yield scope
    else:
        for child in scope.get(path[0], ()):
            yield from scopes(child, path[1:])


@lru_cache(4096)
def spelled(name: str) -> str:
    """A field's name in environments: x_0 is one value of its own, no element of a list."""
    return name.replace("_", "Q").replace("'", "q").replace(",", "q").replace(" ", "")


def block_at(nodes: tuple[Node, ...], path: tuple[str, ...]) -> Block | None:
    """The block at the end of a path."""
    found = next((node for node in nodes if isinstance(node, Block) and path and node.key == path[0]), None)
    return found if found is None or len(path) == 1 else block_at(found.body, path[1:])


def count_names(nodes: tuple[Node, ...], around: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """The fields that say how many, and for each of them those that it multiplies with."""
    found: dict[str, set[str]] = {}

    def names(expression: Expression | None) -> tuple[str, ...]:
        if expression is None:
            return ()
        out: list[str] = []
        for name, sub in expression.names():
            out += [spelled(f"{name}_{sub}" if sub else name)] if len(name) == 1 or sub else [name, *name]
        return tuple(out)

    def together(group: tuple[str, ...]) -> None:
        for name in group:
            found.setdefault(name, set()).update(group)

    for node in nodes:
        if isinstance(node, Block):
            group = (*around, *names(node.count))
            together(group)
            for name, others in count_names(node.body, group).items():
                found.setdefault(name, set()).update(others)
        else:
            for line in (node,) if isinstance(node, InputLine) else node.lines:
                for field in line.fields:
                    if field.count is not None or field.length is not None:
                        together((*around, *names(field.count), *names(field.length)))
    return found
