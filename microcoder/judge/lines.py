"""Lines of a test program: what each binds, uses and changes, and which names they bring together."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .syntax import DEFINITIONS, IMPORTS, bound, loaded, parts, root, source

_EFFECTS = set(
    "next pop popleft popitem append appendleft add remove update insert extend clear send setdefault read readline "
    "random randint randrange choice choices sample shuffle uniform gauss seed rand randn integers".split()
)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression of the tests."""

    faith: str  # "frozen", "plain", "" (see records.faithful), or "failed"
    text: str  # its value as JSON


class Line:
    """A statement, and what is asked of it again and again."""

    def __init__(self, statement: ast.stmt) -> None:
        self.statement = statement
        self.binds, self.uses, self.text = bound(statement), loaded(statement), source([statement])
        self.imports = isinstance(statement, IMPORTS)
        self.always = False  # it changes what no variable holds, such as sys.stdin
        # Names whose objects it may change: what is called for its effect may change all that it is given.
        kept = (ast.Assign, ast.AnnAssign, *DEFINITIONS, *IMPORTS)
        self.changes = changed(statement) if isinstance(statement, kept) else self.uses
        self.calls = isinstance(statement, ast.Assign) and any(isinstance(part, ast.Call) for part in parts(statement))


@dataclass(slots=True)
class Step:
    """A line for the candidate's process."""

    line: Line
    given: dict[str, str] = field(default_factory=dict)  # name -> key of the fact that is its value
    copied: bool = False  # a line of ours as it stands, not its values
    tells: bool = False  # it may hold what is expected
    stores: bool = False  # it puts a value of ours where answers are: two answers that are compared may not be two
    due: bool = False  # it may fail, and no probe runs it yet


def constants(node: ast.AST) -> set[object]:
    """The values in `node` that say something: no flags, small numbers or single letters."""
    found = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    texts = {value for value in found if isinstance(value, str | bytes) and len(value) > 1}
    return texts | {value for value in found if isinstance(value, int | float) and abs(value) > 9}


def has_effects(node: ast.AST) -> bool:
    """Whether evaluating it again may give something else."""
    called = [part.func for part in parts(node) if isinstance(part, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else root(func) for func in called}
    return bool(names & _EFFECTS)


class Kin:
    """Names that lines have brought together: what is done to one of them may change another."""

    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = {}
        self.read = 0

    def of(self, wanted: set[str], lines: list[Line], variables: set[str]) -> set[str]:
        for line in lines[self.read :]:
            names = (line.binds | line.uses) & variables
            group = names.union(*(self.groups.get(ident, ()) for ident in names))
            if any(self.groups.get(ident) != group for ident in names):
                self.groups |= dict.fromkeys(group, group)
        self.read = len(lines)
        return set().union(*(self.groups.get(ident, ()) for ident in wanted))


def held(value: ast.expr) -> set[str]:
    """Names whose objects an expression gives a part of, or holds: grid of grid[0], row of [row, row]."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return set().union(*map(held, value.elts))
    if isinstance(value, ast.Dict):
        return set().union(*map(held, value.values))
    return set() if isinstance(value, ast.Call) else {root(value)}


def changed(statement: ast.stmt) -> set[str]:
    """Names whose objects a statement changes by itself: `xs.append(1)`, `xs[0] = 1`, `x.y = 1`."""
    out = set()
    for part in parts(statement):
        match part:
            case ast.Call(ast.Attribute(ast.Name(ident))):
                out.add(ident)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                out.add(root(part))
    return out
