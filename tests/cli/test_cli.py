"""The command, run as users run it: real processes, real judging."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import microcoder
from microcoder.cli.judge import Tally
from microcoder.files import write_problems
from microcoder.schema import Problem, Test, Verdict

EXAMPLES = Path(microcoder.__file__).parent / "examples"
PROBLEMS, SOLUTIONS = EXAMPLES / "problems.jsonl", EXAMPLES / "solutions.jsonl"
EXPECTED = {s["id"]: s["expected"] for s in map(json.loads, SOLUTIONS.read_text().splitlines())}
COMMAND = [sys.executable, "-m", "microcoder.cli"]


def run(*args, **options):
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([*COMMAND, *map(str, args)], **options)


def summary(*args):
    """The JSON summary of a judging, and the finished process."""
    done = run("judge", *args, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, *records):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


# ---- first touch


def test_the_command_and_its_help_load_nothing_heavy():
    program = """
import sys
from microcoder.cli import main
def check(when):
    print(when, [m for m in ("numpy", "pydantic", "rich", "torch", "pyarrow") if m in sys.modules])
check("import")
try:
    main(["--help"])
except SystemExit as end:
    check(f"help {end.code}")
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "import []" in out
    assert "help 0 []" in out


def test_help_takes_well_under_a_third_of_a_second():
    def cpu():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # not wall: the host may be busy

    assert min(cpu() for _ in range(5)) < 0.3


def test_every_command_in_the_table_exists_and_explains_itself():
    from microcoder.cli import COMMANDS

    listed = run("--help").stdout
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", listed, re.MULTILINE)
        helped = run(name, "--help")
        assert helped.returncode == 0
        assert f"Usage: microcoder {name}" in helped.stdout


def test_version():
    assert run("--version").stdout == f"microcoder, version {microcoder.__version__}\n"


def test_no_command_prints_the_help():
    assert run().stdout == run("--help").stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["jugde"], "did you mean 'judge'?"),
        (["frobnicate"], "microcoder --help"),
        (["judge"], "PROBLEMS"),
        (["judge", "--polcy", "exact"], "--policy"),
        (["judge", PROBLEMS, SOLUTIONS, "judge.wokers=2"], "did you mean 'workers'?"),
        (["judge", PROBLEMS, SOLUTIONS, "--workers", "many"], "expected a whole number of at least 1"),
        (["judge", PROBLEMS, SOLUTIONS, "--config", "none.toml"], "microcoder config > none.toml"),
        (["judge", PROBLEMS, "none.jsonl"], "there is no file none.jsonl"),
        (["judge", "none.jsonl", SOLUTIONS], "there is no file none.jsonl"),
        (["judge", EXAMPLES, SOLUTIONS], "is a folder"),
        (["judge", SOLUTIONS, PROBLEMS], "the order is: microcoder judge PROBLEMS SOLUTIONS"),
        (["judge", PROBLEMS, SOLUTIONS, "--fresh"], "-o FILE"),
        (["judge", PROBLEMS, SOLUTIONS, "-o", SOLUTIONS], "one of the files to read"),
        (["judge", PROBLEMS, SOLUTIONS, "-o", "verdicts.csv"], ".jsonl"),
        (["config", "judge.workers=no"], "expected a whole number of at least 1"),
        (["completion", "csh"], "bash"),
    ],
)
def test_a_mistake_exits_2_with_directions_and_no_traceback(tmp_path, args, words):
    done = run(*args, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent.parent)})
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# ---- config, completion, doctor


def test_config_prints_a_file_that_it_reads_back(tmp_path):
    first = run("config", "judge.workers=3", "judge.policy=exact").stdout
    path = tmp_path / "settings.toml"
    path.write_text(first)
    assert "workers = 3\n" in first
    assert "# How outputs are compared." in first
    assert run("config", path).stdout == first
    assert "workers = 4\n" in run("config", path, "judge.workers=4").stdout
    assert "#" not in run("config", "--no-comments").stdout


def test_doctor_reports_the_machine_each_layer_and_what_the_judge_will_use():
    done = run("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == (0 if found["best"] in ("full", "landlock") else 1)
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["versions"]["microcoder"] == microcoder.__version__
    assert {"namespaces", "private_root", "seccomp", "landlock"} <= {layer["name"] for layer in found["sandbox"]}
    for layer in found["sandbox"]:
        assert layer["ok"] or layer["remedy"], layer
    shown = run("doctor")
    assert shown.returncode == done.returncode
    assert " ".join(shown.stdout.split()).endswith(found["conclusion"])
    for layer in found["sandbox"]:
        assert layer["name"] in shown.stdout
    assert found["languages"].keys() == {"cpp", "java", "javascript", "go", "rust"}
    for finding in found["languages"].values():
        assert finding.startswith("works") or "install" in finding or "sandbox" in finding
    for title in ("C++", "Java", "JavaScript", "Go", "Rust"):
        assert f"  {title}  " in shown.stdout
    assert found["extras"].keys() == {"train", "data", "view", "serve", "ray"}
    named = shown.stdout.partition("not installed: ")[2].partition(";")[0].replace(",", " ").split()
    assert named == [extra for extra, there in found["extras"].items() if not there]


# ---- judge


def test_the_examples_get_the_verdicts_written_beside_them(tmp_path):
    output = tmp_path / "v.jsonl"
    told, done = summary(PROBLEMS, SOLUTIONS, "-o", output)
    assert {v["id"]: v["verdict"] for v in lines(output)} == EXPECTED
    assert done.returncode == 0
    assert told["programs"] == told["judged"] == len(EXPECTED)
    assert told["verdicts"] == {name: list(EXPECTED.values()).count(name) for name in told["verdicts"]}
    assert sum(told["verdicts"].values()) == len(EXPECTED)
    assert told["unreadable"] == 0
    assert told["slowest"][0]["id"] == "hailstones/never-ends"
    assert told["slowest"][0]["cpu_s"] >= 0.9
    assert sum(told["strategies"].values()) == told["verdicts"]["accepted"]
    assert told["sandbox"] in ("full", "landlock")
    assert told["programs_per_s"] > 0


def test_the_summary_table_shows_counts_shares_speed_and_sandbox():
    done = run("judge", PROBLEMS, SOLUTIONS, "--limit", 4)
    assert done.returncode == 0
    assert re.search(r"accepted +3 +75\.0%", done.stdout)
    assert re.search(r"wrong_answer +1 +25\.0%", done.stdout)
    for word in ("programs/s", "slowest", "accepted by", "judged inside", "sandbox", "coin-purse/right"):
        assert word in done.stdout


def test_parquet_problems_and_compressed_solutions_give_the_same_verdicts(tmp_path):
    import gzip

    problems = [Problem.from_dict(json.loads(line)) for line in PROBLEMS.read_text().splitlines()]
    write_problems(tmp_path / "p.parquet", problems)
    (tmp_path / "s.jsonl.gz").write_bytes(gzip.compress(SOLUTIONS.read_bytes()))
    _, done = summary(tmp_path / "p.parquet", tmp_path / "s.jsonl.gz", "-o", tmp_path / "v.jsonl")
    assert done.returncode == 0
    assert {v["id"]: v["verdict"] for v in lines(tmp_path / "v.jsonl")} == EXPECTED


def test_a_second_run_goes_on_where_the_first_stopped_and_fresh_starts_over(tmp_path):
    output = tmp_path / "v.jsonl"
    summary(PROBLEMS, SOLUTIONS, "-o", output, "--limit", 5)
    before = output.read_text()
    assert len(before.splitlines()) == 5
    with output.open("a") as file:
        file.write('{"id": "mean-dep')  # as a killed process may leave it
    told, done = summary(PROBLEMS, SOLUTIONS, "-o", output)
    assert (told["resumed"], told["judged"]) == (5, len(EXPECTED) - 5)
    assert f"{output} holds 5 verdicts" in done.stderr
    assert output.read_text().startswith(before)
    assert {v["id"]: v["verdict"] for v in lines(output)} == EXPECTED
    assert len(lines(output)) == len(EXPECTED)
    assert told["verdicts"]["accepted"] == list(EXPECTED.values()).count("accepted")  # of both runs
    told, _ = summary(PROBLEMS, SOLUTIONS, "-o", output, "--limit", 2, "--fresh")
    assert (told["resumed"], told["judged"], len(lines(output))) == (0, 2, 2)


def test_verdicts_of_another_program_problem_or_policy_are_not_taken_over(tmp_path):
    output = tmp_path / "v.jsonl"
    problem = {"id": "p", "tests": [{"input": "1", "output": "0.3"}]}
    about = {"id": "1", "problem_id": "p"}
    problems = write(tmp_path / "p.jsonl", problem)
    right = write(tmp_path / "a.jsonl", {**about, "code": "print(0.30000000001)"})
    wrong = write(tmp_path / "b.jsonl", {**about, "code": "print(0.4)"})
    assert summary(problems, right, "-o", output)[0]["verdicts"] == {"accepted": 1}
    assert summary(problems, right, "-o", output)[0]["resumed"] == 1
    for changed in ((problems, right, "--policy", "exact"), (problems, wrong)):
        told, done = summary(*changed, "-o", output)
        assert (told["resumed"], told["verdicts"]) == (0, {"wrong_answer": 1})
        assert "1 verdicts" in done.stderr and "judged anew" in done.stderr
        assert "those programs are not judged" not in done.stderr  # one of the two lines would be wrong
    problem["tests"][0]["output"] = "0.4"
    told, _ = summary(write(tmp_path / "p.jsonl", problem), wrong, "-o", output)
    assert (told["resumed"], told["verdicts"]) == (0, {"accepted": 1})
    assert [line["verdict"] for line in lines(output)] == ["accepted", "wrong_answer", "wrong_answer", "accepted"]


def test_programs_on_which_the_judge_failed_are_judged_again(tmp_path):
    """As where a service was away for too long, or a compiler is installed by now."""
    output = tmp_path / "v.jsonl"
    summary(PROBLEMS, SOLUTIONS, "-o", output, "--limit", 2)
    first, second = lines(output)
    write(output, {**first, "verdict": "internal_error", "tests": []}, second)
    told, done = summary(PROBLEMS, SOLUTIONS, "-o", output, "--limit", 2)
    assert (told["resumed"], told["judged"], done.returncode) == (1, 1, 0)
    assert [line["verdict"] for line in lines(output)] == ["internal_error", second["verdict"], first["verdict"]]
    assert summary(PROBLEMS, SOLUTIONS, "-o", output, "--limit", 2)[0]["resumed"] == 2


def test_the_verdicts_of_other_solutions_are_not_gone_on_with(tmp_path):
    output = tmp_path / "v.jsonl"
    first = write(tmp_path / "a.jsonl", {"id": "1", "problem_id": "coin-purse", "code": ""})
    other = write(tmp_path / "b.jsonl", {"id": "1", "problem_id": "hailstones", "code": ""})
    summary(PROBLEMS, first, "-o", output)
    done = run("judge", PROBLEMS, other, "-o", output)
    assert done.returncode == 2
    assert "holds verdicts of other solutions" in done.stderr
    assert len(lines(output)) == 1


def test_lines_that_cannot_be_used_are_named_counted_and_exit_1(tmp_path):
    good = {
        "id": "ok",
        "problem_id": "coin-purse",
        "code": "input(); c = [*map(int, input().split())]; print(sum(c), max(c))",
    }
    solutions = write(tmp_path / "s.jsonl", '{"broken', good, {"problem_id": "nowhere", "code": ""})
    problems = write(tmp_path / "p.jsonl", *PROBLEMS.read_text().splitlines(), "{}")
    told, done = summary(problems, solutions)
    assert done.returncode == 1
    assert (told["unreadable"], told["verdicts"]) == (3, {"accepted": 1})
    assert f"{problems}:7: " in done.stderr
    assert f"{solutions}:1: not JSON" in done.stderr
    assert f"{solutions}:3: there is no problem 'nowhere'" in done.stderr
    assert "exit status 1: 3 lines" in done.stderr


def test_of_many_bad_lines_ten_are_shown_and_all_are_counted(tmp_path):
    solutions = write(tmp_path / "s.jsonl", *["{"] * 25)
    told, done = summary(PROBLEMS, solutions)
    assert told["unreadable"] == 25
    assert done.stderr.count("not JSON") == 10
    assert "and 15 more" in done.stderr


def test_settings_reach_the_judge(tmp_path):
    problems = write(
        tmp_path / "p.jsonl",
        {"id": "slow", "tests": [{"input": "", "output": "1"}, {"input": "", "output": "2"}], "time_limit_s": 20},
        {"id": "two", "tests": [{"input": "", "output": "1"}, {"input": "", "output": "2"}]},
    )
    solutions = write(
        tmp_path / "s.jsonl",
        {"problem_id": "slow", "code": "while True: pass"},
        {"problem_id": "two", "code": "print(3)"},
        {"problem_id": "two", "code": "print(' 1 ')"},
    )
    config = tmp_path / "settings.toml"
    config.write_text("[judge]\ntime_factor = 0.02\n")
    output = tmp_path / "v.jsonl"
    options = ("--config", config, "--policy", "exact", "--all-tests", "--workers", 1, "judge.policy=robust")
    told, _ = summary(problems, solutions, "-o", output, *options)
    verdicts = {v["id"]: v for v in lines(output)}
    assert verdicts["slow#0"]["verdict"] == "time_limit"
    assert told["wall_s"] < 15  # two tests of 0.4 s, not of 20
    assert len(verdicts["two#0"]["tests"]) == 2
    assert (told["workers"], told["policy"]) == (1, "exact")  # an option wins over section.key=value


def test_an_empty_file_of_solutions_is_no_error(tmp_path):
    told, done = summary(PROBLEMS, write(tmp_path / "s.jsonl"))
    assert (done.returncode, told["programs"], told["verdicts"]) == (0, 0, {})
    assert run("judge", PROBLEMS, tmp_path / "s.jsonl").returncode == 0


def test_ctrl_c_keeps_what_was_judged_leaves_no_process_and_can_be_gone_on_with(tmp_path):
    problems = tmp_path / "p.jsonl"
    write_problems(problems, [Problem(id="p", tests=[Test("", "1\n")], time_limit_s=100)])
    quick = [{"problem_id": "p", "code": "print(1)"}] * 3
    solutions = write(tmp_path / "s.jsonl", *quick, *[{"problem_id": "p", "code": "while True: pass"}] * 6)
    output = tmp_path / "v.jsonl"
    arguments = ["judge", str(problems), str(solutions), "-o", str(output), "--workers", "2"]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (output.exists() and len(output.read_text().splitlines()) == 3):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    try:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)  # far less than the programs' own limit
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "stopped after 3 of 9 programs" in told
    assert "run the same command again" in told
    assert "Traceback" not in told
    assert children
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
    assert [v["verdict"] for v in lines(output)] == ["accepted"] * 3
    told, _ = summary(problems, solutions, "-o", output, "--limit", 3)
    assert (told["resumed"], told["judged"]) == (3, 0)


def test_on_a_terminal_there_is_a_bar_with_the_rate_and_none_of_it_reaches_stdout(shown_by):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [*COMMAND, "judge", PROBLEMS, SOLUTIONS, "--json"], stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = shown_by(ours)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["programs"] == len(EXPECTED)
    text = shown.decode()
    assert re.search(rf"\d+/{len(EXPECTED)}\b", text)
    assert re.search(r"[\d.]+ programs/s, \d+:\d\d:\d\d left", text)


@pytest.mark.parametrize("args", [("config",), ("judge", PROBLEMS, SOLUTIONS, "--limit", "1")])
def test_a_closed_pipe_is_no_reason_for_a_traceback(args):
    process = subprocess.Popen([*COMMAND, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    told = process.stderr.read()
    process.wait(timeout=60)
    assert "Traceback" not in told
    assert "BrokenPipe" not in told


# ---- the summary by itself


def test_a_tally_keeps_the_three_slowest_and_counts_strategies_of_accepted_programs_only():
    tally = Tally()
    for n, cpu in enumerate([0.1, 0.5, 0.2, 0.4, 0.3]):
        tally.add(Verdict("accepted", id=str(n), cpu_s=cpu, strategy="tokens"), resumed=n == 0)
    tally.add(Verdict("wrong_answer", id="x", strategy="exact", inside=True))
    told = tally.summary(2.0, sandbox="full")
    assert [s["id"] for s in told["slowest"]] == ["1", "3", "4"]
    assert told["strategies"] == {"tokens": 5}
    assert told["verdicts"] == {"accepted": 5, "wrong_answer": 1}
    assert (told["judged"], told["resumed"], told["inside"], told["cpu_s"]) == (5, 1, 1, 1.5)
    assert told["programs_per_s"] == 2.5


# ---- what others wrote, on a terminal

TERMINAL = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
STEER = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x7f\u202e[red]x[/red][bold]:smile:"


def steers(text):
    return [character for character in text if character != "\n" and not character.isprintable()]


@pytest.fixture
def foreign(tmp_path):
    """Problems and solutions whose names would steer a terminal, and lines that cannot be used for each reason."""
    problems, solutions = tmp_path / "problems.jsonl", tmp_path / "solutions.jsonl"
    problem = {"id": STEER, "tests": [{"input": "", "output": "1"}]}
    bad = [problem, {**problem, "id": "k", "kind": STEER}, {**problem, "id": "u", STEER: 1}, {"id": f"e{STEER}"}]
    problems.write_text("".join(json.dumps(line) + "\n" for line in [problem, *bad]))
    good = {"problem_id": STEER, "code": "print(1)", "id": f"s{STEER}"}
    lines = [good, good, {**good, "problem_id": f"n{STEER}", "id": "n"}, {STEER: 1}, {**good, "language": STEER}]
    solutions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return problems, solutions


def test_ids_and_reasons_in_files_do_not_steer_the_terminal(foreign, shown_by):
    done = run("judge", *foreign)
    assert done.returncode == 1 and steers(done.stdout + done.stderr) == []
    seen = "s\\x1b]0;owned\\x07\\x1b[2J\\u009b31m\\x0d\\u007f\\u202e[red]x[/red][bold]:smile:"
    assert seen in "".join(done.stdout.split())
    ours, theirs = pty.openpty()  # where there are a bar and colours
    process = subprocess.Popen([*COMMAND, "judge", *foreign], stdout=theirs, stderr=theirs, env=TERMINAL)
    os.close(theirs)
    screen = shown_by(ours).decode()
    assert process.wait() == 1 and "owned" in screen
    assert not [bad for bad in ("\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x07", "\x7f") if bad in screen]


def test_a_message_and_a_file_name_do_not_steer_the_terminal(tmp_path):
    (tmp_path / f"a{STEER.replace('/', '')}.jsonl").write_text("")
    for args in (("judge", PROBLEMS, tmp_path / f"{STEER}.jsonl"), ("judge", PROBLEMS, tmp_path), (STEER,)):
        done = run(*args)
        assert done.returncode == 2 and "\\x1b" in done.stderr and steers(done.stderr) == []


@pytest.mark.parametrize("command", [["rollouts"], ["rollouts", "--json"], ["rollouts", "--list"], ["advise"]])
def test_a_run_of_somebody_elses_does_not_steer_the_terminal(tmp_path, command):
    from microcoder.runs import Run, write_rollouts

    with Run.create(tmp_path / "run", "", {"model": STEER}) as made:
        made.log(1, {"reward": 0.5})
        row = {"row": 0, "problem": STEER, "completion": STEER, "verdict": STEER, "message": STEER, "reward": 1.0}
        row["earlier"] = [{"completion": STEER, "verdict": STEER, "message": STEER, "told": STEER}]
        write_rollouts(tmp_path / "run", 1, [{**row, "length": 3, "advantage": 0.0}], {STEER: STEER})
        made.update(reason=STEER, status=STEER)
    done = run(*command, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert steers(done.stdout + done.stderr) == []
    if "--json" in command:
        assert json.loads(done.stdout)["completion"] == STEER


def test_rollouts_prints_every_try_and_what_the_model_was_told(tmp_path):
    from microcoder.runs import Run, write_rollouts

    first = {"completion": "print(2)", "verdict": "wrong_answer", "message": "got 2", "told": "It is wrong."}
    row = {"row": 0, "problem": "p", "completion": "print(1)", "verdict": "accepted", "reward": 1.0, "length": 3}
    with Run.create(tmp_path / "run", "", {}):
        write_rollouts(tmp_path / "run", 1, [{**row, "earlier": [first]}])
    lines = [line for line in run("rollouts", tmp_path / "run").stdout.splitlines() if line]
    assert lines[:4] == ["--- p  wrong_answer  try 1", "print(2)", "judge: got 2", "> It is wrong."]
    assert lines[4].startswith("--- p  accepted  try 2  row 0  reward 1") and lines[5] == "print(1)"


def test_commands_print_in_one_way_only():
    """By `echo` or a `Terminal`, which show what would steer a terminal."""
    folder = Path(microcoder.__file__).parent / "cli"
    for path in folder.glob("*.py"):
        text = path.read_text()
        if path.name not in ("shown.py", "terminal.py", "__init__.py"):
            assert "click.echo(" not in text and not re.search(r"\bConsole\(", text), path.name


def test_a_table_with_colours_shows_what_would_steer():
    import io

    from rich.syntax import Syntax
    from rich.table import Table as Rich

    from microcoder.cli.terminal import Terminal

    table = Rich("name")
    table.add_row(STEER)
    for what in (STEER, table, Syntax(STEER, "markdown")):
        screen = io.StringIO()
        Terminal(file=screen, force_terminal=True, width=200).print(what)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())  # the colours that are ours
        assert steers(plain) == [] and "[red]x" in plain


def test_python_m_microcoder_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "microcoder", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"microcoder, version {microcoder.__version__}\n")
