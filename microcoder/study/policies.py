"""Measure the mistakes of each judging policy on a run's programs, on problems with answers in varied formats.

About six in ten starter problems, chosen by their ids, get expected answers in another format, as in data sets
collected from many places:

    tuple     a returned list is expected as a tuple: [1, 2] as (1, 2)
    lines     printed items are expected on separate lines: 1 2 as 1, 2 below each other
    float     an integer is expected as a calculation in floating point leaves it: 25 as 25.000000000000007

A right program stays right: `robust` accepts it (sequence, tokens, numbers), but `exact`, LiveCodeBench's rule, does
not. Texts have no other format that a careful comparison could accept, so they are not changed.

The verdict of `robust` on the problem's original answers counts as the truth: it refused none of 3,000 references, and
accepted none of 11,526 wrong solutions (benchmarks/data). Each policy is compared with it on the answers in varied
formats, which the run was trained on. The result of a run is one flat record:

    programs, right, faults              how many were judged; how many are right; the judge's own faults, left out
    exact_right_refused, ..              how many right ones a policy refuses
    exact_wrong_accepted, ..             how many wrong ones it accepts
    exact_refused, exact_accepted        the same two as shares of all programs, and
    exact_mistaken                       their sum: metrics that a claim may name
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..files import count_records, read_problems, write_problems
from ..judge import Judge
from ..runs import read_rollouts, steps
from ..runs.disk import write_whole
from ..schema import ACCEPTED, POLICIES, Problem, Test, Verdict
from ..starter import operations, problems

SHARE = 0.6
LARGEST = 10**5  # largest integer written as a float: a difference of 1 is then far beyond the tolerance of 1e-6
NOISE = 1 + 2**-52
PROGRAMS = 300  # judged for each run, drawn at random
FAULT = "internal_error"
Program = tuple[str, str]  # the problem's id, the code


def varied(problem: Problem) -> Problem:
    """Rewrite the expected answers of a problem in another format, if its id is chosen."""
    if random.Random(f"varied {problem.id}").random() >= SHARE:
        return problem
    gives = operations()[problem.lineage[-1]].gives
    if gives == "int" and any(abs(int(test.output)) >= LARGEST for test in problem.tests):
        return problem
    tests = [Test(test.input, _rewritten(test.output, gives, problem.kind)) for test in problem.tests]
    return dataclasses.replace(problem, tests=tests)


def _rewritten(output: str, gives: str, kind: str) -> str:
    end = "\n" if kind == "stdin" else ""
    if gives == "int":
        return f"{int(output) * NOISE!r}{end}"
    if gives in ("numbers", "words"):
        return repr(tuple(json.loads(output))) if kind == "function" else "\n".join(output.split()) + end
    return output


def write_varied(path: Path, count: int) -> None:
    """Write the first `count` training problems in varied formats, unless the file has as many."""
    if not path.exists() or count_records(path) < count:
        write_problems(path, map(varied, problems("train", count)))


def judge_runs(runs: Iterable[Path], varied_file: Path, results: Path) -> Iterator[str]:
    """Judge programs of each run and write results/RUN.json; yield the name of a run as soon as its file is written."""
    results.mkdir(parents=True, exist_ok=True)
    varied = {problem.id: problem for problem in read_problems(varied_file) if isinstance(problem, Problem)}
    originals = {problem.id: problem for problem in problems("train", len(varied))}
    with Judge(policy="exact", also="robust") as strict, Judge(policy="paper", also="robust") as lenient:
        for run in runs:
            found = mistakes(verdicts(drawn(run), varied, originals, strict, lenient))
            write_whole(results / f"{run.name}.json", json.dumps(found, indent=1).encode() + b"\n")
            yield run.name


def drawn(run: Path) -> list[Program]:
    """Draw programs from the rollouts of all steps; the draw depends on the name of the run only."""
    rows = [row for step in steps(run) for row in read_rollouts(run, step) if row["code"]]
    rows = random.Random(f"judging {run.name}").sample(rows, min(PROGRAMS, len(rows)))
    return [(row["problem"], row["code"]) for row in rows]


def verdicts(
    programs: Sequence[Program],
    varied: Mapping[str, Problem],
    originals: Mapping[str, Problem],
    strict: Judge,
    lenient: Judge,
) -> list[dict[str, str]]:
    """Judge each program under every policy, and by the original answers. The same program is judged once."""
    asked = {
        (name, code): (
            strict.submit(varied[name], code=code),
            lenient.submit(varied[name], code=code),
            lenient.submit(originals[name], code=code),
        )
        for name, code in dict.fromkeys(programs)
    }
    found = {program: _named(*(future.result() for future in futures)) for program, futures in asked.items()}
    return [found[program] for program in programs]


def _named(strict: Verdict, lenient: Verdict, original: Verdict) -> dict[str, str]:
    if FAULT in (strict.verdict, lenient.verdict, original.verdict):
        return {"truth": FAULT}
    return {"exact": strict.verdict, "robust": strict.also, "paper": lenient.verdict, "truth": original.also}


def mistakes(verdicts: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Count the mistakes of each policy; return the record of a run."""
    known = [each for each in verdicts if each["truth"] != FAULT]
    right = [each for each in known if each["truth"] == ACCEPTED]
    wrong = [each for each in known if each["truth"] != ACCEPTED]
    found: dict[str, float] = {"programs": len(known), "right": len(right), "faults": len(verdicts) - len(known)}
    for policy in POLICIES:
        refused = sum(each[policy] != ACCEPTED for each in right)
        accepted = sum(each[policy] == ACCEPTED for each in wrong)
        found |= {f"{policy}_right_refused": refused, f"{policy}_wrong_accepted": accepted}
        if known:
            shares = {"refused": refused, "accepted": accepted, "mistaken": refused + accepted}
            found |= {f"{policy}_{what}": count / len(known) for what, count in shares.items()}
    return found
