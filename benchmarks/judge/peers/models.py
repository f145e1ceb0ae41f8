"""Plain models of the peers, for when no checkout of them is given: their process structure and comparison, no more.

A manager and a forked process for each candidate; all tests in that one process, with sys.stdin and sys.stdout replaced
by text buffers; an alarm for each test; a join with a global time limit for the whole.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import signal
import sys
from decimal import Decimal, InvalidOperation
from typing import Any

PRELUDE = "from typing import *\nimport collections, heapq, math, itertools, functools, bisect\n"


class Alarm(Exception):
    pass


def livecodebench(sample: dict[str, Any], code: str, limit: int) -> bool:
    """Stops at the first failure; waits (limit + 1) seconds for each test and 5 more."""
    results = _in_child(sample, code, limit, (limit + 1) * len(sample["inputs"]) + 5)
    return len(results) == len(sample["inputs"]) and all(results)


def verl(sample: dict[str, Any], code: str, limit: int) -> bool:
    """All tests under one limit of 5 seconds; where that fails, the first ten once more, one by one, with 10 each."""
    results = _in_child(sample, code, 5, 6)
    if len(results) == len(sample["inputs"]) and all(results):
        return True
    pairs = list(zip(sample["inputs"], sample["outputs"], strict=True))[:10]
    again = []
    for pair in pairs:  # the function's name is lost on this way, so a function is now run as a script
        again += _in_child({"inputs": [pair[0]], "outputs": [pair[1]]}, code, 10, 11) or [False]
    return all(again)


def _in_child(sample: dict[str, Any], code: str, limit: int, wait: float) -> list[bool]:
    with multiprocessing.Manager() as manager:
        results = manager.list()
        process = multiprocessing.Process(target=_tests, args=(sample, code, limit, results))
        process.start()
        process.join(wait)
        if process.is_alive():
            process.kill()
        return list(results[0]) if len(results) else []


def _ring(signum: int, frame: Any) -> None:
    raise Alarm


def _tests(sample: dict[str, Any], code: str, limit: int, results: Any) -> None:
    signal.signal(signal.SIGALRM, _ring)
    name = sample.get("fn_name")
    passed: list[bool] = []
    with contextlib.suppress(Exception):
        program = compile(PRELUDE + code, "<program>", "exec")
        for text, want in zip(sample["inputs"], sample["outputs"], strict=True):
            signal.alarm(limit)
            passed.append(_call(program, name, text, want) if name else _script(program, text, want))
            signal.alarm(0)
            if not passed[-1]:
                break
    signal.alarm(0)
    results.append(passed if passed else [False])


def _call(program: Any, name: str, text: str, want: str) -> bool:
    scope: dict[str, Any] = {"__name__": "program"}
    exec(program, scope)
    function = getattr(scope["Solution"](), name) if "Solution" in scope else scope[name]
    got = function(*[json.loads(line) for line in text.split("\n")])
    return bool((list(got) if isinstance(got, tuple) else got) == json.loads(want))


def _script(program: Any, text: str, want: str) -> bool:
    sys.stdin, sys.stdout = io.StringIO(text), io.StringIO()
    try:
        with contextlib.suppress(SystemExit):
            exec(program, {"__name__": "__main__"})
        got = sys.stdout.getvalue()
    finally:
        sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__
    ours, theirs = _lines(got), _lines(want)
    return len(ours) == len(theirs) and all(_line(a, b) for a, b in zip(ours, theirs, strict=True))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _line(got: str, want: str) -> bool:
    if got == want:
        return True
    try:
        return [Decimal(word) for word in got.split()] == [Decimal(word) for word in want.split()]
    except InvalidOperation:
        return False
