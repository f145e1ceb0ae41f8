"""How many problems a data set ends with, and how long the attempts are that it is calibrated by: `difficulty.size` and
`difficulty.attempt_tokens` from the command line."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

from microcoder.cli import cli
from microcoder.files import read_problems, write_problems
from microcoder.starter import problems

DEPTHS = {2: 20, 5: 40}  # problems of each; easy and hard by their labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Starter problems without solutions, so that nothing has to be run, and the settings for them."""
    folder = tmp_path_factory.mktemp("selection")
    drawn = [problem for depth, count in DEPTHS.items() for problem in problems("train", count, depths=[depth])]
    write_problems(folder / "pool.jsonl", [replace(problem, solutions=[]) for problem in drawn])
    (folder / "data.toml").write_text(f"""
        [[collect.sources]]
        path = "{folder / "pool.jsonl"}"
        [filter]
        similarity = 1.0
        [output]
        folder = "{folder / "out"}"
        workers = 1
        [judge]
        workers = 1
        """)
    return folder


def run(folder, *settings):
    return CliRunner().invoke(cli, ["data", "run", str(folder / "data.toml"), *settings])


def labels(folder):
    return Counter(problem.difficulty for problem in read_problems(folder / "out/dataset/problems.parquet"))


def test_a_size_alone_keeps_so_many_and_leaves_the_shares_as_they_are(folder):
    assert run(folder, "difficulty.size=1000").exit_code == 0
    there = labels(folder)
    assert run(folder, "difficulty.size=24").exit_code == 0
    kept = labels(folder)
    assert kept.total() == 24 and abs(kept["hard"] - 24 * there["hard"] / there.total()) < 1


def test_a_size_holds_for_a_target_too(folder):
    assert run(folder, "difficulty.size=9", "difficulty.target={hard=1.0}").exit_code == 0
    assert labels(folder) == {"hard": 9}


def test_a_size_without_difficulties_is_refused(folder):
    result = run(folder, "difficulty.size=9", "difficulty.by=none")
    assert result.exit_code == 2 and "set it to auto" in result.output


def test_attempts_are_as_long_as_asked_for_so_that_a_small_window_holds_them(folder):
    settings = ("difficulty.calibrate=nano", "difficulty.calibrate_on=10", "difficulty.attempts=1")
    result = run(folder, *settings, "difficulty.attempt_tokens=8")
    assert result.exit_code == 0, result.output
    made = json.loads((folder / "out/filter/calibration.json").read_text())
    assert made["attempts"] == 10 and set(made["chances"]) == {0.0}  # nothing is solved in 8 tokens
