"""`microcoder bench` as users type it: real samples of nano, the real judge, real kills."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from chat_server import chat_server, completion
from livecodebench_files import write_release

from microcoder.cli import main
from microcoder.evaluation.reading import read_bench, read_samples
from microcoder.files import write_problems
from microcoder.starter import problems

COMMAND = [sys.executable, "-m", "microcoder.cli", "bench"]
NANO = ("-n", "2", "--temperature", "0.8", "--limit", "48,96", "judge.workers=2", "rollout.batch=8")
RIGHT, WRONG = "```python\ndef f(x):\n    return x + 1\n```", "```python\ndef f(x):\n    return x\n```"
PROBLEM = {"kind": "function", "statement": "Add one.", "entry_point": "f", "tests": [{"input": "[1]", "output": "2"}]}


def bench(*words):
    """Exit status, stdout, stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(["bench", *map(str, words)])
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
    found = bench("nano", "--suite", starter, *NANO, "-o", folder)
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
    found = bench("nano", "--suite", starter, *NANO, "--seed", "1", "-o", whole.folder)
    assert found.code == 2 and "seed: 0 there, 1 now" in found.err and "--fresh" in found.err
    assert (whole.folder / "samples.jsonl").read_bytes() == before


def test_a_finished_bench_is_shown_again_and_run_again_without_work(starter, whole):
    assert bench("show", whole.folder).out == whole.out
    table = (whole.folder / "table.tex").read_text()
    assert bench("show", whole.folder, "--format", "latex").out.strip() == table.strip()
    stamp = (whole.folder / "samples.jsonl").stat().st_mtime_ns
    assert bench("nano", "--suite", starter, *NANO, "-o", whole.folder).out == whole.out
    assert (whole.folder / "samples.jsonl").stat().st_mtime_ns == stamp


def test_a_file_of_completions_is_scored(tiny):
    file = tiny.completions("mine", a=[RIGHT, WRONG], b=[RIGHT, RIGHT], c=["no code", "```python\ndef f(\n```"])
    found = bench("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out", "--format", "json")
    assert found.code == 0, found.err
    scores = json.loads(found.out)["scores"]["0"]
    assert scores["robust"]["accuracy"] == scores["exact"]["accuracy"] == 0.5
    assert scores["robust"]["pass_at_k"] == {"1": 0.5, "2": pytest.approx(2 / 3)}
    assert scores["robust"]["verdicts"] == {"accepted": 3, "wrong_answer": 1, "compile_error": 1, "no_code": 1}


def test_verdicts_under_other_limits_of_the_judge_are_never_mixed_and_a_changed_file_is_noticed(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT + "x" * 3_000_000 + RIGHT], c=[WRONG])
    words = ("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    assert bench(*words, "judge.workers=1").code == 0
    assert bench(*words, "judge.workers=2").code == 0  # which changes no verdict
    found = bench(*words, "judge.time_limit_s=1")
    assert found.code == 2 and "judge: " in found.err and "--fresh" in found.err
    file.write_text(file.read_text().replace("xxx", "yyy"))  # far from either end
    found = bench(*words)
    assert found.code == 2 and "weights: " in found.err


def test_a_folder_that_cannot_be_written_is_answered_with_directions(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[WRONG])
    found = bench("--completions", file, "--suite", tiny.path, "-o", file / "below")
    assert found.code == 2 and "name another folder with -o" in found.err


def test_what_leniency_changes_is_listed(tiny):
    pair = {**PROBLEM, "id": "p", "tests": [{"input": "[1]", "output": "[[1]]"}]}
    tiny.path.write_text(json.dumps(pair) + "\n")
    file = tiny.completions("mine", p=["```python\ndef f(x):\n    return [(x,)]\n```"])
    found = bench("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    scores = json.loads((tiny.folder / "out" / "scores.json").read_text())["scores"]["0"]
    assert (scores["robust"]["accuracy"], scores["exact"]["accuracy"]) == (1.0, 0.0)
    assert [case["id"] for case in scores["only_robust"]] == ["p#0"] and "p#0" in found.out
    assert "p#0" in (tiny.folder / "out" / "report.md").read_text()


def test_a_fault_of_the_judge_is_no_score_and_is_judged_again(tiny):
    file = tiny.completions("mine", a=[RIGHT], b=[RIGHT], c=[WRONG])
    words = ("--completions", file, "--suite", tiny.path, "-o", tiny.folder / "out")
    assert bench(*words).code == 0
    log = tiny.folder / "out" / "verdicts.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[0] |= {"verdict": "internal_error", "also": "internal_error"}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert bench(*words).code == 0
    assert json.loads((tiny.folder / "out" / "scores.json").read_text())["scores"]["0"]["internal_errors"] == 0
    assert len(log.read_text().splitlines()) == 4  # three as they were, and the one that was judged again


def test_two_benches_are_compared_problem_by_problem(tiny):
    for name, texts in (("before", [WRONG]), ("after", [RIGHT])):
        file = tiny.completions(name, a=texts, b=texts, c=[RIGHT])
        assert bench("--completions", file, "--suite", tiny.path, "-o", tiny.folder / f"{name}-out").code == 0
    pair = tiny.folder / "before-out", tiny.folder / "after-out"
    found = json.loads(bench("compare", *pair, "--format", "json").out)
    assert (found["before"], found["after"]) == (pytest.approx(1 / 3), 1.0)
    assert found["difference"] == pytest.approx(2 / 3) and found["p"] == 0.5  # two problems differ: 2 of 4 sign flips
    assert [row["id"] for row in found["won"]] == ["a", "b"] and found["lost"] == []
    assert "not more than chance" in bench("compare", *pair).out
    assert bench("compare", pair[0], pair[0]).code == 0


def test_checkpoints_over_temperatures_become_a_figure(starter, tmp_path, one_thread):
    words = ("--suite", starter, "--first", "3", "--grid", "0.2,1.4", "-n", "2", "--limit", "48", "-o", tmp_path)
    found = bench("temperatures", "nano", *words)
    assert found.code == 0, found.err
    rows = json.loads((tmp_path / "temperatures.json").read_text())
    assert [row["temperature"] for row in rows] == [0.2, 1.4] and rows[0]["diversity"] < rows[1]["diversity"]
    assert (tmp_path / "temperatures.png").read_bytes().startswith(b"\x89PNG")
    assert read_bench(tmp_path / "nano" / "t0.2").ask["temperature"] == 0.2


def test_a_server_is_asked_for_what_is_missing(tiny):
    with chat_server() as server:
        server.replies = [lambda body: completion(RIGHT if body["seed"] % 2 else WRONG, tokens=20)]
        words = ("m", "--server", server.url, "--suite", tiny.path, "-n", "4", "-o", tiny.folder / "out")
        assert bench(*words).code == 0
        assert len(server.asked) == 12 and server.asked[0]["model"] == "m"
        samples = tiny.folder / "out" / "samples.jsonl"
        kept = samples.read_bytes().splitlines(keepends=True)
        samples.write_bytes(b"".join(kept[:7]))
        assert bench(*words).code == 0
        assert len(server.asked) == 17 and sorted(samples.read_bytes().splitlines(keepends=True)) == sorted(kept)


@pytest.mark.parametrize(("right", "accuracy"), [(True, 1.0), (False, 0.0)])
def test_a_release_of_livecodebench_goes_through(tmp_path, right, accuracy):
    made = write_release(tmp_path / "lcb", "v6")
    programs = made.right if right else made.wrong
    file = tmp_path / "programs.json"
    file.write_text(json.dumps([{"question_id": i, "code_list": [code]} for i, code in programs.items()]))
    words = ("--suite", "livecodebench", "--release", "v6", "--data", tmp_path / "lcb", "--format", "json")
    found = bench("--completions", file, *words, "-o", tmp_path / "out")
    assert found.code == 0, found.err
    scores = json.loads(found.out)["scores"]["0"]["robust"]
    assert scores["problems"] == 175 and scores["accuracy"] == accuracy
    cells = {p: [row[d]["problems"] for d in ("easy", "medium", "hard", "all")] for p, row in scores["table"].items()}
    assert cells == {"atcoder": [26, 26, 60, 112], "leetcode": [17, 26, 20, 63], "all": [43, 52, 80, 175]}
    assert len(scores["months"]) > 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--suite", "humaneval"], "name a model to ask, or a file to score"),
        (["nano", "--suite", "humanevil", "--data", "x"], "humaneval"),
        (["nano", "--suite", "TINY", "--limit", "many"], "such as 4096,8192"),
        (["nano", "--suite", "TINY", "--temperature", "0"], "use -n 1"),
        (["nano", "--suite", "TINY", "judge.policy=exact"], "leave judge.policy out"),
        (["nano", "--suite", "TINY", "judge.also=paper"], "leave judge.also out"),
        (["nano", "--suite", "TINY", "train.lr=1"], "judge and rollout only"),
        (["nano", "nano", "--suite", "TINY"], "one model at a time"),
        (["nanno", "--suite", "TINY"], "nano"),
        (["compare", "TINY", "TINY"], "holds no bench"),
        (["nano", "--suite", "TINY", "--release", "v6"], "release"),
    ],
)
def test_wrong_input_is_answered_with_directions(tiny, words, part):
    found = bench(*(str(tiny.path) if word == "TINY" else word for word in words))
    assert found.code == 2 and part in found.err and "Traceback" not in found.err


def _lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _records(path):
    """By id, without what depends on the clock."""
    clock = {"cpu_s", "wall_s", "memory_mb"}
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    plain = [{name: value for name, value in line.items() if name not in clock} for line in lines]
    return {line.get("id", f"{line['problem_id']}#{line.get('number')}"): line for line in plain}
