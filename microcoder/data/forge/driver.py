"""The program that runs in the sandbox: many programs on many inputs in one process. `run.py` sends it there as text.

It stands where a candidate's program stands, so the judge's own functions, which call it, are found in the frame below:
a function is called here exactly as in a test. Each run has fresh names and a timer of its own. A program that spoils
the process all the same (memory, a crash in C, a thread that never ends) costs its own result only: what was done
before is written already, and `run.py` goes on behind it in a new process.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

_FRESH = dict(globals())  # what a program finds: nothing of this file

import atexit  # noqa: E402
import builtins  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import types  # noqa: E402
from _thread import _count as threads  # noqa: E402

REPORT, RESULT = 3, 4  # descriptors, as in judge/sandbox/program.py
TICK_S = 0.005
DEAR_S = 0.05  # CPU seconds: a program that takes longer before its function is called is not begun anew for each input
ends = [0.0, 0.0]  # when the present run has used up its CPU time, and its wall time; 0: nothing runs


class Late(BaseException):
    pass


def tick(*_):
    if ends[0] and (time.process_time() > ends[0] or time.monotonic() > ends[1]):
        raise Late


def drive(programs, inputs, options):
    """Write a line [program, input, status, CPU seconds, answer] for each run, and "end" behind the last."""
    judge = sys._getframe(1).f_globals
    run = Stdin(judge) if options["stdin"] else Function(judge, options)
    most, hard = resource.getrlimit(resource.RLIMIT_AS)
    if most > options["slack"]:  # or memory would be watched from outside, which ends the process
        resource.setrlimit(resource.RLIMIT_AS, (most - options["slack"], hard))
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    functions, base = dict(vars(builtins)), {}
    for number, text, first in programs:
        try:
            code = compile(text, "solution.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            write([number, 0, "compile", 0.0, type(error).__name__])
            continue
        used, late = 0.0, 0
        for n in range(first, len(inputs)):
            os.pwrite(REPORT, b"%d %d          " % (number, n), 0)
            status, answer, seconds = attempt(run, code, inputs[n], options["limit_s"])
            if len(answer) > options["most"]:
                status, answer = "long", ""
            if number == options["base"]:
                base[n] = answer if status == "ok" else None
            elif status == "ok" and base.get(n) == answer:
                status, answer = "same", ""
            write([number, n, status, round(seconds, 5), answer])
            if threads():  # of a program that did not wait for them: they cannot be ended
                os._exit(3)
            used += seconds
            late += status == "late"
            if late > options["lates"] or used > options["program_s"]:
                break
        if vars(builtins) != functions:
            vars(builtins).clear()
            vars(builtins).update(functions)
        sys.setrecursionlimit(judge["RECURSION_LIMIT"])
    write("end")
    os._exit(0)


def attempt(run, code, given, limit_s):
    """(status, answer, CPU seconds) of one run: ok, late, memory, error."""
    if "random" in sys.modules:
        sys.modules["random"].seed(0)
    status, answer, start = "ok", "", time.process_time()
    try:
        try:
            ends[1], ends[0] = time.monotonic() + 4 * limit_s + 1, start + limit_s
            answer = run(code, given)
        finally:
            ends[0] = 0.0
    except Late:
        status = "late"
    except MemoryError:
        status = "memory"
    except BaseException as error:
        status, answer = "error", type(error).__name__
    seconds = time.process_time() - start
    if status in ("late", "memory"):
        answer = ""
        gc.collect()
    elif status == "ok" and seconds > limit_s:
        status, answer = "late", ""
    return status, answer, seconds


class Function:
    """A call as in a test of a function problem. An input is the JSON that the judge sends."""

    def __init__(self, judge, options):
        self.call, self.evaluate, self.entry = judge["_call"], judge["_evaluate"], options["entry"]
        self.setup = compile(options["setup"], "<setup>", "exec") if options["setup"] else None
        self.code, self.scope = None, dict(_FRESH)  # the last program whose tables took long to make, and its names

    def __call__(self, code, given):
        scope = self.scope
        if self.code is not code:
            scope, start = dict(_FRESH), time.process_time()
            if self.setup is not None:
                exec(self.setup, scope)
            scope.pop(self.entry.rpartition(".")[2], None)
            exec(code, scope)
            if time.process_time() - start > DEAR_S:
                self.code, self.scope = code, scope
        task = json.loads(given)
        if "expr" in task:
            return json.dumps({"r": self.evaluate(scope, self.entry, task)})
        return json.dumps(self.call(scope, self.entry, task))


class Stdin:
    """A program that reads and prints. An input is text."""

    def __init__(self, judge):
        self.open_streams = judge["open_streams"]
        self.given, self.printed = (os.open(name, os.O_RDWR | os.O_CREAT) for name in (".given", ".printed"))

    def __call__(self, code, given):
        for fd, target, text in ((self.given, 0, given.encode("utf-8", "surrogatepass")), (self.printed, 1, b"")):
            os.ftruncate(fd, 0)
            os.lseek(fd, 0, os.SEEK_SET)
            if text:
                os.write(fd, text)
                os.lseek(fd, 0, os.SEEK_SET)
            os.dup2(fd, target)
        self.open_streams()
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__dict__.update(__builtins__=builtins, __annotations__={}, __file__="solution.py")
        try:
            exec(code, main.__dict__)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
        for _ in range(200):  # threads that it started: the largest stack is had that way
            if not threads():
                break
            time.sleep(0.01)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
        return os.pread(self.printed, os.fstat(self.printed).st_size, 0).decode("utf-8", "replace")


def write(line):
    data = json.dumps(line).encode() + b"\n"
    while data:
        data = data[os.write(RESULT, data) :]
