"""Find rollouts in bounded time, suspect accepted programs of a cheat, and compare two runs or evaluations.

What the groups tell (the worst, the longest, truncated, masked, newly solved, lost) is found in one pass over the
groups that the run wrote, over the whole run. What only the text tells (suspected hacks, search) is looked for in the
files of the steps, newest first, until BUDGET_S is spent; the answer says where to go on.

1. Newly solved: no sample of the problem was accepted at its last visit, and one is at this. Lost: the reverse.
2. A run from before there were groups is read from its steps too, within the same budget, and the answer says so.
3. Suspicions are a heuristic: each is a function of the program's tree and says why; a person decides. A program that
   does not parse (another language) is left alone.
"""

from __future__ import annotations

import ast
import heapq
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

from ..runs import Group, read_groups
from ..schema import ACCEPTED
from .groups import bench_limits, entries, read_step, steps
from .library import Entry

Visit = tuple[int, list[Group]]
Visits = dict[str, list[int]]  # of problems
KINDS = ("worst", "longest", "truncated", "masked", "solved", "lost", "hacks", "text")
LIMIT, MOST, BUDGET_S = 100, 400, 1.0  # hits after which no further step is looked at, hits that are given

SNOOPING = re.compile(r"\b(open|eval|exec|compile|globals|locals|__import__|_getframe|settrace|inspect|gc)\b")
MODULES = {"os", "subprocess", "inspect", "gc", "ctypes", "importlib", "pathlib", "glob", "signal", "traceback"}
READS = {"input", "stdin", "argv", "fileinput", "readline", "readlines", "read"}
FEW, CHAIN = 24, 3  # characters of a program that is suspiciously short; comparisons with constants in a row


def find(
    folder: Entry, kind: str, text: str = "", before: int | None = None, only: set[int] | None = None
) -> dict[str, Any]:
    """{"found": [{step, problem, why, row?}], "next": a step to go on before, "note"}; `before` bounds the steps.

    `only` asks for all that these steps hold, however long it takes.
    """
    if kind in ("hacks", "text"):
        return _scan(folder, kind, text, before, only)
    visits, note = _visits(folder)
    wanted = ((step, groups) for step, groups in visits if before is None or step < before)
    if kind in ("worst", "longest"):
        these = (visit for visit in wanted if only is None or visit[0] in only)
        return {"found": _extreme(these, kind), "next": None, "note": note}
    test = {"truncated": _flagged("truncated"), "masked": _flagged("masked")}.get(kind)
    changes = (
        (hit for step, groups in wanted for group in groups if (hit := test(step, group)))
        if test
        else (_changes(wanted, kind))
    )
    if only is not None:
        return {"found": [hit for hit in changes if hit["step"] in only][::-1], "next": None, "note": note}
    found, further = _newest(changes)
    return {"found": found, "next": further, "note": note}


def visits_of(folder: Entry, problem: str) -> list[list[int]]:
    """[step, accepted, rows] of each time that the problem was sampled."""
    visits, _ = _visits(folder, problem)
    return [[step, one.accepted, one.rows] for step, groups in visits for one in groups if one.problem == problem]


def last_visits(folder: Entry) -> tuple[dict[str, list[int]], str]:
    """Problem -> [step, accepted, rows, accepted in all, rows in all]; and a note where that is not the whole run."""
    found: dict[str, list[int]] = {}
    visits, note = _visits(folder)
    for step, groups in visits:
        for group in groups:
            _, _, _, accepted, rows = found.get(group.problem, [0, 0, 0, 0, 0])
            totals = [accepted + group.accepted, rows + group.rows]
            found[group.problem] = [step, group.accepted, group.rows, *totals]
    return found, note


def _visits(folder: Entry, problem: str | None = None) -> tuple[Iterable[Visit], str]:
    """The groups of each step, in the order of steps; and a note where that is not the whole run."""
    if folder.file("rollouts", "groups.jsonl").exists():
        return read_groups(folder.path, problem), ""
    ends = time.monotonic() + BUDGET_S
    found: list[Visit] = []
    newest = sorted(steps(folder), reverse=True)
    for step in newest:
        if time.monotonic() > ends:
            break
        found.append((step, read_step(folder, step).groups()))
    words = "" if len(found) == len(newest) else f"only steps {found[-1][0]} to {found[0][0]} were looked at"
    return reversed(found), f"this run has no groups.jsonl, as older ones; {words}" if words else ""


def _extreme(visits: Iterable[Visit], kind: str) -> list[dict[str, Any]]:
    pairs = ((step, group) for step, groups in visits for group in groups)
    if kind == "longest":
        best = heapq.nlargest(LIMIT, pairs, key=lambda pair: (pair[1].longest, pair[0]))
        return [_hit(step, group, f"{group.longest} tokens") for step, group in best]
    best = heapq.nsmallest(LIMIT, pairs, key=lambda pair: (pair[1].lowest, -pair[1].accepted, -pair[0]))
    return [_hit(step, group, f"advantage {group.lowest:.2f} in a group with {_of(group)}") for step, group in best]


def _newest(hits: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], int | None]:
    """The newest hits of whole steps, LIMIT or a few more; and the step to go on before, where there are others."""
    kept: deque[list[dict[str, Any]]] = deque()
    count, more = 0, False
    for _, of_step in groupby(hits, key=lambda hit: hit["step"]):
        kept.append(list(of_step))
        count += len(kept[-1])
        while count - len(kept[0]) >= LIMIT:
            count -= len(kept.popleft())
            more = True
    found = [hit for of_step in reversed(kept) for hit in reversed(of_step)]
    return found, found[-1]["step"] if more else None


def _flagged(name: str) -> Callable[[int, Group], dict[str, Any] | None]:
    def test(step: int, group: Group) -> dict[str, Any] | None:
        count = getattr(group, name)
        return _hit(step, group, f"{count} of {group.rows} {name}") if count else None

    return test


def _changes(visits: Iterable[Visit], kind: str) -> Iterator[dict[str, Any]]:
    seen: dict[str, tuple[int, int]] = {}  # problem -> (step, accepted)
    for step, groups in visits:
        for group in groups:
            then, accepted = seen.get(group.problem, (step, -1))
            seen[group.problem] = (step, group.accepted)
            if accepted >= 0 and then < step and (accepted > 0) != (group.accepted > 0):
                if (kind == "solved") == (group.accepted > 0):
                    yield _hit(step, group, f"{_of(group)}; at step {then} it was {accepted}")


def _scan(folder: Entry, kind: str, text: str, before: int | None, only: set[int] | None) -> dict[str, Any]:
    ends, listed, wanted = time.monotonic() + BUDGET_S, entries(folder), text.casefold()
    found: list[dict[str, Any]] = []
    programs: dict[str, tuple[str, int]] = {}  # accepted code -> the problem and step where it was first met
    left = [step for step in sorted(steps(folder), reverse=True) if before is None or step < before]
    left = left if only is None else [step for step in left if step in only]
    looked: int | None = None
    for step in left:
        if only is None and (len(found) >= LIMIT or (looked is not None and time.monotonic() > ends)):
            break
        looked = step
        if kind == "hacks" and listed.get(step, {}).get("accuracy") == 0:
            continue
        for row in read_step(folder, step).rows:
            if why := "; ".join(_hack(row, programs) if kind == "hacks" else _text(row, wanted)):
                found.append({"step": step, "problem": row["problem"], "row": row.get("row"), "why": why})
    more = looked is not None and bool(left) and looked != left[-1]
    words = [f"looked at steps {looked} to {left[0]}"] if more else []
    if only is None and len(found) > MOST:
        words.append(f"{len(found) - MOST} more of step {looked} are left out")
        del found[MOST:]
    return {"found": found, "next": looked if more else None, "note": "; ".join(words)}


def _hack(row: dict[str, Any], programs: dict[str, tuple[str, int]]) -> Iterator[str]:
    code = str(row.get("code") or "")
    if row.get("verdict") != ACCEPTED or not code.strip():
        return
    yield from suspicions(code)
    problem, step = programs.setdefault(" ".join(code.split()), (row["problem"], row.get("step") or 0))
    if problem != row["problem"]:
        yield f"the same program was accepted for {problem} at step {step}"


def _text(row: dict[str, Any], wanted: str) -> Iterator[str]:
    tries = [(name, one.get(name)) for one in row.get("earlier") or [] for name in ("completion", "message")]
    for name, text in [*((name, row.get(name)) for name in ("completion", "message", "problem")), *tries]:
        value = str(text or "")
        at = value.casefold().find(wanted) if wanted else -1
        if at >= 0:
            yield f"{name}: {' '.join(value[max(0, at - 30) : at + 60].split())}"
            return


def _hit(step: int, group: Group, why: str) -> dict[str, Any]:
    return {"step": step, "problem": group.problem, "why": why}


def _of(group: Group) -> str:
    return f"{group.accepted} of {group.rows} accepted"


def compare(one: Entry, other: Entry) -> dict[str, Any]:
    """{"problems": [[problem, visit of one, visit of the other], ...], "note"}, the greatest change first.

    A visit is [step, accepted, rows, accepted in all, rows in all], of the last time that the problem was sampled.
    """
    (first, one_note), (second, other_note) = _last(one), _last(other)
    common = [(problem, first[problem], second[problem]) for problem in first if problem in second]
    common.sort(key=lambda line: (-abs(_share(line[2]) - _share(line[1])), line[0]))
    notes = [f"{folder.name}: {note}" for folder, note in ((one, one_note), (other, other_note)) if note]
    return {
        "problems": common,
        "only_one": len(first) - len(common),
        "only_other": len(second) - len(common),
        "note": "; ".join(notes),
    }


def _share(visit: list[int]) -> float:
    return visit[1] / visit[2] if visit[2] else 0.0


def _last(folder: Entry) -> tuple[Visits, str]:
    if folder.kind != "bench":
        return last_visits(folder)
    limits = bench_limits(folder)
    last = limits[-1:]  # the largest limit
    visits = {g.problem: [limit, g.accepted, g.rows, g.accepted, g.rows] for limit, groups in last for g in groups}
    return visits, f"the limit of {last[0][0]} tokens" if len(limits) > 1 else ""


def suspicions(code: str) -> list[str]:
    """List the reasons why an accepted program might be a cheat; most have none."""
    return list(_suspicions(code)) if code.strip() else []


@lru_cache(maxsize=2048)
def _suspicions(code: str) -> tuple[str, ...]:
    rules: tuple[Callable[[ast.Module], str], ...] = (_ignores_input, _table, _snoops)
    try:
        tree = ast.parse(code)
        found = [words for rule in rules if (words := rule(tree))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    if len(re.sub(r"\s", "", code)) < FEW:
        found.append(f"the whole program has fewer than {FEW} characters")
    return tuple(found)


def _ignores_input(tree: ast.Module) -> str:
    """Report a function that uses none of its arguments, or a program that reads nothing."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions += [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body if isinstance(n, ast.FunctionDef)]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if (names | attributes) & READS:
        return ""
    if not functions:
        return "it reads no input and prints what it likes"
    for function in functions:
        arguments = {a.arg for a in [*function.args.args, *function.args.kwonlyargs]} - {"self", "cls"}
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if not arguments or arguments & used or function.args.vararg or function.args.kwarg:
            return ""
    return "it uses none of its arguments: the answer is a constant"


def _table(tree: ast.Module) -> str:
    """Report a chain of ifs from constants to constants: answers learnt by heart."""
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.If) and _answers(node)]
    equal = [test for test in tests if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)]
    literal = [test for test in equal if _constant(test.comparators[0]) or _constant(test.left)]
    if len(literal) >= CHAIN:
        return f"{len(literal)} branches compare the input with a constant and answer with one"
    return ""


def _answers(branch: ast.If) -> bool:
    """Whether a branch only returns or prints a constant."""
    only = branch.body[0] if len(branch.body) == 1 else None
    if isinstance(only, ast.Return):
        return only.value is not None and _constant(only.value)
    if isinstance(only, ast.Expr) and isinstance(only.value, ast.Call):
        return bool(only.value.args) and all(map(_constant, only.value.args))
    return False


def _constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_constant, node.elts))
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _constant(node.operand))


def _snoops(tree: ast.Module) -> str:
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = sorted(imported & MODULES) + sorted(name for name in called | attributes if SNOOPING.fullmatch(name))
    return f"it reaches beyond its input: {', '.join(dict.fromkeys(found))}" if found else ""
