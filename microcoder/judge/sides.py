"""Decide which values belong to the tests, and what the candidate's process may evaluate without seeing answers.

A name is *ours* while it holds what the candidate cannot know or change, *shared* when a value of ours was handed to
the candidate (which may have changed its copy), and *theirs* when it comes from the candidate.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from .syntax import bound, loaded, local, root

OURS, SHARED, THEIRS = 0, 1, 2
_MODULES = {"math", "collections", "itertools", "functools", "re", "random", "string", "datetime", "heapq", "copy"}
# LeetCodeDataset's helpers: they build and compare linked lists and trees.
NODE_HELPERS = {"list_node", "tree_node", "is_same_list", "is_same_tree"}
# What is done with an answer in the candidate's process: it tells nothing of what is expected.
_CONVERTERS = set(
    "list tuple set frozenset dict sorted len sum max min str int float round abs bool repr next iter reversed "
    "enumerate islice itertools.islice asyncio.run Counter collections.Counter bytes complex zip".split()
)
_COMPOUND = (
    ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.Subscript, ast.Slice,
    ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
Own = dict[str, bool]  # variables of loops and functions: whether they hold answers
_APPLY = {"map", "filter", "functools.reduce", "reduce"}


class Sides:
    def __init__(self, theirs: set[str], ours: set[str]) -> None:
        self.ours = (ours | set(dir(builtins)) | NODE_HELPERS) - theirs
        self.shared: set[str] = set()
        self.theirs = set(theirs)
        self.variables: set[str] = set()  # bound by the tests
        self.objects: set[str] = set()  # of theirs: objects, whose methods are the candidate's
        self.filled: set[str] = set()  # of theirs: containers of ours, with answers in them
        self.meant: dict[str, ast.expr] = {}  # names that stand for an expression with answers in it

    def note(self, statement: ast.stmt) -> None:
        raise NotImplementedError

    def side(self, node: ast.AST) -> int:
        """Whose the value of `node` is. A name that nothing explains is the candidate's."""
        names, own = loaded(node), local(node)
        for module in sorted(names & _MODULES - self.ours - self.theirs - self.shared - own):
            self.note(ast.parse(f"import {module}").body[0])  # the tests forgot to
        if names & self.theirs or names - self.ours - self.shared - own:
            return THEIRS
        return SHARED if names & self.shared else OURS

    def is_object(self, node: ast.expr) -> bool:
        """Whether a method of `node` is the candidate's, by what it is called: a class is spelled with a capital."""
        ident = root(node)
        return ident in self.objects or (ident[:1].isupper() and ident not in self.variables | self.ours)

    def clean(self, node: ast.expr, methods: bool = False, own: Own | None = None) -> bool:
        """Whether `node` depends on the candidate, and has values of ours only where inputs stand.

        methods: whether that goes for arguments of a method of an answer, as in f(1).count("a").
        """
        return self.side(node) != OURS and self._clean(node, own or {}, methods)

    def _clean(self, node: ast.expr, own: Own, methods: bool) -> bool:
        def clean(part: ast.expr) -> bool:
            return self._clean(part, own, methods)

        match node:
            case ast.Name(ident):
                return own[ident] if ident in own else ident not in self.ours and ident not in self.meant
            case ast.Attribute(value) | ast.Starred(value) | ast.UnaryOp(_, value) | ast.FormattedValue(value):
                return clean(value)
            case ast.Subscript(value, index):
                return clean(value) and self._input(index, own)
            case ast.BinOp(left, _, right):
                return clean(left) and clean(right)
            case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts):
                return bool(parts) and all(map(clean, parts))
            case ast.ListComp(part, loops) | ast.SetComp(part, loops) | ast.GeneratorExp(part, loops):
                inner = self._loops(node, loops, own)
                return inner is not None and self._clean(part, inner, methods)
            case ast.DictComp(key, part, loops):
                inner = self._loops(part, loops, own)
                return inner is not None and self._input(key, inner) and self._clean(part, inner, methods)
            case ast.Call():
                return self._clean_call(node, own, methods)
        return False

    def _loops(self, node: ast.expr, loops: list[ast.comprehension], own: Own) -> Own | None:
        """The variables of a comprehension with those around it; None if it has what tells."""
        for loop in loops:
            answers = self._clean(loop.iter, own, True)
            if loop.ifs or not (answers or (self._input(loop.iter, own) and _uses_all(loop.target, [node]))):
                return None
            own = own | dict.fromkeys(bound(loop.target), answers)
        return own

    def _clean_call(self, node: ast.Call, own: Own, methods: bool) -> bool:
        args = [*node.args, *(word.value for word in node.keywords)]
        called = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
        if called in _CONVERTERS and root(node.func) in self.ours:
            words = all(_tells_nothing(w.value) or self._clean(w.value, own, methods) for w in node.keywords)
            rest = all(self._clean(a, own, methods) or isinstance(a, ast.Constant) for a in node.args[1:])
            return bool(node.args) and words and rest and self._clean(node.args[0], own, methods)
        if called in _APPLY and root(node.func) in self.ours and len(node.args) > 1:
            return self._clean(node.args[0], own, methods) and all(self._input(a, own) for a in node.args[1:])
        match node.func:
            case ast.Attribute(ast.Constant(str()), "join") if len(args) == 1:
                return self._clean(args[0], own, methods)
            case ast.Attribute(ast.Name(ident)) if ident not in self.variables | self.shared | self.ours | own.keys():
                pass  # of a class or a module of the candidate's
            case ast.Attribute(base) if args and not methods and not self.is_object(base) and not own.get(root(base)):
                return False
        return self._clean(node.func, own, methods) and all(self._input(arg, own) for arg in args)

    def _input(self, node: ast.expr, own: Own) -> bool:
        """Whether `node` can stand for an argument: a value of ours, or made of clean parts and such values."""
        if not loaded(node) - local(node) - self.ours - own.keys() or self._clean(node, own, True):
            return True
        if isinstance(node, ast.Call):
            return all(self._input(part, own) for part in [*node.args, *(word.value for word in node.keywords)])
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return isinstance(node, _COMPOUND) and all(self._input(part, own) for part in parts)

    def clean_statement(self, statement: ast.stmt) -> bool:
        """Whether a statement holds nothing that tells what is expected."""
        match statement:
            case ast.Assign(_, value) | ast.AugAssign(_, _, value) | ast.AnnAssign(_, _, ast.expr() as value):
                return self.side(value) != THEIRS or self.clean(value)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(ident)), args, words)) if (
                ident in self.ours | self.shared | self.filled
            ):  # results.append(f(x))
                return all(self._clean(part, {}, False) for part in [*args, *(word.value for word in words)])
            case ast.Expr(value):
                return self.clean(value, True) or self.side(value) == SHARED
            case ast.FunctionDef():
                return _tells_nothing(statement) and not loaded(statement) & self.variables & self.ours
        return isinstance(statement, ast.Pass | ast.Delete | ast.Import | ast.ImportFrom)


def _tells_nothing(node: ast.AST) -> bool:
    """Whether a sort key, or a function of the tests, cannot hold an answer."""
    parts = list(ast.walk(node))
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    return not any(isinstance(part, ast.Compare) for part in parts) and all(c in range(-9, 10) for c in constants)


def _uses_all(target: ast.expr, nodes: Sequence[ast.AST]) -> bool:
    """Whether all that a loop goes through is used, and as it is: then all of it is input."""
    parts = [part for node in nodes for part in ast.walk(node)]
    inner = {root(part.value) for part in parts if isinstance(part, ast.Subscript | ast.Attribute)}
    used = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    return bound(target) <= used - inner
