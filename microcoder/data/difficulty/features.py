"""Record -> numbers for the predictor: of statement, constraints, tests, signature and reference solution.

Labels, scores, ids, titles, urls, dates, sources, tags and notes are never looked at: they would tell the answer, not
predict it. A part that is missing says so (`..._missing` is 1) and its other features are 0; a field of the wrong type
is missing.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from ...schema import Problem
from ..record import Record, references
from .constraints import below_zero, bounds
from .solution import parsed, solution_features
from .statement import statement_features

LONGEST = 100_000  # characters of a statement that are read
MOST = 1_000  # tests that are looked at
TYPES = {  # in the annotations of a signature
    "integer": re.compile(r"\bint\b"),
    "text": re.compile(r"\bstr\b"),
    "float": re.compile(r"\bfloat\b"),
    "truth": re.compile(r"\bbool\b"),
    "list": re.compile(r"\b[Ll]ist\b"),
    "table": re.compile(r"\b[Ll]ist\[[Ll]ist\b"),
    "tree": re.compile(r"\bTreeNode\b"),
    "linked": re.compile(r"\bListNode\b"),
}
Features = dict[str, float]


def features(record: Record) -> Features:
    """Always the same names in the same order, always finite numbers, whatever the record holds."""
    problem = record.problem
    statement = _text(problem.statement)[:LONGEST]
    code = next(iter(references(problem)), None)  # the first
    return {
        **statement_features(statement),
        **_constraints(statement),
        **_tests(problem),
        **_signature(problem, code),
        **solution_features(code),
    }


def _constraints(statement: str) -> Features:
    found = bounds(statement)
    every = [bound.log10 for bound in found]
    sizes = [bound.log10 for bound in found if bound.size]
    values = [bound.log10 for bound in found if not bound.size]
    return {
        "bounds_missing": float(not found),
        "bounds": float(min(len(found), 20)),
        "bound_largest": max(every, default=0.0),
        "bound_smallest": min(every, default=0.0),
        "bound_sizes": float(min(len(sizes), 20)),
        "bound_size_largest": max(sizes, default=0.0),
        "bound_size_smallest": min(sizes, default=0.0),
        "bound_value_largest": max(values, default=0.0),
        "bound_below_zero": float(below_zero(statement)),
    }


def _tests(problem: Problem) -> Features:
    pairs = [(_text(getattr(t, "input", "")), _text(getattr(t, "output", ""))) for t in _list(problem.tests)[:MOST]]
    if not pairs:
        lines = [line for block in _list(problem.asserts)[:MOST] for line in _text(block).splitlines()[:MOST]]
        parts = [line.rpartition("==") for line in lines if line.lstrip().startswith("assert")]
        pairs = [(call, value) for call, _, value in parts]
    outputs = [output.strip().lower() for _, output in pairs]
    count = max(1, len(pairs))
    return {
        "tests_missing": float(not pairs),
        "tests": math.log1p(len(pairs)),
        "test_input_longest": math.log1p(max((len(given) for given, _ in pairs), default=0)),
        "test_input_mean": math.log1p(sum(len(given) for given, _ in pairs) / count),
        "test_output_mean": math.log1p(sum(map(len, outputs)) / count),
        "test_output_yes_no": sum(output in ("true", "false", "yes", "no") for output in outputs) / count,
        "test_output_number": sum(output.lstrip("-").isdigit() for output in outputs) / count,
        "kind_stdin": float(problem.kind == "stdin"),
    }


def _signature(problem: Problem, code: str | None) -> Features:
    function = _function(_text(problem.starter_code), _text(problem.entry_point), code)
    takes, returns = [], ""
    if function is not None:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        takes = [_written(argument.annotation) for argument in arguments if argument.arg != "self"]
        returns = _written(function.returns)
    return {
        "signature_missing": float(function is None),
        "arguments": float(min(len(takes), 10)),
        **{f"takes_{name}": float(sum(1 for a in takes[:10] if kind.search(a))) for name, kind in TYPES.items()},
        **{f"returns_{name}": float(kind.search(returns) is not None) for name, kind in TYPES.items()},
    }


def _function(starter: str, entry_point: str, code: str | None) -> ast.FunctionDef | None:
    """The entry point in the starter code, which may lack a body, or else in the reference."""
    name = entry_point.rpartition(".")[2]
    stub = starter.rstrip()
    for program in (stub, f"{stub} pass", code or ""):
        tree = parsed(program)
        found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree is not None else []
        if found:
            return next((function for function in found if function.name == name), found[0])
    return None


def _written(annotation: ast.expr | None) -> str:
    try:
        return ast.unparse(annotation) if annotation is not None else ""
    except RecursionError:
        return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


NAMES = tuple(features(Record(Problem(id=""))))
