"""Typical mistakes, planted in a right program: larger ones than those of `verify/mutations.py`, as people and models
make them.

    choice     min for max, the last for the first, a stack for a queue: ties and orders the wrong way round
    ordering   a sort left out, its key or its direction forgotten
    twice      duplicates kept that should be dropped, or dropped that should be kept
    modulus    `% m` forgotten; `//` rounded the other way
    guard      the first test of a function (mostly the empty case) forgotten
    rounded    pi as 3.14, or as 3
    early      an answer given in the first round of a loop
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from ..verify.mutations import MOST_CODE, Mutant, reached

SWAPPED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "popleft": "pop", "appendleft": "append",
    "bisect_left": "bisect_right", "bisect_right": "bisect_left", "bisect": "bisect_left", "ceil": "floor",
    "floor": "ceil", "find": "rfind", "rfind": "find", "lstrip": "strip", "rstrip": "strip", "heappush": "append",
    "lower": "upper", "upper": "lower", "isalnum": "isalpha", "isalpha": "isalnum",
}  # fmt: skip
DROPPED = ("sorted", "set", "reversed", "abs", "list", "int", "round", "Counter")  # f(x) -> x
DROPPED_KEYWORDS = ("key", "reverse", "default", "start")
METHODS = ("sort", "reverse", "strip", "lower", "upper", "copy")


def mistakes(code: str, *, entry_point: str = "", prints: bool = False, most: int = 24) -> list[Mutant]:
    """At most `most` programs with one typical mistake each, the same every time; [] for what is no Python."""
    if len(code) > MOST_CODE:
        return []
    try:
        tree = ast.parse(code)
        seen, out = {ast.unparse(tree)}, list[Mutant]()
        used = reached(tree, entry_point, prints)
        for kind, line, said, change in _changes(tree, used, prints):
            text = _changed(tree, change)
            if text is not None and text not in seen:
                seen.add(text)
                out.append(Mutant(kind, line, said, text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return out[:: max(1, -(-len(out) // most))] if most else []


Change = Callable[[dict[int, ast.AST]], None]  # on a copy of the tree: its nodes by number


def _changed(tree: ast.Module, change: Change) -> str | None:
    twin = copy.deepcopy(tree)
    try:
        change(dict(enumerate(ast.walk(twin))))
        return ast.unparse(ast.fix_missing_locations(twin))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return None


def _changes(tree: ast.Module, used: set[str], prints: bool) -> Iterator[tuple[str, int, str, Change]]:
    for n, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Call):
            yield from _call(n, line, node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "math.pi":
            for number in (3, 3.1, 3.14, 3.142, 3.1416):
                yield "rounded", line, f"`math.pi` -> `{number}`", _number(n, number)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.Constant):
            yield "modulus", line, f"`{_short(node)}` without its modulus", _become(n, "left")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield "modulus", line, f"`{_short(node)}` rounded up", _round_up(n)
        elif isinstance(node, ast.FunctionDef) and (prints or node.name in used):
            guards = [m for m, part in enumerate(node.body[:4]) if isinstance(part, ast.If) and not part.orelse]
            for m in guards[:2]:
                yield "guard", node.body[m].lineno, f"`{_short(node.body[m])}` left out", _without(n, m)
        elif isinstance(node, (ast.For, ast.While)):
            yield "early", line, f"`{_short(node)}` ends after its first round", _once(n)


def _call(n: int, line: int, node: ast.Call) -> Iterator[tuple[str, int, str, Change]]:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name in SWAPPED and name != "heappush":
        yield "choice", line, f"`{name}` -> `{SWAPPED[name]}`", _renamed(n, SWAPPED[name])
    if isinstance(function, ast.Name) and name in DROPPED and len(node.args) == 1:
        yield "twice" if name == "set" else "ordering", line, f"`{name}` left out", _become_argument(n, name)
    for m, keyword in enumerate(node.keywords):
        if keyword.arg in DROPPED_KEYWORDS:
            yield "ordering", line, f"`{keyword.arg}=` of `{name}` left out", _without_keyword(n, m)
    if isinstance(function, ast.Attribute) and name in METHODS:
        yield "ordering", line, f"`.{name}()` left out", _become_owner(n)


def _renamed(n: int, name: str) -> Change:
    def change(nodes: dict[int, ast.AST]) -> None:
        function = nodes[n].func  # type: ignore[attr-defined]
        setattr(function, "attr" if isinstance(function, ast.Attribute) else "id", name)

    return change


def _turn(node: ast.AST, other: ast.AST) -> None:
    """Make a node into another one, in place."""
    kept = dict(vars(other))
    node.__class__ = other.__class__
    vars(node).clear()
    vars(node).update(kept)


def _number(n: int, number: float) -> Change:
    return lambda nodes: _turn(nodes[n], ast.Constant(number))


def _become(n: int, field: str) -> Change:
    return lambda nodes: _turn(nodes[n], getattr(nodes[n], field))


def _become_argument(n: int, name: str) -> Change:
    def change(nodes: dict[int, ast.AST]) -> None:
        argument = nodes[n].args[0]  # type: ignore[attr-defined]
        if name in ("sorted", "set", "reversed"):  # still a list of its own
            nodes[n].func = ast.Name("list", ast.Load())  # type: ignore[attr-defined]
            nodes[n].keywords = []  # type: ignore[attr-defined]
        else:
            _turn(nodes[n], argument)

    return change


def _become_owner(n: int) -> Change:
    return lambda nodes: _turn(nodes[n], nodes[n].func.value)  # type: ignore[attr-defined]


def _without_keyword(n: int, m: int) -> Change:
    return lambda nodes: nodes[n].keywords.pop(m)  # type: ignore[attr-defined]


def _without(n: int, m: int) -> Change:
    def change(nodes: dict[int, ast.AST]) -> None:
        nodes[n].body[m] = ast.Pass()  # type: ignore[attr-defined]

    return change


def _once(n: int) -> Change:
    return lambda nodes: nodes[n].body.append(ast.Break())  # type: ignore[attr-defined]


def _round_up(n: int) -> Change:
    def change(nodes: dict[int, ast.AST]) -> None:
        node = nodes[n]
        left = ast.UnaryOp(ast.USub(), node.left)  # type: ignore[attr-defined]
        _turn(node, ast.UnaryOp(ast.USub(), ast.BinOp(left, ast.FloorDiv(), node.right)))  # type: ignore[attr-defined]

    return change


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else text[:47] + "..."
