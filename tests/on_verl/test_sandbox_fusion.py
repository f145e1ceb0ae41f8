"""verl's own client of SandboxFusion, unchanged, against `microcoder serve`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from serve_process import served
from verl.utils.reward_score import sandbox_fusion

TESTS = {"inputs": ["1\n", "2\n", "3\n"], "outputs": ["2\n", "3\n", "4\n"]}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as service:
        yield f"{service.url}/run_code"


def scored(url: str, code: str, tests: dict[str, Any], timeout: int = 10) -> tuple[float, list[str]]:
    completion = f"Here it is:\n```python\n{code}\n```\n"
    limit = threading.Semaphore(8)
    score, told = sandbox_fusion.compute_score(url, limit, 1024, completion, json.dumps(tests), timeout=timeout)
    return score, [one["status"] for one in told]


@pytest.mark.parametrize(
    ("code", "score", "statuses"),
    [
        ("print(int(input()) + 1)", 1.0, ["success"] * 3),
        ("n = int(input())\nprint(n + 1 if n < 3 else 0)", 2 / 3, ["success", "success", "wrong_answer"]),
        ("print(1 // 0)", 0.0, ["runtime_error"] * 3),
        ("import sys\nsys.exit(3)", 0.0, ["runtime_error"] * 3),
        ("x = [b'x' * (1 << 24) for _ in range(200)]\nprint(2)", 0.0, ["runtime_error"] * 3),
        ("print(", 0.0, ["runtime_error"] * 3),
    ],
)
def test_programs_are_scored_as_they_deserve(url: str, code: str, score: float, statuses: list[str]) -> None:
    found, said = scored(url, code, TESTS)
    assert (found, said) == (pytest.approx(score), statuses)


def test_a_loop_is_a_timeout(url: str) -> None:
    assert scored(url, "while True: pass", {"inputs": [""], "outputs": [""]}, timeout=1) == (0.0, ["timeout"])


def test_functions_and_assertions_are_run_by_the_programs_that_verl_writes_around_them(url: str) -> None:
    calls = {"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"], "fn_name": "add"}
    method = "class Solution:\n    def add(self, a, b):\n        return a + b"
    assert scored(url, method, calls) == (1.0, ["success"] * 2)
    asserts = {"assert_case": ["assert add(1, 2) == 3", "assert add(1, 2) == 4"]}
    assert scored(url, "def add(a, b): return a + b", asserts) == (0.5, ["success", "runtime_error"])


def test_more_requests_than_there_is_room_for_are_all_answered() -> None:
    """verl takes 429 for a failed test, so a full queue makes its requests wait."""
    many = {"inputs": ["1\n"] * 24, "outputs": ["2\n"] * 24}
    with served("--queue", "2", workers=1) as service:
        assert scored(f"{service.url}/run_code", "print(int(input()) + 1)", many) == (1.0, ["success"] * 24)
