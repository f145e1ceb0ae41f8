"""SandboxFusion's two routes: its requests in, its answers out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from serve_process import Served, served

NEEDS_CPP = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
CPP = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n + 1; }"


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served() as service:
        yield service


@pytest.mark.parametrize(
    ("request_", "status", "run_status", "return_code", "stdout", "stderr"),
    [
        ({"code": "print(input())", "stdin": "hi"}, "Success", "Finished", 0, "hi\n", ""),
        ({"code": "print(1)", "stdin": None, "files": {}, "fetch_files": []}, "Success", "Finished", 0, "1\n", ""),
        ({"code": "import sys\nprint(2, file=sys.stderr)\nsys.exit(3)"}, "Failed", "Finished", 3, "", "2\n"),
        ({"code": "print(1)\n1 // 0"}, "Failed", "Finished", 1, "1\n", "ZeroDivisionError"),
        ({"code": "print("}, "Failed", "Finished", 1, "", "never closed"),
        ({"code": "while True: pass", "run_timeout": 0.3}, "Failed", "TimeLimitExceeded", None, "", ""),
        ({"code": "x = b'x' * (1 << 28)", "memory_limit_MB": 64}, "Failed", "Finished", 1, "", "limit 64 MB"),
        ({"code": "print('x' * (17 << 20))"}, "Failed", "Finished", None, "x", ""),
        pytest.param(
            {"code": CPP, "language": "cpp", "stdin": "4"}, "Success", "Finished", 0, "5", "", marks=NEEDS_CPP
        ),
    ],
)
def test_a_program_is_run_and_what_it_wrote_comes_back(
    service: Served, request_: dict[str, Any], status: str, run_status: str, return_code: int | None, stdout: str,
    stderr: str,
) -> None:  # fmt: skip
    code, answer, _ = service.ask("POST", "/run_code", {"language": "python", **request_})
    run = answer["run_result"]
    assert (code, answer["status"], run["status"]) == (200, status, run_status)
    if "17 << 20" in request_["code"]:
        assert run["return_code"] != 0 and len(run["stdout"]) == 16 << 20
    else:
        assert (run["return_code"], run["stdout"]) == (return_code, stdout)
    assert stderr in run["stderr"] and run["execution_time"] >= 0
    assert set(answer) == {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}


def test_a_program_gets_no_more_than_the_service_gives() -> None:
    with served("--max-seconds", "1", "--max-memory-mb", "64") as service:
        asked = {"language": "python", "run_timeout": 500, "memory_limit_MB": 1 << 20}
        late = service.ask("POST", "/run_code", {**asked, "code": "while True: pass"})[1]
        assert late["run_result"]["status"] == "TimeLimitExceeded"
        large = service.ask("POST", "/run_code", {**asked, "code": "x = bytearray(1 << 33)"})[1]
        assert "MemoryError" in large["run_result"]["stderr"]


@NEEDS_CPP
def test_what_cpp_does_not_compile_has_a_compile_result(service: Served) -> None:
    answer = service.ask("POST", "/run_code", {"code": "int main() { return x; }", "language": "cpp"})[1]
    assert (answer["status"], answer["run_result"]) == ("Failed", None)
    assert answer["compile_result"]["return_code"] == 1 and "x" in answer["compile_result"]["stderr"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"code": "x", "language": "lua"}, "'lua'; programs in python, cpp,"),
        ({"code": "x", "language": "python", "files": {"a.txt": "eA=="}}, "files cannot be used"),
        ({"code": "x", "language": "python", "fetch_files": ["a.txt"]}, "fetch_files cannot be used"),
    ],
)
def test_what_is_not_supported_is_a_sandbox_error_that_names_it(
    service: Served, request_: dict[str, Any], says: str
) -> None:
    status, answer, _ = service.ask("POST", "/run_code", request_)
    assert (status, answer["status"]) == (200, "SandboxError") and says in answer["message"]


@pytest.mark.parametrize("body", [{}, {"code": 1}, {"code": "x", "language": 1}, {"code": "x", "run_timeout": "1"}])
def test_what_is_no_request_is_refused(service: Served, body: dict[str, Any]) -> None:
    assert service.ask("POST", "/run_code", {"language": "python", **body})[0] == 422


def submitted(service: Served, code: str, config: dict[str, Any] | None = None) -> tuple[int, Any]:
    tests = [{"input": {"stdin": f"{n}\n"}, "output": {"stdout": f"{n + 1}\n"}} for n in range(3)]
    usual = {"dataset_type": "CommonOJDataset", "language": "python", "provided_data": {"test": tests}}
    record = {"dataset": "mine", "id": 7, "completion": f"```python\n{code}\n```", "config": usual | (config or {})}
    return service.ask("POST", "/submit", record)[:2]


def test_a_submission_is_judged_by_the_tests_that_come_along(service: Served) -> None:
    _, right = submitted(service, "print(int(input()) + 1)")
    assert (right["id"], right["accepted"], right["extracted_code"]) == (7, True, "print(int(input()) + 1)")
    assert [test["passed"] for test in right["tests"]] == [True] * 3
    _, wrong = submitted(service, "n = int(input())\nprint(n + 1 if n else 5)")
    assert not wrong["accepted"] and [test["passed"] for test in wrong["tests"]] == [False]
    _, whole = submitted(service, "n = int(input())\nprint(n + 1 if n else 1 // 0)", {"extra": {"run_all_cases": True}})
    assert [test["passed"] for test in whole["tests"]] == [False, True, True]
    assert [test["exec_info"]["status"] for test in whole["tests"]] == ["Failed", "Success", "Success"]


def test_a_fault_of_the_judge_is_an_error_never_a_program_that_was_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")  # no compilers
    with served(workers=1) as service:
        code = "```go\npackage main\nfunc main() {}\n```"
        status, answer = submitted(service, code, {"language": "go"})
    assert status == 500 and "go" in answer["error"]


def test_the_tests_may_be_a_row_of_several_and_json_in_text(service: Served) -> None:
    rows = [{"id": n, "test": json.dumps([{"input": {"stdin": ""}, "output": {"stdout": str(n)}}])} for n in (6, 7)]
    assert submitted(service, "print(7)", {"provided_data": rows})[1]["accepted"]
    assert not submitted(service, "print(6)", {"provided_data": rows})[1]["accepted"]


@pytest.mark.parametrize(
    ("config", "status", "says"),
    [
        ({"dataset_type": "HumanEvalDataset"}, 400, "only config.dataset_type CommonOJDataset"),
        ({"custom_extract_logic": "x"}, 400, "custom_extract_logic"),
        ({"language": "pascal"}, 400, "'pascal'"),
        ({"provided_data": {"test": "[{]"}}, 422, "provided_data"),
        ({"provided_data": [{"id": 8, "test": []}]}, 422, "provided_data"),
        ({"run_timeout": "long"}, 422, "run_timeout"),
    ],
)
def test_a_submission_of_another_kind_is_refused_by_name(
    service: Served, config: dict[str, Any], status: int, says: str
) -> None:
    found, answer = submitted(service, "print(1)", config)
    assert found == status and says in answer["error"]
