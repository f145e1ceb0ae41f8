"""`benchmarks.gpu gates` on an evaluation and a run of nano."""

from __future__ import annotations

import json

import pytest
from train_runs import trained

import microcoder as mc
from benchmarks.gpu import gates


def row(number, truncated, right, problem="a"):
    verdict = "accepted" if right else "no_code"
    return {"problem_id": problem, "number": number, "truncated": truncated, "verdict": verdict}


def test_what_was_cut_is_looked_up_where_it_went_on():
    short = [row(0, True, False), row(1, True, False), row(2, False, True), row(3, False, False)]
    long = [row(0, False, True), row(1, True, False), row(2, False, True), row(3, False, False)]
    found = gates.gates(short, long)
    assert found["truncated"] == found["continued"] == found["ended"] == 0.5 and found["ratio"] == 1.0
    assert gates.gates(short[2:], long[2:])["truncated"] == 0


def test_hard_problems_with_long_wrong_responses_do_not_count_against_those_of_easy_ones():
    easy = [(True, True), (False, True), (False, True), (False, True)]  # truncated at the limit, right when continued
    hard = [(True, False), (True, False), (True, False), (False, False)]
    rows = [(n, problem, *one) for problem, group in (("easy", easy), ("hard", hard)) for n, one in enumerate(group)]
    short = [row(n, truncated, right and not truncated, problem) for n, problem, truncated, right in rows]
    long = [row(n, False, right, problem) for n, problem, truncated, right in rows]
    found = gates.gates(short, long)
    assert (found["continued"], found["ended"]) == (0.25, 0.75)
    assert (found["continued_within"], found["ended_within"], found["ratio"]) == (0.5, 0.5, 1.0)


def test_an_evaluation_and_a_run(tmp_path, monkeypatch, capsys):
    mc.evaluate("nano", suite="starter", samples=1, first=4, limit=[24, 160], output=tmp_path / "eval")
    trained(tmp_path / "run", "grpo.preset=microcoder", "grpo.rho=1", "grpo.mask_outcome=any", "train.steps=1")
    words = [str(tmp_path / "eval"), "--run", str(tmp_path / "run"), "--json", str(tmp_path / "found.json")]
    monkeypatch.setattr("sys.argv", ["gates", *words])
    assert gates.main() == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["limits"]["24"]["truncated"] > 0.5 and 0 <= found["masked"] <= 1
    assert "1 holds" in capsys.readouterr().out


def test_one_limit_is_too_few(tmp_path, monkeypatch, capsys):
    mc.evaluate("nano", suite="starter", samples=1, first=1, limit=24, output=tmp_path / "eval")
    monkeypatch.setattr("sys.argv", ["gates", str(tmp_path / "eval")])
    assert gates.main() == 2
    assert "--limit 12,24" in capsys.readouterr().out


@pytest.mark.parametrize("rewards", [[1.0, 0.0], [0.0, 0.0]])
def test_only_groups_with_signal_count_as_masked(tmp_path, monkeypatch, rewards):
    rows = [{"problem": "a", "reward": reward, "masked": True} for reward in rewards]
    monkeypatch.setattr(gates, "steps", lambda run: [1])
    monkeypatch.setattr(gates, "read_rollouts", lambda run, step: rows)
    assert gates.masked(tmp_path) == (1.0 if len(set(rewards)) > 1 else 0.0)
