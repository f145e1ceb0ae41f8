"""Divide the statements of a test program: what runs outside, and what the candidate's process must run.

Statements about what is ours (sides.py) run outside only. The others run in the candidate's process as steps, and get
the values of ours that they need, never the statements and tables which these came from. A value that cannot be handed
over (a function, an object) is made there by the statements that make it; where one of them also makes what is
expected, the test is said to run inside.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from .sandbox.records import RECORDS
from .sides import NODE_HELPERS, OURS, SHARED, THEIRS, Sides
from .syntax import (
    DEFINITIONS,
    IMPORTS,
    SCOPES,
    Line,
    Lines,
    assign,
    binds,
    bound,
    changed,
    copied,
    has_effects,
    is_literal,
    item,
    loaded,
    local,
    looks_outside,
    name,
    parts,
    replaced,
    root,
    source,
    split,
)

Evaluate = Callable[[str, str], object]  # statements and an expression of the problem's -> its value, from another box
Replace = Callable[[ast.expr], ast.expr]
MOST = 1000  # rounds of loops that are written out


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression of the tests."""

    faith: str  # "frozen", "plain", "" (see records.faithful), or "failed"
    text: str  # its value as JSON

    @property
    def is_value(self) -> bool:
        """Whether it is plain: no object, and no exception."""
        return self.faith != "failed" and '{"?"' not in self.text


class NotSeparable(Exception):
    """This must run in the candidate's process as a whole."""


class Statements(Sides):
    def __init__(self, theirs: set[str], ours: set[str], evaluate: Evaluate | None, facts: dict[str, Fact]) -> None:
        super().__init__(theirs, ours)
        self.outside = Lines()  # of ours
        self.steps = Lines()  # for the candidate's process
        self.everything: list[str] = []  # as it was written: for what can only run inside
        self.imported: set[str] = set()
        self.twins: dict[str, str] = {}  # b and a after b = a: two names of one object
        self.lent = False  # whether the candidate was handed anything that it can change
        self.unread: dict[int, ast.expr] = {}  # meanings that no assert has asked for, and that may fail
        self.evaluate, self.facts = evaluate, facts
        self.asked: dict[str, tuple[int, str]] = {}  # facts that are wanted: place in `outside`, expression
        self.fresh: Counter[str] = Counter()
        self.rounds = 0
        self.random = False

    def new_name(self, kind: str) -> str:
        self.fresh[kind] += 1
        return f"_{kind}{self.fresh[kind]}"

    # Facts

    def fact(self, node: ast.expr) -> tuple[str, Fact | None]:
        """What is known of `node` at this place of the program; None if it is still to be found out."""
        if has_effects(node):  # it must happen once, and in its turn
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
        lines, at, outside = [], 0, list(self.outside)
        for _, (place, text) in wanted:
            lines += [*(line.text for line in outside[at:place]), f"_record(lambda: ({text}))"]
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
        names = binds(statement)
        if "*" in names or looks_outside(statement):  # names that are not known; files, which each process has apart
            raise NotSeparable
        if names & self.steps.late - self.variables - self.theirs:  # a function before it was not the candidate's
            raise NotSeparable
        if "random" in loaded(statement) and not self.random:
            self.random = True  # it is run more than once, and must give the same each time
            for seed in ast.parse("import random\nrandom.seed(0)").body:
                self.outside.add(Line(seed))
        side = self.side(statement)
        reaches_out = self.reaches_out(statement)
        if side == THEIRS and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            before = name(statement.target.id)  # n += f(x)
            statement = assign(statement.target.id, ast.BinOp(before, statement.op, statement.value))
        if side == THEIRS and self._define(statement):
            return
        if side == OURS:
            line = Line(statement)
            line.always = reaches_out
            if reaches_out:
                self._on_both_sides(line)
            self.outside.add(line)
        else:
            if side == SHARED:  # done on both sides; outside it may fail, for want of what the candidate did
                guard = ast.ExceptHandler(name("Exception"), None, [ast.Pass()])
                self.outside.add(Line(ast.Try([statement], [guard], [], [])))
            step = self.step(statement, tells=None if side == THEIRS else False)
            step.due = not isinstance(statement, DEFINITIONS)
            step.always = reaches_out
        if side == THEIRS:
            filled = changed(statement) & self.shared  # results.append(f(x))
            self.shared -= filled
            self.theirs |= filled
            self.filled |= filled
            for step in self.steps:
                step.stores |= bool(step.binds & filled) and not self._is_empty(step)
        self.variables |= names
        for kind in (self.ours, self.shared, self.theirs, self.objects, self.filled, self.imported):
            kind -= names
        for ident in names:
            self.meant.pop(ident, None)
            self.twins.pop(ident, None)
        self.imported |= names if isinstance(statement, IMPORTS) else set()
        (self.ours, self.shared, self.theirs)[side].update(names)
        match statement:
            case ast.Assign([ast.Name(ident)], ast.Name(other)) if side == OURS and other in self.variables:
                self.twins[ident] = other
            case ast.Assign([ast.Name(ident)], value) if side == THEIRS and self.is_object(value):
                self.objects.add(ident)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(ident)))) if ident in self.theirs - self.filled:
                self.objects.add(ident)  # a call for its effect

    def reaches_out(self, statement: ast.stmt) -> bool:
        """Whether it changes what the tests have not made: sys.stdin, os.environ, a variable of the setup."""

        def foreign(ident: str) -> bool:
            known = ident in self.ours | self.shared and ident not in self.variables - self.imported
            return known and not hasattr(builtins, ident)

        match statement:
            case ast.Expr(ast.Call(func)) if foreign(root(func)):
                return not loaded(statement) & self.variables - self.imported or ast.unparse(func).endswith(".seed")
            case ast.Assign([ast.Name(ident)], ast.Lambda()) | ast.FunctionDef(ident) if hasattr(builtins, ident):
                return ident in self.ours  # the candidate's calls of input mean this one too
            case ast.Expr(ast.Call(ast.Name("setattr" | "delattr"))):
                return True
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                return False
        places = [part for part in parts(statement) if isinstance(part, ast.Attribute | ast.Subscript)]
        return any(foreign(root(part)) for part in places if not isinstance(part.ctx, ast.Load))

    def _on_both_sides(self, line: Line) -> None:
        if (line.uses - line.binds) & (self.variables - self.imported):
            raise NotSeparable
        self.copy_statements(line.uses & self.imported)
        self._copy(line)

    def _is_empty(self, step: Line) -> bool:
        found = [self.facts.get(key) for key in step.given.values()]
        return all(fact is not None and fact.text in ("[]", '{"d": []}', '{"s": []}') for fact in found)

    def _define(self, statement: ast.stmt) -> bool:
        """`ok = f(x) == want`: the answer gets a name inside; what `ok` means is kept outside."""
        match statement:
            case ast.Assign([ast.Name(ident)], value) | ast.AnnAssign(ast.Name(ident), _, ast.expr() as value):
                value = self.meaning(value)
                if self.clean(value) or isinstance(value, ast.NamedExpr):
                    return False
                try:
                    kept = Divide(self, self._kept("answer"), self._kept("kept")).visit(copied(value))
                except NotSeparable:
                    return False
                assert isinstance(kept, ast.expr)
                self.variables.add(ident)
                for kind in (self.ours, self.shared, self.objects):
                    kind.discard(ident)
                self.theirs.add(ident)
                self.meant[ident] = kept
                if any(isinstance(part, ast.Call | ast.Subscript | ast.BinOp | ast.Attribute) for part in parts(kept)):
                    self.unread[id(kept)] = kept
                return True
        return False

    def _kept(self, kind: str) -> Replace:
        """Give an expression, as it is now, a name."""

        def keep(node: ast.expr) -> ast.expr:
            if self.side(node) == OURS and (is_literal(node) or not loaded(node) & self.variables):
                return node
            kept = self.new_name(kind)
            self._note(assign(kept, node))
            return name(kept)

        return keep

    def meaning(self, node: ast.expr) -> ast.expr:
        """Return `node` with names replaced by the expressions that they stand for."""
        for ident in loaded(node) & self.meant.keys():
            self.unread.pop(id(self.meant[ident]), None)
        return replaced(node, self.meant)

    # Loops

    def written_out(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[ast.expr]:
        """Return the elements of a comprehension over values of the tests."""
        own = set().union(*(bound(loop.target) for loop in node.generators))
        for loop in node.generators:
            if any(loaded(part) - own - self.ours for part in (loop.iter, *loop.ifs)) or loop.is_async:
                raise NotSeparable
        variables = sorted(own)
        values = ast.Tuple([name(v) for v in variables], ast.Load())
        rounds = self.rounds_of(ast.ListComp(values, [copied(loop) for loop in node.generators]))
        out = []
        for value in rounds:
            places = {v: ast.Subscript(value, ast.Constant(n), ast.Load()) for n, v in enumerate(variables)}
            out.append(replaced(node.elt, places))
        return out

    def rounds_of(self, loop: ast.expr) -> list[ast.expr]:
        """Return the items that a loop goes through, as expressions of the tests."""
        if self.side(loop) == THEIRS:
            raise NotSeparable
        values = self.new_name("loop")
        first = ast.parse(f"list(__import__('itertools').islice(_, {MOST + 1}))", mode="eval").body
        self.note(assign(values, replaced(first, {"_": loop})))
        count = self.known(ast.Call(name("len"), [name(values)], []))
        self.rounds += count if isinstance(count, int) else MOST + 1
        if self.rounds > MOST or not isinstance(count, int):
            raise NotSeparable
        return [item(values, n) for n in range(count)]

    # Steps

    def step(self, statement: ast.stmt, tells: bool | None = None) -> Line:
        """`statement` for the candidate's process, with the values of ours that it needs."""
        for ident in sorted(loaded(statement) & self.meant.keys()):
            self.steps.add(self._handed(assign(ident, self.meant.pop(ident)), tells=True))
        tells = not self.clean_statement(statement) if tells is None else tells
        for part in ast.walk(statement):
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id in self.ours:
                self.share(part.target.id)
        step = self._handed(statement, tells)
        self.steps.add(step)
        return step

    def _handed(self, statement: ast.stmt, tells: bool = False) -> Line:
        if hasattr(statement, "body"):  # what it does is done there, or not at all
            for ident in sorted(loaded(statement) & self.variables & self.ours):
                self.share(ident)
            return Line(statement, tells=tells)
        hand = Hand(self)
        done = hand.visit(copied(statement))
        assert isinstance(done, ast.stmt)
        step = Line(done, hand.given, tells)
        step.stores = isinstance(done, ast.Assign) and not step.anew and (bool(hand.given) or is_literal(done.value))
        return step

    def share(self, ident: str) -> None:
        """Give the candidate's process its own copy of a variable of ours."""
        key, fact = self.fact(name(ident))
        if ident in {*self.twins, *self.twins.values()} or (fact is not None and fact.faith in ("", "failed")):
            return self.copy_statements({ident})
        given = self.new_name("given")
        self.steps.add(Line(assign(ident, name(given)), {given: key}))
        self.lent = True
        self.ours.discard(ident)
        self.shared.add(ident)

    def copy_statements(self, wanted: set[str]) -> None:
        """The statements of ours that make these names, for the candidate's process."""
        done = {id(step.statement) for step in self.steps}
        for line in self.slice(wanted & self.ours):
            if id(line.statement) not in done:
                self._copy(line)
            if not line.imports:
                names = binds(line.statement) & self.variables
                self.lent |= bool(names)
                self.ours -= names
                self.shared |= names

    def _copy(self, line: Line) -> None:
        step = Line(line.statement)
        step.copied, step.stores, step.always = True, not line.imports, line.always
        self.steps.add(step)

    def slice(self, wanted: set[str]) -> list[Line]:
        """The statements outside, less those that the wanted names do not lead back to."""
        return list(self.outside) if self.random else self.outside.leading_to(wanted)


class Hand(ast.NodeTransformer):
    """Replace values of the tests by names of given values."""

    def __init__(self, statements: Statements) -> None:
        self.all = statements
        self.own: set[str] = set()  # variables of comprehensions and functions
        self.given: dict[str, str] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        before = set(self.own)
        if isinstance(node, SCOPES):
            self.own |= local(node)
        if isinstance(node, ast.comprehension) and self.all.side(node.iter) == OURS:
            if not is_literal(node.iter) and not loaded(node.iter) & self.own:
                node.iter = ast.Call(name("list"), [node.iter], [])  # the elements, not all that they come from
        done = self._visit(node)
        self.own = before
        return done

    def _visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return self.generic_visit(node)
        names = loaded(node)
        if names & self.own or self.all.side(node) != OURS:
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
        self.all.lent |= fact is not None and fact.faith == "plain" and bool(names & self.all.variables)
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


class Divide(ast.NodeTransformer):
    """Replace what the candidate's process must evaluate by what `answer` makes of it, and what is ours by `ours`."""

    def __init__(self, statements: Statements, answer: Replace, ours: Replace) -> None:
        self.all, self.answer, self.ours = statements, answer, ours

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        if self.all.side(node) == OURS:
            return self.ours(node)
        if self.all.clean(node) and not isinstance(node, ast.FormattedValue | ast.Starred | ast.Slice):
            return self.answer(node)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.comprehension(node)
        if isinstance(node, SCOPES):
            raise NotSeparable
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # the method of an answer
            node.func.value = self.visit(node.func.value)  # type: ignore[assignment]
            node.args = [self.visit(arg) for arg in node.args]  # type: ignore[misc]
            node.keywords = [self.visit(word) for word in node.keywords]  # type: ignore[misc]
            return node
        return self.generic_visit(node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> ast.AST:
        own = set().union(*(bound(loop.target) for loop in node.generators))
        rest = [node.elt, *(p for loop in node.generators for p in (loop.iter, *loop.ifs))]
        rest.remove(node.generators[0].iter)
        if all(not loaded(part) - own - self.all.ours for part in rest):  # only what it goes through is the candidate's
            through = ast.Call(name("list"), [node.generators[0].iter], [])  # a generator has no other value
            node.generators[0].iter = self.visit(through)  # type: ignore[assignment]
            return node
        parts = [self.visit(part) for part in self.all.written_out(node)]
        out = ast.List(parts, ast.Load())  # type: ignore[arg-type]
        return ast.Call(name("set"), [out], []) if isinstance(node, ast.SetComp) else out
