"""Many programs on many inputs, fast: one process in the judge's sandbox runs them all (`driver.py`).

    with runners.one() as runner:
        replies = runner.run(problem, programs, inputs)     # replies[program][input]

This is for the search, where thousands of runs are needed for a problem. What a forged test expects, and what the tests
are worth in the end, is said by the judge itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...judge.boxes import Box, BoxError, Limits
from ...judge.checks import Check, checks, natural
from ...judge.compare import Match
from ...judge.examine import Examiner, HelperBoxes, Settings
from ...judge.languages import is_cpp, prepared
from ...judge.sandbox import values
from ...judge.sandbox.box import ADDRESS_SPACE_SLACK
from ...schema import Kind, Problem, SchemaError, Test

DRIVER = Path(__file__).with_name("driver.py")
OUTPUT = 64 << 20  # bytes that all answers of a process may take together
TRIES = 3
UNWRITTEN = object()


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a program did on an input.

    status   "ok"; "same": the answer is that of the first program; "late", "memory", "error", "crash", "compile";
             "long": the answer is longer than asked for; "unknown": it was not run
    """

    status: str
    answer: str = ""
    cpu_s: float = 0.0


UNKNOWN = Behaviour("unknown")


class ProgramRunner:
    """Runs programs in a sandbox of its own, one batch at a time."""

    def __init__(self, layer: str, memory_mb: int = 384) -> None:
        self.examiner = Examiner(Settings(layer=layer))
        self.memory_mb = memory_mb
        self.spent_s = 0.0  # CPU seconds, over all batches
        self.closed = False
        self.driver = DRIVER.read_text(encoding="utf-8")

    def run(
        self,
        problem: Problem,
        programs: Sequence[str],
        inputs: Sequence[str],
        *,
        limit_s: float = 1.0,
        base: bool = False,
        every: bool = False,
        most: int = 1 << 16,
        program_s: float = 1e9,
    ) -> list[list[Behaviour]]:
        """Run each program on each input; `base`: answers like those of the first program come back as "same".

        limit_s   CPU seconds for a run
        every     go on with the next input where a program is late; else it is not run on the rest
        most      characters of an answer
        program_s   CPU seconds for a program on all inputs, without `every`

        An input is as in Test.input; for an assert problem it is the call of the function as Python source.
        """
        if problem.kind == "assert":
            data = [json.dumps({"before": "", "expr": text}) for text in inputs]
        else:
            answer = "null" if gives_null(problem) else "0"
            found = checks_of(problem, [(text, answer) for text in inputs])
            data = [check.data.decode("utf-8", "surrogatepass") for check in found]
        options = {
            "stdin": problem.kind == "stdin", "entry": problem.entry_point, "setup": problem.setup, "limit_s": limit_s,
            "most": most, "all": every, "lates": 2 if every else 0, "program_s": program_s, "base": 0 if base else -1,
        }  # fmt: skip
        box = "value" if problem.kind == "assert" else "function"
        return self._batch(box, programs, data, options)

    def checked(self, problem: Problem, cases: Sequence[tuple[Any, Any, Any]]) -> list[bool | None]:
        """What the problem's checker says of each (input, output, expected), as values; None where it cannot tell."""
        if is_cpp(problem.compare.checker or ""):
            return self._compiled(problem, cases)
        tasks = [json.dumps({"args": [values.encode(v) for v in case], "kwargs": {}}) for case in cases]
        options = {"stdin": False, "entry": "check", "setup": "", "limit_s": 2.0, "most": 1000, "all": True}
        options |= {"base": -1, "program_s": 1e9, "lates": 2}
        replies = self._batch("value", [problem.compare.checker or ""], tasks, options)[0]
        accepted = ("[true", '{"r": true', '{"r": {"t": [true')
        return [
            None if reply.status == "unknown" else reply.status == "ok" and reply.answer.startswith(accepted)
            for reply in replies
        ]

    def _compiled(self, problem: Problem, cases: Sequence[tuple[Any, Any, Any]]) -> list[bool | None]:
        """What a checker in C++ says: it is compiled once, and run as the judge runs it."""
        found: list[bool | None] = []
        with HelperBoxes(self.examiner, problem) as boxes:
            for case in cases:
                try:
                    found.append(bool(boxes.check(*case).strategy))
                except SchemaError:  # its own failure, on this answer
                    found.append(None)
        return found

    def _batch(
        self, kind: str, programs: Sequence[str], inputs: list[str], options: dict[str, Any]
    ) -> list[list[Behaviour]]:
        found = [[UNKNOWN] * len(inputs) for _ in programs]
        todo: list[list[Any]] = [[n, text, 0] for n, text in enumerate(programs)]
        fails = 0
        while todo and inputs:
            base = found[0] if options["base"] == 0 and todo[0][0] != 0 else None
            ended, place = self._once(kind, todo, inputs, options, found)
            if base is not None:
                _compare(found, base, [n for n, _, _ in todo])
            if ended:
                break
            if place is None:  # nothing was begun: the sandbox failed
                fails += 1
                if fails >= TRIES:
                    raise BoxError("the sandbox ended several times before a program was run")
                continue
            number, n = place
            if found[number][n].status == "unknown":
                found[number][n] = Behaviour("crash")
            todo = [entry for entry in todo if entry[0] >= number]
            todo[0][2] = n + 1
            if found[number][n].status == "crash" and not options["all"]:
                todo.pop(0)
        return found

    def _once(
        self, kind: str, todo: list[list[Any]], inputs: list[str], options: dict[str, Any], found: list[list[Behaviour]]
    ) -> tuple[bool, tuple[int, int] | None]:
        """Run one process; whether it came to its end, else the program and the input at which it did not."""
        if self.closed:
            raise BoxError("the runner was closed")
        options = {**options, "slack": ADDRESS_SPACE_SLACK}
        source = "\n".join(text for _, text, _ in todo[:200]) + options["setup"]
        at_hand = kind == "function" and not options["stdin"]
        heavy, ahead = prepared(source, self.examiner.unfit, at_hand)
        runs = sum(len(inputs) - first for _, _, first in todo)
        limits = Limits(
            min(600.0, 5 + options["limit_s"] * (len(todo) + runs * options["all"] + 2)), self.memory_mb << 20, OUTPUT
        )
        task = {"args": [todo, inputs, options], "kwargs": {}, "plain": True}
        zygote = self.examiner.zygote("heavy" if heavy else "plain")
        try:
            with Box(zygote, self.driver, kind, limits, "drive", "", heavy, ahead) as box:
                if box.compile_error:
                    raise BoxError(box.compile_error)
                outcome = box.run(json.dumps(task).encode())
        except BoxError as error:
            self.examiner.recover(error)
            return False, None
        self.spent_s += outcome.cpu_s
        ended, last = False, None
        for line in outcome.output.split(b"\n"):
            if line == b'"end"':
                ended = True
            elif line.startswith(b"[") and line.endswith(b"]"):
                number, n, status, seconds, answer = json.loads(line)
                found[number][n] = Behaviour(status, answer, seconds)
                last = (number, n)
                if status == "compile":
                    found[number] = [Behaviour("compile", answer)] * len(inputs)
        words = outcome.report.split()
        if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
            last = (int(words[0]), int(words[1]))
        return ended, last

    def forget(self) -> None:
        self.examiner.forget()

    def close(self) -> None:
        """End what runs, in another thread too."""
        self.closed = True
        self.examiner.close()


def _compare(found: list[list[Behaviour]], base: list[Behaviour], numbers: list[int]) -> None:
    """In a process that came later the first program did not run: tell here which answers are like its own."""
    for number in numbers:
        for n, reply in enumerate(found[number]):
            if reply.status == "ok" and base[n].status == "ok" and reply.answer == base[n].answer:
                found[number][n] = Behaviour("same", "", reply.cpu_s)


# --- answers


class _NoHelpers:
    """The problem's own code is not asked here: expected values are plain, and checkers are run in batches."""

    def evaluate(self, statements: str, expression: str, **given: Any) -> Any:
        return None

    def check(self, given: Any, output: Any, expected: Any) -> Match:
        return Match("", "")


def gives_null(problem: Problem) -> bool:
    """Whether null is an answer: else a function that returns None may have changed its argument."""
    return any(test.output.strip() in ("null", "None") for test in problem.tests)


def asks_checker(problem: Problem) -> bool:
    """Whether the problem's checker decides. Asserts decide for themselves."""
    return bool(problem.compare.checker) and problem.kind != "assert"


def checks_of(problem: Problem, pairs: Sequence[tuple[str, str]]) -> list[Check]:
    """The judge's checks for (input, output) pairs. An assert problem is taken for a function problem."""
    kind: Kind = "stdin" if problem.kind == "stdin" else "function"
    rules = replace(problem.compare, checker=None)
    tests = [Test("[]" if problem.kind == "assert" else given, output) for given, output in pairs]
    return checks(
        replace(problem, kind=kind, tests=tests, compare=rules, setup=""),
        problem.compare.policy or "robust",
        _NoHelpers(),
    )


def differs(check: Check, reply: Behaviour) -> bool:
    """Whether an answer is another than the expected one, by the judge's comparison."""
    try:
        return not check.judge(reply.answer.encode("utf-8", "surrogatepass"), _NoHelpers()).strategy
    except Exception:  # as in the judge: a right answer is plain data, and plain data can be compared
        return True


def value_of(problem: Problem, reply: Behaviour) -> Any:
    """The answer as a value (text for stdin); UNWRITTEN where it has no plain value."""
    if problem.kind == "stdin":
        return reply.answer
    try:
        answer = values.answer(reply.answer.encode())
    except (values.TooMuch, ValueError, KeyError):
        return UNWRITTEN
    value = natural(answer["m"] if answer["r"] is None and "m" in answer else answer["r"])
    return UNWRITTEN if _opaque(value) else value


def _opaque(value: Any) -> bool:
    if isinstance(value, (values.Opaque, values.Member)):
        return True
    if isinstance(value, dict):
        return any(map(_opaque, value.keys())) or any(map(_opaque, value.values()))
    return isinstance(value, (list, tuple, set, frozenset)) and any(map(_opaque, value))
