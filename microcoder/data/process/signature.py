"""The header of a function in a piece of Python, which may be a starter without a body, or no valid Python at all."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

_HEADER = re.compile(r"^([ \t]*)(?:async )?def (\w{1,100}) ?\(", re.M)
_CLASS = re.compile(r"^class (\w{1,100})\b", re.M)
_LONGEST = 3_000


@dataclass(frozen=True)
class Signature:
    header: str  # def add(a: int, b: int = 0) -> int:
    names: tuple[str, ...]  # without self
    least: int  # so many arguments are needed
    most: int | None  # None: any number
    keywords: bool  # whether it takes any further keyword arguments

    def takes(self, arguments: object) -> bool:
        """Whether the function can be called with a list of arguments or a dict of keyword arguments."""
        if isinstance(arguments, dict):
            return len(arguments) >= self.least and (self.keywords or set(arguments) <= set(self.names))
        return isinstance(arguments, list) and self.least <= len(arguments) <= (self.most or len(arguments))


def defined(code: str) -> list[str]:
    """What the code defines: `add`, `Solution.twoSum`; not what is private or lies deeper."""
    classes = [(match.start(), match[1]) for match in _CLASS.finditer(code)]
    found = []
    for match in _HEADER.finditer(code):
        indent, name = len(match[1].expandtabs(4)), match[2]
        owners = [owner for start, owner in classes if start < match.start()] if indent else [""]
        if owners and indent <= 4 and not name.startswith("_"):
            found.append(f"{owners[-1]}.{name}".lstrip("."))
    return found


@lru_cache(maxsize=64)  # of one problem, several times
def find(code: str, entry: str) -> Signature | None:
    """The signature of `add` or `Solution.add`; None where the code has none that can be read."""
    owner, _, name = entry.rpartition(".")
    for match in _HEADER.finditer(code):
        if match[2] == name and bool(match[1]) == bool(owner):
            node = _parsed(code[match.start() : match.start() + _LONGEST].lstrip())
            if node is not None:
                return _signature(node, bool(owner))
    return None


def starter(code: str, entry: str) -> str:
    """Starter code for the entry point, as a program defines it; nothing where it does not."""
    found = find(code, entry)
    owner = entry.rpartition(".")[0]
    if found is None:
        return ""
    return f"class {owner}:\n    {found.header}" if owner else found.header


def _parsed(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The header that the text begins with: as far as the first colon with which it is Python."""
    for colon in (match.end() for match in re.finditer(r":(?=\s|$)", text)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                node = ast.parse(f"{text[:colon]} pass").body[0]
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return None


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Signature:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    if method and positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return Signature(
        header=f"{word} {node.name}({ast.unparse(args)}){returns}:",
        names=tuple(arg.arg for arg in [*positional, *args.kwonlyargs]),
        least=max(0, len(positional) - len(args.defaults)),
        most=None if args.vararg else len(positional),
        keywords=args.kwarg is not None,
    )
