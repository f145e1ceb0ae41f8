"""SandboxFusion's requests and answers (github.com/bytedance/SandboxFusion), for rewards that are written for it.

POST /run_code runs a program and returns what it wrote; POST /submit judges one against the tests that come along.
Where this is not SandboxFusion:

1. The languages are those of the judge. Others, and files, are answered with its SandboxError, which names them.
2. The time limit is CPU time, and twice that where a program only waits; without a memory limit it is the judge's.
3. /submit takes stdin and stdout tests (`CommonOJDataset`, with `provided_data`), compares as the judge does, and does
   not return what the program wrote. Where the judge fails, the status is 500, as in SandboxFusion.
4. When the queue is full a request waits; after a while it is answered with 504, on which verl's client tries again.
"""

from __future__ import annotations

import json
from typing import Any

from ..judge.boxes import Limits
from ..judge.examine import Settings
from ..judge.execution import Ran
from ..judge.extract import code_block
from ..schema import Problem, SchemaError, Solution, Test, TestVerdict, Verdict, language_named, quoted
from .requests import BadRequest, Most, check_id, check_tests

RUN = ("code", "language", "stdin", "compile_timeout", "run_timeout", "memory_limit_MB", "files", "fetch_files")

INTERPRETED = ("python", "javascript")


class Unsupported(Exception):
    """Something that SandboxFusion can do and this service cannot."""


def program(record: dict[str, Any], own: Settings, most: Most) -> tuple[str, str, str, Limits]:
    """Read (code, language, stdin, limits) of a /run_code request."""
    code, stdin = record.get("code"), record.get("stdin") or ""
    if not isinstance(code, str) or not isinstance(stdin, str):
        raise BadRequest(422, '"code" must be text, and "stdin" too where it is given')
    language = _language(record.get("language"))
    for name in ("files", "fetch_files"):
        if record.get(name):
            raise Unsupported(f"{name} cannot be used here: a program has its input and nothing else")
    seconds = _number(record, "run_timeout", 10.0, most.seconds)
    memory = _number(record, "memory_limit_MB", own.memory_mb, most.memory_mb)
    _number(record, "compile_timeout", 10.0, most.seconds)
    return code, language, stdin, Limits(seconds, int(memory) << 20, own.output_mb << 20)


def ran(language: str, outcome: Ran) -> dict[str, Any]:
    """The answer of /run_code."""
    if outcome.status == "internal_error":
        return failed(outcome.message)
    if outcome.status == "compile_error":
        result = _command("Finished", 0.0, 1, "", outcome.compile_error)
        # Some have no compiler there: what does not compile is a program that failed
        return _response("Failed", result) if language in INTERPRETED else _response("Failed", compile_result=result)
    if outcome.status == "time_limit":
        result = _command("TimeLimitExceeded", outcome.wall_s, None, outcome.stdout, outcome.stderr)
    else:
        error = outcome.status != "ok"
        stderr = outcome.stderr or (outcome.message if error else "")
        limit = outcome.status in ("memory_limit", "output_limit")  # a failure, whatever the program thought
        code = 1 if limit else outcome.exit_code or int(error)
        result = _command("Finished", outcome.wall_s, code, outcome.stdout, stderr)
    compiled = None if language in INTERPRETED else _command("Finished", 0.0, 0, "", "")
    return _response("Success" if outcome.status == "ok" else "Failed", result, compiled)


def failed(reason: str) -> dict[str, Any]:
    return {**_response("SandboxError"), "message": reason}


def submitted(record: dict[str, Any], own: Settings, most: Most) -> tuple[str | int, Problem, Solution, Settings]:
    """Read the problem and the program of a /submit request."""
    config = record.get("config")
    if not isinstance(config, dict):
        raise BadRequest(422, '"config" must be an object')
    if config.get("dataset_type") != "CommonOJDataset":
        found = config.get("dataset_type") or record.get("dataset")
        raise BadRequest(400, f"dataset {quoted(found)} is not known here; only config.dataset_type CommonOJDataset is")
    if config.get("custom_extract_logic"):
        raise BadRequest(400, "custom_extract_logic is not run here: the last fenced block is the program")
    ident, completion = record.get("id"), record.get("completion")
    if not isinstance(ident, str | int) or not isinstance(completion, str):
        raise BadRequest(422, '"id" must be text or a whole number, "completion" text')
    try:
        language = _language(config.get("language"))
    except Unsupported as error:
        raise BadRequest(400, str(error)) from None
    limit = _number(config, "run_timeout", 20.0 if language in INTERPRETED else 10.0, most.seconds)
    problem = Problem(str(ident), tests=_tests(config.get("provided_data"), ident), time_limit_s=limit)
    check_id(problem.id)
    check_tests(problem, most)
    extra = config.get("extra")
    whole = isinstance(extra, dict) and bool(extra.get("run_all_cases"))
    settings = Settings(policy=own.policy, stop_at_first_failure=not whole, memory_mb=own.memory_mb, layer=own.layer)
    return ident, problem, Solution(problem.id, completion=completion, language=language), settings


def judged(ident: str | int, problem: Problem, solution: Solution, verdict: Verdict) -> dict[str, Any]:
    """The answer of /submit."""
    code, tests = code_block(solution.completion or "", solution.language) or "", []
    for test, one in zip(problem.tests, verdict.tests, strict=False):  # those that ran
        info = {"input": {"stdin": test.input}, "output": {"stdout": test.output}}
        tests.append({"passed": one.verdict == "accepted", "exec_info": _test(one), "test_info": info})
    return {
        "id": ident, "accepted": verdict.accepted, "extracted_code": code,
        "full_code": None, "test_code": None, "tests": tests, "extracted_type": None,
        "extra": {"verdict": verdict.verdict, "message": verdict.message},
    }  # fmt: skip


def _test(one: TestVerdict) -> dict[str, Any]:
    late, right = one.verdict == "time_limit", one.verdict in ("accepted", "wrong_answer")
    code = None if late else 0 if right else 1
    result = _command("TimeLimitExceeded" if late else "Finished", one.wall_s, code, None, one.message)
    return _response("Success" if right else "Failed", result)


def _command(status: str, seconds: float, code: int | None, stdout: str | None, stderr: str) -> dict[str, Any]:
    return {
        "status": status, "execution_time": round(seconds, 4), "return_code": code, "stdout": stdout, "stderr": stderr,
    }  # fmt: skip


def _response(status: str, run: Any = None, compile_result: Any = None) -> dict[str, Any]:
    return {
        "status": status, "message": "", "compile_result": compile_result, "run_result": run,
        "executor_pod_name": None, "files": {},
    }  # fmt: skip


def _language(name: Any) -> str:
    if not isinstance(name, str):
        raise BadRequest(422, '"language" must be text, such as "python"')
    try:
        return language_named(name)
    except SchemaError as error:
        raise Unsupported(str(error)) from None


def _number(record: dict[str, Any], name: str, default: float, most: float) -> float:
    """Return the requested value, or the default if there is none, but at most `most`."""
    value = record.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(422, f"{name} must be a number")
    return min(float(min(value, most)), most) if value > 0 else default


def _tests(data: Any, ident: str | int) -> list[Test]:
    rows = [row for row in (data if isinstance(data, list) else [data]) if isinstance(row, dict)]
    if isinstance(data, list):
        rows = [row for row in rows if row.get("id") == ident]
    try:
        cases: Any = rows[0]["test"]
        cases = json.loads(cases) if isinstance(cases, str) else cases
        tests = [Test(case["input"]["stdin"], case["output"]["stdout"]) for case in cases]
        if tests and all(isinstance(text, str) for test in tests for text in (test.input, test.output)):
            return tests
    except (LookupError, TypeError, ValueError, RecursionError):
        pass
    words = 'config.provided_data needs "test": [{"input": {"stdin": "..."}, "output": {"stdout": "..."}}, ...]'
    raise BadRequest(422, words)
