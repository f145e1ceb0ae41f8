"""The two common shapes of tests, as ours: {"inputs": [...], "outputs": [...]}, and [{"input": ..., "output": ...}].

Both come as JSON text too, and both know functions (`fn_name`, or `metadata.func_name`):
1. Arguments are a list of values, or text with one JSON value on each line.
2. APPS wraps each result in a list of one; where all results look so they are unwrapped. A function that returns
   lists of one in all its tests cannot be told apart from that, and its reference will fail.
Tests without any expected outputs get empty ones, and the lineage says so.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...schema import Problem, Test
from ..record import Dropped
from .reading import decoded

_Pair = tuple[Any, Any]


def add_cases(problem: Problem, value: Any, function: str = "") -> None:
    """Set kind, entry point and tests. `function` is its name where the tests do not say it."""
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
        problem.tests += [Test(lines(given), "" if output is None else lines(output)) for given, output in pairs]


def columns(data: dict[str, Any]) -> list[_Pair]:
    """Inputs and outputs in two lists."""
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
    """`Solution.name` where the starter code, or else a solution, has that class."""
    code = problem.starter_code or "".join(one["code"] for one in problem.solutions[:1])
    return f"Solution.{function}" if re.search(r"(?m)^class Solution\b", code) else function


def lines(value: Any) -> str:
    """Text of standard input or output, which may come as a list of lines."""
    if isinstance(value, list) and all(isinstance(line, (str, int, float)) for line in value):
        return "\n".join(map(str, value))
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Dropped("unreadable_tests", f"standard input or output is no text but {type(value).__name__}")


def _calls(pairs: list[_Pair]) -> list[Test]:
    results = [output for given, output in pairs if not isinstance(given, str)]
    wrapped = bool(results) and all(isinstance(output, list) and len(output) == 1 for output in results)
    return [_call(given, output, wrapped) for given, output in pairs]


def _call(given: Any, output: Any, wrapped: bool) -> Test:
    if isinstance(given, str):  # one JSON value on each line, and the result is JSON too
        arguments = [_json(line) for line in given.split("\n") if line.strip()]
        return Test(f"[{', '.join(arguments)}]", "" if output is None else _json(output))
    if not isinstance(given, (list, dict)):
        raise Dropped("unreadable_tests", f"arguments must be a list, not {given!r:.80}")
    return Test(json.dumps(given), "" if output is None else json.dumps(output[0] if wrapped else output))


def _json(value: Any) -> str:
    """JSON text as it stands; a Python literal as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
            return value.strip()
        except ValueError:
            value = decoded(value, "an argument or result")
    return json.dumps(value)
