"""Convert tests of data sets into the tests of a Problem.

Inputs and outputs come as {"inputs": [...], "outputs": [...]} or as [{"input": ..., "output": ...}], both as JSON text
too, and both with functions (`fn_name`, or `metadata.func_name`):
1. Arguments are a list of values, or text with one JSON value on each line.
2. APPS wraps each result in a list of one; if all results look so, they are unwrapped. A function that returns lists
   of one in all its tests looks the same; it is unwrapped too, and its reference will fail.
Tests without any expected outputs get empty ones, and the lineage says so.

Test programs are parsed as Python: the function that they call, its header, and the asserts that can become tests of a
function.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from typing import Any

from ...schema import Problem, Test
from ..record import Dropped
from .fields import decoded

_Pair = tuple[Any, Any]


def add_cases(problem: Problem, value: Any, function: str = "") -> None:
    """Set kind, entry point and tests. `function` is the function's name if the tests do not have it."""
    data = decoded(value, "the tests")
    if isinstance(data, dict):
        function = data.get("fn_name") or function
        pairs = columns(data)
    else:
        pairs, function = _items(data or [], function)
    if pairs and all(output is None for _, output in pairs):
        problem.lineage.append("collect: the tests have no expected outputs")
    if function:
        problem.kind, problem.entry_point = "function", entry_point(str(function), problem)
        problem.tests += _calls(pairs)
    else:
        known = [(given, output) for given, output in pairs if output is not None]
        if known and len(known) < len(pairs):  # a test that expects nothing would refuse right programs
            problem.lineage.append(f"collect: {len(pairs) - len(known)} tests without an expected output left out")
            pairs = known
        problem.tests += [Test(lines(given), "" if output is None else lines(output)) for given, output in pairs]


def columns(data: dict[str, Any]) -> list[_Pair]:
    """Return (input, output) pairs from two lists."""
    inputs, outputs = (data.get(f"{name}s", data.get(name)) for name in ("input", "output"))
    if not isinstance(inputs, list):
        if inputs is None and not outputs:
            return []
        raise Dropped("unreadable_tests", f"no list of inputs; there are {', '.join(map(str, data))[:100]}")
    if not outputs:
        return [(given, None) for given in inputs]
    if not isinstance(outputs, list) or len(inputs) != len(outputs):
        many = len(outputs) if isinstance(outputs, list) else type(outputs).__name__
        raise Dropped("unreadable_tests", f"{len(inputs)} inputs but {many} outputs")
    return list(zip(inputs, outputs, strict=True))


def _items(data: Any, function: str) -> tuple[list[_Pair], str]:
    if not isinstance(data, list):
        raise Dropped("unreadable_tests", f"neither a list nor an object but {type(data).__name__}")
    pairs = []
    for number, item in enumerate(data):
        if not isinstance(item, dict) or "input" not in item:
            raise Dropped("unreadable_tests", f"test {number} has no input: {item!r:.80}")
        pairs.append((item["input"], item.get("output")))
        metadata = item.get("metadata")
        function = item.get("fn_name") or (isinstance(metadata, dict) and metadata.get("func_name")) or function
    kinds = {item.get("testtype") or item.get("type") for item in data} - {None, ""}
    if len(kinds) > 1:
        raise Dropped("unreadable_tests", f"tests of different kinds: {', '.join(sorted(map(str, kinds)))}")
    if kinds & {"functional", "function_call"} and not function:
        raise Dropped("unreadable_tests", "tests of a function that has no name")
    return pairs, function if not kinds or kinds & {"functional", "function_call"} else ""


def entry_point(function: str, problem: Problem) -> str:
    """Return `Solution.name` if the starter code, or else a solution, has that class."""
    code = problem.starter_code or "".join(one["code"] for one in problem.solutions[:1])
    return f"Solution.{function}" if re.search(r"(?m)^class Solution\b", code) else function


def lines(value: Any) -> str:
    """Return the text of standard input or output, which may come as a list of lines."""
    if isinstance(value, list) and all(isinstance(line, (str, int, float)) for line in value):
        return "\n".join(map(str, value))
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Dropped("unreadable_tests", f"standard input or output is no text but {type(value).__name__}")


def _calls(pairs: list[_Pair]) -> list[Test]:
    results = [output for given, output in pairs if not isinstance(given, str)]
    wrapped = bool(results) and all(isinstance(output, list) and len(output) == 1 for output in results)
    known = any(output is not None for _, output in pairs)  # then None is a value: null
    return [_call(given, output, wrapped, known) for given, output in pairs]


def _call(given: Any, output: Any, wrapped: bool, known: bool) -> Test:
    if isinstance(given, str):  # one JSON value on each line, and the result is JSON too
        arguments = [_json(line) for line in given.split("\n") if line.strip()]
        return Test(f"[{', '.join(arguments)}]", _json(output) if known else "")
    if not isinstance(given, (list, dict)):
        raise Dropped("unreadable_tests", f"arguments must be a list, not {given!r:.80}")
    return Test(json.dumps(given), json.dumps(output[0] if wrapped else output) if known else "")


def _json(value: Any) -> str:
    """Return JSON text unchanged; convert a Python literal to JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
            return value.strip()
        except ValueError:
            value = decoded(value, "an argument or result")
    return json.dumps(value)


# --- test programs

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parsed(code: str, what: str) -> ast.Module:
    try:
        with warnings.catch_warnings():  # about "\d" in a string, which is not our code
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Dropped("unreadable_tests", f"{what} is no Python: {error}") from None


def definitions(code: str) -> dict[str, _Definition]:
    """Return the top-level functions and classes of a program by name; {} if it is no Python 3."""
    try:
        body = parsed(code, "").body
    except Dropped:
        return {}
    return {node.name: node for node in body if isinstance(node, _Definition)}


def called(asserts: list[str], code: str) -> str:
    """Return the function of the reference that the asserts call, the first of several; "" if none."""
    defined = definitions(code)
    for text in asserts:
        for node in ast.walk(parsed(text, "an assert")):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return ""


def header(node: _Definition) -> str:
    """Return the header to complete: `def f(a, b=1) -> int:`, or `class C:` with the headers of its methods."""
    if isinstance(node, ast.ClassDef):
        methods = [header(part) for part in node.body if isinstance(part, _Definition)]
        return "\n".join([f"class {node.name}:", *("    " + line for text in methods for line in text.splitlines())])
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}:"


def needed(tests: list[str], code: str, entry: str) -> list[str]:
    """Return, as code, the classes and imports of the reference that tests use and do not define themselves."""
    trees = [parsed(text, "a test") for text in tests if text.strip()]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used -= {name for tree in trees for node in tree.body for name in _bound(node)} | {entry}
    found: list[str] = []
    for node in reversed(parsed(code, "the reference").body):  # a class uses only what is before it
        if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom)) and used & _bound(node):
            used |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            found.insert(0, ast.unparse(node))
    return found


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a definition or an import binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {node.name} if isinstance(node, _Definition) else set()


def check_body(program: str) -> tuple[str, list[ast.Assert]] | None:
    """Return (parameter, asserts) of a `check(candidate)` that has only asserts; None for any other program."""
    body = parsed(program, "the test").body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or len(body[0].args.args) != 1:
        return None
    asserts = [statement for statement in body[0].body if isinstance(statement, ast.Assert)]
    return (body[0].args.args[0].arg, asserts) if len(asserts) == len(body[0].body) else None


def function_tests(candidate: str, asserts: list[ast.Assert], starter: str) -> list[Test] | None:
    """Convert asserts to tests, if each is `candidate(values) == value` and JSON can represent these values.

    Named arguments are put in the order of the starter code's parameters, since a program may name its parameters
    differently.
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
    """Return the asserts as separate statements, with `call` (such as `Solution().add`) instead of the candidate."""
    target = ast.parse(call, mode="eval").body

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return target if node.id == candidate else node

    return [ast.unparse(Renamed().visit(statement)) for statement in asserts]


def _parameters(starter: str) -> list[str]:
    """Return the parameters, without `self`, of the last function of the starter code, which may have no body."""
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
