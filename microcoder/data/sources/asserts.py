"""Test programs read as Python: which function they call, and what of them can be written as tests of a function."""

from __future__ import annotations

import ast
import json
import math
import warnings
from typing import Any

from ...schema import Test
from ..record import Dropped

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parsed(code: str, what: str) -> ast.Module:
    try:
        with warnings.catch_warnings():  # of "\d" in a string, which is not for us to mend
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Dropped("unreadable_tests", f"{what} is no Python: {error}") from None


def definitions(code: str) -> dict[str, _Definition]:
    """Functions and classes at the top of a program by name; none if it is no Python 3."""
    try:
        body = parsed(code, "").body
    except Dropped:
        return {}
    return {node.name: node for node in body if isinstance(node, _Definition)}


def called(asserts: list[str], code: str) -> str:
    """The function of the reference that the asserts call, the first if there are several; or nothing."""
    defined = definitions(code)
    for text in asserts:
        for node in ast.walk(parsed(text, "an assert")):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return ""


def header(node: _Definition) -> str:
    """`def f(a, b=1) -> int:`, or `class C:` with the headers of its methods: what there is to complete."""
    if isinstance(node, ast.ClassDef):
        methods = [header(part) for part in node.body if isinstance(part, _Definition)]
        return "\n".join([f"class {node.name}:", *("    " + line for text in methods for line in text.splitlines())])
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}:"


def check_body(program: str) -> tuple[str, list[ast.Assert]] | None:
    """(its parameter, the asserts) of a `check(candidate)` that is nothing but asserts; None for any other program."""
    body = parsed(program, "the test").body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or len(body[0].args.args) != 1:
        return None
    asserts = [statement for statement in body[0].body if isinstance(statement, ast.Assert)]
    return (body[0].args.args[0].arg, asserts) if len(asserts) == len(body[0].body) else None


def function_tests(candidate: str, asserts: list[ast.Assert], starter: str) -> list[Test] | None:
    """The asserts as tests, if each is `candidate(values) == value` and JSON can carry these values unchanged.

    Named arguments are put in the order of the starter code's parameters, as a site calls them: a program may call its
    parameters what it likes.
    """
    order = _parameters(starter)
    tests = []
    for statement in asserts:
        match statement.test:
            case ast.Compare(left=ast.Call(func=ast.Name(id=name)) as call, ops=[ast.Eq()], comparators=[right]) if (
                name == candidate
            ):
                try:
                    arguments: Any = [ast.literal_eval(argument) for argument in call.args]
                    named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
                    result = ast.literal_eval(right)
                except (ValueError, TypeError, MemoryError, RecursionError):  # a call, a name, an operator
                    return None
            case _:
                return None
        if named:
            if arguments:
                return None
            arguments = [named[name] for name in order] if sorted(named) == sorted(order) else named
        if not (_is_json(arguments) and _is_json(result)):
            return None
        tests.append(Test(json.dumps(arguments), json.dumps(result)))
    return tests


def statements(candidate: str, asserts: list[ast.Assert], call: str) -> list[str]:
    """The asserts as statements of their own, with `call` (such as `Solution().add`) in the candidate's place."""
    target = ast.parse(call, mode="eval").body

    class Named(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return target if node.id == candidate else node

    return [ast.unparse(Named().visit(statement)) for statement in asserts]


def _parameters(starter: str) -> list[str]:
    """Of the last function of the starter code, which may have no body; without `self`."""
    try:
        tree = parsed(f"{starter.rstrip()} pass", "")
    except Dropped:
        return []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [argument.arg for argument in found[-1].args.args if argument.arg != "self"] if found else []


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))
