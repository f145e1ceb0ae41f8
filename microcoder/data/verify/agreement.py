"""Fill in missing expected outputs by a vote of several solutions.

    solutions_disagree    on some test fewer than two thirds of the solutions, or fewer than two, give the same answer
    no_expected_output    there are fewer than two independent solutions

A verdict says whether an output is right, but does not contain it. So the programs run in the judge's sandbox through
its examiner, with checks that record an output instead of comparing it; limits and isolation are the judge's. A program
that fails on any test has no vote, but counts among those that did not agree. The judge's comparison decides whether
two answers are the same. Problems with their own checker need no expected outputs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...judge.checks import Check, Helpers, natural
from ...judge.compare import Match, compare_text, compare_value
from ...judge.examine import Examiner, Settings
from ...judge.sandbox import values
from ...schema import Problem, Solution, Test
from ..record import Dropped, Record
from .programs import DEFAULTS, Options, check_sound, independent, judged, programs


def lacks_outputs(problem: Problem) -> bool:
    """Whether no test has an expected output."""
    return problem.kind != "assert" and not problem.compare.checker and not any(t.output.strip() for t in problem.tests)


def agreement(record: Record, *, recorder: AnswerRecorder, options: Options = DEFAULTS) -> Record:
    """Fill in the expected outputs by vote. Note: voters."""
    check_sound(record)
    problem = record.problem
    if not lacks_outputs(problem):
        return record
    solutions = independent(programs(record).right)[: options.solutions]
    if len(solutions) < 2:
        raise Dropped("no_expected_output", f"there are {len(solutions)} independent solutions to ask; it takes two")
    ballots = [recorder.answers(problem, solution["code"]) for solution in solutions]
    valid = [ballot for ballot in ballots if ballot is not None]
    record.notes["voters"] = len(valid)
    tests = []
    for n, test in enumerate(problem.tests):
        winner, count = _elected(problem, test, [ballot[n] for ballot in valid])
        if count < 2 or count < options.agree * len(ballots):
            failed = f"; {len(ballots) - len(valid)} fail" if len(valid) < len(ballots) else ""
            raise Dropped("solutions_disagree", f"{count} of {len(ballots)} agree on test {n}{failed}")
        tests.append(Test(test.input, _written(problem, winner)))
    if not any(test.output.strip() for test in tests):
        raise Dropped("solutions_disagree", "they print nothing on any test")
    problem.tests = tests
    record.did(f"verify: expected outputs agreed on by {len(valid)} of {len(ballots)} solutions")
    return record


class AnswerRecorder(Examiner):
    """The judge's examiner, changed to record the answers of programs instead of comparing them."""

    def __init__(self, layer: str) -> None:
        super().__init__(Settings(layer=layer))
        self.taken: list[bytes] = []

    def answers(self, problem: Problem, code: str) -> list[Any] | None:
        """Return the program's answer to each test: texts, or values for a function. None if it fails on any test."""
        self.taken = []
        verdict = self.examine(judged(problem, problem.time_limit_s), Solution(problem.id, code=code))
        self.forget()
        if not verdict.accepted:
            return None
        if problem.kind == "stdin":
            return [output.decode("utf-8", "replace") for output in self.taken]
        try:
            answers = [values.answer(output) for output in self.taken]
        except values.TooMuch:
            return None
        found = [a["m"] if a["r"] is None and "m" in a else a["r"] for a in answers]  # it may be a changed argument
        found = [natural(value) for value in found]
        return None if any(isinstance(value, values.Opaque) for value in found) else found

    def _checks(self, problem: Problem, helpers: Helpers) -> tuple[list[Check], list[Check]]:
        return [Check(check.data, self._take) for check in super()._checks(problem, helpers)[0]], []

    def _take(self, output: bytes, _: Helpers) -> Match:
        self.taken.append(output)
        return Match("equal", "")


def _elected(problem: Problem, test: Test, votes: Sequence[Any]) -> tuple[Any, int]:
    """Return the most frequent answer and its number of votes."""
    counts = [sum(_same(problem, test, other, vote) for other in votes) for vote in votes]
    best = max(range(len(votes)), key=counts.__getitem__, default=None)
    return (None, 0) if best is None else (votes[best], counts[best])


def _same(problem: Problem, test: Test, got: Any, expected: Any) -> bool:
    policy, rules = problem.compare.policy or "robust", problem.compare
    if problem.kind == "function":
        return bool(compare_value(got, expected, policy, rules).strategy)
    got, expected, given = (text.encode("utf-8", "surrogatepass") for text in (got, expected, test.input))
    return bool(compare_text(got, expected, policy, rules, given).strategy)


def _written(problem: Problem, answer: Any) -> str:
    """Write an answer as the output of a test: text, JSON, or a Python literal if JSON has no such value."""
    if problem.kind == "stdin":
        return str(answer)
    try:
        return json.dumps(answer)
    except (TypeError, ValueError):
        return repr(answer)
