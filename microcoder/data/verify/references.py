"""Check that tests are right: reference solutions must be accepted in every run, known-wrong ones rejected.

    flaky              a verdict that changes from run to run
    reference_fails    no reference solution is accepted
    accepts_wrong      a solution that is known to be wrong is accepted
    cannot_be_judged   the tests, the setup or the checker are broken

1. A reference runs twice, and six times if it mentions a source of randomness: two runs of a program that fails every
   second time agree half of the time. The judge uses the same seed of `random` in every test, so that verdicts repeat;
   here each further run gets another seed. A fault that depends on the order of a set of strings is not found: the
   judge has one hash seed.
2. References run under a generous limit, `patience_s`. A declared time limit of less than twice their slowest test is
   raised to that: a limit meant for C++ would reject right answers in Python.
3. If some references are accepted and others are not, the accepted ones stay. Only Python is run.
"""

from __future__ import annotations

import math
import re

from ...judge.base import Judging
from ...schema import Problem, Verdict
from ..record import Dropped, Record
from .programs import DEFAULTS, Options, check_sound, judged, programs, said

LIMIT_S = 6.0  # the judge's limit for problems without one
UNVERIFIED = "unverified"
CHANCE = {"random", "time", "datetime", "urandom", "uuid", "secrets", "getpid", "id", "threading", "concurrent"}


def references(record: Record, *, judge: Judging, options: Options = DEFAULTS) -> Record:
    """Judge the record's solutions.

    Notes: references (accepted), references_rejected, solutions_not_run, reference_cpu_s (the slowest test),
    reference_total_s (all tests). A problem without a reference that can be run gets the tag "unverified".
    """
    check_sound(record)
    problem, found = record.problem, programs(record)
    right, wrong = found.right[: options.solutions], found.wrong[: options.solutions]
    patient = judged(problem, max(options.patience_s, problem.time_limit_s or 0))
    verdicts = [_steady(judge, patient, solution["code"], options) for solution in right]
    accepted = [verdict for verdict in verdicts if verdict.accepted]
    failed = [(s, verdict) for s, verdict in zip(right, verdicts, strict=True) if not verdict.accepted]
    record.notes["references"], record.notes["references_rejected"] = len(accepted), len(failed)
    record.notes["solutions_not_run"] = len(problem.solutions) - len(right) - len(wrong)
    if failed and not accepted:
        raise Dropped("reference_fails", said(failed[0][1]))
    if failed:
        lost = [id(solution) for solution, _ in failed]
        problem.solutions = [solution for solution in problem.solutions if id(solution) not in lost]
        record.did(f"verify: {len(failed)} of {len(right)} reference solutions removed: {said(failed[0][1])}")
    if accepted:
        _time(record, accepted)
    _tag(record, verified=bool(accepted))
    for solution in wrong:
        verdict = judge.check(judged(problem, problem.time_limit_s), code=solution["code"])
        if verdict.accepted:
            raise Dropped("accepts_wrong", f"a solution that should get {solution['verdict']} is accepted")
    return record


def _steady(judge: Judging, problem: Problem, code: str, options: Options) -> Verdict:
    """Return the verdict of all runs. Raise Dropped if they differ."""
    chance = CHANCE & set(re.findall(r"[A-Za-z_]\w*", code))
    first = judge.check(problem, code=code)
    for n in range(1, options.chance_runs if chance else options.runs):
        if first.verdict == "internal_error":
            break
        if first.verdict == "time_limit":  # slow is not flaky, and one run at the limit is enough
            return first
        verdict = judge.check(problem, code=_reseeded(code, n) if "random" in chance else code)
        if verdict.verdict in ("time_limit", "internal_error"):
            first = verdict
        elif _course(verdict) != _course(first):
            raise Dropped("flaky", f"a reference solution got {said(first)}, and on run {n + 1} {said(verdict)}")
    if first.verdict == "internal_error":
        raise Dropped("cannot_be_judged", first.message)
    return first


def _course(verdict: Verdict) -> list[str]:
    """Return the verdict and those of its tests, to compare two runs."""
    return [verdict.verdict, *(test.verdict for test in verdict.tests)]


def _reseeded(code: str, seed: int) -> str:
    if "__future__" in code:  # which must stay the first line
        return code
    numpy = f"import numpy; numpy.random.seed({seed})\n" if "numpy" in code else ""
    return f"import random; random.seed({seed})\n{numpy}{code}"


def _time(record: Record, accepted: list[Verdict]) -> None:
    """Note how long the references take, and raise a time limit that is less than twice that."""
    problem = record.problem
    slowest = max(test.cpu_s for verdict in accepted for test in verdict.tests)
    record.notes["reference_cpu_s"] = round(slowest, 4)
    record.notes["reference_total_s"] = round(max(verdict.cpu_s for verdict in accepted), 4)
    if 2 * slowest > (problem.time_limit_s or LIMIT_S):
        enough = math.ceil(20 * slowest) / 10  # rounded up: to the nearest, a very small limit would become 0
        record.did(f"verify: time limit raised from {problem.time_limit_s} to {enough} s")
        problem.time_limit_s = enough


def _tag(record: Record, verified: bool) -> None:
    tags = record.problem.tags
    if verified and UNVERIFIED in tags:
        tags.remove(UNVERIFIED)
    elif not verified and UNVERIFIED not in tags:
        tags.append(UNVERIFIED)
        record.did("verify: no reference solution that could be run; tagged unverified")
