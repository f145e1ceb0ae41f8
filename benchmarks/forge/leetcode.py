"""LeetCode's newer problems: programs sampled from models, with all of the about 100 tests as the truth.

    python -m benchmarks.forge leetcode leetcode-test-v0.3.1.jsonl.gz EVAL EVAL ...

EVAL is a folder that `microcoder eval` wrote for these problems with all their tests (samples.jsonl, verdicts.jsonl).
Its verdicts are the truth, together with the examples, which are not among its tests; where the order of the answer is
free, the programs are judged again. Three test sets: the examples of the statement; the 15 longest tests, as `process`
chooses them; and forged ones, where the forge sees the statement, the starter code, the examples and the reference.
Problems with several right answers that no checker can tell are left out: their tests are no truth.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.forge.measure import Case, Sampled, Scored, Verdicts, chosen, measure, parser, sampled
from microcoder.data.forge.answers import rule
from microcoder.data.forge.examples import as_problem, examples
from microcoder.data.process.formulas import restore_exponents
from microcoder.data.process.tests import choose
from microcoder.data.record import Record
from microcoder.data.sources import leetcode
from microcoder.judge import Judge
from microcoder.schema import ACCEPTED, Problem


def main() -> None:
    options = parser(__doc__)
    options.add_argument("problems")
    options.add_argument("evals", nargs="+", type=Path)
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    programs = sampled(args.evals)
    records = [restore_exponents(one) for one in leetcode.read(args.problems) if isinstance(one, Record)]
    with Judge(workers=args.workers, time_limit_s=3.0) as judge:
        verdicts = Verdicts(args.folder / "verdicts.jsonl", judge)
        kept = [made for record in records if (made := split(record.problem)) is not None]
        print(f"{len(records) - len(kept)} of {len(records)} problems left out: no examples, or several right answers")
        kept = [pair for pair in kept if not args.only or pair[0].id.endswith(tuple(args.only))][: args.first]
        again = [oracle for seen, oracle in kept if oracle.compare != seen.compare]
        verdicts.fill(((oracle, code) for oracle in again for code in programs.get(oracle.id, ())), "all tests")
        pairs = [(shown(*pair), code) for pair in kept for code in programs.get(pair[0].id, ())]
        verdicts.fill(pairs, "examples")
        cases = [case_of(seen, oracle, programs.get(oracle.id, {}), verdicts) for seen, oracle in kept]
        measure(chosen(cases, args), args, judge, verdicts, "examples")


def split(problem: Problem) -> tuple[Problem, Problem] | None:
    """(what the forge sees, the problem with all its tests); None for one that is left out."""
    how, shown = rule(problem), examples(problem)
    if how.open or not shown or problem.kind != "function":
        return None
    seen = replace(problem, tests=as_problem(problem, shown).tests)
    return seen, replace(problem, compare=how.applied(problem.compare))


def case_of(seen: Problem, oracle: Problem, programs: dict[str, Sampled], verdicts: Verdicts) -> Case:
    scored = []
    for n, (code, one) in enumerate(programs.items()):
        right = one.accepted if oracle.compare == seen.compare else verdicts.of(oracle, code)[0] == ACCEPTED
        right = right and verdicts.of(shown(seen, oracle), code)[0] == ACCEPTED
        scored.append(Scored(code, right, f"#{n}", one.times))
    few = choose(Record(oracle).copy(), most=15).problem
    return Case(seen, scored, {"examples": shown(seen, oracle), "15 tests": few})


def shown(seen: Problem, oracle: Problem) -> Problem:
    """The problem with the examples for its tests, compared as the truth is."""
    return replace(seen, compare=oracle.compare)
