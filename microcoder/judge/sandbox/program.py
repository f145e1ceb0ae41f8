"""What happens in a test process: the candidate's program runs as __main__, or its function is called.

From the moment the candidate's code starts, nothing this file does can be relied on: that code may patch, hunt or
exit. So the process says nothing of success: it leaves its output (or a returned value) in a descriptor and an exit
status, and both are judged outside.

`prepare` runs once in the zygote: whatever a test process need not do itself, it does not pay for.
"""

import _io
import _thread
import atexit
import builtins
import gc
import json
import os
import re
import sys
import types
from itertools import zip_longest
from os import _exit as leave
from typing import Any

from . import kernel, records, template, values

# Generous like LiveCodeBench's runner: a solution should not fail for want of a line at its top.
RECURSION_LIMIT = 50_000
OUR_FRAMES = 20  # of zygote, box and this file: there are about ten
REPORT = 3  # descriptor: what went wrong, for the message only
RESULT = 4  # descriptor: the returned value
INPUT = 5  # descriptor: the arguments
MOST_DIGITS = 20_000  # of an answer that a test writes out in decimal, which is quadratic
NAME = "solution.py"
# Signs that a program leaves work to the end of the interpreter: writers that are flushed, destructors that print.
_AT_THE_END = (
    "__del__", "fdopen", "detach", "open(1", "Writer", "Wrapper", "FileIO", "/dev/stdout", "/dev/fd/1", "'w", '"w',
    "ctypes", "finally", "fileno",
)  # fmt: skip

__all__ = ["give_source", "import_ahead", "leave", "needs_finishing", "prepare", "run_stdin", "run_value"]


def prepare(names: dict[str, Any]) -> dict[str, types.ModuleType]:
    """The modules that programs will be executed in, and the standard streams of descriptors 0 to 2."""
    for known in [n for n in sys.modules if n.partition(".")[0] == "microcoder"]:
        del sys.modules[known]
    sys.argv = [NAME]
    _allow_for_our_frames()
    sys.setrecursionlimit(RECURSION_LIMIT)
    open_streams()
    modules = {"stdin": types.ModuleType("__main__"), "function": types.ModuleType("solution")}
    modules["value"] = types.ModuleType("solution")
    for module in modules.values():
        module.__dict__["__builtins__"] = builtins if module.__name__ == "__main__" else vars(builtins)
    modules["function"].__dict__.update(names)
    return modules


def _allow_for_our_frames() -> None:
    """Add our own frames to a recursion limit that the program sets."""
    get, set_ = sys.getrecursionlimit, sys.setrecursionlimit

    def setrecursionlimit(limit: int, /) -> None:
        set_(limit + OUR_FRAMES if limit > 0 else limit)

    sys.setrecursionlimit, sys.getrecursionlimit = setrecursionlimit, lambda: get() - OUR_FRAMES


def import_ahead(names: list[str], module: types.ModuleType, everything: bool) -> None:
    """Import in the box what the program will import, once and not in every test; `everything`: and bind the names."""
    for name in names:
        try:
            imported = __import__(name)
        except ImportError:
            continue
        if everything:
            module.__dict__[name] = imported
        if everything and name == "sortedcontainers":  # LeetCode has its classes at hand, not only the module
            module.__dict__.update({one: getattr(imported, one) for one in getattr(imported, "__all__", ())})
    if "random" in sys.modules:
        sys.modules["random"].seed(0)  # every test starts from this state: verdicts repeat
    if "threading" in sys.modules:
        import threading

        threading.excepthook = lambda args: _report(describe(args.exc_value) if args.exc_value else "a thread failed")


def give_source(module: types.ModuleType, source: str, folder: str) -> bytes:
    """Tell a program where it stands (__file__, inspect.getsource); what that file must hold, if it is to be read."""
    module.__file__ = os.path.join(folder, NAME)
    module.__dict__["__loader__"] = types.SimpleNamespace(get_source=lambda name: source)
    reads = any(word in source for word in ("__file__", "argv", "numba"))  # numba's cache looks for it
    return source.encode("utf-8", "surrogatepass") if reads else b""


def needs_finishing(source: str) -> bool:
    """Whether it may matter that the interpreter comes to its end in order. A wrong guess costs time, or output."""
    return any(sign in source for sign in _AT_THE_END)


def open_streams() -> None:
    """sys.stdin, stdout and stderr on descriptors 0 to 2, and their copies in sys.__stdin__ and so on."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        stream: Any = open(fd, "r" if fd == 0 else "w", encoding="utf-8", errors=errors, closefd=False)
        stream.buffer.raw.name = f"<{name}>"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


spent: list[str] = []  # modules that end once for all: a second `threading._shutdown` would wait for nobody


def run_stdin(code: types.CodeType, module: types.ModuleType, finish: bool, aloud: bool = False) -> int:
    """Run the program as a script; wait for threads, run atexit, flush all output.

    `finish`: its objects are destroyed too, as at the interpreter's end. `aloud`: with tracebacks on stderr.
    """
    status = 0
    main = sys.modules["__main__"] = types.ModuleType("__main__")  # nobody else holds it, so that it can be destroyed
    main.__dict__.update(module.__dict__, __annotations__={}, __cached__=None)
    if "threading" in sys.modules:
        sys.modules["threading"]._main_thread._set_native_id()  # not the zygote's any more
    if aloud:
        sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        exec(code, main.__dict__)
    except BaseException as error:
        status = _status(error)
        if aloud or sys.excepthook is not sys.__excepthook__:
            _show(error)
    try:
        if _thread._count() and "threading" in sys.modules:
            spent.append("threading")
            sys.modules["threading"]._shutdown()  # waits for threads that are not daemons
        atexit._run_exitfuncs()
        _flush(sys.stdout)
        if finish:
            del main
            _destroy()
        _flush(sys.__stdout__)
    except BaseException as error:
        status = status or _status(error)
    return status


def _flush(stream: Any) -> None:
    try:
        if stream is None or getattr(stream, "closed", False):
            return
    except ValueError:  # detached from its descriptor
        return
    stream.flush()


def _destroy() -> None:
    """Drop what the program holds, as the interpreter does at its end: destructors run, writers flush."""
    sys.stdout, sys.stderr, sys.stdin = sys.__stdout__, sys.__stderr__, sys.__stdin__
    gc.collect()  # what stays is in another order afterwards, in which a writer is finished before its file
    del sys.modules["__main__"]
    gc.collect()
    left = gc.get_objects()  # what other modules hold; those of the judge are frozen and not among them
    for kind in (_io.TextIOWrapper, _io.BufferedWriter):
        for writer in (thing for thing in left if type(thing) is kind):
            try:
                _flush(writer)
            except OSError:  # its file is gone
                pass
    kernel.libc.fflush(None)  # what C functions have printed


def run_value(code: types.CodeType, module: types.ModuleType, setup: types.CodeType | None, entry: str) -> int:
    """Call the candidate's function (or evaluate an expression with it) and leave the value in RESULT."""
    task = json.loads(os.pread(INPUT, os.fstat(INPUT).st_size, 0))
    module.__dict__.pop(entry.rpartition(".")[2], None)  # the program must define it, not we
    try:
        if setup is not None:
            exec(setup, module.__dict__)
        exec(code, module.__dict__)
        if "expr" in task:
            answer = {"r": _evaluate(module.__dict__, entry, task)}
        else:
            answer = _call(module.__dict__, entry, task)
        data = memoryview(json.dumps(answer).encode())
        while data:
            data = data[os.write(RESULT, data) :]
        return 0
    except BaseException as error:
        if isinstance(error, SystemExit):
            _report("the program ended before it returned a value")
            return 1
        return _status(error)


def _call(scope: dict[str, Any], entry: str, task: dict[str, Any]) -> dict[str, Any]:
    function = find(scope, entry)
    args, kwargs = task["args"], task["kwargs"]
    if "plain" not in task:
        args, kwargs = [values.decode(a) for a in args], {k: values.decode(v) for k, v in kwargs.items()}
    notes = getattr(function, "__annotations__", {})
    asked = dict(task.get("nodes", ()))  # annotations of the problem's signature: the program may have none
    returns = asked.pop("return", "") or notes.get("return")
    nodes = any("Node" in str(note) for note in (returns, *notes.values(), *asked.values()))
    if nodes:
        plain = getattr(function, "__func__", function)
        inner = plain
        while hasattr(inner, "__wrapped__"):  # lru_cache and what functools.wraps was used for
            inner = inner.__wrapped__
        names = getattr(getattr(inner, "__code__", None), "co_varnames", ())[int(plain is not function) :]
        order = zip_longest(args, names[: len(args)], list(asked.values())[: len(args)])
        args = [_as_node(a, note or notes.get(name), scope) for a, name, note in order]
        kwargs = {k: _as_node(v, asked.get(k) or notes.get(k), scope) for k, v in kwargs.items()}
    result = function(*args, **kwargs)
    if "Node" in str(returns):
        result = _empty_as_list(result)
    answer = {"r": values.encode(result)}
    if "changed" in task and (args or kwargs):  # the problem may take the changed argument for the answer
        changed = (args or list(kwargs.values()))[0]
        answer["m"] = values.encode(_empty_as_list(changed) if nodes else changed)
    return answer


def _empty_as_list(result: Any) -> Any:
    """LeetCode writes an empty list or tree as []."""
    if isinstance(result, list):
        return [_empty_as_list(item) for item in result]
    return [] if result is None else result


def _evaluate(scope: dict[str, Any], entry: str, task: dict[str, Any]) -> Any:
    if task.get("alias"):
        scope[task["alias"]] = find(scope, task.get("entry") or entry)
    scope.update({name: values.decode(value, real=True) for name, value in task.get("given", {}).items()})
    if task.get("given") and "alias" not in task:  # the problem's code on what the candidate answered
        sys.set_int_max_str_digits(MOST_DIGITS)
    if task["expr"] == records.RECORDS:
        scope[records.RECORDS] = []
        scope["_record"] = records.recorder(scope[records.RECORDS])
    try:
        exec(compile(task["before"], "<tests>", "exec"), scope)
    except AssertionError as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is not None and trace.tb_frame.f_code.co_filename == "<tests>":
            return False  # the tests' own assertion, not one of the program's
        raise
    return values.encode(eval(compile(task["expr"], "<tests>", "eval"), scope))


def find(scope: dict[str, Any], entry: str) -> Any:
    """The function called `entry`: bare or a method, whichever of the two the program has."""
    owner, _, name = entry.rpartition(".")
    for cls in (owner, "Solution"):
        if cls and isinstance(scope.get(cls), type) and hasattr(scope[cls], name):
            return getattr(scope[cls](), name)
    if name in scope:
        return scope[name]
    raise NameError(f"the program does not define {entry!r}")


def _as_node(value: Any, note: Any, scope: dict[str, Any]) -> Any:
    text = note if isinstance(note, str) else repr(note)
    for name, build in (("ListNode", template.linked_list), ("TreeNode", template.tree)):
        if name in text:
            cls = scope[name]
            if re.search(rf"(?i)\b(list|sequence|tuple)\[.*{name}", text) and isinstance(value, list):
                return [build(cls, item) for item in value]
            return build(cls, value)
    return value


def _status(error: BaseException) -> int:
    """The exit status the interpreter would give, and a report of what went wrong."""
    if isinstance(error, SystemExit):
        if error.code is None or error.code == 0:
            return 0
        if isinstance(error.code, int):
            _report(f"exit code {error.code}")
            return error.code & 0xFF or 1
        _report(f"sys.exit({error.code!r})")
    else:
        _report(describe(error))
    return 1


def _show(error: BaseException) -> None:
    """Return the traceback that the interpreter would write to standard error."""
    try:
        if not isinstance(error, SystemExit):
            trace = error.__traceback__ and error.__traceback__.tb_next  # from the program on, without this file
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        elif not isinstance(error.code, int | None):
            print(error.code, file=sys.stderr)
    except BaseException:
        pass


def describe(error: BaseException) -> str:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "solution.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        text = str(error)
    except Exception:
        text = ""
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{text} (line {line})" if line else text


def _report(text: str) -> None:
    try:
        os.pwrite(REPORT, text[:1000].encode("utf-8", "replace"), 0)
    except OSError:
        pass
