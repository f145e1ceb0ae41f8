"""The display of a training: a panel that fits its terminal, and plain lines everywhere else."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap

import pytest
from rich.console import Console

from microcoder.advise import Advice
from microcoder.cli.live import Live, duration, sparkline, values

STEP = {"reward": 0.41, "accuracy": 0.4, "length_mean": 63.2, "diversity": 0.52}
STEP |= {"generation_s": 1.2, "judging_s": 0.8, "update_s": 2.1, "step_s": 4.0}
WARNING = Advice("diversity_lost", "warning", "D fell", "all alike", "grpo.temperature=1.4", 7)
PYTHON = [sys.executable, "-c"]
TRAINING = """
    import sys, time
    from microcoder.advise import Advice
    from microcoder.cli.live import Live
    with Live(20, "a run with a title that is longer than the terminal is wide") as live:
        for step in range(1, 21):
            live.phase("generating")
            live.step({"step": step, "reward": step / 20, "length_mean": 100.0, "diversity": None, "step_s": 2.0})
            if step == 5:
                live.note("stage 2: temperature 1.2 [not markup]")
                live.warn(Advice("x", "error", "everything is cut off", "a long reason " * 9, "a.b=1", 5))
                print("printed by somebody else")
            time.sleep(0.02)
"""


def plain(total, *calls):
    """What is printed where there is no terminal."""
    file = io.StringIO()
    with Live(total, "title", Console(file=file)) as live:
        for name, argument in calls:
            getattr(live, name)(argument)
    return file.getvalue().splitlines()


@pytest.fixture
def in_terminal(shown_by):
    """What TRAINING writes to a terminal of a size."""

    def show(columns, rows, **environment):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        names = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        names |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment}
        process = subprocess.Popen([*PYTHON, textwrap.dedent(TRAINING)], stdout=theirs, stderr=theirs, env=names)
        os.close(theirs)
        shown = shown_by(ours)
        assert process.wait(timeout=60) == 0
        return shown.decode()

    return show


def lines_of(shown):
    """The lines without colours and cursor movements."""
    return re.split(r"\r?\n|\r", re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", shown))


# ---- plain lines


def test_a_step_is_one_line():
    (title, line) = plain(60, ("step", {"step": 12} | STEP))
    assert title == "title"
    assert line == ("step 12/60  reward  0.41  acc 0.40  len    63  D 0.52  gen  1.2s judge  0.8s upd  2.1s  eta 3m12s")


def test_columns_line_up_whatever_the_step_and_whatever_is_missing():
    steps = [{"step": 1, "step_s": 1.0}, {"step": 7} | STEP, {"step": 100} | STEP | {"length_mean": 8192.0}]
    lines = plain(100, *(("step", step) for step in steps))[1:]
    assert len({line.index("eta") for line in lines}) == 1
    assert "reward     -  acc    -" in lines[0]


def test_an_evaluation_shows_in_the_line_of_its_step():
    assert values(STEP | {"test_accuracy": 0.4567}).endswith("  test 0.457")
    assert "test" not in values(STEP | {"test_accuracy": None})


def test_the_time_left_follows_the_mean_of_the_steps_seen():
    lines = plain(10, ("step", {"step": 7, "step_s": 10.0}), ("step", {"step": 8, "step_s": 30.0}))
    assert [line.split("eta ")[1] for line in lines[1:]] == ["30s", "40s"]
    assert "eta" not in plain(10, ("step", {"step": 7}))[1]


def test_warnings_and_notes_are_lines_and_phases_are_not():
    lines = plain(9, ("note", "stage [2]"), ("phase", "generating"), ("warn", WARNING))
    assert lines[1:] == ["stage [2]", "warning at step 7: D fell", "  why: all alike", "  try: grpo.temperature=1.4"]


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}, {"COLUMNS": "20"}, {"TERM": "dumb"}])
def test_a_pipe_gets_whole_lines_without_control_characters(environment):
    command = [*PYTHON, textwrap.dedent(TRAINING)]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment, check=True).stdout
    assert "\x1b" not in out
    assert "\r" not in out
    assert len(re.findall(r"^step +\d+/20  reward .* eta \d+s$", out, re.MULTILINE)) == 20


def test_a_log_in_ascii_ends_no_training():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Live(1, "läuft", Console(file=file)):
        pass
    assert file.buffer.getvalue() == b"l\\xe4uft\n"


# ---- the panel


@pytest.mark.parametrize(("columns", "rows"), [(100, 30), (40, 12), (20, 6)])
def test_no_line_is_wider_than_the_terminal(columns, rows, in_terminal):
    shown = in_terminal(columns, rows)
    assert "\x1b[" in shown
    assert max(map(len, lines_of(shown))) <= columns


def test_the_panel_shows_bar_values_curves_and_warnings_and_words_from_elsewhere_survive(in_terminal):
    lines = lines_of(in_terminal(100, 30))
    last = lines[max(n for n, line in enumerate(lines) if line.startswith("step 20/20")) :]
    assert re.match(r"step 20/20 +━+ +eta 0s", last[0])
    assert last[1].startswith("reward  1.00  acc    -  len   100  D    -")
    assert last[2].startswith("reward  " + sparkline([n / 20 for n in range(1, 21)]))
    assert last[3].startswith("length  " + "▁" * 20)
    assert last[5].startswith("step 5: everything is cut off; a long reason")
    assert any("try: a.b=1" in line for line in last)
    assert any(line.rstrip() == "stage 2: temperature 1.2 [not markup]" for line in lines)
    assert any(line.rstrip() == "printed by somebody else" for line in lines)


def test_a_narrow_panel_shows_the_newest_values(in_terminal):
    lines = lines_of(in_terminal(20, 30))
    assert [line for line in lines if line.startswith("reward  ▁")][-1] == "reward  " + sparkline(range(12))


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}])
def test_a_terminal_that_cannot_draw_gets_plain_lines(environment, in_terminal):
    shown = in_terminal(60, 30, **environment)
    assert shown.isascii()
    assert "\x1b" not in shown
    assert len(re.findall(r"^step +\d+/20  reward", shown, re.MULTILINE)) == 20


# ---- small things


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ([], ""),
        (range(8), "▁▂▃▄▅▆▇█"),
        ([0.0, 0.5, 1.0], "▁▅█"),
        ([5, 5], "▁▁"),
        ([1, None, float("nan"), float("inf"), 2], "▁   █"),
        ([None], " "),
        ([-1e9, 1e9], "▁█"),
    ],
)
def test_sparkline(numbers, line):
    assert sparkline(numbers) == line


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.4, "59s"), (59.6, "1m00s"), (190, "3m10s"), (3600, "1h00m"), (90060, "25h01m")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text
