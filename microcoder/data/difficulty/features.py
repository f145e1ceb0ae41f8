"""Features of a problem for the predictor, from its statement, constraints, tests, signature and reference solution.

Labels, scores, ids, titles, urls, dates, sources, tags and notes are never read: they would reveal the label. If a part
is missing or of a wrong type, its feature `..._missing` is 1 and its other features are 0. The reference solution is
parsed, never run.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections import Counter
from typing import Any

from ...schema import Problem
from ..record import Record, references
from .statement import below_zero, bounds, statement_features

LONGEST = 100_000  # most characters of a statement; a longer program is generated code
MOST = 1_000  # most tests that are read
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
TOOLS = {  # a tool counts as used if one of its names occurs
    "heap": {"heapq", "heappush", "heappop", "heapify", "nlargest", "nsmallest"},
    "bisect": {"bisect", "bisect_left", "bisect_right", "insort"},
    "cache": {"cache", "lru_cache"},
    "deque": {"deque"},
    "counter": {"Counter", "defaultdict"},
    "sorted_list": {"SortedList", "SortedDict", "SortedSet"},
    "sort": {"sort", "sorted"},
    "set": {"set", "frozenset"},
    "itertools": {"accumulate", "pairwise", "combinations", "permutations", "product", "groupby"},
    "infinity": {"inf"},
    "links": {"next", "left", "right", "val"},
    "number_theory": {"gcd", "lcm", "comb", "factorial", "isqrt", "sqrt"},
    "bit_count": {"bit_count", "bit_length"},
    "text": {"join", "split", "replace", "isdigit", "isalpha", "strip", "ord", "chr"},
    "extremes": {"min", "max"},
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Assert, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert)


def features(record: Record) -> Features:
    """Return all features by name: always the same names in the same order, with finite numbers."""
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
    """Return the function of the entry point: in the starter code, which may lack a body, or else in the reference."""
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


# --- the reference solution


def solution_features(code: str | None) -> dict[str, float]:
    """Return size, shape and tools of a solution; all 0 except `solution_missing` if none can be parsed."""
    tree = parsed(code) if code else None
    if code is None or tree is None:
        return {name: float(name == "solution_missing") for name in SOLUTION_NAMES}
    nodes, loop_depth, depth = _walk(tree)
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    lines = [line for line in map(str.strip, code.splitlines()) if line and not line.startswith("#")]

    kinds = Counter(map(type, nodes))

    def count(*wanted: type[ast.AST]) -> float:
        return float(sum(kinds[kind] for kind in wanted))

    functions = count(*FUNCTIONS)
    decisions = count(*LOOPS, *BRANCHES) + sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return {
        "solution_missing": 0.0,
        "code_lines": math.log1p(len(lines)),
        "code_nodes": math.log1p(len(nodes)),
        "code_line_nodes": len(nodes) / max(1, len(lines)),
        "code_depth": float(min(depth, 100)),
        "code_loops": count(*LOOPS),
        "code_while": count(ast.While),
        "code_loop_depth": float(loop_depth),
        "code_comprehensions": count(ast.comprehension),
        "code_branches": count(*BRANCHES),
        "code_cyclomatic": math.log1p(decisions + functions),
        "code_functions": functions,
        "code_classes": count(ast.ClassDef),
        "code_recursion": float(_recurses(tree)),
        "code_returns": count(ast.Return),
        "code_calls": math.log1p(count(ast.Call)),
        "code_subscripts": math.log1p(count(ast.Subscript)),
        "code_tables": float(sum(isinstance(node, ast.ListComp) and _is_table(node) for node in nodes)),
        "code_assignments": math.log1p(count(ast.Assign, ast.AugAssign, ast.AnnAssign)),
        "code_names": math.log1p(len(used)),
        "code_constants": math.log1p(count(ast.Constant)),
        "code_modulo": count(ast.Mod),
        "code_divisions": count(ast.FloorDiv),
        "code_bits": count(*BITS),
        "code_imports": count(ast.Import, ast.ImportFrom),
        **{f"uses_{tool}": float(not names.isdisjoint(used)) for tool, names in TOOLS.items()},
    }


def parsed(code: str) -> ast.Module | None:
    """Parse code into a syntax tree; None if it is too long or no Python."""
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about "\d" in foreign strings
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _walk(tree: ast.AST) -> tuple[list[ast.AST], int, int]:
    """Return (all nodes, nesting of loops, depth of the tree), without recursion, since code can be deep."""
    nodes, loop_depth, depth = [], 0, 0
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, loops, level = waiting.pop()
        loops += isinstance(node, (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS))
        nodes.append(node)
        loop_depth, depth = max(loop_depth, loops), max(depth, level)
        waiting.extend((child, loops, level + 1) for child in ast.iter_child_nodes(node))
    return nodes, loop_depth, depth


def _recurses(tree: ast.AST) -> bool:
    """Whether a function calls itself, `f()` or `self.f()`. One pass: each call with the functions around it."""
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around |= {node.name}
        elif isinstance(node, ast.Call) and _called(node.func) in around:
            return True
        waiting.extend((child, around) for child in ast.iter_child_nodes(node))
    return False


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_table(node: ast.ListComp) -> bool:
    """Whether a comprehension makes a two-dimensional table: `[[0] * n for _ in range(m)]`."""
    row = node.elt.left if isinstance(node.elt, ast.BinOp) else node.elt
    return isinstance(row, (ast.List, ast.ListComp))


SOLUTION_NAMES = tuple(solution_features("pass"))
NAMES = tuple(features(Record(Problem(id=""))))
