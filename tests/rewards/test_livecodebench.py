"""`codegen_metrics` gives what LiveCodeBench's gives; the expected lists were taken from its own function."""

from __future__ import annotations

import json

import pytest
from faulty_judge import Faulty

from microcoder.rewards import codegen_metrics, livecodebench

STDIN = {"input_output": json.dumps({"inputs": ["1\n", "2\n", "3\n"], "outputs": ["2\n", "4\n", "6\n"]})}
CALL = {"input_output": json.dumps({"inputs": ["[1, 2]\n3", "[]\n0"], "outputs": ["6", "0"], "fn_name": "total"})}
PROGRAMS = {  # program: result, error code
    "print(2 * int(input()))": ([True, True, True], None),
    "n = int(input())\nprint(2 * n if n < 3 else 0)": ([True, True, -2], -2),
    "while True: pass": ([-3], -3),
    "print(1 // 0)": ([-4], -4),
    "print(": ([-4], -4),
    "": ([-4], -4),
    "d = defaultdict(int)\nd[0] = int(sys.stdin.readline())\nprint(2 * d[0])": ([True, True, True], None),
    "if __name__ == '__main__':\n    print(2 * int(input()))": ([True, True, True], None),
    "print(2.0 * int(input()))": ([True, True, True], None),
}
FUNCTIONS = {
    "class Solution:\n    def total(self, a: List[int], b: int) -> int:\n        return sum(a) + b": (
        [True, True],
        None,
    ),
    "def total(a, b): return sum(a) + b": ([True, True], None),
    "def total(a, b): return 6": ([True, False], -2),
    "def other(a, b): return 6": ([-4], -4),
    "": ([-4], -4),
}


def test_results_and_metadata_for_standard_input():
    metrics, results, metadata = codegen_metrics([STDIN], [list(PROGRAMS)], k_list=[1], timeout=1)
    assert results == {0: [result for result, _ in PROGRAMS.values()]}
    assert [json.loads(text).get("error_code") for text in metadata[0]] == [code for _, code in PROGRAMS.values()]
    assert metrics["pass@1"] == pytest.approx(4 / 9) and metrics["detail"]["pass@1"] == {0: pytest.approx(4 / 9)}
    assert json.loads(metadata[0][1]) | {"output": ""} == {
        "output": "", "inputs": "3\n", "expected": "6\n", "error_code": -2, "error_message": "Wrong Answer",
    }  # fmt: skip


def test_results_for_functions():
    _, results, metadata = codegen_metrics([CALL], [list(FUNCTIONS)], timeout=1)
    assert results == {0: [result for result, _ in FUNCTIONS.values()]}
    assert [json.loads(text).get("error_code") for text in metadata[0]] == [code for _, code in FUNCTIONS.values()]


def test_pass_at_k_only_where_there_are_enough_programs():
    right, wrong = "print(2 * int(input()))", "print(0)"
    metrics, results, _ = codegen_metrics(
        [STDIN, STDIN], [[right, wrong, wrong, wrong], [right, right, wrong, wrong]], k_list=[1, 2, 5], timeout=2
    )
    assert metrics == {
        "pass@1": pytest.approx((1 / 4 + 2 / 4) / 2),
        "pass@2": pytest.approx((1 / 2 + 5 / 6) / 2),  # 1 - C(3,2)/C(4,2), 1 - C(2,2)/C(4,2)
        "detail": {
            "pass@1": {0: pytest.approx(1 / 4), 1: pytest.approx(2 / 4)},
            "pass@2": {0: pytest.approx(1 / 2), 1: pytest.approx(5 / 6)},
        },
    }
    assert set(results) == {0, 1}


def test_a_fault_of_the_judge_is_said_aloud(monkeypatch):
    monkeypatch.setattr(livecodebench, "shared_judge", lambda options: Faulty())
    with pytest.warns(UserWarning, match="the judge failed on 1 of 1"):
        _, results, metadata = codegen_metrics([STDIN], [["print(1)"]])
    assert results == {0: [[-5]]} and json.loads(metadata[0][0])["error_message"] == "TestRunnerError"


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match=r"generations_list\[0\] is text"):
        codegen_metrics([STDIN], ["print(1)"])
    with pytest.raises(ValueError, match=r"samples_list\[0\].*tests"):
        codegen_metrics([{"input_output": '{"inputs": [], "outputs": []}'}], [["print(1)"]])
