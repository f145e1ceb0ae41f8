"""Every block of docs/howto/rewards.md that the core can run; those of TRL, verl and verifiers run in their tests."""

from __future__ import annotations

import pytest
from rewards_page import blocks, plain

import microcoder as mc
from microcoder.files import write_problems

TESTS = [mc.Test(str(n), str(2 * n)) for n in (1, 4)]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The folder of someone who has made a training set."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()
    write_problems("dataset/problems.parquet", [mc.Problem("double", statement="Double it.", tests=TESTS)])


def test_blocks_run_and_say_what_the_page_says(reader, capsys):
    first, env, livecodebench = plain()
    names = {}
    call = first.splitlines()[-1]
    exec(first, names)
    assert eval(call, names) == [1.0, 0.0] and call.endswith("# [1.0, 0.0]")
    exec(env, names)
    said = "Your program gives a wrong answer. Write the whole program again, "
    assert capsys.readouterr().out.startswith(said) and said in env
    exec(livecodebench, names)
    assert f"# {capsys.readouterr().out.strip()}" in livecodebench


def test_no_integration_takes_more_than_ten_lines():
    assert max(len(block["text"].splitlines()) for block in blocks()) <= 10
