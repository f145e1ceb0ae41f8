"""Lines of a test program, and which of them an expression leads back to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .syntax import DEFINITIONS, IMPORTS, bound, changed, loaded, local, parts, source


class Line:
    """A statement, what is asked of it again and again, and what is known of it in the candidate's process."""

    def __init__(self, statement: ast.stmt, given: dict[str, str] | None = None, tells: bool = False) -> None:
        self.statement = statement
        self.binds, self.uses, self.text = bound(statement), loaded(statement), source([statement])
        self.imports = isinstance(statement, IMPORTS)
        kinds = {type(part) for part in parts(statement)}
        late = kinds & {*DEFINITIONS, ast.Lambda}
        self.late = self.uses - local(statement) if late else set[str]()  # names that it looks up when it is called
        simple = isinstance(statement, ast.Assign | ast.AnnAssign)
        # Names whose objects it may change: what is called may change all that it is given.
        kept = (simple and ast.Call not in kinds) or isinstance(statement, (*DEFINITIONS, *IMPORTS))
        self.changes = changed(statement) if kept else self.uses
        names = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
        self.anew = names and ast.NamedExpr not in kinds  # what it binds was not before
        self.always = False  # it changes what no variable holds, such as sys.stdin
        self.given = given or {}  # name -> key of the fact that is its value
        self.tells = tells  # it may hold what is expected
        self.copied = False  # a line of ours as it stands, not its values
        self.stores = False  # it puts a value of ours where answers are: two answers that are compared may not be two
        self.due = False  # it may fail, and no probe runs it yet


class Lines:
    """Lines in order. A name that is bound anew is another variable than before: `n 3` is n as line 3 made it."""

    def __init__(self) -> None:
        self.read: list[tuple[Line, set[str], set[str]]] = []  # with the variables that it touches, or may change
        self.now: dict[str, str] = {}  # name -> variable
        self.late: set[str] = set()  # names that functions look up when they are called
        self.kin: dict[str, set[str]] = {}  # variables that lines have brought together: one may be a part of another

    def __iter__(self) -> Iterator[Line]:
        return (line for line, _, _ in self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __copy__(self) -> Lines:
        found = Lines()
        found.read, found.now, found.late, found.kin = list(self.read), dict(self.now), set(self.late), dict(self.kin)
        return found

    def add(self, line: Line) -> None:
        touched, changes = self._variables(line.uses), self._variables(line.changes)
        for ident in line.binds:
            if (line.anew and ident not in self.late) or ident not in self.now:
                self.now[ident] = f"{ident} {len(self.read)}"
        touched |= self._variables(line.binds)
        changes |= self._variables(line.binds & self.late)
        self.late |= line.late
        self.read.append((line, touched, changes))
        group = touched.union(*(self.kin.get(ident, ()) for ident in touched))
        if not line.imports and any(self.kin.get(ident) != group for ident in touched):
            self.kin |= dict.fromkeys(group, group)

    def leading_to(self, names: set[str]) -> list[Line]:
        """The lines that make these names, with all that may have changed one of their objects since."""
        wanted = self._variables(names)
        kin = wanted.union(*(self.kin.get(ident, ()) for ident in wanted))
        kept = []
        for line, touched, changes in reversed(self.read):
            if line.always or not touched or touched & wanted or changes & kin:
                kept.append(line)
                wanted |= touched
        return kept[::-1]

    def _variables(self, names: set[str]) -> set[str]:
        return {self.now[ident] for ident in names if ident in self.now}
