"""MBPP: three asserts and forged ones, with the inputs of MBPP+ as the truth.

    python -m benchmarks.forge mbpp mbpp.jsonl mbppplus.jsonl.gz EVAL EVAL ...

The truth is what MBPP+'s canonical solution answers to all its inputs, and MBPP's own asserts; the forge sees
MBPP's sentence, its asserts and that solution. Where that solution fails the asserts, MBPP+ has changed the task, and
the problem is left out. JSON has no tuples: an argument is a tuple where the asserts of MBPP have one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.forge.measure import Case, Sampled, Scored, Verdicts, chosen, lines, measure, parser, sampled
from microcoder.data.forge.answers import rule
from microcoder.data.record import Record
from microcoder.data.sources import mbpp
from microcoder.judge import Judge
from microcoder.judge.boxes import Limits
from microcoder.schema import ACCEPTED, Compare, Problem, Test

MOST_KB = 64  # of an input
LIMITS = Limits(60.0, 2 << 30, 64 << 20)  # of the canonical solution, for all inputs
ASK = """
import ast as _ast, sys as _sys
for _given in _ast.literal_eval(_sys.stdin.read()):
    try:
        print(ascii({name}(*_ast.literal_eval(_given))))
    except Exception:
        print("!")
"""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("problems")
    options.add_argument("plus")
    options.add_argument("evals", nargs="+", type=Path)
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    programs = {ident.rpartition("/")[2]: codes for ident, codes in sampled(args.evals).items()}
    plus = {row["task_id"].rpartition("/")[2]: row for row in lines(args.plus)}
    records = [one for one in mbpp.read(args.problems) if isinstance(one, Record)]
    problems = {record.problem.id.rpartition("/")[2]: record.problem for record in records}
    idents = [ident for ident in plus if ident in programs and ident in problems]
    idents = [ident for ident in idents if not args.only or ident.endswith(tuple(args.only))][: args.first]
    with Judge(workers=args.workers, time_limit_s=3.0, reuse=True) as judge:
        verdicts = Verdicts(args.folder / "verdicts.jsonl", judge)
        made = [split(problems[ident], plus[ident], judge) for ident in idents]
        kept = [(seen, oracle, programs[ident]) for ident, pair in zip(idents, made, strict=True) if pair
                for seen, oracle in [pair]]  # fmt: skip
        print(f"{len(idents) - len(kept)} of {len(idents)} problems left out: their canonical solution fails")
        verdicts.fill(((shown(seen), code) for seen, _, codes in kept for code in codes), "asserts")
        verdicts.fill(((oracle, code) for _, oracle, codes in kept for code in codes), "MBPP+")
        cases = [case_of(seen, oracle, codes, verdicts) for seen, oracle, codes in kept]
        measure(chosen(cases, args), args, judge, verdicts, "asserts")


def split(problem: Problem, row: dict[str, Any], judge: Judge) -> tuple[Problem, Problem] | None:
    """(what the forge sees, a function problem with MBPP+'s inputs); None where the canonical solution fails."""
    code = row["canonical_solution"]
    seen = replace(problem, solutions=[{"code": code}], entry_point=row["entry_point"])
    shape = first_call(problem.asserts, row["entry_point"])
    inputs = [repr(like(shape, given)) for given in (*row["base_input"], *row["plus_input"])]
    inputs = [given for given in inputs if len(given) < MOST_KB << 10]
    ran = judge.run(code + ASK.format(name=row["entry_point"]), stdin=repr(inputs), limits=LIMITS).result()
    answers = ran.stdout.split("\n")[:-1]
    if not judge.check(seen, code=code).accepted:
        return None
    tests = [Test(given, answer) for given, answer in zip(inputs, answers, strict=False) if _literal(answer)]
    how = Compare(tolerance=row["atol"] or None)
    oracle = Problem(problem.id, "function", entry_point=row["entry_point"], tests=tests, compare=how)
    return (seen, replace(oracle, compare=rule(seen).applied(how))) if tests else None


def _literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def first_call(asserts: Iterable[str], name: str) -> list[Any]:
    """The arguments of the first call of the function whose arguments are literals."""
    for text in asserts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                try:
                    return [ast.literal_eval(argument) for argument in node.args]
                except ValueError:
                    continue
    return []


def like(shape: Any, given: Any) -> Any:
    """A value out of JSON with tuples and sets where the shape has them."""
    if isinstance(given, list) and isinstance(shape, (list, tuple, set)):
        if shape and not isinstance(shape, set):
            parts = [*shape, *[shape[-1]] * len(given)] if isinstance(shape, (list, tuple)) else []
            given = [like(part, item) for part, item in zip(parts, given, strict=False)]
        return given if isinstance(shape, list) else type(shape)(given)
    if isinstance(given, dict) and isinstance(shape, dict) and shape:
        return {name: like(next(iter(shape.values())), item) for name, item in given.items()}
    return given


def case_of(seen: Problem, oracle: Problem, programs: dict[str, Sampled], verdicts: Verdicts) -> Case:
    scored = []
    for n, (code, one) in enumerate(programs.items()):
        said = {verdicts.of(oracle, code)[0], verdicts.of(shown(seen), code)[0]}
        if "internal_error" not in said:
            scored.append(Scored(code, said == {ACCEPTED}, f"#{n}", one.times))
    return Case(seen, scored, {"asserts": shown(seen)})


def shown(seen: Problem) -> Problem:
    """The problem with its asserts, compared as the truth is."""
    return replace(seen, compare=rule(seen).applied(seen.compare))
