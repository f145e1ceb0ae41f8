"""What each policy gets wrong on programs that a run really wrote.

The truth about a program is what `robust` says of it on the problem's original answers: it refused none of 3,000
references, and accepted none of 11,526 wrong solutions (benchmarks/data). Held against it is what each policy
says on the answers in varied formats, which the run was trained on. The result of a run is one flat record:

    programs, right, faults              how many were judged; how many are right; the judge's own faults, left out
    exact_right_refused, ..              how many right ones a policy refuses
    exact_wrong_accepted, ..             how many wrong ones it accepts
    exact_refused, exact_accepted        the same two as shares of all programs, and
    exact_mistaken                       their sum: metrics that a claim may name
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..files import read_problems
from ..judge import Judge
from ..runs import read_rollouts, steps
from ..runs.disk import write_whole
from ..schema import ACCEPTED, POLICIES, Problem, Verdict
from ..starter import problems

PROGRAMS = 300  # of a run, drawn at random
FAULT = "internal_error"
Program = tuple[str, str]  # the problem's id, the code


def judge_runs(runs: Iterable[Path], varied_file: Path, results: Path) -> Iterator[str]:
    """Judge programs of each run into results/RUN.json; the name of a run is given as soon as its file is there."""
    results.mkdir(parents=True, exist_ok=True)
    varied = {problem.id: problem for problem in read_problems(varied_file) if isinstance(problem, Problem)}
    originals = {problem.id: problem for problem in problems("train", len(varied))}
    with Judge(policy="exact", also="robust") as strict, Judge(policy="paper", also="robust") as lenient:
        for run in runs:
            found = mistakes(verdicts(drawn(run), varied, originals, strict, lenient))
            write_whole(results / f"{run.name}.json", json.dumps(found, indent=1).encode() + b"\n")
            yield run.name


def drawn(run: Path) -> list[Program]:
    """Programs among the rollouts of all steps; always the same ones of a run."""
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
    """For each program the verdict of every policy, and the truth. The same program is judged once."""
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
    """The record of a run."""
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
