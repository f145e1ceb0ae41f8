"""Small mistakes planted in a right program, one at a time: what a test set ought to notice.

    operator   + - * // % & | << >>, < <=, == !=, in, and / or
    bound      range(n) -> range(n - 1), range(1, n); x[i:j] -> x[i + 1:j], x[i:j - 1]
    constant   one more, one less; True for False
    condition  negated, always, never
    return     another constant, a list without its first or last element (where the program prints: what it prints)
    deletion   a statement gone

A mutant that no input can tell from the original says nothing about the tests, and neither does one that fails on every
input. Which ones these are cannot be known in general; left out are those that a look at the code gives away:

1. Code that the tests never enter: functions that nothing mentions, a demonstration at the end of the module, default
   arguments, decorators, annotations, `assert` and `raise` (`reach.py`).
2. `<` for `<=` in `if a > best: best = a` and its like, where equal values end in the same state.
3. Numbers that are no arithmetic: over 1,000, or powers such as 10 ** 9 (infinities, moduli); a list made longer than
   it need be; limits of the interpreter.
4. `+` between strings or lists, and the deletion of a name's only assignment: every input fails without them.
5. `break`, which mostly saves time; `while` made endless.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import zip_longest

from .sites import Finder, Site

KINDS = ("operator", "bound", "constant", "condition", "return", "deletion")
MOST_CODE = 50_000  # characters; a longer program is mostly a table


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one mistake."""

    kind: str
    line: int  # of the original program
    change: str  # "`a < b` -> `a <= b`"
    code: str

    def __str__(self) -> str:
        return f"{self.change} on line {self.line}"


def mutants(code: str, *, entry_point: str = "", prints: bool = False, most: int = 24) -> list[Mutant]:
    """At most so many, the same every time, spread over the kinds and over the program. None if it is no Python.

    entry_point   the function or method that the tests call
    prints        what is tested is the whole program, which reads and prints
    """
    if len(code) > MOST_CODE:
        return []
    try:
        tree = ast.parse(code)
        return _chosen(tree, list(Finder(tree, entry_point, prints).sites()), most)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _chosen(tree: ast.Module, sites: list[Site], most: int) -> list[Mutant]:
    """The kinds take turns; programs that are the same when written down count once."""
    kinds = [_spread([site for site in sites if site.kind == kind]) for kind in KINDS]
    seen, out = {ast.unparse(tree)}, list[Mutant]()
    for site in (site for turn in zip_longest(*kinds) for site in turn if site is not None):
        if len(out) >= most:
            break
        shown = None if isinstance(site.new, (ast.expr, ast.stmt)) else site.owner  # an operator alone says little
        before = "" if shown is None else _short(shown)
        old = site.swap(site.new)
        text, after = ast.unparse(tree), _short(site.new if shown is None else shown)
        site.swap(old)
        if text not in seen:
            seen.add(text)
            out.append(Mutant(site.kind, site.line, f"`{before or _short(old)}` -> `{after}`", text))
    return out


def _spread(sites: list[Site]) -> list[Site]:
    """An order whose every beginning is spread evenly: by the multiples of the golden ratio, modulo 1."""
    return [sites[n] for n in sorted(range(len(sites)), key=lambda n: n * 0.6180339887498949 % 1)]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
