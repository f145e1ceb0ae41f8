"""Scores of models on several suites: names, what is missing, a toy evaluation that is kept."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.gpu import scores
from microcoder.files import write_problems
from microcoder.starter import problems


def test_a_model_has_a_name():
    assert scores.named("base=models/a.gguf") == ("base", "models/a.gguf")
    assert scores.named("runs/a") == ("a", "runs/a")


def asked(monkeypatch, folder, *words):
    monkeypatch.setattr(sys, "argv", ["scores", "--data", str(folder), "--out", str(folder / "out"), *words])
    scores.main()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "nano", "--suites", "mbppplus"], "has no mbppplus.jsonl.gz"),
        (["--models", "a/x", "b/x"], "two models have one name"),
    ],
)
def test_what_cannot_be_scored_is_refused(monkeypatch, capsys, tmp_path, words, said):
    with pytest.raises(SystemExit) as ended:
        asked(monkeypatch, tmp_path, *words)
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_what_is_scored_is_kept(monkeypatch, capsys, tmp_path, one_thread):
    write_problems(tmp_path / "plain.jsonl", problems("test", 4))
    monkeypatch.setitem(scores.FILES, "test", "plain.jsonl")
    words = ["--models", "nano", "--suites", "test", "--size", "toy", "--judge-workers", "1"]
    asked(monkeypatch, tmp_path, *words)
    assert "nano test: " in capsys.readouterr().out
    file = tmp_path / "out" / "nano.test" / "scores.json"
    assert json.loads(file.read_text())["problems"] == 3
    asked(monkeypatch, tmp_path, *words)
    assert "nano test" not in capsys.readouterr().out  # not once more
