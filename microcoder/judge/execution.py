"""One program, run once in the sandbox and not judged: what it wrote, how it ended and what it used.

    judge.run("print(input())", stdin="hello").result()    ->    Ran(status="ok", stdout="hello\\n", ...)

The walls and limits are those of a candidate; only its standard error is kept as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from .boxes import BoxError, Broken, Limits
from .examine import TRIES, Examiner, failure, signal_name
from .languages import CompileError, NoCompiler, opener, with_runtime


@dataclass(frozen=True, slots=True)
class Program:
    code: str
    language: str = "python"
    stdin: str = ""
    limits: Limits | None = None  # None: the judge's


@dataclass(slots=True)
class Ran:
    """How it went. Bytes that are no UTF-8 stand as replacement characters."""

    status: str  # "ok", or the verdict the judge would give: time_limit, memory_limit, output_limit, runtime_error, ...
    stdout: str = ""  # at most the output limit, as is stderr
    stderr: str = ""
    exit_code: int = 0  # minus the signal's number if one ended it, as subprocess has it
    signal: str = ""  # its name, such as "SIGSEGV"
    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: float = 0.0
    compile_error: str = ""  # what the compiler says
    message: str = ""  # why it is not "ok"


def run_program(examiner: Examiner, program: Program) -> Ran:
    """Never raises for what a program does; as for a candidate, a sandbox that fails is made anew."""
    own = examiner.own
    limits = program.limits or Limits(own.time_limit_s * own.time_factor, own.memory_mb << 20, own.output_mb << 20)
    limits = with_runtime(limits, program.language)
    start, reason, broken = time.monotonic(), "", 0
    for _ in range(TRIES):
        try:
            return _run(examiner, program, limits)
        except CompileError as error:
            return Ran("compile_error", wall_s=time.monotonic() - start, compile_error=str(error), message=str(error))
        except NoCompiler as error:
            return Ran("internal_error", message=str(error))
        except BoxError as error:
            reason = str(error)
            broken += isinstance(error, Broken)
            examiner.recover(error)
    if broken == TRIES:
        return Ran("runtime_error", message=f"it broke its sandbox: {reason}")
    return Ran("internal_error", message=reason)


def _run(examiner: Examiner, program: Program, limits: Limits) -> Ran:
    with opener(examiner, program.code, program.language, "stdin", limits, errors=True)() as box:
        outcome = box.run(program.stdin.encode("utf-8", "surrogatepass"))
    status, message = failure(outcome, limits)
    return Ran(
        status or "ok",
        outcome.output.decode("utf-8", "replace"),
        outcome.errors,
        -outcome.signal if outcome.signal else outcome.status >> 8,
        signal_name(outcome.signal) if outcome.signal else "",
        outcome.cpu_s,
        outcome.wall_s,
        outcome.memory_mb,
        message=message[:300],
    )
