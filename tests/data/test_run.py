"""`microcoder data` from the command line: a file of problems in, a training set and a report out."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from click.testing import CliRunner

import microcoder as mc
from microcoder.cli import cli
from microcoder.config import load, load_as
from microcoder.config.layers import shipped
from microcoder.data import steps
from microcoder.data.collection import read
from microcoder.data.dataset import Dataset
from microcoder.data.endpoint import Endpoint
from microcoder.data.parts import write_json, write_part
from microcoder.data.process import language
from microcoder.data.record import DataError, Dropped, Record
from microcoder.data.report import EXAMPLES, page
from microcoder.data.settings import Pipeline, Source
from microcoder.files import read_problems, write_problems
from microcoder.runs.disk import full_disk, release_lock, take_lock
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


def test_the_end_says_how_many_problems_have_no_solution_to_check_their_tests_by(made, tmp_path):
    assert "unverified" not in made[1].output
    bare = [replace(summing(0, "even", "x % 2 == 0"), solutions=[]), summing(1, "odd", "x % 2")]
    write_problems(tmp_path / "problems.jsonl", bare)
    sources = f'collect.sources = [{{path = "{tmp_path / "problems.jsonl"}"}}]'
    (tmp_path / "data.toml").write_text(f'{sources}\noutput = {{folder = "{tmp_path / "out"}", workers = 1}}')
    said = run("run", tmp_path / "data.toml", "difficulty.by=none", "verify.mutants=0", "filter.similarity=1").output
    assert "unverified  1 have no solution to check their tests by; 'data.refuse=[\"unverified\"]'" in said


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
        (["run", "{folder}/data.toml", "filter.after=2023-13"], "filter.after is '2023-13', and there is no such day"),
        (["run", "{folder}/data.toml", "collect.sources=[{path='{folder}/problems.jsonl', ids='9-1'}]"], "ids = '9-1'"),
        (["run", "{folder}/data.toml", "collect.sources=[{path='{folder}/problems.jsonl', read='mbp'}]"], "'mbpp'"),
        (
            ["run", "{folder}/data.toml", "filter.evaluation=[{path='{folder}/problems.jsonl', ids='9-1'}]"],
            "ids = '9-1'",
        ),
        (["run", "{folder}/data.toml", "collect.sources=[{path='{folder}'}]"], "inside of the source"),
        (["run", "{folder}/data.toml", "difficulty.by=auto", "difficulty.target={esy=1}"], "such as {easy = 0.2"),
        (["report", "{folder}/out", "-o", "{folder}/none/report.html"], "cannot write"),
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
    assert all((folder / "out" / step / "done.json").exists() for step in ("collect/1-read", "verify/1-run"))


def test_what_cannot_be_written_ends_the_run_with_a_direction(made, tmp_path, monkeypatch):
    folder, _ = made
    words = [folder / "data.toml", f"output.folder={tmp_path}", "verify.mutants=0"]
    (tmp_path / "dataset/problems.parquet").mkdir(parents=True)
    ended = run("run", *words)
    assert ended.exit_code == 2 and "cannot write" in ended.output and "problems.parquet" in ended.output

    def full(path, data):
        raise full_disk(path) from OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("microcoder.data.parts.write_whole", full)
    ended = run("run", *words, "process.most_tests=3")
    assert ended.exit_code == 2 and "No space left" in ended.output and "the same command goes on" in ended.output
    assert "--resume" not in ended.output


def test_two_runs_do_not_work_in_one_folder(made):
    folder, _ = made
    lock = take_lock(folder / "out")
    try:
        other = run("run", folder / "data.toml", "process.most_tests=3")
    finally:
        release_lock(lock)
    assert other.exit_code == 2 and "is in use by process" in other.output and "output.folder=" in other.output
    assert run("run", folder / "data.toml").exit_code == 0


def test_a_worker_that_is_killed_ends_the_run_with_a_direction(made, tmp_path, monkeypatch):
    folder, _ = made
    monkeypatch.setattr("microcoder.data.collection.collect_one", killed)
    ended = run("run", folder / "data.toml", f"output.folder={tmp_path}")
    assert ended.exit_code == 2 and "output.workers=1" in ended.output


def killed(folder, limit, job):
    os.kill(os.getpid(), signal.SIGKILL)


def test_half_a_surrogate_pair_in_a_drop_can_be_reported(tmp_path):
    folder = tmp_path / "process/1-clean"
    counts = write_part(folder, "00-00000", [(Record(Problem("a", statement="half \ud83d")), Dropped("broken_text"))])
    write_json(folder / "done.json", {**counts.to_dict(), "seconds": 1.0})
    assert run("report", tmp_path).exit_code == 0
    assert "half \\ud83d" in (tmp_path / "report.html").read_text()


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


@pytest.mark.long
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
    slash = f"output.folder={folder / 'out'}/"
    tried = run("run", folder / "data.toml", slash, "--only", "filter", "--limit", "2")
    assert tried.exit_code == 0 and "filter is done" in tried.output
    assert "filter/2-duplicates: 2 of 2 kept" in tried.output and "verify" not in tried.output
    assert (folder / "out-limit-2/filter").exists() and not (folder / "out-limit-2/dataset").exists()
    assert (folder / "out/verify/1-run/done.json").stat().st_mtime_ns == before


def test_what_somebody_else_has_in_the_output_folder_is_neither_removed_nor_written_over(made, tmp_path):
    folder, _ = made
    for name in ("filter/mine/notes.txt", "process/1-clean/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    refused = run("run", folder / "data.toml", f"output.folder={tmp_path}")
    assert refused.exit_code == 2 and "name another folder" in refused.output
    (tmp_path / "process/1-clean/notes.txt").unlink()
    assert run("run", folder / "data.toml", f"output.folder={tmp_path}", "verify.mutants=0").exit_code == 0
    assert (tmp_path / "filter/mine/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("cut.jsonl", '{"id": "a", "tests": [{"input": "1"', "cut.jsonl:1"),
        ("half.jsonl", '{"id": "a", "tests": [{"input": "", "output": ""}]}\nno JSON\n', "half.jsonl:2"),
        ("packed.jsonl.gz", "this was never packed", "cannot be read"),
        ("none.jsonl", "", "it is empty"),
    ],
)
def test_an_evaluation_set_that_cannot_be_read_ends_the_run(made, tmp_path, name, text, words):
    folder, _ = made
    (tmp_path / name).write_text(text)
    evaluation = f"filter.evaluation=[{{path = '{tmp_path / name}'}}]"
    ended = run("run", folder / "data.toml", f"output.folder={tmp_path / 'out'}", evaluation)
    assert ended.exit_code != 0 and words in ended.output and "Traceback" not in ended.output


def test_problems_of_two_sources_with_the_same_ids_are_told_apart(tmp_path):
    for n, what in enumerate(("divisible by three", "odd, counted only where the element is also negative")):
        test = ("x % 3 == 0", "x % 2 and x < 0")[n]
        write_problems(tmp_path / f"{n}.jsonl", [replace(summing(1, what, test), id="1")])
    (tmp_path / "data.toml").write_text(
        "".join(f"[[collect.sources]]\npath = '{tmp_path / f'{n}.jsonl'}'\n" for n in range(2))
    )
    made = run("run", tmp_path / "data.toml", f"output.folder={tmp_path / 'out'}", "filter.licences=[]")
    assert made.exit_code == 0, made.output
    found = list(read_problems(tmp_path / "out/dataset/problems.parquet"))
    assert [problem.id for problem in found] == ["1", "1#2"]
    assert "collect: the id was 1, which another source has too" in found[1].lineage


# the library: what the command prints can be had as values


def test_build_dataset_gives_problems_drops_with_reasons_a_report_and_paths(made):
    folder, _ = made
    dataset = mc.build_dataset(folder / "data.toml")
    assert sorted(problem.id for problem in dataset.problems) == ["own/0", "own/1", "own/2"] and len(dataset) == 3
    reasons = {drop.problem.id: (drop.reason, drop.step) for drop in dataset.dropped}
    assert reasons["own/3"] == ("duplicate", "filter/2-duplicates")
    assert reasons["own/4"] == ("reference_fails", "verify/1-run") and "own/0" in dataset.dropped[-2].detail
    assert dataset.report[0]["step"] == "collect/1-read" and dataset.report[0]["dropped"] == {"unreadable_row": 1}
    assert dataset.report[-1]["kept"] == 3 and dataset.reasons.total() == len(dataset.dropped) == 4
    assert set(dataset.paths) == {"problems", "trl", "verl", "card", "report"} and dataset.finished
    assert [problem.id for problem in read_problems(dataset.paths["problems"])] == ["own/0", "own/1", "own/2"]


def test_build_dataset_takes_settings_as_names_and_values_and_can_stop_early(made, tmp_path):
    folder, _ = made
    changes = {"output.folder": str(tmp_path / "out"), "filter.licences": ["MIT"]}
    dataset = mc.build_dataset(folder / "data.toml", "verify.mutants=0", only="filter", **changes)
    assert [problem.id for problem in dataset.problems] == ["own/1", "own/3"]
    assert not dataset.finished and dataset.paths == {}
    with pytest.raises(DataError, match="the stages are collect, process, filter, forge, verify"):
        mc.build_dataset(folder / "data.toml", only="filters")


def test_a_folder_without_a_finished_step_is_no_dataset(tmp_path):
    with pytest.raises(DataError, match="microcoder data run"):
        Dataset(tmp_path)


# settings that cannot work: refused before any step


@pytest.fixture
def unlabelled(tmp_path):
    """A file of settings for problems without labels."""
    problems = [replace(problem, difficulty="") for problem in starter("train", 30)]
    write_problems(tmp_path / "problems.jsonl", problems)
    (tmp_path / "data.toml").write_text(f"""
        [[collect.sources]]
        path = "{tmp_path / "problems.jsonl"}"
        [difficulty]
        target = {{easy = 0.2, medium = 0.4, hard = 0.4}}
        [output]
        folder = "{tmp_path / "out"}"
        workers = 1
        """)
    return tmp_path


def test_a_target_without_labels_is_refused_before_any_step_and_the_message_says_what_to_do(unlabelled):
    result = run("run", unlabelled / "data.toml")
    assert result.exit_code == 2 and "difficulty.target needs difficulty scores" in result.output
    for way in ("Found: none at all", "difficulty.predictor=", "difficulty.by=endpoint", "remove difficulty.target"):
        assert way in result.output
    assert not (unlabelled / "out").exists()


def test_without_a_target_the_run_goes_on_and_says_that_nothing_is_scored(unlabelled):
    text = (unlabelled / "data.toml").read_text()
    (unlabelled / "data.toml").write_text(text.replace("target = ", "# "))
    result = run("run", unlabelled / "data.toml", "verify.mutants=0")
    assert result.exit_code == 0 and "too few problems have a difficulty label" in result.output


def test_labels_do_not_matter_to_stages_before_the_filter(unlabelled):
    result = run("run", unlabelled / "data.toml", "--only", "collect")
    assert result.exit_code == 0 and "collect is done" in result.output


def test_a_few_of_many_labels_are_found_without_reading_on(unlabelled, monkeypatch):
    write_problems(unlabelled / "problems.jsonl", starter("train", 150))
    taken = []
    real = steps.read
    monkeypatch.setattr(steps, "read", lambda *words: (taken.append(one) or one for one in real(*words)))
    steps.check(load_as(Pipeline, unlabelled / "data.toml"))
    assert 30 <= len(taken) < 150


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("difficulty.predictor=gone.json", "cannot read the predictor gone.json"),
        ("filter.evaluation=[{path='gone.jsonl'}]", "no file or folder gone.jsonl"),
    ],
)
def test_a_file_that_is_not_there_is_missed_before_any_step(unlabelled, setting, said):
    result = run("run", unlabelled / "data.toml", setting)
    assert result.exit_code == 2 and said in result.output and not (unlabelled / "out").exists()


def test_an_endpoint_scores_problems_without_labels(unlabelled):
    settings = load_as(Pipeline, unlabelled / "data.toml", ["difficulty.by=endpoint", "endpoint.base_url=http://x"])
    steps.check(settings)
    (difficulty,) = [step for step in steps.steps_for(settings, unlabelled) if step.name == "4-difficulty"]
    assert not difficulty.options["needed"]


# what the command says


@pytest.mark.parametrize("text", [None, "[[collect.sources"])
def test_a_data_file_that_cannot_be_read_is_explained_by_an_example(tmp_path, text):
    if text is not None:
        (tmp_path / "data.toml").write_text(text)
    result = run("run", tmp_path / "data.toml")
    assert result.exit_code == 2 and '[[collect.sources]]\npath = "mbpp.jsonl"' in result.output
    assert "microcoder data config" in result.output and "microcoder config" not in result.output


def test_the_command_to_train_with_fits_the_problems(made):
    folder, _ = made
    said = run("run", folder / "data.toml").output
    command = next(line for line in said.splitlines() if "microcoder train" in line)
    name, setting = command.partition("microcoder train ")[2].split()
    config = load(shipped()[name], [setting])
    assert config.model.name not in ("nano", "smollm2-135m") and config.data.test != "starter"
    assert config.train.max_response_tokens >= 1024
    assert len(list(read_problems(config.data.train))) == 3


# the report


def page_of(tmp_path, *sources, **settings):
    blocks = "\n".join(f"[[collect.sources]]\n{source}" for source in sources)
    (tmp_path / "data.toml").write_text(f'{blocks}\n[output]\nfolder = "{tmp_path / "out"}"\nworkers = 1')
    mc.build_dataset(tmp_path / "data.toml", **{"difficulty.by": "none", "verify.mutants": 0, **settings})
    text = (tmp_path / "out/report.html").read_text()
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", text)
    return text, [row.split("</td><td>") for row in rows]


@pytest.fixture
def two_files(tmp_path):
    """Two files of MBPP's layout, the second with a line that cannot be read."""
    for name, numbers in {"old.jsonl": range(1, 9), "new.jsonl": range(20, 26)}.items():
        with open(tmp_path / name, "w") as file:
            for n in numbers:
                code = f"def times(a, b):\n    c = a * b\n    return c + {n}"
                task = {"task_id": n, "text": f"Write a function to multiply two numbers and add {n}.", "code": code}
                calls = [f"assert times({a}, {n}) == {a * n + n}" for a in (2, 3, 5)]
                file.write(json.dumps({**task, "test_list": calls}) + "\n")
    with open(tmp_path / "new.jsonl", "a") as file:
        file.write("no JSON\n")
    return tmp_path


def test_two_files_of_one_layout_have_a_row_each_in_the_report(two_files):
    sources = [f'path = "{two_files / name}.jsonl"' for name in ("old", "new")]
    _, rows = page_of(two_files, *sources, **{"filter.similarity": 1.0})
    seen = {row[0]: row[1] for row in rows if len(row) == 5}  # source, seen, kept, share, dropped
    assert seen == {"mbpp (old.jsonl)": "8", "mbpp (new.jsonl)": "7"}  # the line that cannot be read among them


def test_two_files_that_were_given_one_name_stay_together_in_the_report(two_files):
    sources = [f'path = "{two_files / name}.jsonl"\nname = "ours"' for name in ("old", "new")]
    _, rows = page_of(two_files, *sources, **{"filter.similarity": 1.0})
    assert {row[0]: row[1] for row in rows if len(row) == 5} == {"ours": "15"}


def test_problems_outside_of_ids_are_no_drops(two_files):
    text, rows = page_of(two_files, f'path = "{two_files / "old.jsonl"}"\nids = "3-5"', **{"filter.similarity": 1.0})
    dataset = Dataset(two_files / "out")
    assert "of 3 problems are kept" in text and "Another 5 are outside of `ids`" in text
    assert "outside_ids" not in text and dataset.report[0]["seen"] == 3 and not dataset.reasons["outside_ids"]
    assert ["mbpp", "3"] in [row[:2] for row in rows]
    shown = run("show", two_files / "out", "--dropped", "outside_ids", "-n", "9")
    assert shown.exit_code == 0 and shown.output.count("dropped by collect/1-read") == 5


def test_ids_of_leetcode_are_its_own_numbers_not_numbers_in_a_title(tmp_path):
    task = {"completion": "def f(x):\n    return x", "entry_point": "f", "test": "def check(f):\n    assert f(1) == 1"}
    rows = [("two-sum", {"question_id": 1}), ("base-7", {"question_id": 504}), ("sqrtx", {}), ("base-9", {})]
    lines = [json.dumps({"task_id": slug, "query": "Do it.", **task, **number}) for slug, number in rows]
    (tmp_path / "leetcode.jsonl").write_text("\n".join(lines))
    found = read(Source(path=str(tmp_path / "leetcode.jsonl"), ids="1-16"), "leetcode")
    assert [one.problem.title for one in found if isinstance(one, Record)] == ["Two Sum", "Base 9"]


def test_examples_of_drops_are_a_sample_that_is_always_the_same(tmp_path):
    def drop(numbers):
        folder = tmp_path / f"{numbers[0]}/process/1-clean"
        losses = [(Record(Problem(f"made/{n}", statement="Add.")), Dropped("bad", f"number {n}")) for n in numbers]
        write_part(folder, "00-00000", losses[:50])
        write_part(folder, "00-00001", losses[50:])
        write_json(folder / "done.json", {"kept": 0, "dropped": {"bad": len(losses)}, "seconds": 1.0})
        return [int(n) for n in re.findall(r"<code>made/(\d+)</code>", page(tmp_path / str(numbers[0])))]

    forward, backward = drop(list(range(100))), drop(list(range(99, -1, -1)))
    assert forward == backward and len(forward) == EXAMPLES and forward != list(range(EXAMPLES))


def test_the_report_counts_the_marks_by_which_training_refuses_problems(tmp_path):
    folder = tmp_path / "verify/1-run"
    tags = [["unverified"], ["many_answers"], ["many_answers", "graphs"], []]
    write_part(folder, "00-00000", [Record(Problem(f"made/{n}", tags=found)) for n, found in enumerate(tags)])
    write_json(folder / "done.json", {"kept": 4, "dropped": {}, "seconds": 1.0})
    text = page(tmp_path)
    assert "<td>unverified</td><td>1</td>" in text and "<td>many_answers</td><td>2</td>" in text
    assert "graphs" not in text


def test_a_script_calls_the_library_without_a_guard(tmp_path):
    write_problems(tmp_path / "p.jsonl", [summing(0, "odd", "x % 2")])
    (tmp_path / "data.toml").write_text('[[collect.sources]]\npath = "p.jsonl"\n')
    script = tmp_path / "script.py"
    call = 'mc.build_dataset("data.toml", "output.folder=\\"out\\"", only="collect")'
    script.write_text(f"import microcoder as mc\nprint(len({call}.problems))\n")
    ended = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("1\n", "")
