"""Which functions of a program its tests can come to: mutating the others would say nothing about the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def reached(tree: ast.Module, entry_point: str, prints: bool) -> set[str]:
    """Names of functions and classes: what the tests call, what the module itself mentions, and what these mention.

    Without an entry point, and where nothing is printed, every definition counts.
    """
    bodies: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS):
            bodies.setdefault(node.name, []).append(node)
    run = [s for s in tree.body if not isinstance(s, DEFINITIONS) and (prints or not demonstration(s))]
    waiting = [name for statement in run for name in _mentioned(statement)]
    waiting += entry_point.split(".") if entry_point or prints else list(bodies)
    out: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in out:
            out.add(name)
            waiting += [other for body in bodies[name] for other in _mentioned(body)]
    return out


def demonstration(statement: ast.stmt) -> bool:
    """At the top of a module whose functions are tested: a call whose value nobody takes, or the part for scripts."""
    if isinstance(statement, ast.If):
        return is_main(statement.test)
    return isinstance(statement, ast.Expr)


def is_main(test: ast.expr) -> bool:
    """`__name__ == "__main__"`"""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Names in a body. What is defined inside is asked on its own; only Python's own hooks run without a mention."""
    waiting = [node] if not isinstance(node, DEFINITIONS) else list(ast.iter_child_nodes(node))
    while waiting:
        part = waiting.pop()
        if isinstance(part, DEFINITIONS):
            if part.name.startswith("__"):
                yield part.name
            continue
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        waiting += ast.iter_child_nodes(part)
