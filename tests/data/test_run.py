"""`microcoder data` from the command line: a file of problems in, a training set and a report out."""

from __future__ import annotations

import json
import sys
from functools import partial

import pytest
from click.testing import CliRunner

from microcoder.cli import cli
from microcoder.data.endpoint import Endpoint
from microcoder.data.process import language
from microcoder.files import read_problems, write_problems
from microcoder.schema import Problem, Test
from microcoder.starter import problems as starter

SUMS = """Given a list of integers `numbers`, return the sum of all those that are {what}.

The list has at most 1000 elements, each between -1000 and 1000. An empty list gives 0."""


def summing(n, what, test):
    """A problem with a right and a wrong solution."""
    loop = f"for x in numbers:\n        if {test}:\n            found += x"
    code = f"def total(numbers):\n    found = 0\n    {loop}\n    return found"
    wrong = "def total(numbers):\n    return sum(numbers)"
    lists = [[], [1], [2, 3, 4], [-5, 6, 7, 0], [9, 9, 12, -3], list(range(-20, 40)), [100, -100, 55, 5, 15]]
    scope: dict = {}
    exec(code, scope)
    return Problem(
        f"own/{n}",
        "function",
        statement=SUMS.format(what=what),
        entry_point="total",
        starter_code="def total(numbers: list[int]) -> int:",
        tests=[Test(json.dumps([numbers]), json.dumps(scope["total"](numbers))) for numbers in lists],
        difficulty=("easy", "medium", "hard")[n % 3],
        licence="MIT" if n % 2 else "unclear",
        solutions=[{"code": code, "language": "python", "verdict": "accepted"},
                   {"code": wrong, "language": "python", "verdict": "wrong_answer"}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(the folder, what the command said)."""
    folder = tmp_path_factory.mktemp("data")
    good = [
        summing(0, "divisible by three", "x % 3 == 0"),
        summing(1, "greater than the number of elements of the list", "x > len(numbers)"),
        summing(2, "odd, counted only where the element is also negative", "x % 2 and x < 0"),
    ]
    twin, failing = summing(3, "divisible by three", "x % 3 == 0"), summing(4, "even", "x % 2 == 0")
    silent = summing(5, "prime", "x > 1 and all(x % y for y in range(2, x))")
    failing.tests[2].output, silent.statement = "999", ""
    write_problems(folder / "problems.jsonl", [*good, twin, failing, silent])
    with open(folder / "problems.jsonl", "a") as file:
        file.write("this is not JSON\n")
    (folder / "data.toml").write_text(f"""
        [[collect.sources]]
        path = "{folder / "problems.jsonl"}"
        [output]
        folder = "{folder / "out"}"
        workers = 1
        [difficulty]
        by = "none"
        [verify]
        mutants = 8
        [judge]
        workers = 2
        """)
    result = run("run", folder / "data.toml")
    assert result.exit_code == 0, result.output
    return folder, result


def run(*words):
    return CliRunner().invoke(cli, ["data", *map(str, words)])


def test_every_problem_that_is_left_was_verified_and_every_other_has_its_reason(made):
    folder, result = made
    kept = {problem.id for problem in read_problems(folder / "out/dataset/problems.parquet")}
    assert kept == {"own/0", "own/1", "own/2"}
    for words in ("unreadable_row 1", "duplicate 1", "missing_statement 1", "reference_fails 1"):
        assert words in result.output


def test_run_again_it_does_nothing_again_and_says_so(made):
    folder, _ = made
    again = run("run", folder / "data.toml")
    assert again.exit_code == 0 and again.output.count("done before") == again.output.count(" kept (")


def test_another_setting_for_verify_runs_only_verify_again(made):
    folder, _ = made
    other = run("run", folder / "data.toml", "verify.mutants=0")
    lines = [line for line in other.output.splitlines() if " kept (" in line]
    assert [line.partition(":")[0] for line in lines if "done before" not in line] == ["verify/1-run"]
    run("run", folder / "data.toml")


def test_show_prints_what_was_dropped_and_why(made):
    folder, _ = made
    shown = run("show", folder / "out", "--dropped", "reference_fails")
    assert shown.exit_code == 0 and "own/4" in shown.output and "999" in shown.output
    one = run("show", folder / "out", "--id", "own/3")
    assert "duplicate" in one.output and "own/0" in one.output
    wrong = run("show", folder / "out", "--dropped", "reference_fail")
    assert wrong.exit_code == 2 and "did you mean 'reference_fails'" in wrong.output


def test_the_report_names_every_reason(made):
    folder, _ = made
    assert run("report", folder / "out").exit_code == 0
    text = (folder / "out/report.html").read_text()
    assert "reference_fails" in text and "unreadable_row" in text and "<svg" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "none.toml"], "cannot read none.toml"),
        (["run", "{folder}/data.toml", "verify.mutant=3"], "did you mean 'mutants'"),
        (["run", "{folder}/data.toml", "collect.sources=[]"], "names no sources"),
        (["run", "{folder}/data.toml", "filter.after=yesterday"], "filter.after is"),
        (["run", "{folder}/data.toml", "collect.sources=[{path='gone.jsonl'}]"], "no file or folder gone.jsonl"),
        (["run", "{folder}/data.toml", "difficulty.by=predictor"], "a predictor learns from the labels"),
        (["run", "{folder}/data.toml", "difficulty.target={easy=0.5}"], "difficulty.by is none"),
        (["run", "{folder}/data.toml", "difficulty.by=endpoint"], "set endpoint.base_url"),
        (["run", "{folder}/data.toml", "output.folder={folder}/data.toml"], "Not a directory"),
        (["report", "{folder}"], "no finished step"),
    ],
)
def test_wrong_input_gives_a_direction(made, words, said):
    folder, _ = made
    result = run(*[word.replace("{folder}", str(folder)) for word in words])
    assert result.exit_code == 2 and said in result.output
    assert (folder / "out/verify/1-run/done.json").exists()


# each of these once turned every record into a drop called `failed`, and the run into a success


def test_a_package_that_is_missing_ends_the_run_and_drops_nothing(made, tmp_path, monkeypatch):
    folder, _ = made
    language._identifier.cache_clear()
    language.language_of.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    result = run("run", folder / "data.toml", f"output.folder={tmp_path}")
    assert result.exit_code == 2 and "pip install 'microcoder[data]'" in result.output
    assert not list(tmp_path.glob("process/*/dropped/0*"))


def test_an_endpoint_that_cannot_be_reached_ends_the_run(made, tmp_path, monkeypatch):
    folder, _ = made
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("microcoder.data.endpoint.Endpoint", partial(Endpoint, max_retries=0, timeout_s=1.0))
    asked = ["endpoint.base_url=http://127.0.0.1:9", "endpoint.model=m"]
    result = run("run", folder / "data.toml", f"output.folder={tmp_path}", *asked)
    assert result.exit_code == 2 and "127.0.0.1:9" in result.output


def test_without_labels_difficulty_is_left_out_unless_it_was_asked_for(made, tmp_path):
    folder, _ = made
    result = run("run", folder / "data.toml", f"output.folder={tmp_path}", "difficulty.by=auto", "verify.mutants=0")
    assert result.exit_code == 0 and "filter/4-difficulty: 4 of 4 kept" in result.output


def test_a_step_that_the_settings_no_longer_have_is_no_longer_in_the_report(made, tmp_path):
    folder, _ = made
    words = [folder / "data.toml", f"output.folder={tmp_path}", "verify.mutants=0"]
    run("run", *words, "difficulty.by=auto")
    run("run", *words, "difficulty.by=none")
    assert "4-difficulty" not in (tmp_path / "report.html").read_text()


def test_how_many_judge_at_a_time_makes_nothing_anew(made):
    folder, _ = made
    again = run("run", folder / "data.toml", "judge.workers=1")
    assert again.output.count("done before") == again.output.count(" kept (")


def test_a_selection_by_difficulty_is_in_the_report_and_its_scores_can_be_trained_by(tmp_path):
    write_problems(tmp_path / "problems.jsonl", starter("train", 150))
    (tmp_path / "data.toml").write_text(f"""
        [[collect.sources]]
        path = "{tmp_path / "problems.jsonl"}"
        [verify]
        mutants = 0
        [output]
        workers = 1
        """)
    words = [f"output.folder={tmp_path / 'out'}", "difficulty.target={hard=1}", "difficulty.size=20"]
    result = run("run", tmp_path / "data.toml", *words)
    assert result.exit_code == 0, result.output
    kept = list(read_problems(tmp_path / "out/dataset/problems.parquet"))
    assert len(kept) == 20 and min(problem.difficulty_score for problem in kept) >= 2 / 3
    assert "Selection by difficulty" in (tmp_path / "out/report.html").read_text()


def test_config_prints_every_setting_and_takes_it_back(made, tmp_path):
    folder, _ = made
    (tmp_path / "all.toml").write_text(run("config", folder / "data.toml", "filter.overlap=0.3").output)
    assert run("config", tmp_path / "all.toml").output == (tmp_path / "all.toml").read_text()
    assert "overlap = 0.3" in (tmp_path / "all.toml").read_text()


def test_when_nothing_is_left_it_says_so_and_fails(made, tmp_path):
    folder, _ = made
    result = run("run", folder / "data.toml", f"output.folder={tmp_path}", "filter.licences=['none']")
    assert result.exit_code == 1 and "No problem is left" in result.output and "--dropped licence" in result.output
    assert "--dropped REASON" in run("show", tmp_path).output


def test_only_goes_no_further_and_a_limit_leaves_the_whole_run_alone(made, tmp_path):
    folder, _ = made
    before = (folder / "out/verify/1-run/done.json").stat().st_mtime_ns
    tried = run("run", folder / "data.toml", "--only", "filter", "--limit", "2")
    assert tried.exit_code == 0 and "filter is done" in tried.output
    assert "filter/2-duplicates: 2 of 2 kept" in tried.output and "verify" not in tried.output
    assert not (folder / "out-limit-2/dataset").exists()
    assert (folder / "out/verify/1-run/done.json").stat().st_mtime_ns == before


def test_what_somebody_else_has_in_the_output_folder_is_neither_removed_nor_written_over(made, tmp_path):
    folder, _ = made
    for name in ("filter/mine/notes.txt", "process/1-clean/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    refused = run("run", folder / "data.toml", f"output.folder={tmp_path}")
    assert refused.exit_code == 2 and "name another place" in refused.output
    (tmp_path / "process/1-clean/notes.txt").unlink()
    assert run("run", folder / "data.toml", f"output.folder={tmp_path}", "verify.mutants=0").exit_code == 0
    assert (tmp_path / "filter/mine/notes.txt").read_text() == "mine"
