"""Memory of an update beside the plan: a toy run on a CPU."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpu import memory


@pytest.mark.parametrize("tokens", [3, 512, 1025, 7000, 16384])
def test_a_row_has_as_many_tokens_as_asked_for(tokens):
    assert memory.packed_row(tokens, 99, "cpu").ids.shape == (1, tokens)


@pytest.mark.parametrize("words", [["--recompute", "yes"], ["--optimizer", "adam8bit", "--recompute", "no,yes"]])
def test_a_toy_shape_runs_and_prints_the_plan_alone(monkeypatch, capsys, tmp_path, words):
    file = tmp_path / "memory.json"
    monkeypatch.setattr("sys.argv", ["memory", "--shape", "tiny", "--tokens", "300", "--json", str(file), *words])
    memory.main()
    rows = json.loads(file.read_text())
    assert [row["recompute"] for row in rows] == words[-1].split(",")
    for row in rows:
        assert row["plan"]["all"] == sum(row["plan"][name] for name in ("weights", "gradients", "optimizer", "pass"))
        assert set(row["measured"]) == {"pass_s", "step_s"}
    assert "recompute: yes" in capsys.readouterr().out
