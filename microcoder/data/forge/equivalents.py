"""Mutants that no input tells from the reference. They say nothing about tests, so `verify` does not count them.

A mutant is taken for equivalent if all of this holds:

1. It has answered as the reference did on INPUTS inputs at least, with two different answers among them.
2. Its changed line was run on RUNS of them at least: of code that no input enters nothing is known.
3. The inputs are wide. They are drawn from the constraints of the statement; where the tests are all that bounds them
   (`hull`), half of them lie beyond: negative numbers, 0, large numbers, other characters, empty lists. No test is made
   of those, so a right program cannot fail for them.

This is a judgement by many inputs, not a proof. The forge writes down digests of these mutants' programs.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence

from ...schema import Problem
from ..verify.mutations import digest
from .finds import SMALL
from .run import Behaviour, ProgramRunner
from .search import SHORTEST_S, Rival, Search
from .space import Candidate

INPUTS, RUNS = 200, 20
DRAWS = 800  # inputs that are tried
REFERENCE_S = 0.4  # CPU seconds that the reference has for all of them: a slower one would make this dear


def equivalents(search: Search, problem: Problem, runner: ProgramRunner) -> list[str]:
    """Digests of the mutants that are taken for equivalent."""
    living = [rival for rival in search.rivals if rival.counted and rival.alive and not rival.silent]
    inputs = _inputs(search) if living else []
    if len(inputs) < INPUTS:
        return []
    reference, most = search.references[0], search.effort.answer_kb << 10
    asked = [search.asked(Candidate(one, "beyond")) for one in inputs]
    limit = max(SHORTEST_S, 2 * REFERENCE_S / INPUTS)
    (base,) = runner.run(problem, [reference], asked, limit_s=limit, most=most, program_s=REFERENCE_S)
    asked = [text for text, reply in zip(asked, base, strict=True) if reply.status == "ok"]
    spent = sum(reply.cpu_s for reply in base)
    if len(asked) < INPUTS or len({reply.answer for reply in base if reply.status == "ok"}) < 2:
        return []
    living = living[: max(1, int(search.effort.seconds / 2 / max(spent, 0.01)))]
    wires = {line: code for line in {_line(rival) for rival in living} if (code := tripwire(reference, line))}
    programs = [reference, *(rival.code for rival in living), *wires.values()]
    replies = runner.run(
        problem, programs, asked, limit_s=2 * limit, base=True, most=most, program_s=max(4 * spent, 10 * limit)
    )
    mutated, wired = replies[1 : 1 + len(living)], replies[1 + len(living) :]
    entered = {line: _unlike(row) for line, row in zip(wires, wired, strict=True)}
    return [
        digest(rival.code)
        for rival, row in zip(living, mutated, strict=True)
        if not _unlike(row) and entered.get(_line(rival), 0) >= RUNS
    ]


def _unlike(row: Sequence[Behaviour]) -> int:
    """On how many inputs a program did not answer as the reference."""
    return sum(reply.status != "same" for reply in row)


def _inputs(search: Search) -> list[str]:
    """Inputs of the space, and beyond it where only the tests bound it; none where that cannot be done."""
    space, rng = search.space, random.Random(f"equivalents {search.problem.id}")
    beyond = getattr(space, "beyond", None) if space.bounded_by == "hull" else None
    if space.bounded_by != "constraints" and beyond is None:
        return []
    known = [find.candidate.input for find in search.finds if len(find.candidate.input) <= SMALL]
    out = dict.fromkeys(known[:INPUTS])
    for n in range(DRAWS):
        if beyond is not None and known and n % 2:
            out[beyond(rng.choice(known), rng)] = None
            continue
        near = known and n % 4 == 0
        made = space.near(rng.choice(known), rng) if near else space.draw(rng, rng.uniform(0, search.reach))
        if made is not None and len(made.input) <= SMALL:
            out[made.input] = None
    return sorted(out, key=_magnitude)  # a program that is late is not run on what comes after


def _magnitude(given: str) -> tuple[int, int]:
    """How long a program may take for an input: its largest number, then its length."""
    return max((len(one) for one in re.findall(r"\d+", given)), default=0), len(given)


def _line(rival: Rival) -> int:
    found = re.search(r" on line (\d+)$", rival.what)
    return int(found[1]) if found else 0


def tripwire(code: str, line: int) -> str:
    """The program with an error in the place of what it does at a line; "" where there is nothing."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    found: tuple[list[ast.stmt], int] | None = None
    for node in ast.walk(tree):  # the innermost statement comes last
        for field in ("body", "orelse", "finalbody"):
            body: list[ast.stmt] = getattr(node, field, None) or []
            for n, one in enumerate(body if isinstance(body, list) else []):
                if isinstance(one, ast.stmt) and one.lineno <= line <= (one.end_lineno or one.lineno):
                    found = (body, n)
    if found is None:
        return ""
    found[0].insert(found[1], ast.Raise(ast.Call(ast.Name("RuntimeError", ast.Load()), [], []), None))
    return ast.unparse(ast.fix_missing_locations(tree))
