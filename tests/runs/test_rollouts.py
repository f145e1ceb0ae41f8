"""Rollouts are kept as they were, can be found again, and can be read by people."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
import sys

import pytest

from microcoder.runs import (
    Run,
    RunError,
    index,
    read_groups,
    read_prompts,
    read_rollouts,
    read_statements,
    select,
    steps,
    write_rollouts,
)

COMMAND = [sys.executable, "-m", "microcoder.cli", "rollouts"]
ANSWER = "First \x1b[31m I [think].\n```python\ndef f(x):\n    return x\n```\n"


def rollout(row, **fields):
    record = {"row": row, "problem": f"p{row // 4}", "completion": ANSWER, "verdict": "wrong_answer", "reward": 0.0}
    record |= {"advantage": 0.0, "length": 10, "truncated": False, "repeated": False, "masked": False, "message": ""}
    return record | fields


STEP = [
    rollout(0, verdict="accepted", reward=1.0, advantage=0.5),
    rollout(1, advantage=-0.5, message="test 2: expected 3, got 4"),
    rollout(2, advantage=-0.5, length=99, truncated=True, masked=True),
    rollout(3, advantage=-1.5, verdict="time_limit"),
    rollout(4, verdict="internal_error", reward=None, advantage=None),
    rollout(5, verdict="accepted", reward=1.0, advantage=0.5, length=5),
    rollout(6, verdict="no_code", truncated=True),
    rollout(7, verdict="accepted", reward=1.0, advantage=1.5),
]


@pytest.fixture
def run(tmp_path):
    Run.create(tmp_path / "a", "", {}).close()
    write_rollouts(tmp_path / "a", 20, STEP[:4])
    write_rollouts(tmp_path / "a", 40, STEP, {"p0": "Return x.", "p1": "Return\ny."})
    return tmp_path / "a"


def rows(rollouts):
    return [r["row"] for r in rollouts]


# ---- files


def test_rollouts_and_statements_come_back_as_they_were_written(run):
    odd = [rollout(0, completion="\u2028 \x85 \r\n ñ 漢 \ud800 \x00"), rollout(1, reward=float("nan"))]
    write_rollouts(run, 41, odd, {"p0": "two\u2028lines"})
    assert read_rollouts(run, 41) == [{"step": 41} | odd[0], {"step": 41} | odd[1] | {"reward": None}]
    assert read_statements(run, 41) == {"p0": "two\u2028lines"}
    assert read_statements(run, 20) == {}


def test_the_same_rollouts_give_the_same_bytes_under_the_name_of_their_step(run):
    first = write_rollouts(run, 123456, STEP)
    data = first.read_bytes()
    assert first.name == "step_123456.jsonl.gz"
    assert (run / "rollouts" / "step_00040.jsonl.gz").exists()
    assert write_rollouts(run, 123456, STEP).read_bytes() == data
    assert data[4:8] == bytes(4)  # no time in the header
    assert len(gzip.decompress(data).splitlines()) == len(STEP)


def test_the_index_sums_up_each_step_and_a_judge_fault_counts_for_nothing(run):
    assert steps(run) == [20, 40]
    assert index(run)[1] == {
        "step": 40,
        "file": "step_00040.jsonl.gz",
        "rows": 8,
        "reward": pytest.approx(3 / 7, abs=1e-6),
        "accuracy": pytest.approx(3 / 7, abs=1e-6),
        "truncated_share": 0.25,
        "masked_share": 0.125,
        "size": (run / "rollouts" / "step_00040.jsonl.gz").stat().st_size,
    }


def test_a_step_without_rollouts_has_no_means(run):
    write_rollouts(run, 50, [])
    assert read_rollouts(run, 50) == []
    assert index(run)[-1]["reward"] is None


@pytest.mark.parametrize("damage", ["gone", "line missing", "line torn", "other rollouts", "file gone"])
def test_an_index_that_does_not_fit_its_files_is_not_believed(run, damage):
    path = run / "rollouts" / "index.jsonl"
    whole = index(run)
    first, second = path.read_bytes().splitlines(keepends=True)
    if damage == "gone":
        path.unlink()
    elif damage == "line missing":  # killed between the two writes
        path.write_bytes(first)
    elif damage == "line torn":
        path.write_bytes(first + second[:30])
    elif damage == "other rollouts":
        path.write_bytes(first + second.replace(b'"rows": 8', b'"rows": 5').replace(b'"size": ', b'"size": 1'))
    else:
        (run / "rollouts" / whole.pop()["file"]).unlink()
    before = path.read_bytes() if path.exists() else None
    assert index(run) == whole
    assert (path.read_bytes() if path.exists() else None) == before  # reading writes nothing


def test_a_step_that_is_not_there_is_refused_with_the_nearest(run):
    with pytest.raises(RunError, match="no rollouts of step 33; the nearest is step 40, of 2 from step 20 to 40"):
        read_rollouts(run, 33)


def test_a_run_without_rollouts_says_so(tmp_path):
    assert (index(tmp_path), steps(tmp_path)) == ([], [])
    with pytest.raises(RunError, match="no rollouts yet"):
        read_rollouts(tmp_path, 1)


def test_a_damaged_file_is_named(run):
    path = run / "rollouts" / "step_00040.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"cannot read .*step_00040"):
        read_rollouts(run, 40)


# ---- groups


def test_what_came_of_each_problem_at_each_step_is_known_without_its_rollouts(run):
    (first, one), (second, both) = read_groups(run)
    assert (first, second) == (20, 40)
    assert one == both[:1] == [("p0", 4, 1, 1, 1, 99, -1.5)]
    assert both[1]._asdict() == {
        "problem": "p1",
        "rows": 4,
        "accepted": 2,
        "truncated": 1,
        "masked": 0,
        "longest": 10,
        "lowest": 0.0,
    }


@pytest.mark.parametrize("problem", ["p", "p0", 'a "quoted" ñ \\ name', "half \ud800"])
def test_the_steps_of_one_problem_are_found_by_its_name(run, problem):
    write_rollouts(run, 41, [rollout(0, problem=problem)])
    found = [step for step, groups in read_groups(run, problem) if problem in {group.problem for group in groups}]
    assert found == ([20, 40, 41] if problem == "p0" else [41])


@pytest.mark.parametrize("damage", ["gone", "torn", "broken", "other rollouts"])
def test_groups_that_do_not_fit_their_files_are_passed_over(run, damage):
    path = run / "rollouts" / "groups.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    if damage == "gone":
        path.unlink()
    elif damage == "torn":
        path.write_bytes(first + second[:-1])
    elif damage == "broken":
        path.write_bytes(b'{"step": 1}\n[1]\n\xff\n' + first)
    else:
        path.write_bytes(first + second.replace(b'"size": ', b'"size": 1'))
    assert [step for step, _ in read_groups(run)] == ([] if damage == "gone" else [20])


def test_a_rewind_drops_the_groups_of_later_steps(run):
    with Run.resume(run) as again:
        again.rewind(30)
    assert [step for step, _ in read_groups(run)] == [20]


# ---- selecting


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"limit": 2}, [0, 1]),
        ({"problem": "p1"}, [4, 5, 6, 7]),
        ({"verdict": "accepted"}, [0, 5, 7]),
        ({"masked": True}, [2]),
        ({"truncated": True}, [2, 6]),
        ({"truncated": False, "problem": "p0"}, [0, 1, 3]),
        ({"worst": 4}, [3, 2, 1, 6]),  # reward 0: by advantage, then the longer one first
        ({"worst": 9}, [3, 2, 1, 6, 0, 5, 7]),  # the judge fault is not among them
        ({"best": 3}, [7, 5, 0]),  # by advantage, then the shorter one first
        ({"best": 3, "limit": 1}, [7]),
        ({"worst": 1, "problem": "p1"}, [6]),
        ({"verdict": "memory_limit"}, []),
    ],
)
def test_select(wanted, expected):
    assert rows(select(STEP, **wanted)) == expected


def test_the_worst_and_the_best_cannot_both_be_selected():
    with pytest.raises(ValueError, match="not both"):
        select(STEP, worst=1, best=1)


# ---- the command


def command(*args, **options):
    options = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([*COMMAND, *map(str, args)], **options)


def test_the_newest_rollouts_are_printed_with_header_answer_and_message(run):
    done = command(run, "--worst", 3)
    assert (done.returncode, done.stderr) == (0, "3 of the 8 rollouts of step 40\n")
    visible = ANSWER.replace("\x1b", "\\x1b")
    assert done.stdout == (
        f"> Return x.\n--- p0  time_limit  row 3  reward 0  advantage -1.5  length 10\n{visible}\n\n"
        f"--- p0  wrong_answer  row 2  reward 0  advantage -0.5  length 99  truncated  masked\n{visible}\n\n"
        f"--- p0  wrong_answer  row 1  reward 0  advantage -0.5  length 10\n{visible}\n"
        "judge: test 2: expected 3, got 4\n\n"
    )


def test_filters_and_step_say_which_rollouts(run):
    def printed(*args):
        return list(map(int, re.findall(r"^--- .* row (\d+) ", command(run, *args).stdout, re.MULTILINE)))

    assert printed("--step", 20) == [0, 1, 2, 3]
    assert printed("--verdict", "accepted", "-n", 2) == [0, 5]
    assert printed("--truncated") == [2, 6]
    assert printed("--masked") == [2]
    assert printed("--best", 1) == [7]
    assert printed("--problem", "p1", "--verdict", "no_code") == [6]


def test_the_statement_stands_once_before_the_rollouts_of_its_problem(run):
    shown = command(run, "-n", 8).stdout
    assert shown.count("> Return\n> y.\n--- p1 ") == shown.count("> Return x.\n--- p0 ") == 1
    write_rollouts(run, 60, [rollout(0)], {"p0": "\n".join(map(str, range(30)))})
    assert "> 19\n> ... (10 more lines)\n--- p0 " in command(run, "--step", 60).stdout


def test_what_is_not_shown_is_counted(run):
    write_rollouts(run, 50, [rollout(n) for n in range(20)])
    done = command(run)
    assert done.stdout.count("--- ") == 8
    assert done.stderr == "8 of the 20 rollouts of step 50; -n 20 shows all 20 that match\n"
    assert command(run, "--json").stdout.count("\n") == 20


def test_no_match_is_no_fault_and_says_what_there_is(run):
    done = command(run, "--verdict", "memory_limit")
    assert (done.returncode, done.stdout) == (0, "")
    assert "their verdicts: accepted 3, wrong_answer 2, time_limit 1" in done.stderr


def test_json_is_exact(run):
    printed = command(run, "--json", "--best", 2).stdout.splitlines()
    assert list(map(json.loads, printed)) == [{"step": 40} | STEP[7], {"step": 40} | STEP[5]]
    listed = command(run, "--json", "--list").stdout.splitlines()
    assert list(map(json.loads, listed)) == index(run)


def test_the_list_has_a_line_for_each_step(run):
    header, *lines = command(run, "--list").stdout.splitlines()
    assert header.split()[:4] == ["step", "rows", "reward", "accuracy"]
    assert [line.split()[:4] for line in lines] == [["20", "4", "0.25", "0.25"], ["40", "8", "0.4286", "0.4286"]]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["{run}/rollouts"], "is not a run directory"),
        (["{run}/../b"], "runs are "),
        (["{run}", "--step", "33"], "the nearest is step 40"),
        (["{run}", "--problem", "p11"], "did you mean 'p1'?"),
        (["{run}", "--problem", "zzz"], "its problems are p0, p1"),
        (["{run}", "--verdict", "wrong"], "wrong_answer"),
        (["{run}", "--worst", "1", "--best", "1"], "leave one out"),
        (["{run}", "--list", "--test"], "only --json goes with it"),
    ],
)
def test_a_wrong_question_is_answered_with_directions(run, args, words):
    done = command(*[arg.format(run=run) for arg in args])
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_on_a_terminal_code_is_highlighted_and_control_characters_of_the_model_do_nothing(run, shown_by):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([*COMMAND, str(run), "-n", "1"], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = shown_by(ours)
    assert process.wait(timeout=60) == 0
    assert re.search(rb"\x1b\[[\d;]+mdef\x1b", shown)
    assert b"\\x1b[31m I [think]." in shown
    assert b"\x1b[31m I" not in shown


def test_prompts_and_the_answers_of_an_evaluation_are_kept_beside_the_rollouts(tmp_path):
    row = {"row": 0, "problem": "p0", "completion": "x", "verdict": "accepted", "reward": 1.0, "length": 1}
    with Run.create(tmp_path / "a", "", {}) as run:
        run.log(1, {})
        write_rollouts(run.path, 1, [row], {"p0": "Add."}, {"p0": "You are asked to add."})
        write_rollouts(run.path, 1, [row | {"problem": "t0"}], prompts={"t0": "Held out."}, test=True)
        assert [r["problem"] for r in read_rollouts(run.path, 1)] == ["p0"]
        assert [r["problem"] for r in read_rollouts(run.path, 1, test=True)] == ["t0"]
        assert (read_statements(run.path, 1), read_prompts(run.path, 1)) == (
            {"p0": "Add."},
            {"p0": "You are asked to add."},
        )
        assert read_prompts(run.path, 1, test=True) == {"t0": "Held out."}
        assert (steps(run.path), steps(run.path, test=True), len(index(run.path))) == ([1], [1], 1)
        run.rewind(0)
        assert (steps(run.path), steps(run.path, test=True)) == ([], [])


def test_the_prompt_is_printed_where_it_was_kept_and_the_answers_of_an_evaluation_where_they_are_asked_for(run):
    write_rollouts(run, 60, STEP[:4], {"p0": "Return x."}, {"p0": "Answer in a block. Return x."})
    write_rollouts(run, 60, [rollout(0, problem="t0", completion="held out")], test=True)
    printed = subprocess.run([*COMMAND, run, "-n", "1"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("> Answer in a block. Return x.\n--- p0")
    printed = subprocess.run([*COMMAND, run, "--test"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("--- t0  wrong_answer")
    assert "held out" in printed


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("microcoder.runs.rollouts.LARGEST", 1 << 20)
    path = write_rollouts(tmp_path, 1, [{"row": 0, "problem": "p0", "completion": "x", "length": 1}])
    path.write_bytes(gzip.compress(b'{"problem": "p0", "completion": "x"}\n' * 100_000))
    with pytest.raises(RunError, match="unpacks to more than 1 MiB; move it away"):
        read_rollouts(tmp_path, 1)
