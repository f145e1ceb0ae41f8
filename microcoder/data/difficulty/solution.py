"""What a reference solution shows: its size, its shape, and the tools it takes up. It is parsed, never run."""

from __future__ import annotations

import ast
import math
import warnings
from collections import Counter

LONGEST = 100_000  # characters; longer programs are generated ones
TOOLS = {  # a tool is used where one of its names occurs
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


def solution_features(code: str | None) -> dict[str, float]:
    """All 0 but `solution_missing` where there is none, or none that this Python can parse."""
    tree = parsed(code) if code else None
    if code is None or tree is None:
        return {name: float(name == "solution_missing") for name in NAMES}
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
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a stranger's string
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _walk(tree: ast.AST) -> tuple[list[ast.AST], int, int]:
    """(all nodes, how deep loops are nested, how deep the tree is). Without recursion: code can be deep."""
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
    """Does a function call its own name, `f()` or `self.f()`? One pass: each call with the functions around it."""
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
    """`[[0] * n for _ in range(m)]`: the mark of a table in two dimensions."""
    row = node.elt.left if isinstance(node.elt, ast.BinOp) else node.elt
    return isinstance(row, (ast.List, ast.ListComp))


NAMES = tuple(solution_features("pass"))
