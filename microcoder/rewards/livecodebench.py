"""LiveCodeBench's `codegen_metrics`, judged in our sandbox: the same arguments, the same results.

    from microcoder.rewards import codegen_metrics    # instead of lcb_runner.evaluation's

Where it differs from LiveCodeBench's own:

1. Programs cannot reach this process or each other, and none can hang the evaluation.
2. `timeout` counts CPU seconds of a test, so results do not depend on the load of the machine.
3. Not more programs run at a time than there are cores, whatever `num_process_evaluate` says.
4. Memory is limited to 4 GB for each test.
5. A program may begin with `from __future__ import ...`, and reads a real standard input.
6. `output` in the metadata of a wrong answer is the first difference, not the whole output.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from ..schema import ACCEPTED, Problem, SchemaError, Test, Verdict
from ..stats import pass_at_k
from .shared import JudgeSetting, options_of, shared_judge

K_LIST = (1, 5, 10, 20, 40, 50, 75, 100, 125, 150, 200, 500, 1000)
MEMORY_MB = 4096
LONGEST = 300  # characters of a test in the metadata

_MODULES = (  # LiveCodeBench imports these before each program: all of their names, in this order, then themselves
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"
).split()
_IMPORTS = "".join(
    [
        *(f"from {name} import *\n" for name in (*_MODULES, "builtins", "typing")),
        *(f"import {name}\n" for name in _MODULES),
        "sys.setrecursionlimit(50000)\n",
    ]
)
_CODES = {  # of our verdicts; those that are not here are runtime errors
    "wrong_answer": (-2, "Wrong Answer"),
    "time_limit": (-3, "Time Limit Exceeded"),
    "internal_error": (-5, "TestRunnerError"),
}
_FAILED = (-4, "Runtime Error")


def codegen_metrics(
    samples_list: Sequence[Mapping[str, str]],
    generations_list: Sequence[list[str]],
    k_list: Sequence[int] = K_LIST,
    num_process_evaluate: int = 16,
    timeout: float = 6,
    debug: bool = False,
    *,
    judge: JudgeSetting = "here",
) -> list[Any]:
    """Return [metrics, results, metadata] for programs, as LiveCodeBench's function of this name does.

    Args:
        samples_list: For each problem {"input_output": JSON text with inputs, outputs and perhaps fn_name}.
        generations_list: For each problem its programs, without fences around them.
        k_list: Which pass@k to compute; those for which there are too few programs are left out.
        num_process_evaluate: Programs judged at a time, at most.
        timeout: CPU seconds for each test.
        debug: Not looked at.
        judge: As in CodeReward.

    Returns:
        metrics: `{"pass@1": mean, ..., "detail": {"pass@1": {problem: value}}}`.
        results: For each problem, for each program: True for a test that passed, up to the first that did not: False
            or -2 for a wrong answer, -3 for the time limit, -4 for an error, -5 for a fault of the judge.
        metadata: For each problem, for each program: JSON text about the failure.
    """
    fixed = {"policy": "exact", "stop_at_first_failure": True, "memory_mb": MEMORY_MB, "time_limit_s": float(timeout)}
    options = options_of(judge, **fixed)
    if options["on"] == "here":
        options["workers"] = max(1, min(num_process_evaluate, options["workers"]))
    opened = shared_judge(options)
    asked: list[tuple[int, Problem, Future[Verdict]]] = []
    for number, (sample, programs) in enumerate(zip(samples_list, generations_list, strict=True)):
        if isinstance(programs, str):
            raise TypeError(f"generations_list[{number}] is text; it must be a list of programs")
        in_class = ["class Solution" in code for code in programs]
        kinds = {wrapped: _problem(number, sample, wrapped) for wrapped in set(in_class)}
        for code, wrapped in zip(programs, in_class, strict=True):
            problem = kinds[wrapped]
            asked.append((number, problem, opened.submit(problem, code=_with_imports(code))))
    results: dict[int, list[list[Any]]] = defaultdict(list)
    metadata: dict[int, list[str]] = defaultdict(list)
    for number, problem, future in asked:
        result, about = _reported(problem, future.result())
        results[number].append(result)
        metadata[number].append(json.dumps(about))
    faults = sum(result[-1] == -5 for several in results.values() for result in several)
    if faults:
        warnings.warn(f"the judge failed on {faults} of {len(asked)} programs, which count as wrong", stacklevel=2)
    return [_metrics(results, k_list), results, [metadata[number] for number in sorted(metadata)]]


def _problem(number: int, sample: Mapping[str, str], wrapped: bool) -> Problem:
    """Return the problem of a sample; a function is a method where the program has a `class Solution`."""
    tests = json.loads(sample["input_output"])
    pairs = list(zip(tests["inputs"], tests["outputs"], strict=True))
    name = tests.get("fn_name")
    problem = Problem(str(number))
    if name is None:
        problem.tests = [Test(_text(given), _text(output)) for given, output in pairs]
    else:  # one JSON value on each line
        problem.kind, problem.entry_point = "function", f"Solution.{name}" if wrapped else name
        problem.tests = [Test(f"[{', '.join(given.split(chr(10)))}]", output) for given, output in pairs]
    try:
        problem.check(f"samples_list[{number}]")
    except SchemaError as error:
        raise ValueError(str(error)) from None
    return problem


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(value)


def _with_imports(code: str) -> str:
    if not code.strip() or re.search(r"^from __future__ import ", code, re.MULTILINE):
        return code
    return _IMPORTS + code


def _reported(problem: Problem, verdict: Verdict) -> tuple[list[Any], dict[str, Any]]:
    """Return (result for each test, metadata) of one program, in LiveCodeBench's words."""
    if verdict.accepted:
        return [True] * len(verdict.tests), {"execution time": verdict.cpu_s}
    code, words = _CODES.get(verdict.verdict, _FAILED)
    function = problem.kind == "function"
    passed = sum(test.verdict == ACCEPTED for test in verdict.tests)
    about: dict[str, Any] = {"error": verdict.message, "error_code": code, "error_message": words}
    if passed < len(verdict.tests):
        test = problem.tests[passed]
        about |= {"inputs": _short(test.input), "expected": _short(test.output)}
    if code == -2:
        about["output"] = about.pop("error")
    return [True] * passed + [False if function and code == -2 else code], about


def _short(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}...(truncated) ...{text[-half:]}"


def _metrics(results: Mapping[int, list[list[Any]]], k_list: Sequence[int]) -> dict[str, Any]:
    right = {number: sum(all(test > 0 for test in one) for one in several) for number, several in results.items()}
    found: dict[str, Any] = {}
    detail: dict[str, dict[int, float]] = {}
    for k in k_list:
        if results and all(len(several) >= k for several in results.values()):
            each = {number: pass_at_k(len(results[number]), count, k) for number, count in right.items()}
            found[f"pass@{k}"], detail[f"pass@{k}"] = sum(each.values()) / len(each), each
    return {**found, "detail": detail}
