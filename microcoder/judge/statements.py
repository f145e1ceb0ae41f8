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
from dataclasses import dataclass, field

from .sandbox.records import RECORDS
from .sides import NODE_HELPERS, OURS, SHARED, THEIRS, Sides
from .syntax import (
    DEFINITIONS,
    IMPORTS,
    SCOPES,
    Kin,
    Line,
    assign,
    bound,
    changed,
    copied,
    has_effects,
    held,
    is_literal,
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
MOST = 1000  # rounds of loops that are written out


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression of the tests."""

    faith: str  # "frozen", "plain", "" (see records.faithful), or "failed"
    text: str  # its value as JSON


@dataclass(slots=True)
class Step:
    """A line for the candidate's process."""

    line: Line
    given: dict[str, str] = field(default_factory=dict)  # name -> key of the fact that is its value
    copied: bool = False  # a line of ours as it stands, not its values
    tells: bool = False  # it may hold what is expected
    stores: bool = False  # it puts a value of ours where answers are: two answers that are compared may not be two
    due: bool = False  # it may fail, and no probe runs it yet


class NotSeparable(Exception):
    """This must run in the candidate's process as a whole."""


class Statements(Sides):
    def __init__(self, theirs: set[str], ours: set[str], evaluate: Evaluate | None, facts: dict[str, Fact]) -> None:
        super().__init__(theirs, ours)
        self.parts_lent: set[str] = set()  # variables a part of which was handed to the candidate
        self.outside: list[Line] = []
        self.steps: list[Step] = []
        self.everything: list[str] = []  # as it was written: for what can only run inside
        self.imported: set[str] = set()
        self.handles: set[str] = set()  # what is known of files and patches: the other process has its own
        self.twins: dict[str, set[str]] = {}  # names of the same object
        self.holds: dict[str, set[str]] = {}  # names, and those of what they are a part of or consist of
        self.kin = [Kin(), Kin()]  # of the names in `outside`, and in the steps
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
        reaches_out = self.reaches_out(statement)
        if side == THEIRS and isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            before = name(statement.target.id)  # n += f(x)
            statement = assign(statement.target.id, ast.BinOp(before, statement.op, statement.value))
        if side == THEIRS and self._define(statement):
            return
        if side == OURS:
            line = Line(statement)
            if reaches_out:
                self._on_both_sides(line)
            elif line.uses & self.handles:
                raise NotSeparable
            self.outside.append(line)
        else:
            if side == SHARED:  # done on both sides; outside it may fail, for want of what the candidate did
                guard = ast.ExceptHandler(name("Exception"), None, [ast.Pass()])
                self.outside.append(Line(ast.Try([statement], [guard], [], [])))
            self.step(statement, tells=None if side == THEIRS else False)
            self.steps[-1].due = not isinstance(statement, DEFINITIONS)
            self.steps[-1].line.always = reaches_out
        if side == THEIRS:
            filled = changed(statement) & self.shared  # results.append(f(x))
            filled |= self.shared & set().union(*(self.twins.get(ident, set()) for ident in filled))
            if any(self.holds.get(ident) for ident in filled):
                raise NotSeparable  # row = grid[0]; row.append(f(x))
            self.shared -= filled
            self.theirs |= filled
            self.filled |= filled
            for step in self.steps:
                step.stores |= bool(step.line.binds & filled) and not self._is_empty(step)
        self.variables |= names
        for kind in (self.ours, self.shared, self.theirs, self.objects, self.filled, self.imported, self.handles):
            kind -= names
        self.imported |= names if isinstance(statement, IMPORTS) else set()
        if (reaches_out and side != THEIRS) or (isinstance(statement, DEFINITIONS) and looks_outside(statement)):
            self.handles |= names
        self._see_parts(statement, names)
        (self.ours, self.shared, self.theirs)[side].update(names)
        for ident in names:
            self.meant.pop(ident, None)
        if side == THEIRS:
            self._see_objects(statement)

    def reaches_out(self, statement: ast.stmt) -> bool:
        """Whether it changes what the tests have not made: sys.stdin, os.environ, a file, a variable of the setup."""

        def foreign(ident: str) -> bool:
            known = ident in self.ours | self.shared and ident not in self.variables - self.imported
            return ident in self.handles or (known and not hasattr(builtins, ident))

        match statement:
            case ast.Expr(ast.Call(func)) if foreign(root(func)):
                made = loaded(statement) & self.variables - self.imported - self.handles
                return not made or looks_outside(statement) or ast.unparse(func).endswith(".seed")
            case ast.Assign([ast.Name(ident)], ast.Lambda()) | ast.FunctionDef(ident) if hasattr(builtins, ident):
                return ident in self.ours  # the candidate's calls of input mean this one too
            case ast.Expr(ast.Call(ast.Name("setattr" | "delattr"))):
                return True
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                return False
        stored = [
            part for part in parts(statement)
            if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load)
        ]  # fmt: skip
        return any(foreign(root(part)) for part in stored) or looks_outside(statement)

    def _on_both_sides(self, line: Line) -> None:
        if (line.uses - line.binds) & (self.variables - self.imported - self.handles):
            raise NotSeparable
        self.copy_statements(line.uses & (self.imported | self.handles))
        line.always = True
        self.steps.append(Step(line, copied=True))

    def _see_parts(self, statement: ast.stmt, names: set[str]) -> None:
        """Keep in mind which names may be of one object: b = a, and of a part of it: row = grid[0]."""
        for ident in names:
            self.holds.pop(ident, None)
            for other in self.twins.pop(ident, set()) - {ident}:
                self.twins[other] = self.twins[other] - {ident}
        match statement:
            case ast.Assign([ast.Name(ident)], ast.Name(other)) if other in self.variables:
                both = self.twins.get(other, {other}) | {ident}
                self.twins |= dict.fromkeys(both, both)
            case ast.Assign([ast.Name(ident)], value):
                self.holds[ident] = {part for part in held(value) & self.variables if not part.startswith("_loop")}

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
                kept = _Keep(self).visit(copied(value))
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

    def meaning(self, node: ast.expr) -> ast.expr:
        """Return `node` with names replaced by the expressions that they stand for."""
        for ident in loaded(node) & self.meant.keys():
            self.unread.pop(id(self.meant[ident]), None)
        return replaced(node, self.meant)

    # Steps

    def step(self, statement: ast.stmt, tells: bool | None = None) -> None:
        """`statement` for the candidate's process, with the values of ours that it needs."""
        for ident in sorted(loaded(statement) & self.meant.keys()):
            self.steps.append(self._handed(assign(ident, self.meant.pop(ident)), tells=True))
        tells = not self.clean_statement(statement) if tells is None else tells
        for part in ast.walk(statement):
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id in self.ours:
                self.share(part.target.id)
        self.steps.append(self._handed(statement, tells))

    def _handed(self, statement: ast.stmt, tells: bool = False) -> Step:
        hand = Hand(self, elements=not tells)
        done = hand.visit(copied(statement))
        assert isinstance(done, ast.stmt)
        stores = False
        if isinstance(done, ast.Assign) and not all(isinstance(place, ast.Name) for place in done.targets):
            stores = bool(hand.given) or is_literal(done.value)
        return Step(Line(done), hand.given, tells=tells, stores=stores)

    def share(self, ident: str) -> None:
        """Give the candidate's process its own copy of a variable of ours."""
        key, fact = self.fact(name(ident))
        if fact is not None and fact.faith in ("", "failed"):
            self.copy_statements({ident})
            return
        given = self.new_name("given")
        self.steps.append(Step(Line(assign(ident, name(given))), {given: key}))
        twins = self.twins.get(ident, set()) & self.ours - {ident}
        self.steps += [Step(Line(assign(twin, name(ident)))) for twin in sorted(twins)]
        self.ours -= twins | {ident}
        self.shared |= twins | {ident}

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
        kin = self.kin[0].of(wanted, self.outside, self.variables - self.imported)
        for line in reversed(self.outside):
            if self._matters(line, wanted) or line.changes & kin:
                kept.append(line)
                wanted |= line.uses
        return kept[::-1]

    def needed(self, ask: ast.expr) -> list[Step]:
        """The steps, less those that `ask` does not lead back to: other variables, and what is done with them."""
        kept, wanted = [], loaded(ask)
        kin = self.kin[1].of(wanted, [step.line for step in self.steps], self.variables - self.imported)
        for step in reversed(self.steps):
            line = step.line
            if self._matters(line, wanted) or (line.uses if line.calls else line.changes) & kin:
                kept.append(step)
                wanted |= line.uses
        return kept[::-1]

    def _matters(self, line: Line, wanted: set[str]) -> bool:
        if line.always or line.binds & wanted:
            return True
        touched = line.uses & self.variables
        return bool(touched & wanted) or not (touched or line.binds)


class Hand(ast.NodeTransformer):
    """Replace values of the tests by names of given values."""

    def __init__(self, statements: Statements, elements: bool = True) -> None:
        self.all = statements
        self.elements = elements  # of what a loop goes through these are handed over, not all that it comes from
        self.own: set[str] = set()  # variables of comprehensions and functions
        self.given: dict[str, str] = {}
        self.only_names = False
        self.loops: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        before = set(self.own)
        if isinstance(node, SCOPES):
            self.own |= local(node)
        elif isinstance(node, ast.stmt) and hasattr(node, "body"):  # what it does is done there, or not at all
            self.only_names = True
            self.own |= local(node) - self.all.ours - self.all.shared
        if self.elements and isinstance(node, ast.For | ast.comprehension) and self.all.side(node.iter) == OURS:
            if not is_literal(node.iter) and not loaded(node.iter) & self.own:
                node.iter = ast.Call(name("list"), [node.iter], [])
                self.loops.add(id(node.iter))
        done = self._visit(node)
        self.own = before
        return done

    def _visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return self.generic_visit(node)
        names = loaded(node)
        inner = self.only_names and not isinstance(node, ast.Name) and id(node) not in self.loops
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
