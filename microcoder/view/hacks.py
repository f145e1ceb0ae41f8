"""Accepted programs that look like a cheat. A heuristic: it says why it suspects, and a person decides.

Each suspicion is a function of the program's tree; a program that does not parse (another language) is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache

SNOOPING = re.compile(r"\b(open|eval|exec|compile|globals|locals|__import__|_getframe|settrace|inspect|gc)\b")
MODULES = {"os", "subprocess", "inspect", "gc", "ctypes", "importlib", "pathlib", "glob", "signal", "traceback"}
READS = {"input", "stdin", "argv", "fileinput", "readline", "readlines", "read"}
FEW, CHAIN = 24, 3  # characters of a program that is suspiciously short; comparisons with constants in a row


def suspicions(code: str) -> list[str]:
    """Why a program that was accepted might be a cheat, in words; none for most."""
    return list(_suspicions(code)) if code.strip() else []


@lru_cache(maxsize=2048)
def _suspicions(code: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    rules: tuple[Callable[[ast.Module], str], ...] = (_ignores_input, _table, _snoops)
    found = [words for rule in rules if (words := rule(tree))]
    if len(re.sub(r"\s", "", code)) < FEW:
        found.append(f"the whole program has fewer than {FEW} characters")
    return tuple(found)


def _ignores_input(tree: ast.Module) -> str:
    """A function that uses none of its arguments, or a program that reads nothing."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions += [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body if isinstance(n, ast.FunctionDef)]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if (names | attributes) & READS:
        return ""
    if not functions:
        return "it reads no input and prints what it likes"
    for function in functions:
        arguments = {a.arg for a in [*function.args.args, *function.args.kwonlyargs]} - {"self", "cls"}
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if not arguments or arguments & used or function.args.vararg or function.args.kwarg:
            return ""
    return "it uses none of its arguments: the answer is a constant"


def _table(tree: ast.Module) -> str:
    """A chain of ifs, or a dictionary, from constants to constants: answers by heart."""
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.If) and _answers(node)]
    equal = [test for test in tests if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)]
    literal = [test for test in equal if _constant(test.comparators[0]) or _constant(test.left)]
    if len(literal) >= CHAIN:
        return f"{len(literal)} branches compare the input with a constant and answer with one"
    return ""


def _answers(branch: ast.If) -> bool:
    """Whether what a branch does is to give a constant."""
    only = branch.body[0] if len(branch.body) == 1 else None
    if isinstance(only, ast.Return):
        return only.value is not None and _constant(only.value)
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Call):
        return bool(only.value.args) and all(map(_constant, only.value.args))
    return False


def _constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_constant, node.elts))
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _constant(node.operand))


def _snoops(tree: ast.Module) -> str:
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = sorted(imported & MODULES) + sorted(name for name in called | attributes if SNOOPING.fullmatch(name))
    return f"it reaches beyond its input: {', '.join(dict.fromkeys(found))}" if found else ""
