"""`microcoder forge` from the command line."""

from __future__ import annotations

import json

from click.testing import CliRunner

from microcoder import load_problems
from microcoder.cli import cli
from microcoder.files import write_problems
from microcoder.schema import Problem, Test

STATEMENT = """Given an integer array nums, return the largest number.

Constraints:

1 <= nums.length <= 100
-1000 <= nums[i] <= 1000
"""
CODE = "class Solution:\n    def largest(self, nums: List[int]) -> int:\n        {}\n"


def problem(ident="largest", **fields):
    about = {
        "kind": "function",
        "statement": STATEMENT,
        "entry_point": "Solution.largest",
        "starter_code": CODE.format("pass"),
        "tests": [Test("[[7]]", "7"), Test("[[1, 2]]", "2")],
        "solutions": [{"code": CODE.format("return max(nums)")}],
    }
    return Problem(ident, **{**about, **fields})


def test_weak_problems_go_in_and_stronger_ones_come_out(tmp_path):
    write_problems(tmp_path / "in.jsonl", [problem(), problem("alone", solutions=[])])
    wrong = {"problem_id": "largest", "code": CODE.format("return nums[-1]")}
    (tmp_path / "wrong.jsonl").write_text(json.dumps(wrong) + "\n")
    words = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "--adversaries", f"{tmp_path}/wrong.jsonl"]
    done = CliRunner().invoke(cli, [*words, "forge.tests=6", "forge.candidates=48", "judge.workers=1"])
    assert done.exit_code == 0, done.output
    assert "1 of 2 problems have stronger tests" in done.output and "no_reference 1" in done.output
    assert "adversaries alive" in done.output and "0 of 1 (0.0%)" in done.output
    first, second = load_problems(tmp_path / "out.jsonl")
    assert 3 <= len(first.tests) <= 8 and len(second.tests) == 2
    assert all(-1000 <= n <= 1000 for test in first.tests for n in json.loads(test.input)[0])


def test_what_cannot_be_done_is_said_before_any_work(tmp_path):
    write_problems(tmp_path / "in.jsonl", [problem()])
    for words, said in [
        (["forge", f"{tmp_path}/none.jsonl", "-o", f"{tmp_path}/out.jsonl"], "there is no file"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/in.jsonl"], "name another"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.txt"], "its name must end in"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "forge.test=3"], "did you mean 'tests'"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "--adversaries", "none"], "there is no none"),
    ]:
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2 and said in done.output, done.output


def test_help_lists_the_settings():
    done = CliRunner().invoke(cli, ["forge", "--help"])
    assert done.exit_code == 0 and "forge.time_multiple=10.0" in done.output and "forge.enabled" not in done.output


def test_data_run_forges_between_filter_and_verify_and_shows_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problems("in.jsonl", [problem(title="Largest number")])
    (tmp_path / "data.toml").write_text(
        '[[collect.sources]]\npath = "in.jsonl"\n[difficulty]\nby = "none"\n'
        "[forge]\nenabled = true\ntests = 6\ncandidates = 48\n[output]\nworkers = 1\n[judge]\nworkers = 1\n"
    )
    done = CliRunner().invoke(cli, ["data", "run", "data.toml"])
    assert done.exit_code == 0, done.output
    places = [done.output.index(step) for step in ("filter/2-duplicates", "forge/1-tests", "verify/1-run")]
    assert places == sorted(places)
    (kept,) = load_problems("out/dataset/problems.parquet")
    assert len(kept.tests) > 3 and kept.extra["forge"]["bounded_by"] == "constraints"
    shown = CliRunner().invoke(cli, ["data", "show", "out", "--id", kept.id]).output
    assert "forge: inputs by constraints" in shown
    report = (tmp_path / "out" / "report.html").read_text()
    assert "The test forge" in report and "mutants that live" in report
    again = CliRunner().invoke(cli, ["data", "run", "data.toml"])
    assert "forge/1-tests: 1 of 1 kept (done before)" in again.output
