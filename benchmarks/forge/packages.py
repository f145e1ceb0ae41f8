"""Stdin problems of ICPC packages: their submissions, with the secret tests hidden from the forge.

    python -m benchmarks.forge packages FOLDER

FOLDER holds problem packages (problem.yaml). Statements are cleaned as `process` does it. The first accepted Python
submission is the reference; the other Python ones are scored by the verdict that the package says they must get, as far
as the secret tests confirm it here: a program that is only wrong in points, or slow on another machine, says nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchmarks.forge.measure import Case, Scored, Verdicts, chosen, measure, parser
from microcoder.data.process import process
from microcoder.data.record import Dropped, Record, expected, is_python, usable
from microcoder.data.sources import icpc
from microcoder.judge import Judge
from microcoder.schema import ACCEPTED


def main() -> None:
    options = parser(__doc__)
    options.add_argument("packages")
    options.add_argument("--largest-mb", type=float, default=8.0, help="leave out packages with more tests than that")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with Judge(workers=args.workers) as judge:
        cases = chosen(cases_of(args.packages, args.largest_mb), args)
        verdicts = Verdicts(args.folder / "verdicts.jsonl", judge)
        verdicts.fill([(case.sets["secret"], one.code) for case in cases for one in case.programs], "secret")
        dropped = 0
        for case in cases:
            secret, before = case.sets["secret"], case.programs
            case.programs = [one for one in before if (verdicts.of(secret, one.code)[0] == ACCEPTED) == one.right]
            dropped += len(before) - len(case.programs)
        print(f"{dropped} submissions left out: the secret tests say otherwise than the package")
        measure([case for case in cases if case.programs], args, judge, verdicts, "samples")


def cases_of(folder: str, largest_mb: float) -> list[Case]:
    """The packages with an English statement, samples, a reference in Python and a program to score; each name once."""
    cases: dict[str, Case] = {}
    left_out: Counter[str] = Counter()
    paths = {path.resolve().name: path for path in icpc.packages(icpc.Path(folder))}
    for one in icpc.read(folder):
        if not isinstance(one, Record):
            left_out["cannot be read"] += 1
            continue
        problem = one.problem
        programs = [solution for solution in usable(problem) if is_python(solution)]
        right = [solution["code"] for solution in programs if expected(solution) == ACCEPTED]
        wrong = [solution for solution in programs if expected(solution) not in (ACCEPTED, "")]
        shown = len(icpc.read_tests(paths[problem.id.rpartition("/")[2]])[1])
        if problem.language != "en" or problem.size() > largest_mb * 1e6:
            left_out["not in English" if problem.language != "en" else "tests too large"] += 1
        elif not right or not shown or len(right) + len(wrong) < 2:
            left_out["no reference, no samples or nothing to score"] += 1
        else:
            seen = replace(problem, tests=problem.tests[:shown], solutions=[{"code": right[0]}])
            try:
                cleaned = process(Record(seen).copy()).problem
            except Dropped as loss:
                left_out[f"process: {loss.reason}"] += 1
                continue
            seen = replace(seen, statement=cleaned.statement)
            scored = [Scored(code, True, f"accepted {n}") for n, code in enumerate(right[1:], 2)]
            scored += [Scored(one["code"], False, f"{one['verdict']} {n}") for n, one in enumerate(wrong)]
            cases[problem.id] = Case(seen, scored, {"samples": seen, "secret": replace(problem, solutions=[])})
    print(f"{len(cases)} packages; left out: {dict(left_out)}")
    return list(cases.values())
