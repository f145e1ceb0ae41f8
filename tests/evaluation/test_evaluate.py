"""`microcoder eval` as users type it: real samples of nano, the real judge, real kills."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import chdir
from types import SimpleNamespace

import pytest
from chat_server import chat_server, completion
from livecodebench_files import write_release

import microcoder as mc
from microcoder.cli import main
from microcoder.config import load, to_toml
from microcoder.evaluation.catalog import load_suite
from microcoder.evaluation.folder import read_samples, read_scores, slug
from microcoder.evaluation.harness import prepare
from microcoder.evaluation.suite import EvaluationError
from microcoder.files import write_problems
from microcoder.schema import Problem
from microcoder.starter import problems
from microcoder.view.library import Library
from microcoder.view.questions import Questions

COMMAND = [sys.executable, "-m", "microcoder.cli", "eval"]
NANO = ("-n", "2", "--temperature", "0.8", "--limit", "48,96", "judge.workers=2", "rollout.batch=8")
RIGHT, WRONG = "```python\ndef f(x):\n    return x + 1\n```", "```python\ndef f(x):\n    return x\n```"
PROBLEM = {"kind": "function", "statement": "Add one.", "entry_point": "f", "tests": [{"input": "[1]", "output": "2"}]}


def evaluated(*words):
    """Exit status, stdout, stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(["eval", *map(str, words)])
    return SimpleNamespace(code=ended.value.code or 0, out=out.getvalue(), err=err.getvalue())


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    path = tmp_path_factory.mktemp("starter") / "starter.jsonl"
    write_problems(path, problems("test", 12, seed=0))
    return path


@pytest.fixture(scope="module")
def whole(starter, one_thread):
    """A bench of nano that was never stopped."""
    folder = starter.parent / "whole"
    found = evaluated("nano", "--suite", starter, *NANO, "-o", folder)
    assert found.code == 0, found.err
    return SimpleNamespace(folder=folder, out=found.out)


@pytest.fixture
def tiny(tmp_path):
    """Three problems, and files of completions for them."""
    path = tmp_path / "tiny.jsonl"
    path.write_text("".join(json.dumps({"id": name, **PROBLEM}) + "\n" for name in "abc"))

    def completions(name, **texts):
        file = tmp_path / f"{name}.jsonl"
        lines = [{"problem_id": i, "completion": text} for i, each in texts.items() for text in each]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    return SimpleNamespace(path=path, completions=completions, folder=tmp_path)


def test_a_model_is_scored_under_every_limit_and_both_policies(whole):
    result = json.loads((whole.folder / "scores.json").read_text())
    assert list(result["scores"]) == ["48", "96"]
    for limit in ("48", "96"):
        found = result["scores"][limit]
        assert found["tries"] == 24 and found["internal_errors"] == 0
        assert sum(found["robust"]["verdicts"].values()) == sum(found["exact"]["verdicts"].values()) == 24
    assert result["scores"]["48"]["truncated_share"] > result["scores"]["96"]["truncated_share"]
    assert result["scores"]["48"]["robust"]["accuracy"] <= result["scores"]["96"]["robust"]["accuracy"] > 0
    assert "nano on" in whole.out and "12 problems" in whole.out
    assert (whole.folder / "report.md").read_text().startswith("#")
    assert "\\begin{tabular}" in (whole.folder / "table.tex").read_text()


def test_a_smaller_limit_leaves_the_beginning_of_what_the_largest_left(whole):
    cut = [sample for sample in read_samples(whole.folder / "samples.jsonl") if sample.tokens > 48]
    assert cut
    for sample in cut:
        assert 0 < sample.cuts["48"] <= len(sample.text) and len(sample.ids) == sample.tokens <= 96


@pytest.mark.long
def test_a_bench_that_was_killed_ends_like_one_that_was_not(starter, whole, tmp_path):
    folder, command = tmp_path / "killed", [*COMMAND, "nano", "--suite", str(starter), *NANO]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for count in (3, 13):
        process = subprocess.Popen([*command, "-o", str(folder)], env=environment, start_new_session=True)
        while process.poll() is None and _lines(folder / "samples.jsonl") < count:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with open(folder / "samples.jsonl", "ab") as file:
        file.write(b'{"problem_id": "torn')
    before = _lines(folder / "samples.jsonl")
    assert 3 <= before < 24
    ended = subprocess.run([*command, "-o", str(folder)], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0 and f"holds {before} of 24 samples" in ended.stderr
    for name in ("samples.jsonl", "verdicts.jsonl"):
        assert _records(folder / name) == _records(whole.folder / name)
    assert _lines(folder / "samples.jsonl") == 24
    scores = [json.loads((path / "scores.json").read_text())["scores"] for path in (folder, whole.folder)]
    assert scores[0] == scores[1]


def test_other_conditions_are_refused_and_nothing_is_lost(starter, whole):
    before = (whole.folder / "samples.jsonl").read_bytes()
    found = evaluated("nano", "--suite", starter, *NANO, "--seed", "1", "-o", whole.folder)
    assert found.code == 2 and "seed: 0 there, 1 now" in found.err and "--fresh" in found.err
    assert (whole.folder / "samples.jsonl").read_bytes() == before


def test_a_finished_bench_is_shown_again_and_run_again_without_work(starter, whole):
    assert evaluated("show", whole.folder).out == whole.out
    table = (whole.folder / "table.tex").read_text()
    assert evaluated("show", whole.folder, "--format", "latex").out.strip() == table.strip()
    stamp = (whole.folder / "samples.jsonl").stat().st_mtime_ns
    assert evaluated("nano", "--suite", starter, *NANO, "-o", whole.folder).out == whole.out
    assert (whole.folder / "samples.jsonl").stat().st_mtime_ns == stamp


def test_a_file_of_completions_is_scored(tiny):
    file = tiny.completions("mine", a=[RIGHT, WRONG], b=[RIGHT, RIGHT], c=["no code", "```python\ndef f(\n```"])
    found = evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out", "--format", "json")
    assert found.code == 0, found.err
    scores = json.loads(found.out)["scores"]["0"]
    assert scores["robust"]["accuracy"] == scores["exact"]["accuracy"] == 0.5
    assert scores["robust"]["pass_at_k"] == {"1": 0.5, "2": pytest.approx(2 / 3)}
    assert scores["robust"]["verdicts"] == {"accepted": 3, "wrong_answer": 1, "compile_error": 1, "no_code": 1}


def test_verdicts_under_other_limits_of_the_judge_are_never_mixed_and_a_changed_file_is_noticed(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT + "x" * 3_000_000 + RIGHT], c=[WRONG])
    words = ("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    assert evaluated(*words, "judge.workers=1").code == 0
    assert evaluated(*words, "judge.workers=2").code == 0  # which changes no verdict
    found = evaluated(*words, "judge.time_limit_s=1")
    assert found.code == 2 and "judge: " in found.err and "--fresh" in found.err
    file.write_text(file.read_text().replace("xxx", "yyy"))  # far from either end
    found = evaluated(*words)
    assert found.code == 2 and "weights: " in found.err


def test_a_folder_that_cannot_be_written_is_answered_with_directions(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[WRONG])
    found = evaluated("--completions", file, "--suite", tiny.path, "-o", file / "below")
    assert found.code == 2 and "name another folder with -o" in found.err


def test_what_leniency_changes_is_listed(tiny):
    pair = {**PROBLEM, "id": "p", "tests": [{"input": "[1]", "output": "[[1]]"}]}
    tiny.path.write_text(json.dumps(pair) + "\n")
    file = tiny.completions("mine", p=["```python\ndef f(x):\n    return [(x,)]\n```"])
    found = evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    scores = json.loads((tiny.folder / "out" / "scores.json").read_text())["scores"]["0"]
    assert (scores["robust"]["accuracy"], scores["exact"]["accuracy"]) == (1.0, 0.0)
    assert [case["id"] for case in scores["only_robust"]] == ["p#0"] and "p#0" in found.out
    assert "p#0" in (tiny.folder / "out" / "report.md").read_text()


def test_a_fault_of_the_judge_is_no_score_and_is_judged_again(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[WRONG])
    words = ("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    assert evaluated(*words).code == 0
    log = tiny.folder / "out" / "verdicts.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[0] |= {"verdict": "internal_error", "also": "internal_error"}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert evaluated(*words).code == 0
    assert json.loads((tiny.folder / "out" / "scores.json").read_text())["scores"]["0"]["internal_errors"] == 0
    assert len(log.read_text().splitlines()) == 4  # three as they were, and the one that was judged again


def test_two_benches_are_compared_problem_by_problem(tiny):
    for name, texts in (("before", [WRONG]), ("after", [RIGHT])):
        file = tiny.completions(name, a=texts, b=texts, c=[RIGHT])
        assert evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / f"{name}-out").code == 0
    pair = tiny.folder / "before-out", tiny.folder / "after-out"
    found = json.loads(evaluated("compare", *pair, "--format", "json").out)
    assert (found["before"], found["after"]) == (pytest.approx(1 / 3), 1.0)
    assert found["difference"] == pytest.approx(2 / 3) and found["p"] == 0.5  # two problems differ: 2 of 4 sign flips
    assert [row["id"] for row in found["won"]] == ["a", "b"] and found["lost"] == []
    assert "not more than chance" in evaluated("compare", *pair).out
    assert evaluated("compare", pair[0], pair[0]).code == 0


def test_groups_of_evaluations_are_compared(tiny):
    for name, texts in (("a-s0", [WRONG]), ("b-s0", [RIGHT]), ("b-s1", [WRONG, RIGHT])):
        file = tiny.completions(name, a=texts, b=texts, c=[RIGHT] * len(texts))
        assert evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / f"{name}.out").code == 0
    before, first, second = (tiny.folder / f"{name}.out" for name in ("a-s0", "b-s0", "b-s1"))
    found = evaluated("compare", before, "with", first, second, "--format", "json")
    result = json.loads(found.out)
    assert result["names"] == [str(before), f"{first} and 1 more"]
    assert (result["before"], result["after_each"]) == (pytest.approx(1 / 3), [1.0, pytest.approx(2 / 3)])
    assert result["difference"] == pytest.approx(1 / 2) and "note: tries: 1 and 2" in found.err
    assert "b-s0.out and 1 more: 100.0, 66.7%" in evaluated("compare", before, "with", first, second).out


def test_a_comparison_says_where_programs_had_other_limits(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[RIGHT])
    for name, seconds in (("long", 6), ("short", 1)):
        words = ("--suite", tiny.path, f"judge.time_limit_s={seconds}", "-o", tiny.folder / name)
        assert evaluated("--completions", file, *words).code == 0
    said = evaluated("compare", tiny.folder / "long", tiny.folder / "short").err
    assert said.splitlines() == ["note: judge.time_limit_s: 6.0 and 1.0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing: not two sides"),
        (["a"], "a: not two sides"),
        (["a", "b", "c"], "put `with` between"),
        (["a", "with"], "not two sides"),
        (["a", "with", "b", "with", "c"], "not two sides"),
        (["a", "with", "b", "b"], "b is named twice"),
        (["a", "b"], "a holds no evaluation"),
    ],
)
def test_what_is_no_comparison_is_refused(words, said):
    found = evaluated("compare", *words)
    assert found.code == 2 and said in found.err


def test_checkpoints_over_temperatures_become_a_figure(starter, tmp_path, one_thread):
    words = ("--suite", starter, "--first", "3", "--grid", "0.2,1.4", "-n", "2", "--limit", "48", "-o", tmp_path)
    found = evaluated("temperatures", "nano", *words)
    assert found.code == 0, found.err
    rows = json.loads((tmp_path / "temperatures.json").read_text())
    assert [row["temperature"] for row in rows] == [0.2, 1.4] and rows[0]["diversity"] < rows[1]["diversity"]
    assert (tmp_path / "temperatures.png").read_bytes().startswith(b"\x89PNG")
    assert read_scores(tmp_path / "nano" / "t0.2").result["temperature"] == 0.2
    found = evaluated("temperatures", "nano", *words, "judge.time_limit_s=3.5")
    assert found.code == 2 and "with --fresh" in found.err
    found = evaluated("temperatures", "nano", *words, "judge.time_limit_s=3.5", "--fresh")
    assert found.code == 0, found.err


def test_a_server_is_asked_for_what_is_missing(tiny):
    with chat_server() as server:
        server.replies = [lambda body: completion(RIGHT if body["seed"] % 2 else WRONG, tokens=20)]
        words = ("m", "--server", server.url, "--suite", tiny.path, "-n", "4", "-o", tiny.folder / "out")
        assert evaluated(*words).code == 0
        assert len(server.asked) == 12 and server.asked[0]["model"] == "m"
        samples = tiny.folder / "out" / "samples.jsonl"
        kept = samples.read_bytes().splitlines(keepends=True)
        samples.write_bytes(b"".join(kept[:7]))
        assert evaluated(*words).code == 0
        assert len(server.asked) == 17 and sorted(samples.read_bytes().splitlines(keepends=True)) == sorted(kept)


def test_problems_that_are_skipped_are_not_counted_as_scored(tiny):
    file = tiny.completions("mine", a=[RIGHT], c=[WRONG])
    folder = tiny.folder / "out"
    found = evaluated("--completions", file, "--suite", tiny.path, "--missing", "skip", "-o", folder)
    assert found.code == 0, found.err
    assert "2 of 3 problems × 1 try" in found.out and "No judged answer: 1 problem" in found.out
    assert r"2 of 3 problems $\times$ 1 try" in (folder / "table.tex").read_text()
    assert "2 of 3 problems" in (folder / "report.md").read_text()


def test_verdicts_on_a_file_of_completions_have_ids_that_view_understands(tiny):
    file = tiny.completions("mine", a=[RIGHT, WRONG], b=[RIGHT, RIGHT], c=[WRONG, WRONG])
    assert evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out").code == 0
    verdicts = _records(tiny.folder / "out" / "verdicts.jsonl")
    assert sorted(verdicts) == ["a#0@0", "a#1@0", "b#0@0", "b#1@0", "c#0@0", "c#1@0"]
    shown = Questions(Library(tiny.folder)).bench("out")
    assert shown["limits"] == [{"limit": 0, "problems": [["a", 1, 2], ["b", 2, 2], ["c", 0, 2]]}]


def test_results_with_ids_of_before_are_read_shown_compared_and_gone_on_with(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[WRONG])
    folder = tiny.folder / "out"
    words = ("--completions", file, "--suite", tiny.path, "-o", folder)
    first = evaluated(*words)
    log = folder / "verdicts.jsonl"
    log.write_text(log.read_text().replace("@0", ""))
    assert "@" not in log.read_text()
    assert evaluated("show", folder).out == first.out
    assert evaluated("compare", folder, folder).code == 0
    before = log.read_bytes()
    assert evaluated(*words).out == first.out and log.read_bytes() == before


def test_a_difficulty_is_a_label_a_band_or_a_score_in_it(tmp_path):
    levels = {"a": {"difficulty_score": 0.41}, "b": {"difficulty_score": 0.59}, "c": {"difficulty_score": 0.9}}
    levels |= {"d": {"difficulty": "easy", "difficulty_score": 0.5}, "e": {}}
    path = tmp_path / "problems.parquet"
    write_problems(path, [Problem.from_dict({"id": i, **PROBLEM, **level}) for i, level in levels.items()])

    def chosen(*words):
        return [problem.id for problem in load_suite(str(path), difficulties=words).problems]

    assert chosen("0.5") == chosen("0.4-0.6") == ["a", "b"]
    assert chosen("easy") == chosen("Easy") == ["d"]
    assert chosen("none") == ["e"] and chosen("0.5", "1") == ["a", "b", "c"]
    for wrong in ("0.1", "hard", "nan", "7"):
        with pytest.raises(EvaluationError, match=rf"--difficulty {wrong}: .*easy 1, 0.4-0.6 2, 0.8-1 1, none 1"):
            chosen(wrong)


def test_a_problem_file_with_scores_is_counted_in_bands(tmp_path):
    path, file = tmp_path / "problems.parquet", tmp_path / "mine.jsonl"
    made = [Problem.from_dict({"id": str(n), **PROBLEM, "difficulty_score": n / 20}) for n in range(20)]
    write_problems(path, [*made, Problem.from_dict({"id": "x", **PROBLEM, "platform": "atcoder"})])
    file.write_text("".join(json.dumps({"problem_id": p, "code": "def f(x):\n    return x + 1"}) + "\n" for p in
                            [*map(str, range(20)), "x"]))  # fmt: skip
    found = evaluated("--completions", file, "--suite", path, "-o", tmp_path / "out", "--format", "json")
    table = json.loads(found.out)["scores"]["0"]["robust"]["table"]
    assert {p: [cell["problems"] for cell in row.values()] for p, row in table.items()} == {
        "atcoder": [0, 0, 0, 0, 0, 1, 1],
        "none": [4, 4, 4, 4, 4, 0, 20],
        "all": [4, 4, 4, 4, 4, 1, 21],
    }
    assert list(table["all"]) == ["0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1", "none", "all"]


def test_a_comparison_is_written_as_latex_too(tiny):
    for name, texts in (("before", [WRONG]), ("after", [RIGHT])):
        file = tiny.completions(name, a=texts, b=texts, c=[RIGHT])
        assert evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / f"{name}_out").code == 0
    found = evaluated("compare", tiny.folder / "before_out", tiny.folder / "after_out", "--format", "latex").out
    assert r"\toprule" in found and r"before\_out" in found
    assert re.search(r"^3 & 33\.3 & 100\.0 & \+66\.7 \(\S+ to \S+\) & 0\.500 & 2 & 0 & 1 ", found, re.MULTILINE)


def test_a_library_call_gives_scores_and_writes_what_the_command_writes(tiny, one_thread):
    file = tiny.completions("mine", a=[RIGHT, WRONG], b=[RIGHT, RIGHT], c=["no code", WRONG])
    with chdir(tiny.folder):
        scores = mc.evaluate(completions=file, suite=str(tiny.path), judge={"workers": 1}, **{"judge.reuse": False})
        assert scores.folder.as_posix() == "bench/mine/" + slug(str(tiny.path))
        assert evaluated("show", scores.folder).out.startswith(str(scores))
        assert (scores.accuracy, scores.problems, scores.by_difficulty) == (0.5, 3, {})
        low, high = scores.interval
        assert low < 0.5 < high
        assert [(row["problem_id"], row["verdict"]) for row in scores.samples] == [
            ("a", "accepted"), ("a", "wrong_answer"), ("b", "accepted"), ("b", "accepted"), ("c", "no_code"),
            ("c", "wrong_answer"),
        ]  # fmt: skip
        assert scores.samples[0]["completion"] == RIGHT
        assert scores.at(policy="exact").accuracy == 0.5 and "50.0 (" in repr(scores)
        with pytest.raises(EvaluationError, match="has limits"):
            scores.at(limit=64)
        with pytest.raises(EvaluationError, match="name either a model to sample from"):
            mc.evaluate(suite=str(tiny.path))
        with pytest.raises(TypeError, match="no option 'sampels'; did you mean 'samples'"):
            mc.evaluate("nano", sampels=4)


def test_a_model_is_evaluated_by_the_library_as_by_the_command(starter, whole, tmp_path, one_thread):
    asked = {"samples": 2, "temperature": 0.8, "limit": [96, 48], "judge": {"workers": 2}}
    scores = mc.evaluate("nano", str(starter), "rollout.batch=8", **asked, output=tmp_path / "out")
    result = json.loads((whole.folder / "scores.json").read_text())
    assert scores.result["scores"] == result["scores"]
    assert (scores.limit, scores.limits) == (96, [48, 96])
    assert scores.accuracy == result["scores"]["96"]["robust"]["accuracy"]
    assert scores.at(48).accuracy == result["scores"]["48"]["robust"]["accuracy"]
    assert sum(cell["problems"] for cell in scores.by_difficulty.values()) == 12
    cut = [row for row in scores.at(48).samples if row["truncated"]]
    assert cut and all(row["tokens"] == 48 for row in cut)


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": [0, 8]}, {"samples": 0}])
def test_the_library_refuses_numbers_that_ask_for_nothing(starter, tmp_path, asked):
    with pytest.raises(EvaluationError, match=r"from 1 on|at least one sample"):
        mc.evaluate("nano", str(starter), **{"samples": 1, "limit": 8, **asked}, output=tmp_path / "out")


def test_the_command_is_eval_and_goes_on_working_as_evaluated(whole):
    ended = [subprocess.run([sys.executable, "-m", "microcoder.cli", *words], capture_output=True, text=True)
             for words in (("--help",), ("eval", "show", whole.folder), ("bench", "show", whole.folder))]  # fmt: skip
    assert "\n  eval " in ended[0].stdout and "bench" not in ended[0].stdout
    assert ended[1].stdout == ended[2].stdout != ""


@pytest.mark.parametrize(("right", "accuracy"), [(True, 1.0), (False, 0.0)])
def test_a_release_of_livecodebench_goes_through(tmp_path, right, accuracy):
    made = write_release(tmp_path / "lcb", "v6")
    programs = made.right if right else made.wrong
    file = tmp_path / "programs.json"
    file.write_text(json.dumps([{"question_id": i, "code_list": [code]} for i, code in programs.items()]))
    words = ("--suite", "livecodebench", "--release", "v6", "--data", tmp_path / "lcb", "--format", "json")
    found = evaluated("--completions", file, *words, "-o", tmp_path / "out")
    assert found.code == 0, found.err
    scores = json.loads(found.out)["scores"]["0"]["robust"]
    assert scores["problems"] == 175 and scores["accuracy"] == accuracy
    cells = {p: [row[d]["problems"] for d in ("easy", "medium", "hard", "all")] for p, row in scores["table"].items()}
    assert cells == {"atcoder": [26, 26, 60, 112], "leetcode": [17, 26, 20, 63], "all": [43, 52, 80, 175]}
    assert len(scores["months"]) > 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--suite", "humaneval"], "name either a model to sample from, or a file to score"),
        (["nano", "--suite", "humanevil", "--data", "x"], "humaneval"),
        (["nano", "--suite", "TINY", "--limit", "many"], "such as 4096,8192"),
        (["nano", "--suite", "TINY", "--temperature", "0"], "ask for one sample"),
        (["nano", "--suite", "TINY", "--temperature", "nan"], "must be 0, or from 0.001 to a finite"),
        # before a suite is made ready, which runs its canonical solutions: no such file is looked for
        (
            ["nano", "--suite", "mbppplus", "--data", "none.jsonl", "--temperature", "nan"],
            "must be 0, or from 0.001 to",
        ),
        (["nano", "--suite", "TINY", "--temperature", "1e-40"], "must be 0, or from 0.001 to a finite"),
        (["temperatures", "nano", "--suite", "TINY", "-o", "out", "--grid", "0.2,inf"], "write temperatures such as"),
        (["--completions", "x.jsonl", "--suite", "TINY", "-n", "1", "--limit", "9"], "-n, --limit: the file of"),
        (["nano", "--suite", "TINY", "judge.policy=exact"], "leave judge.policy out"),
        (["nano", "--suite", "TINY", "judge.also=paper"], "leave judge.also out"),
        (["nano", "--suite", "TINY", "train.lr=1"], "judge and rollout, and model.chat"),
        (["nano", "nano", "--suite", "TINY"], "one model at a time"),
        (["nanno", "--suite", "TINY"], "nano"),
        (["compare", "TINY", "TINY"], "holds no evaluation"),
        (["nano", "--suite", "TINY", "--release", "v6"], "release"),
    ],
)
def test_wrong_input_is_answered_with_directions(tiny, words, part):
    found = evaluated(*(str(tiny.path) if word == "TINY" else word for word in words))
    assert found.code == 2 and part in found.err and "Traceback" not in found.err


def _lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _records(path):
    """By id, without what depends on the clock."""
    clock = {"cpu_s", "wall_s", "memory_mb"}
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    plain = [{name: value for name, value in line.items() if name not in clock} for line in lines]
    return {line.get("id", f"{line['problem_id']}#{line.get('number')}"): line for line in plain}


# --- styles of prompts and arguments of the chat template


@pytest.fixture
def run(tmp_path):
    """A run, as far as its settings go."""

    def make(*words):
        (tmp_path / "run" / "checkpoints" / "checkpoint-2").mkdir(parents=True)
        (tmp_path / "run" / "run.json").write_text("{}")
        (tmp_path / "run" / "config.toml").write_text(to_toml(load(None, words)))
        return tmp_path / "run"

    return make


def test_a_style_is_asked_recorded_and_never_mixed_with_another(tiny):
    def asked(style, *words):
        server.asked.clear()
        found = evaluated("m", "--server", server.url, "--suite", tiny.path, "-n", "1", "--limit", "64", *style, *words)
        return found, {body["messages"][0]["content"].partition("function `f`. ")[2] for body in server.asked}

    with chat_server() as server, chdir(tiny.folder):
        server.replies = [lambda body: completion(f"Add.\n{WRONG}\nNo:\n{RIGHT}", tokens=20)]
        found, prompts = asked(["--style", "reason"])
        assert found.code == 0, found.err
        assert len(prompts) == 1 and "step by step" in prompts.pop()
        assert "style reason" in found.out
        reason = tiny.folder / "bench" / "m" / f"{slug(str(tiny.path))}-reason"
        assert json.loads((reason / "bench.json").read_text())["style"] == "reason"
        assert read_scores(reason).accuracy == 1.0  # the last block counts
        found, prompts = asked([])
        assert found.code == 0 and prompts == {"Put the answer in one ```python block."}
        code = tiny.folder / "bench" / "m" / slug(str(tiny.path))
        mixed, _ = asked([], "-o", reason)
        assert mixed.code == 2 and "style: reason there, code now" in mixed.err
        assert not server.asked
    compared = evaluated("compare", code, reason)
    assert compared.code == 0 and "note: style: code and reason" in compared.err


def test_a_run_and_its_checkpoints_get_the_prompts_that_they_were_trained_with(tiny, run):
    said = []
    folder = run("data.style=reason", "model.chat.enable_thinking=false")
    for model in (folder, folder / "checkpoints" / "checkpoint-2"):
        exam = prepare(str(tiny.path)).of(str(model), said.append)
        assert (exam.common["style"], exam.common["chat"]) == ("reason", {"enable_thinking": False})
    assert len(said) == 2 and "trained with: style reason, chat {'enable_thinking': False}" in said[0]
    exam = prepare(str(tiny.path), ["model.chat.enable_thinking=true"], style="code").of(str(folder), said.append)
    assert (exam.common["style"], exam.common["chat"]) == ("code", {"enable_thinking": True})


def test_a_published_suite_keeps_its_own_prompts_unless_others_are_asked_for(tmp_path, run):
    data = tmp_path / "data"
    write_release(data, problems=2)
    folder = str(run("data.style=reason"))
    exam = prepare("livecodebench", data=str(data), unchecked=True).of(folder, print)
    assert exam.common["style"] == "livecodebench"
    exam = prepare("livecodebench", data=str(data), unchecked=True, style="reason").of(folder, print)
    assert exam.common["style"] == "reason"


def test_other_models_and_runs_that_cannot_be_read_get_the_default_prompts(tiny, run, tmp_path):
    said = []
    exam = prepare(str(tiny.path))
    assert exam.of("nano", said.append) is exam and not said
    (run() / "config.toml").write_text("[data]\nstil = 1\n")
    assert exam.of(str(tmp_path / "run"), said.append) is exam and "unknown key 'stil'" in said[0]


def test_chat_arguments_are_recorded_and_refused_where_nothing_reads_them(tiny):
    found = evaluated("nano", "--suite", tiny.path, "model.chat.enable_thinking=false", "--limit", "8")
    assert found.code == 2 and "model.chat.enable_thinking: the chat template of nano has no such argument" in found.err
    file = tiny.completions("one", a=[RIGHT], b=[WRONG], c=[f"<think>{RIGHT}"])
    found = evaluated("--completions", file, "--suite", tiny.path, "model.chat.a=1")
    assert found.code == 2 and "leave it out" in found.err
    found = evaluated("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    scores = read_scores(tiny.folder / "out")
    assert [row["verdict"] for row in scores.samples] == ["accepted", "wrong_answer", "no_code"]
    assert scores.result["chat"] == {}


def test_a_folder_of_a_version_without_styles_goes_on(tiny):
    file = tiny.completions("one", a=[RIGHT], b=[WRONG], c=[RIGHT])
    words = ("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    assert evaluated(*words).code == 0
    for name in ("bench.json", "scores.json"):
        path = tiny.folder / "out" / name
        old = {**json.loads(path.read_text()), "style": "microcoder"}
        del old["chat"]
        path.write_text(json.dumps(old))
    assert read_scores(tiny.folder / "out").result["style"] == "code"
    assert evaluated(*words).code == 0
