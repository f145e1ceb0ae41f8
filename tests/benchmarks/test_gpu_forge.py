"""The problems of the GPU benchmarks with forged tests: what their references take, and a stop."""

from __future__ import annotations

import gzip
import sys

from benchmarks.gpu.forge import main, seconds
from microcoder import load_problems
from microcoder.files import json_line, write_problems
from microcoder.schema import Problem, Test


def problem(name: str, code: str | None) -> Problem:
    solutions = [] if code is None else [{"code": code, "language": "python"}]
    return Problem(id=name, statement="Print 1.", tests=[Test("", "1")] * 2, solutions=solutions)


def test_a_reference_takes_the_time_of_all_tests():
    slow = problem("slow", "print(1 if sum(range(3_000_000)) else 0)")
    took = seconds([problem("quick", "print(1)"), slow, problem("none", None)], workers=1)
    assert took["none"] == 0 < took["quick"] < took["slow"]


def test_a_stop_before_anything_is_forged_leaves_problems_as_they_were(monkeypatch, capsys, tmp_path):
    one = problem("one", "print(1)")
    write_problems(tmp_path / "problems.jsonl", [one])
    for name in ("train", "validation"):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(json_line(one.to_dict())))
    words = ["--problems", str(tmp_path / "problems.jsonl"), "--data", str(tmp_path), "--budget", "0"]
    monkeypatch.setattr(sys, "argv", ["forge", *words])
    assert main() == 0
    assert "its problems keep their examples" in capsys.readouterr().out
    (kept,) = load_problems(tmp_path / "train-forged.jsonl.gz")
    assert kept.tests == one.tests
