"""Measure the strength of tests: they should reject mutants, that is, references with one small mistake.

    weak_tests    too many mutants of the reference are accepted, or a program that always gives the same answer

Tests that accept many mutants reward wrong programs. Some mutants are equivalent to the reference, so no test can
reject them. `mutations.py` leaves out those that can be recognised. Of 36 others that the tests of MBPP, HumanEval and
LeetCode accepted, 13 were equivalent: 2 to 6% of all mutants of such a set, but up to 40% for a single program.
Therefore a share `alive` of mutants may be accepted: 371 test sets were measured, 24 were above 0.35, and 21 of these
were really weak. Mutants that the forge could not tell from the reference on hundreds of inputs (forge/equivalents.py)
are not counted.

Tests that all expect the same answer are weak, and so is a single test with a short answer. Asserts that only check a
type, or that there is an answer, accept a constant too: if their expected values are not known, a few plain answers are
tried.
"""

from __future__ import annotations

import ast
import json

from ...judge.asserts import probes
from ...judge.base import Judging
from ...schema import ACCEPTED, Problem
from ..record import Dropped, Record
from .mutations import digest, mutants
from .programs import DEFAULTS, Options, check_sound, judged, programs
from .references import LIMIT_S

SHORTEST_S = 0.1  # CPU seconds, for very fast references; 0.5 changed no verdict of 156 problems
NOT_RUN = ("compile_error", "no_code", "internal_error")
GUESSABLE = 60  # characters; a longer answer of a single test cannot be guessed
PLAIN = ("0", "''", "[]", "True", "0.5")


def strength(record: Record, *, judge: Judging, options: Options = DEFAULTS) -> Record:
    """Judge mutants of the first reference solution. `references` runs before and keeps only accepted ones.

    Notes: mutants, mutants_alive, mutants_equivalent (left out), strength (the share that was rejected), survivors (the
    first three).
    """
    check_sound(record)
    problem, notes, right = record.problem, record.notes, programs(record).right
    if not right:
        return record
    slowest, total = (float(notes.get(name, 0)) for name in ("reference_cpu_s", "reference_total_s"))
    # A mutant that loops runs to its limit; ten times the reference's time is enough.
    target = judged(problem, min(max(SHORTEST_S, 10 * slowest), problem.time_limit_s or LIMIT_S))
    for answer, program in constant_answers(target):
        if judge.check(target, code=program).accepted:
            raise Dropped("weak_tests", f"the constant answer {answer:.80} is accepted")
    most = options.mutants if total <= 0 else min(options.mutants, max(options.least, int(options.mutants_s / total)))
    made = mutants(right[0]["code"], entry_point=problem.entry_point, prints=problem.kind == "stdin", most=most)
    alike = equivalent(problem)
    made, all_made = [mutant for mutant in made if digest(mutant.code) not in alike], len(made)
    futures = [judge.submit(target, code=mutant.code) for mutant in made]
    verdicts = [(mutant, future.result().verdict) for mutant, future in zip(made, futures, strict=True)]
    counted = [(mutant, verdict) for mutant, verdict in verdicts if verdict not in NOT_RUN]
    living = [mutant for mutant, verdict in counted if verdict == ACCEPTED]
    notes["mutants"], notes["mutants_alive"] = len(counted), len(living)
    notes["survivors"] = [str(mutant) for mutant in living[:3]]
    left_out = all_made - len(made)
    if left_out:
        notes["mutants_equivalent"] = left_out
    if counted:
        notes["strength"] = round(1 - len(living) / len(counted), 3)
    if len(counted) + left_out >= options.least and len(living) > options.alive * len(counted):
        raise Dropped("weak_tests", f"{len(living)} of {len(counted)} mutants accepted, e.g. {living[0]}")
    return record


def equivalent(problem: Problem) -> set[str]:
    """Digests of the mutants that the forge takes for equivalent to the reference."""
    notes = problem.extra.get("forge")
    found = notes.get("equivalent") if isinstance(notes, dict) else None
    return {one for one in found if isinstance(one, str)} if isinstance(found, list) else set()


# --- constant answers


def constant_answers(problem: Problem) -> list[tuple[str, str]]:
    """Return (answer that all tests may expect, program that gives it); [] if tests expect different answers."""
    expected = _expected(problem)
    answers: list[str] = []
    if expected is not None:
        if len(set(expected)) != 1 or (len(expected) == 1 and len(expected[0]) > GUESSABLE):
            return []
        answers = [_expression(expected[0]) if problem.kind == "function" else expected[0]]
    if problem.kind == "assert":  # `type(f(x)) is int` expects an int, but not of f
        answers += PLAIN
    return [(answer, _program(problem, answer)) for answer in answers if problem.kind == "stdin" or problem.entry_point]


def _program(problem: Problem, answer: str) -> str:
    if problem.kind == "stdin":
        return f"print({answer!r})"
    owner, _, name = problem.entry_point.rpartition(".")
    if owner:
        return f"class {owner}:\n    def {name}(self, *args, **named):\n        return {answer}"
    return f"def {name}(*args, **named):\n    return {answer}"


def _expected(problem: Problem) -> list[str] | None:
    """Return the expected value of each test as source text; None if it is not known for every test."""
    if problem.kind != "assert":
        return [test.output.strip() for test in problem.tests]
    try:
        found = probes(problem.asserts, problem.entry_point, problem.setup)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    plain = {"truth": "True", "false": "False"}
    known = [plain.get(probe.op, probe.expected) for probe in found if probe.op in ("==", "is", *plain)]
    return known if found and len(known) == len(found) else None


def _expression(text: str) -> str:
    """Write a test's output, JSON or not, as a Python expression."""
    try:
        return repr(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return repr(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return repr(text)
