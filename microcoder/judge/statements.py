"""The statements of a test program, divided: what runs outside, and what the candidate's process must run.

A name is *ours* while it holds what the candidate cannot know or change, *shared* when a value of ours was handed to the
candidate (which may have changed its copy), and *theirs* when it comes from the candidate. Statements about ours run
outside only. The others run in the candidate's process as steps, and get the values of ours that they need, never the
statements and tables which these came from. A value that cannot be handed over (a function, an object) is made there by
the statements that make it; where one of them also makes what is expected, the test is said to run inside.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .sandbox.values import RECORDS
from .syntax import IMPORTS, SCOPES, assign, bound, is_literal, loaded, local, name, replaced, root, source, split

Evaluate = Callable[[str, str], object]  # statements and an expression of the problem's -> its value, from another box
OURS, SHARED, THEIRS = 0, 1, 2
MOST = 1000  # rounds of loops that are written out
_MODULES = {"math", "collections", "itertools", "functools", "re", "random", "string", "datetime", "heapq", "copy"}
# LeetCodeDataset's helpers: they build and compare linked lists and trees.
NODE_HELPERS = {"list_node", "tree_node", "is_same_list", "is_same_tree"}
# What is done with an answer in the candidate's process: it tells nothing of what is expected.
_CONVERTERS = set(
    "list tuple set frozenset dict sorted len sum max min str int float round abs bool repr next iter reversed "
    "enumerate islice itertools.islice asyncio.run Counter collections.Counter bytes complex zip".split()
)
_EFFECTS = set(
    "next pop popleft popitem append appendleft add remove update insert extend clear send setdefault read readline "
    "random randint randrange choice choices sample shuffle uniform gauss seed rand randn integers".split()
)
_APPLY = {"map", "filter", "functools.reduce", "reduce"}


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression of ours."""

    faith: str  # "frozen", "plain", "" (see values.faithful), or "failed"
    text: str  # its value as JSON


class Line:
    """A statement, and what is asked of it again and again."""

    def __init__(self, statement: ast.stmt) -> None:
        self.statement = statement
        self.binds, self.uses, self.text = bound(statement), loaded(statement), source([statement])
        self.imports = isinstance(statement, IMPORTS)


@dataclass(slots=True)
class Step:
    """A line for the candidate's process."""

    line: Line
    given: dict[str, str] = field(default_factory=dict)  # name -> key of the fact that is its value
    copied: bool = False  # a line of ours as it stands, not its values
    tells: bool = False  # it may hold what is expected
    stores: bool = False  # it puts a value of ours where answers are: two answers that are compared may not be two


class NotSeparable(Exception):
    """This must run in the candidate's process as a whole."""


class Statements:
    def __init__(self, theirs: set[str], ours: set[str], evaluate: Evaluate | None, facts: dict[str, Fact]) -> None:
        self.ours = (ours | set(dir(builtins)) | NODE_HELPERS) - theirs
        self.shared: set[str] = set()
        self.theirs = set(theirs)
        self.objects: set[str] = set()  # of theirs: objects, whose methods are the candidate's
        self.variables: set[str] = set()  # bound by the tests
        self.filled: set[str] = set()  # of theirs: containers of ours, with answers in them
        self.parts_lent: set[str] = set()  # variables a part of which was handed to the candidate
        self.meant: dict[str, ast.expr] = {}  # names that stand for an expression with their answers in it
        self.outside: list[Line] = []
        self.steps: list[Step] = []
        self.everything: list[str] = []  # as it was written: for what can only run inside
        self.evaluate, self.facts = evaluate, facts
        self.asked: dict[str, tuple[int, str]] = {}  # facts that are wanted: place in `outside`, expression
        self.fresh: Counter[str] = Counter()
        self.rounds = 0
        self.random = False

    # Names

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

    def new_name(self, kind: str) -> str:
        self.fresh[kind] += 1
        return f"_{kind}{self.fresh[kind]}"

    # Facts

    def fact(self, node: ast.expr) -> tuple[str, Fact | None]:
        """What is known of `node` at this place of the program; None if it is still to be found out."""
        if _has_effects(node):  # it must happen once, and in its turn
            kept = self.new_name("kept")
            self._note(assign(kept, node))
            node = name(kept)
        text = ast.unparse(node)
        key = f"{len(self.outside)}: {text}"
        if key not in self.facts:
            self.asked[key] = (len(self.outside), text)
        return key, self.facts.get(key)

    def find_out(self) -> bool:
        """Get the facts that were asked for, all of them in one run. False if there were none."""
        wanted = sorted(self.asked.items(), key=lambda pair: pair[1][0])
        if not wanted or self.evaluate is None:
            return False
        lines, at = [], 0
        for _, (place, text) in wanted:
            lines += [*(line.text for line in self.outside[at:place]), f"_record(lambda: ({text}))"]
            at = place
        found = self.evaluate("\n".join(lines), RECORDS)
        if not isinstance(found, list) or len(found) != len(wanted):
            raise NotSeparable
        self.facts |= {key: Fact(*pair) for (key, _), pair in zip(wanted, found, strict=True)}
        return True

    def known(self, expression: ast.expr) -> object:
        """The value of an expression of ours, now."""
        if self.evaluate is None:
            raise NotSeparable
        before = "\n".join(line.text for line in self.outside)
        return self.evaluate(before, ast.unparse(ast.fix_missing_locations(expression)))

    # Reading

    def note(self, statement: ast.stmt) -> None:
        for part in split(statement):
            self.everything.append(source([part]))
            self._note(part)

    def _note(self, statement: ast.stmt) -> None:
        if "random" in loaded(statement) and not self.random:
            self.random = True  # it is run more than once, and must give the same each time
            self.outside += map(Line, ast.parse("import random\nrandom.seed(0)").body)
        names = {statement.name} if hasattr(statement, "name") else bound(statement)
        if isinstance(statement, ast.ImportFrom) and "*" in names:
            names = self._star(statement)
        side = self.side(statement)
        if side == THEIRS and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            before = name(statement.target.id)  # n += f(x)
            statement = assign(statement.target.id, ast.BinOp(before, statement.op, statement.value))
        if side == THEIRS and self._define(statement):
            return
        if side == OURS:
            self.outside.append(Line(statement))
        else:
            if side == SHARED:  # done on both sides; outside it may fail, for want of what the candidate did
                guard = ast.ExceptHandler(name("Exception"), None, [ast.Pass()])
                self.outside.append(Line(ast.Try([statement], [guard], [], [])))
            self.step(statement, tells=None if side == THEIRS else False)
        if side == THEIRS:
            filled = _changed(statement) & self.shared  # results.append(f(x))
            self.shared -= filled
            self.theirs |= filled
            self.filled |= filled
            for step in self.steps:
                step.stores |= bool(step.line.binds & filled) and not self._is_empty(step)
        self.variables |= names
        for kind in (self.ours, self.shared, self.theirs, self.objects, self.filled):
            kind -= names
        (self.ours, self.shared, self.theirs)[side].update(names)
        for ident in names:
            self.meant.pop(ident, None)
        if side == THEIRS:
            self._see_objects(statement)

    def _is_empty(self, step: Step) -> bool:
        found = [self.facts.get(key) for key in step.given.values()]
        return all(fact is not None and fact.text in ("[]", '{"d": []}', '{"s": []}') for fact in found)

    def _star(self, statement: ast.stmt) -> set[str]:
        found = self.evaluate(source([statement]), "list(globals())") if self.evaluate else []
        return {str(ident) for ident in found} if isinstance(found, list) else set()

    def _see_objects(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name(ident)], value) if self.is_object(value):
                self.objects.add(ident)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(ident)))) if ident in self.theirs - self.filled:
                self.objects.add(ident)  # a call for its effect

    def _define(self, statement: ast.stmt) -> bool:
        """`ok = f(x) == want`: the answer gets a name inside; what `ok` means is kept outside."""
        match statement:
            case ast.Assign([ast.Name(ident)], value) | ast.AnnAssign(ast.Name(ident), _, ast.expr() as value):
                value = self.meaning(value)
                if self.clean(value) or isinstance(value, ast.NamedExpr):
                    return False
                kept = _Keep(self).visit(copy.deepcopy(value))
                self.variables.add(ident)
                for kind in (self.ours, self.shared, self.objects):
                    kind.discard(ident)
                self.theirs.add(ident)
                self.meant[ident] = kept
                return True
        return False

    def meaning(self, node: ast.expr) -> ast.expr:
        """`node` with names that stand for expressions replaced by these."""
        found = replaced(node, self.meant)
        assert isinstance(found, ast.expr)
        return found

    # Steps

    def step(self, statement: ast.stmt, tells: bool | None = None) -> None:
        """`statement` for the candidate's process, with the values of ours that it needs."""
        for ident in sorted(loaded(statement) & self.meant.keys()):
            self.steps.append(self._handed(assign(ident, self.meant.pop(ident)), tells=True))
        step = self._handed(statement, not self.clean_statement(statement) if tells is None else tells)
        self.steps.append(step)

    def _handed(self, statement: ast.stmt, tells: bool = False) -> Step:
        hand = Hand(self)
        done = hand.visit(copy.deepcopy(statement))
        places = getattr(statement, "targets", [])
        stores = any(not isinstance(place, ast.Name) for place in places) and bool(hand.given or is_literal(done.value))
        return Step(Line(done), hand.given, tells=tells, stores=stores)

    def share(self, ident: str) -> None:
        """Give the candidate's process its own copy of a variable of ours."""
        key, fact = self.fact(name(ident))
        if fact is not None and fact.faith in ("", "failed"):
            self.copy_statements({ident})
            return
        given = self.new_name("given")
        self.steps.append(Step(Line(assign(ident, name(given))), {given: key}))
        self.ours.discard(ident)
        self.shared.add(ident)

    def copy_statements(self, wanted: set[str]) -> None:
        """The statements of ours that make these names, for the candidate's process."""
        done = {id(step.line) for step in self.steps}
        for line in self.slice(wanted & self.ours):
            if id(line) not in done:
                self.steps.append(Step(line, copied=True, stores=not line.imports))
            if not line.imports:
                names = ({line.statement.name} if hasattr(line.statement, "name") else line.binds) & self.variables
                self.ours -= names
                self.shared |= names

    def slice(self, wanted: set[str]) -> list[Line]:
        """The statements outside, less those that the wanted names do not lead back to."""
        if self.random:
            return list(self.outside)
        kept, wanted = [], set(wanted)
        for line in reversed(self.outside):
            if self._matters(line, wanted):
                kept.append(line)
                wanted |= line.uses
        return kept[::-1]

    def needed(self, ask: ast.expr) -> list[Step]:
        """The steps, less those that `ask` does not lead back to: other variables, and what is done with them."""
        kept, wanted = [], loaded(ask)
        for step in reversed(self.steps):
            if self._matters(step.line, wanted):
                kept.append(step)
                wanted |= step.line.uses
        return kept[::-1]

    def _matters(self, line: Line, wanted: set[str]) -> bool:
        if line.binds & wanted:
            return True
        touched = line.uses & self.variables
        return bool(touched & wanted) or not (touched or line.binds)

    # What may be asked of the candidate's process without telling it what is expected

    def clean(self, node: ast.expr, methods: bool = False) -> bool:
        """Whether `node` depends on the candidate, and has values of ours only where inputs stand.

        methods: whether that goes for arguments of a method of an answer, as in f(1).count("a").
        """
        if self.side(node) == OURS:
            return False
        return self._clean(node, local(node), methods)

    def _clean(self, node: ast.expr, own: set[str], methods: bool) -> bool:
        def clean(part: ast.expr) -> bool:
            return self._clean(part, own, methods)

        match node:
            case ast.Name(ident):
                return ident in own or ident in self.shared or (ident not in self.ours and ident not in self.meant)
            case ast.Attribute(value) | ast.Starred(value) | ast.UnaryOp(_, value) | ast.FormattedValue(value):
                return clean(value)
            case ast.Subscript(value, index):
                return clean(value) and self._input(index, own)
            case ast.BinOp(left, _, right):
                return clean(left) and clean(right)
            case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts):
                return bool(parts) and all(map(clean, parts))
            case ast.Dict(keys, parts):
                return bool(parts) and all(k is not None and self._input(k, own) for k in keys) and all(map(clean, parts))
            case ast.ListComp(part, loops) | ast.SetComp(part, loops) | ast.GeneratorExp(part, loops):
                return clean(part) and self._loops(node, loops, own)
            case ast.DictComp(key, part, loops):
                return self._input(key, own) and clean(part) and self._loops(node, loops, own)
            case ast.Call():
                return self._clean_call(node, own, methods)
        return False

    def _loops(self, node: ast.expr, loops: list[ast.comprehension], own: set[str]) -> bool:
        return all(
            not loop.ifs
            and self._input(loop.iter, own)
            and (self._clean(loop.iter, own, True) or _uses_all(loop.target, [node]))
            for loop in loops
        )

    def _clean_call(self, node: ast.Call, own: set[str], methods: bool) -> bool:
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
            case ast.Name(ident) if ident in self.ours or ident in own:
                return False
            case ast.Attribute(base) if not self._clean(base, own, methods):
                return False
            case ast.Attribute(base) if args and not methods and not self.is_object(base) and root(base) not in own:
                named = isinstance(base, ast.Name) and base.id not in self.variables | self.shared
                return named and all(self._input(arg, own) for arg in args)
            case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
                return all(self._input(arg, own) for arg in args)
        return False

    def _input(self, node: ast.expr, own: set[str]) -> bool:
        """Whether `node` can stand for an argument: a value of ours, or made of clean parts and such values."""
        if not loaded(node) - self.ours - own or self._clean(node, own, True):
            return True
        compound = ast.BinOp | ast.UnaryOp | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Starred | ast.Subscript
        compound |= ast.Slice | ast.JoinedStr | ast.FormattedValue
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        if isinstance(node, ast.Call):
            return all(self._input(part, own) for part in [*node.args, *(word.value for word in node.keywords)])
        return isinstance(node, compound) and all(self._input(part, own) for part in parts)

    def clean_statement(self, statement: ast.stmt) -> bool:
        """The same of a statement: nothing in it tells what is expected."""
        match statement:
            case ast.Assign(_, value) | ast.AugAssign(_, _, value) | ast.AnnAssign(_, _, ast.expr() as value):
                return self.side(value) == OURS or self.clean(value) or self.side(value) == SHARED
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(ident)), args, words)) if (
                ident in self.ours | self.shared | self.filled
            ):
                return all(map(self.clean, [*args, *(word.value for word in words)]))  # results.append(f(x))
            case ast.Expr(value) | ast.Return(ast.expr() as value):
                return self.clean(value, methods=isinstance(statement, ast.Expr)) or self.side(value) == SHARED
            case ast.For(target, loop, body, []):
                return self._input(loop, set()) and all(map(self.clean_statement, body)) and _uses_all(target, body)
            case ast.With(items, body):
                ours = all(self.side(part.context_expr) != THEIRS for part in items)
                return ours and all(map(self.clean_statement, body))
            case ast.FunctionDef(_, _, body, []):
                return all(map(self.clean_statement, body)) and not has_default(statement)
            case ast.Pass() | ast.Delete() | ast.Import() | ast.ImportFrom() | ast.Continue() | ast.Break():
                return True
        return False


def has_default(statement: ast.FunctionDef) -> bool:
    return bool(statement.args.defaults or any(statement.args.kw_defaults))


def _tells_nothing(node: ast.expr) -> bool:
    """Of a key to sort by: nothing in it can be an answer."""
    parts = list(ast.walk(node))
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    return not any(isinstance(part, ast.Compare) for part in parts) and all(c in range(-9, 10) for c in constants)


def constants(node: ast.AST) -> set[object]:
    """The values in `node` that say something: no flags, small numbers or single letters."""
    found = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return {c for c in found if (isinstance(c, (str, bytes)) and len(c) > 1) or (isinstance(c, float | int) and abs(c) > 9)}


def _has_effects(node: ast.AST) -> bool:
    """Whether evaluating it again may give something else."""
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else root(func) for func in called}
    return bool(names & _EFFECTS)


def _uses_all(target: ast.expr, nodes: Sequence[ast.AST]) -> bool:
    """Whether all that a loop goes through is used, and as it is: then all of it is input."""
    parts = [part for node in nodes for part in ast.walk(node)]
    inner = {root(part.value) for part in parts if isinstance(part, ast.Subscript | ast.Attribute)}
    used = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    return bound(target) <= used - inner


def _changed(statement: ast.stmt) -> set[str]:
    """Names whose objects a statement changes by itself: `xs.append(1)`, `xs[0] = 1`, `x.y = 1`."""
    out = set()
    for part in ast.walk(statement):
        match part:
            case ast.Call(ast.Attribute(ast.Name(ident))):
                out.add(ident)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                out.add(root(part))
    return out


class Hand(ast.NodeTransformer):
    """Puts names of given values in the place of what is ours."""

    def __init__(self, statements: Statements, own: set[str] | None = None) -> None:
        self.all = statements
        self.own = own or set()
        self.given: dict[str, str] = {}
        self.only_names = False
        self.loops: set[int] = set()

    def is_loop(self, node: ast.AST) -> bool:
        return id(node) in self.loops

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            if isinstance(node, ast.stmt) and hasattr(node, "body"):  # what it does is done there, or not at all
                self.only_names = True
                self.own |= local(node) - self.all.ours - self.all.shared
            if isinstance(node, ast.For | ast.comprehension) and self.all.side(node.iter) == OURS:
                if not is_literal(node.iter) and not loaded(node.iter) & self.own:  # its elements, not all of a dict
                    node.iter = ast.Call(name("list"), [node.iter], [])
                    self.loops.add(id(node.iter))
            return self.generic_visit(node)
        if isinstance(node, SCOPES):
            self.own |= local(node)
        names = loaded(node)
        inner = self.only_names and not isinstance(node, ast.Name) and not self.is_loop(node)
        if names & self.own or self.all.side(node) != OURS or inner:
            return self.generic_visit(node)
        if is_literal(node):
            return node
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Starred | ast.Slice | ast.FormattedValue):
            return self.generic_visit(node)
        inline = isinstance(node, SCOPES) and not isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp)
        if inline or names & NODE_HELPERS:
            self.all.copy_statements(names)
            return node
        key, fact = self.all.fact(node)
        if fact is not None and fact.faith in ("", "failed"):
            self.all.copy_statements(names)
            return node
        if fact is not None and fact.faith == "plain":
            self.all.parts_lent |= names & self.all.variables
        return self._hand(key)

    def _name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.all.variables and hasattr(builtins, node.id):
            return node
        key, fact = self.all.fact(node)
        if fact is not None and fact.faith == "frozen":
            return self._hand(key)
        if node.id in self.all.variables:
            self.all.share(node.id)
        elif fact is None or fact.faith == "plain":
            return self._hand(key)
        return node  # of the setup, which is there

    def _hand(self, key: str) -> ast.AST:
        given = self.all.new_name("given")
        self.given[given] = key
        return name(given)


class _Keep(ast.NodeTransformer):
    """Gives the answers in an expression names inside, and what is ours names outside, as both are now."""

    def __init__(self, statements: Statements) -> None:
        self.all = statements

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        if self.all.side(node) == OURS:
            if is_literal(node) or not loaded(node) & self.all.variables:
                return node
            kept = self.all.new_name("kept")
            self.all._note(assign(kept, node))
            return name(kept)
        if self.all.clean(node):
            kept = self.all.new_name("answer")
            self.all._note(assign(kept, node))
            return name(kept)
        return node if isinstance(node, SCOPES) else self.generic_visit(node)
