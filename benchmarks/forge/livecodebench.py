"""LiveCodeBench v5: programs of public models with the verdict of its hidden tests.

    python -m benchmarks.forge livecodebench livecodebench-v5-v6-public.jsonl.gz livecodebench-v5-graded.jsonl.gz

Problems with at least two accepted programs and a refused one. The first accepted one is the reference and is not
scored. The forge sees the statement, the public tests and that reference.
"""

from __future__ import annotations

from benchmarks.forge.measure import Case, Scored, Verdicts, chosen, lines, measure, parser
from microcoder.data.sources import livecodebench
from microcoder.judge import Judge
from microcoder.schema import Problem


def main() -> None:
    options = parser(__doc__)
    options.add_argument("problems")
    options.add_argument("graded")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    found = livecodebench.read(args.problems)
    problems = {one.problem.id.rpartition("/")[2]: one.problem for one in found if hasattr(one, "problem")}
    with Judge(workers=args.workers) as judge:
        cases = chosen(cases_of(problems, list(lines(args.graded))), args)
        measure(cases, args, judge, Verdicts(args.folder / "verdicts.jsonl", judge), "public")


def cases_of(problems: dict[str, Problem], graded: list[dict[str, str]]) -> list[Case]:
    cases = []
    for ident, problem in problems.items():
        rows = [row for row in graded if row["question_id"] == ident]
        right, wrong = ([row for row in rows if bool(row["graded"]) is truth] for truth in (True, False))
        if len(right) < 2 or not wrong:
            continue
        problem.solutions = [{"code": right[0]["code"]}]
        programs = [Scored(row["code"], bool(row["graded"]), row["model"]) for row in (*right[1:], *wrong)]
        cases.append(Case(problem, programs, {"public": problem}))
    return cases
