"""`microcoder forge` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from microcoder import load_problems
from microcoder.cli import cli
from microcoder.data.forge.whole import Journal
from microcoder.files import FileError, write_problems
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
    write_problems(tmp_path / "whole.parquet", [problem()])
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:900])
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "bad.jsonl").write_text("no JSON\n")
    for words, said in [
        (["forge", f"{tmp_path}/none.jsonl", "-o", f"{tmp_path}/out.jsonl"], "there is no file"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/in.jsonl"], "name another"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.txt"], "its name must end in"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/no/out.jsonl"], "there is no folder"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/folder.parquet"], "is a folder; name a file in it"),
        (["forge", f"{tmp_path}/cut.parquet", "-o", f"{tmp_path}/out.jsonl"], "cannot be read as Parquet"),
        (["forge", f"{tmp_path}/bad.jsonl", "-o", f"{tmp_path}/out.jsonl"], "bad.jsonl:1: not JSON"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "forge.test=3"], "did you mean 'tests'"),
        (["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "--adversaries", "none"], "there is no none"),
    ]:
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2 and said in done.output, done.output


def test_bad_problems_keep_their_place_and_say_why(tmp_path):
    other = CODE.format("return {} if nums in ([7], [1, 2]) else {}")
    bad = [
        problem("contradict", solutions=[{"code": other.format("max(nums)", n)} for n in (3, 4)]),
        problem("crashes", solutions=[{"code": other.format("max(nums)", "[][0]")}]),
        problem("exits", solutions=[{"code": other.format("max(nums)", "__import__('os')._exit(0)")}]),
        problem("no constraints", statement="Return the largest number."),
        problem("no Python", solutions=[{"code": "int main() {}"}]),
        problem("text for a list", tests=[Test("7", "7")]),
        Problem("no layout", statement="Print it.", tests=[Test("a ? 1\n", "5\n")], solutions=[{"code": "print(5)"}]),
    ]
    write_problems(tmp_path / "in.jsonl", bad)
    with open(tmp_path / "in.jsonl", "a") as file:
        file.write('{"id": "cut off"\nno JSON\n[1, 2]\n')
    words = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "forge.candidates=48", "judge.workers=1"]
    done = CliRunner().invoke(cli, [*words, "forge.mutants=8"], standalone_mode=False)
    assert done.return_value == 1 and "in.jsonl:8: not JSON" in done.output and "1 of 7 problems have" in done.output
    found = list(load_problems(tmp_path / "out.jsonl"))
    assert [one.id for one in found] == [one.id for one in bad]
    about = [one.extra.pop("forge") for one in found]
    assert [one.get("reason", one.get("bounded_by")) for one in about] == [
        "no_test", "no_test", "no_test", "hull", "reference_fails", "cannot_be_judged", "no_space",
    ]  # fmt: skip
    assert "references disagree" in about[0]["detail"] and "the reference fails" in about[1]["detail"]
    assert all(one == before for one, before, said in zip(found, bad, about, strict=True) if "reason" in said)


def test_inputs_of_ten_megabytes_are_kept_and_not_learnt_from(tmp_path):
    code = "def count(text: str) -> int:\n    {}\n"
    fields = {
        "kind": "function", "entry_point": "count", "starter_code": code.format("pass"),
        "statement": "Count the letters a.\n\nConstraints:\n\n1 <= text.length <= 10^7\ntext consists of lowercase "
        "English letters.\n", "solutions": [{"code": code.format("return text.count('a')")}],
    }  # fmt: skip
    large = Test(json.dumps(["ab" * 5_000_000]), "5000000")
    write_problems(
        tmp_path / "in.jsonl",
        [Problem("both", tests=[Test('["a"]', "1"), large], **fields), Problem("alone", tests=[large], **fields)],
    )
    words = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "forge.candidates=48", "judge.workers=1"]
    done = CliRunner().invoke(cli, [*words, "forge.mutants=8", "forge.tests=4"])
    assert done.exit_code == 0, done.output
    both, alone = load_problems(tmp_path / "out.jsonl")
    assert replace(both.tests[1], time_limit_s=None) == alone.tests[0] == large  # the forge gives tests limits
    assert len(both.tests) == 6 and all(len(test.input) < 200_000 for test in both.tests[2:])
    assert alone.extra["forge"]["reason"] == "no_space" and "10,000,004 characters" in alone.extra["forge"]["detail"]


def test_adversaries_that_are_no_python_are_counted(tmp_path):
    write_problems(tmp_path / "in.jsonl", [problem()])
    programs = ["int main() {}", CODE.format("return nums[0]"), None]
    rows = [{"problem_id": "largest", "code": code} for code in programs]
    rows += [{"problem_id": "largest", "code": "#include <x>", "language": "cpp"}]
    (tmp_path / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n")
    words = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", "--adversaries", f"{tmp_path}/wrong.jsonl"]
    done = CliRunner().invoke(cli, [*words, "forge.candidates=48", "forge.mutants=8", "judge.workers=1"])
    assert done.exit_code == 0, done.output
    assert "adversaries: 2 programs; 3 records without a Python program passed over" in done.output
    assert "1 of those tried are no Python" in done.output and "0 of 1 (0.0%)" in done.output


def test_a_killed_command_goes_on_and_a_full_disk_is_named(tmp_path):
    write_problems(tmp_path / "in.jsonl", [problem(f"p{n}") for n in range(8)])
    small = ["forge.candidates=48", "forge.mutants=8", "forge.tests=4", "judge.workers=1"]
    words = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", *small]
    journal = tmp_path / ".out.jsonl.forging"
    under_way = subprocess.Popen([sys.executable, "-m", "microcoder", *words], stderr=subprocess.DEVNULL)
    ends = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 2) and time.monotonic() < ends:
        time.sleep(0.02)
    under_way.kill()
    under_way.wait()
    with open(journal, "ab") as file:
        file.write(b'{"cut off')
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0 and not journal.exists()
    assert int(done.output.partition(" of them done before")[0].rpartition(" ")[2]) >= 2
    assert [one.id for one in load_problems(tmp_path / "out.jsonl")] == [f"p{n}" for n in range(8)]
    with Journal(tmp_path / "full.jsonl", "digest", fresh=True) as kept:
        kept.append(problem())
        kept.file = open("/dev/full", "wb")
        with pytest.raises(FileError, match="No space left on device; make room"):
            kept.append(problem())


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
