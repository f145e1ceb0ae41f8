"""Judge one candidate: open a box, run the tests, compare, return the verdict."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import dataclass, replace
from typing import Any

from ..schema import ACCEPTED, Problem, SchemaError, Solution, TestVerdict, Verdict
from .boxes import BEAT, Box, BoxError, Broken, Limits, Outcome, Toolchain, Unfit, Zygote, started
from .checks import NO_PLAIN_VALUE, Check, Helpers, checks
from .compare import Match, weakest
from .compare.match import show
from .extract import code_block
from .languages import (
    LANGUAGES,
    LARGE,
    NAMES,
    CompileError,
    NoCompiler,
    NoTestlib,
    checker_input,
    checker_program,
    compiled,
    imported,
    is_cpp,
    opener,
    packages,
    toolchain,
    try_out,
    with_runtime,
)
from .sandbox import values

TRIES = 3
CHECKERS = 8  # compiled ones that an examiner keeps, 2 MB each
# How runtimes begin to say why a program ended, before they list where it was; and that it was memory.
CAUSE = re.compile(
    r"^(?:Exception in thread |panic: |fatal error: |FATAL ERROR: |thread '|[\w.]*Error\b|memory allocation )", re.M
)
OUT_OF_MEMORY = ("java.lang.OutOfMemoryError", "out of memory", "cannot allocate memory", "memory allocation of ")
TRUSTED = Limits(10.0, 1 << 30, 16 << 20)  # for checkers and for expected values: the problem's own code


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a worker; `Judge` documents them."""

    policy: str = "robust"
    stop_at_first_failure: bool = True
    reuse: bool = False
    time_limit_s: float = 6.0
    time_factor: float = 1.0
    memory_mb: int = 1024
    output_mb: int = 16
    layer: str = "full"
    also: str = ""


class Examiner:
    """Judges one candidate at a time. It owns the zygotes, and a cache of expected values."""

    def __init__(self, settings: Settings, watch: Any = None) -> None:
        self.settings = self.own = settings
        self.watch = watch
        self.zygotes: dict[str, Zygote] = {}
        self.last_beat = time.monotonic()
        self.unfit: set[str] = set()  # packages that no zygote can keep
        self.values: dict[tuple[str, str, str], Any] = {}  # expected values by setup, statements, expression
        self.checkers: dict[str, bytes] = {}  # compiled ones by their source, the last few
        # by the identity of a problem, which is kept with it, and policies: its tests, under the first and the second
        self.plans: dict[tuple[int, str, str], tuple[Problem, list[Check], list[Check]]] = {}

    def forget(self) -> None:
        """Clear the cache of expected values."""
        self.values, self.plans = {}, {}

    def zygote(self, name: str) -> Zygote:
        found = self.zygotes.get(name)
        if found is None or found.process.poll() is not None:
            if found is not None:
                found.close()
            found = self.zygotes[name] = self._compiler(name) if name in LANGUAGES else self._started()
        return found

    def _started(self, toolchain: Toolchain | None = None) -> Zygote:
        return started(lambda: Zygote(self.own.layer, self.watch, toolchain))

    def _compiler(self, language: str) -> Zygote:
        zygote = self.zygotes[language] = self._started(toolchain(language, self.own.layer))
        try:
            try_out(self, language)
        except BaseException:
            self.zygotes.pop(language).close()
            raise
        return zygote

    def close(self) -> None:
        for zygote in self.zygotes.values():
            zygote.close()
        self.zygotes = {}

    def beat(self) -> None:
        """Send a sign of life to the pool, at most once a second."""
        if (now := time.monotonic()) - self.last_beat > 1 and self.watch is not None:
            self.last_beat = now
            self.watch.sendall(BEAT)

    def recover(self, error: BoxError) -> None:
        """After a failure of the sandbox: the next try has new zygotes, which load nothing that starts threads."""
        self.close()
        if isinstance(error, Unfit):
            self.unfit |= set(error.names)

    def examine(self, problem: Problem, solution: Solution, settings: Settings | None = None) -> Verdict:
        """The verdict. Never raises for what a candidate or a problem does.

        A sandbox that fails is made anew, and its work done again. One that fails each time while the program runs in
        it fails because of the program, whose verdict that is; anything else is an internal_error.
        """
        self.settings = replace(settings, layer=self.own.layer) if settings else self.own
        verdict = Verdict("internal_error", solution.problem_id, solution.id, sandbox=self.settings.layer)
        start, broken = time.monotonic(), 0
        for _ in range(TRIES):
            try:
                self._examine(problem, solution, verdict)
                break
            except (SchemaError, NoCompiler) as error:
                verdict.verdict, verdict.message = "internal_error", str(error)
                break
            except BoxError as error:
                broken += isinstance(error, Broken)
                verdict.verdict, verdict.message, verdict.tests = "internal_error", str(error), []
                self.recover(error)
        if broken == TRIES:
            verdict.verdict, verdict.message = "runtime_error", f"it broke its sandbox: {verdict.message}"
            verdict.also, verdict.also_message = (verdict.verdict, verdict.message) if self.settings.also else ("", "")
        verdict.wall_s = time.monotonic() - start
        return verdict

    def _examine(self, problem: Problem, solution: Solution, verdict: Verdict) -> None:
        language = solution.language
        if language not in NAMES:
            raise SchemaError(f"language is {language!r}; programs in {', '.join(NAMES)} can be judged")
        if language != "python" and problem.kind != "stdin":
            raise SchemaError(
                f"problem {problem.id!r} is of kind {problem.kind!r} and tests Python functions; "
                f"{NAMES[language]} is judged on stdin problems only"
            )
        source = solution.code if solution.code is not None else code_block(solution.completion or "", language)
        if source is None or not source.strip():
            verdict.verdict = "no_code"
            verdict.message = f"no complete fenced {NAMES[language]} block in the completion"
            if solution.code is not None:
                verdict.message = "the program is empty"
            verdict.also = "no_code" if self.settings.also else ""
            return
        with HelperBoxes(self, problem) as helpers:
            todo, second = self._checks(problem, helpers)
            limits = with_runtime(self.limits(problem), language)
            try:
                candidate = _Candidate(self, problem, source, language, limits)
            except CompileError as error:
                verdict.verdict, verdict.message = "compile_error", str(error)
                if second:
                    verdict.also, verdict.also_message = verdict.verdict, verdict.message
                return
            try:
                self._run(candidate, todo, second, limits, verdict, helpers)
            finally:
                candidate.close()
        verdict.inside = candidate.inside or any(check.inside for check in todo)
        self._sum_up(verdict)

    def _checks(self, problem: Problem, helpers: Helpers) -> tuple[list[Check], list[Check]]:
        """The tests, and the same ones under the second policy: they put the same into the candidate's process."""
        own, policy, also = problem.compare.policy, self.settings.policy, self.settings.also
        key = (id(problem), policy, also)
        if key not in self.plans:
            first = checks(problem, own or policy, helpers)
            second = first if own else checks(problem, also, helpers) if also else []
            self.plans[key] = problem, first, second if also else []
        return self.plans[key][1:]

    def limits(self, problem: Problem) -> Limits:
        settings = self.settings
        seconds = (problem.time_limit_s or settings.time_limit_s) * settings.time_factor
        largest = max((len(t.output) for t in problem.tests), default=0)
        # A returned value is built again on this side, so less of it is taken than of text.
        output = max((settings.output_mb if problem.kind == "stdin" else 4) << 20, 2 * largest)
        return Limits(seconds, int(problem.memory_mb or settings.memory_mb) << 20, output)

    def _run(
        self,
        candidate: _Candidate,
        todo: list[Check],
        second: list[Check],
        limits: Limits,
        verdict: Verdict,
        helpers: Helpers,
    ) -> None:
        reuse = self.settings.reuse and candidate.language == "python"  # a binary starts anew, and starts fast
        open_, also_open = True, bool(second)  # whether each policy has accepted all so far
        for n, check in enumerate(todo):
            other = second[n] if second else None
            result, fresh = self._test(candidate, check, other, limits, helpers, reuse)
            failed = result.verdict != ACCEPTED or result.also not in ("", ACCEPTED)
            if not fresh and not failed and n == len(todo) - 1:
                # A program that lives on what earlier tests left behind is found out here. A failure stands: a second
                # try would be a second guess.
                result, _ = self._test(candidate, check, other, limits, helpers, reuse=False)
            verdict.tests.append(result)
            self.beat()
            open_, also_open = open_ and result.verdict == ACCEPTED, also_open and result.also == ACCEPTED
            if not open_ and not also_open and self.settings.stop_at_first_failure:
                break

    def _test(
        self,
        candidate: _Candidate,
        check: Check,
        other: Check | None,
        limits: Limits,
        helpers: Helpers,
        reuse: bool,
    ) -> tuple[TestVerdict, bool]:
        """One test, and whether its process was fresh. `other` is the same test under the second policy."""
        if check.time_s is not None:
            own = (check.time_s + candidate.imports_s) * self.settings.time_factor
            limits = replace(limits, time_s=min(limits.time_s, own))
        outcome = candidate.run(check.data, reuse, limits.time_s)
        name, message = failure(outcome, limits)
        if not name and not candidate.stdin and not outcome.output:
            name, message = "runtime_error", "the program ended before it returned a value"
        match, also, also_message = Match("", ""), name, message
        if not name:
            name, message, match = _judged(check, outcome, helpers)
            if match is NO_PLAIN_VALUE and check.otherwise is not None:
                candidate.inside = True
                inside = check.otherwise
                return self._test(candidate, inside, inside if other else None, limits, helpers, reuse)
            if other is check:  # the problem has a policy of its own
                also, also_message = name, message
            elif other is not None:
                also, also_message, _ = _judged(other, outcome, helpers)
        if other is None:
            also = also_message = ""
        result = TestVerdict(name, match.strategy, outcome.cpu_s, outcome.wall_s, outcome.memory_mb, message[:300])
        result.also, result.also_message = also, also_message[:300]
        return result, outcome.fresh

    def _sum_up(self, verdict: Verdict) -> None:
        if not verdict.tests:
            return
        failed = [(n, t) for n, t in enumerate(verdict.tests) if t.verdict != ACCEPTED]
        if verdict.tests[0].also:
            refused = [(n, t) for n, t in enumerate(verdict.tests) if t.also != ACCEPTED]
            verdict.also = refused[0][1].also if refused else ACCEPTED
            verdict.also_message = f"test {refused[0][0]}: {refused[0][1].also_message}" if refused else ""
        verdict.cpu_s = sum(t.cpu_s for t in verdict.tests)
        verdict.memory_mb = max(t.memory_mb for t in verdict.tests)
        if failed:
            n, first = failed[0]
            verdict.verdict, verdict.message = first.verdict, f"test {n}: {first.message}"
        else:
            verdict.verdict, verdict.message = ACCEPTED, ""
            verdict.strategy = weakest(t.strategy for t in verdict.tests)


def _judged(check: Check, outcome: Outcome, helpers: Helpers) -> tuple[str, str, Match]:
    """Return (verdict, message, match) of a test that ended. Nothing a program does makes this an internal error."""
    try:
        match = check.judge(outcome.output, helpers)
    except values.TooMuch as error:
        return "output_limit", str(error), Match("", "")
    except (SchemaError, BoxError):
        raise
    except Exception as error:  # a right answer is plain data, and plain data can be compared
        return "wrong_answer", f"what it gave cannot be compared: {type(error).__name__}", Match("", "")
    if match.strategy:
        return ACCEPTED, "", match
    # a thread that failed explains an answer that is not there
    return "wrong_answer", f"{match.message}; {outcome.report}" if outcome.report else match.message, match


def failure(outcome: Outcome, limits: Limits) -> tuple[str, str]:
    """Return (verdict, message) of a failure before any comparison, or ("", "")."""
    seconds = f"{outcome.cpu_s:.2f} s of CPU, {outcome.wall_s:.2f} s in all, limit {limits.time_s:g} s"
    if outcome.output_full:
        return "output_limit", f"over {limits.output_bytes >> 20} MB of output"
    if outcome.cpu_s >= limits.time_s:
        return "time_limit", seconds
    if outcome.overdue:
        return "time_limit", f"it waited: {seconds}"
    if outcome.memory_mb > limits.memory_bytes >> 20:
        runtime = f" with {limits.runtime_bytes >> 20} MB for the runtime" if limits.runtime_bytes else ""
        return "memory_limit", f"{outcome.memory_mb:.0f} MB, limit {limits.memory_bytes >> 20} MB{runtime}"
    if not outcome.status:
        return "", ""
    last = outcome.errors[-100_000:]
    causes = [*CAUSE.finditer(last)]
    said = " ".join((last[causes[-1].start() :][:200] if causes else last[-200:]).split())
    memory = said.endswith(("MemoryError", "std::bad_alloc")) or any(words in said for words in OUT_OF_MEMORY)
    if memory or outcome.report.startswith("MemoryError"):
        return "memory_limit", outcome.report or said
    if outcome.signal:
        name = signal_name(outcome.signal)
        how = f"ended by {name}" + (" (stack overflow?)" if name == "SIGSEGV" else "")
    else:
        how = outcome.report or f"exit code {outcome.status >> 8}"
    return "runtime_error", f"{how}: {said}" if said else how


def signal_name(number: int) -> str:
    known = number in {s.value for s in signal.Signals}
    return signal.Signals(number).name if known else f"signal {number}"


class _Candidate:
    """The candidate's box, opened again if a test spoiled it."""

    def __init__(self, examiner: Examiner, problem: Problem, source: str, language: str, limits: Limits) -> None:
        kind = "value" if problem.kind == "assert" else problem.kind
        self.open = opener(examiner, source, language, kind, limits, problem.entry_point, problem.setup)
        self.language = language
        self.stdin = problem.kind == "stdin"
        # A test's own limit is made for what the reference does there; parts of these packages take a second to import.
        self.imports_s = 2.0 if language == "python" and imported(source, LARGE) else 0.0
        self.inside = False  # an assertion had to run in the candidate's process
        self.box = self.open()

    def run(self, data: bytes, reuse: bool, time_s: float) -> Outcome:
        if self.box.unclean:
            self.box.close()
            try:
                self.box = self.open()
            except CompileError as error:  # the first time it compiled
                raise BoxError(str(error)) from None
        return self.box.run(data, reuse, time_s)

    def close(self) -> None:
        self.box.close()


class HelperBoxes:
    """Boxes for the problem's own code, which the candidate never meets: expected expressions and checkers."""

    def __init__(self, examiner: Examiner, problem: Problem) -> None:
        self.examiner, self.problem = examiner, problem
        self.open: dict[str, Box] = {}
        # Where the problem's code looks at what a program gave, the program decides how long that takes.
        self.looking = replace(TRUSTED, time_s=min(TRUSTED.time_s, max(2.0, examiner.limits(problem).time_s)))

    def box(self, name: str, source: str, limits: Limits, code: str, entry: str = "", setup: str = "") -> Box:
        """The box of this name, opened at its first use; `code` tells which packages it needs."""
        if name not in self.open:
            heavy = packages(code, self.examiner.unfit)
            zygote = self.examiner.zygote("heavy" if heavy else "plain")
            self.open[name] = Box(zygote, source, "value", limits, entry, setup, heavy)
        return self.open[name]

    def evaluate(self, statements: str, expression: str, **given: Any) -> Any:
        """The value of an expression of the problem's. One that is given nothing of the candidate's is remembered."""
        key = (self.problem.setup, statements, expression)
        cache = self.examiner.values
        if not given and key in cache:
            return cache[key]
        setup = self.problem.setup
        name, limits = ("answers", self.looking) if given else ("evaluator", TRUSTED)
        box = self.box(name, "", limits, f"{setup}\n{statements}", "", setup)
        if box.compile_error:
            raise SchemaError(f"problem {self.problem.id!r}: setup is no Python: {box.compile_error}")
        task = {"before": statements, "expr": expression, "given": {k: values.encode(v) for k, v in given.items()}}
        outcome = box.run(json.dumps(task).encode())
        if given:  # what the candidate answered may well make the expression fail
            return values.answer(outcome.output)["r"]
        if outcome.status or not outcome.output:
            what = "setup" if expression == "None" else f"the expected value `{expression[:80]}`"
            raise SchemaError(f"problem {self.problem.id!r}: {what} fails: {outcome.report}")
        cache[key] = values.answer(outcome.output)["r"]
        return cache[key]

    def check(self, given: Any, output: Any, expected: Any) -> Match:
        """The problem's own checker decides: True, or (True, ...), accepts. Whatever else it does, it refuses."""
        source = self.problem.compare.checker or ""
        if is_cpp(source):
            return self._compiled_check(source, given, output, expected)
        box = self.box("checker", source, self.looking, source, "check")
        if box.compile_error:
            raise SchemaError(f"problem {self.problem.id!r}: the checker is no Python: {box.compile_error}")
        task = {"args": [values.encode(v) for v in (given, output, expected)], "kwargs": {}}
        outcome = box.run(json.dumps(task).encode())
        if outcome.status or not outcome.output:  # checkers read outputs as if they were well-formed: these are not
            return Match("", f"the checker stopped: {outcome.report or 'no answer'}")
        answer = values.answer(outcome.output)["r"]
        passed, reason = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, "")
        if passed is True:
            return Match("checker", "")
        said = reason or "no" if passed is False else f"it returned {show(answer)}, which is not True"
        return Match("", f"checker: {said}")

    def _compiled_check(self, source: str, given: Any, output: Any, expected: Any) -> Match:
        """A checker in C++, called as testlib's are: exit code 0 accepts, 3 is its own failure, others refuse."""
        where = f"problem {self.problem.id!r}"
        if self.problem.kind != "stdin":
            raise SchemaError(f"{where}: a checker in C++ reads files, so it needs a stdin problem; use one in Python")
        if "checker" not in self.open:
            self.open["checker"] = Box(
                self.examiner.zygote("plain"), self._binary(source, where), "binary", self.looking, errors=True
            )
        outcome = self.open["checker"].run(checker_input(given, output, expected))
        said = " ".join(outcome.errors.split())[:200]
        code = os.waitstatus_to_exitcode(outcome.status) if not outcome.overdue else -1
        if code == 0:
            return Match("checker", "")
        if code == 3:
            raise SchemaError(f"{where}: the checker failed: {said or 'exit code 3'}")
        if code in (1, 2):
            return Match("", f"checker: {said or ('wrong answer' if code == 1 else 'presentation error')}")
        return Match("", f"the checker stopped: {said or f'exit code {code}'}")

    def _binary(self, source: str, where: str) -> bytes:
        """The compiled checker, from the examiner's memory where it was compiled before."""
        known = self.examiner.checkers
        if source not in known:
            try:
                binary, fault = compiled(self.examiner.zygote("cpp"), "cpp", checker_program(source))
            except NoTestlib as error:
                raise SchemaError(f"{where}: {error}") from None
            if fault:
                raise SchemaError(f"{where}: the checker does not compile: {fault}")
            while len(known) >= CHECKERS:
                known.pop(next(iter(known)))
            known[source] = binary
        return known[source]

    def __enter__(self) -> HelperBoxes:
        return self

    def __exit__(self, *_: Any) -> None:
        for box in self.open.values():
            box.close()
