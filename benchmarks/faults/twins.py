"""Duplicates: of a problem seen before, or of one that models are evaluated on."""

from __future__ import annotations

import ast
import builtins
import keyword
import re

from benchmarks.faults.repair import ascii_text
from benchmarks.faults.run import Draw, Kind
from benchmarks.faults.statement import long
from benchmarks.faults.words import LANGUAGES, reworded, translated
from microcoder.data.process.samples import on_prose
from microcoder.schema import Problem

NAMES = "Ines Marek Tomas Yuki Priya Olga Bruno Chidi Freya Hassan Kenji Lucia Nadia Omar Pavel Rosa".split()
_CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_LETTER = re.compile(r"(?<![\w\\'])[b-hj-z](?![\w'(])")


def some(problem: Problem) -> bool:
    return len(problem.statement.split()) >= 8


def exact(problem: Problem, draw: Draw) -> bool:
    """From another source: other title, other case and layout, other tests, no solution."""
    text = problem.statement
    problem.statement = draw.choice([text, text.upper(), re.sub(r"\n+", "\n\n", text), re.sub(r"\s+", " ", text)])
    problem.title, problem.source, problem.solutions = "Another Title", "elsewhere", []
    problem.tests, problem.asserts = problem.tests[:1], problem.asserts[:1]
    return True


def renamed(problem: Problem, draw: Draw) -> bool:
    """Other variables and people in the text, other names in the program; the same tests."""
    letters = list("bcdefghjklmnopqrstuvwxyz")
    other = dict(zip(letters, draw.sample(letters, len(letters)), strict=True))
    people = {name: draw.choice(NAMES) for name in sorted(set(_CAPITAL.findall(problem.statement)))}

    def change(prose: str) -> str:
        prose = _CAPITAL.sub(lambda match: people.get(match.group(), match.group()), prose)
        return _LETTER.sub(lambda match: other[match.group()], prose)

    problem.statement = on_prose(problem.statement, change)
    for solution in problem.solutions:
        solution["code"] = renamed_code(solution["code"], problem.entry_point)
    return True


def renamed_code(code: str, entry_point: str) -> str:
    """The same program with other names for its variables."""
    tree = ast.parse(code)
    taken = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    taken |= {str(node.arg) for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    taken |= {*dir(builtins), *keyword.kwlist, *entry_point.split(".")}
    taken |= {node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    names = dict.fromkeys(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    new = {name: f"w{n}" for n, name in enumerate(names) if name not in taken}
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    new = {name: other for name, other in new.items() if name not in arguments}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [new.get(name, name) for name in node.names]
    return ast.unparse(tree)


def told_anew(problem: Problem, draw: Draw) -> bool:
    """In other words; the same tests, no solution."""
    problem.statement, problem.solutions = reworded(problem.statement, draw), []
    return True


def in_translation(problem: Problem, draw: Draw) -> bool:
    """In another language, with the same tests and solution."""
    problem.language = draw.choice(sorted(LANGUAGES))
    problem.statement = translated(problem.statement, draw, problem.language)
    return True


def excerpt(problem: Problem, draw: Draw) -> bool:
    """Half of the words of an evaluation problem, in one piece, within a story; other tests and no solution."""
    words = ascii_text(problem.statement).replace("$", "").split()  # half of a formula would be a fault of its own
    half = len(words) // 2
    start = draw.randrange(len(words) - half + 1)
    words = words[start : start + half]
    problem.statement = (
        f"On an island in the north the people have a riddle that every child is told. {' '.join(words)}. "
        "So much of it is known to the old ones; the rest has to be worked out by whoever reads the input, in which "
        "all that is needed is given, line by line. Print what the riddle asks for."
    )
    problem.tests, problem.asserts, problem.solutions = problem.tests[:1], problem.asserts[:1], []
    return half >= 24


def told_anew_solved(problem: Problem, draw: Draw) -> bool:
    """In other words, with the same tests, and the solution with other names."""
    problem.statement = reworded(problem.statement, draw)
    for solution in problem.solutions:
        solution["code"] = renamed_code(solution["code"], problem.entry_point)
    return True


_TWIN = {"right": ("duplicate", "near_duplicate"), "upto": "filter", "meets": "original"}
_KNOWN = {"right": ("contaminated",), "upto": "filter", "meets": "evaluation"}
KINDS = [
    Kind("duplicate, exact", exact, among=some, **_TWIN),
    Kind("duplicate, renamed", renamed, among=some, **_TWIN),
    Kind("duplicate, reworded", told_anew_solved, among=some, **_TWIN),
    Kind("duplicate, tests alone", told_anew, among=some, **_TWIN),
    Kind("duplicate, translated", in_translation, among=some, skip="process", **_TWIN),
    Kind("contaminated, an excerpt", excerpt, among=long, **_KNOWN),
    Kind("contaminated, reworded", told_anew_solved, among=some, **_KNOWN),
]
