"""The metrics of a run as series, and the figure of its dynamics."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from microcoder.runs import RunError
from microcoder.runs.plot import series, smooth, stages

CONFIG = "[train]\nseed = 7\n"
ROLLOUT = {"row": 0, "problem": "p", "completion": "```python\n```", "verdict": "accepted", "reward": 1.0, "length": 3}


METRICS = [
    {
        "step": step,
        "reward": 0.3 + step / 100,
        "length_mean": 900.0 + step,
        "truncated_share": 0.1,
        "diversity": None if step == 7 else 0.5,
        "temperature": 0.6 if step < 10 else 1.2,
        "max_response_tokens": 4096 if step < 20 else 8192,
        "generation_s": 2.0,
        "judging_s": 0.5,
        "update_s": 1.0,
        "test_accuracy": 0.4 if step % 10 == 0 else None,
        "test_accuracy_low": 0.35,
        "test_accuracy_high": 0.45,
    }
    for step in range(1, 31)
]


def test_a_stage_ends_where_temperature_or_limit_changes():
    assert [(stage[0]["step"], stage[-1]["step"]) for stage in stages(METRICS)] == [(1, 9), (10, 19), (20, 30)]
    assert stages([{"step": 1, "temperature": None}, {"step": 2, "temperature": 1.0}, {"step": 3}])[1:] == []


def test_smoothing_averages_over_what_was_recorded_and_leaves_gaps_open():
    values = series([{"x": 1}, {"x": 3}, {}, {"x": None}, {"x": 5}, {"x": 7.0}], "x")
    assert np.array_equal(smooth(values), [2, 2, np.nan, np.nan, 6, 6], equal_nan=True)
    assert np.array_equal(smooth(np.full(300, 4.0)), np.full(300, 4.0))
    assert np.array_equal(smooth(np.array([2.0])), [2.0])


def test_the_figure_is_a_picture_of_the_size_of_a_page(tmp_path):
    pytest.importorskip("matplotlib")
    from microcoder.runs.plot import plot_dynamics

    plot_dynamics(METRICS, tmp_path / "a.png", "a run")
    header = (tmp_path / "a.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert (int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")) == (1520, 1080)


def test_the_figure_names_its_curves_and_stages_and_is_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    from microcoder.runs.plot import plot_dynamics

    for name in ("a.svg", "b.svg"):
        plot_dynamics(METRICS, tmp_path / name, "a run of $5")
    text = (tmp_path / "a.svg").read_text()
    words = ["a run of $5", "reward (train)", "accuracy (test)", "limit", "judging", "T 1.2", "limit 8192"]
    assert [word for word in words if f">{word}<" not in text] == []
    assert "not recorded" not in text
    assert text == (tmp_path / "b.svg").read_text()


def test_what_was_not_recorded_is_said_rather_than_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from microcoder.runs.plot import plot_dynamics

    plot_dynamics([{"step": 1, "reward": 0.5}], tmp_path / "a.svg", "")
    assert len(re.findall(">not recorded<", (tmp_path / "a.svg").read_text())) == 3


@pytest.mark.parametrize(
    ("metrics", "name", "words"),
    [(METRICS, "a.pdf", ".png or .svg"), ([], "a.png", "no step"), (METRICS, "no/a.png", "cannot write")],
)
def test_a_figure_that_cannot_be_drawn_says_why(tmp_path, metrics, name, words):
    pytest.importorskip("matplotlib")
    from microcoder.runs.plot import plot_dynamics

    with pytest.raises(RunError, match=words):
        plot_dynamics(metrics, tmp_path / name, "")


def test_writing_and_reading_a_run_loads_nothing_heavy():
    program = "import sys, microcoder.runs, microcoder.advise; print({'numpy', 'torch', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"
