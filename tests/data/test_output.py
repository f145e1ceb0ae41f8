"""The data set that a run leaves: what TRL and verl read, and the card."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from datasets import load_dataset

from microcoder.data import dataset as output
from microcoder.data.dataset import write_dataset
from microcoder.data.parts import Counts, write_part
from microcoder.data.record import Record
from microcoder.data.report import Done
from microcoder.files import read_problems
from microcoder.judge import Judge
from microcoder.schema import Problem
from microcoder.starter import problems as starter


@pytest.fixture
def written(tmp_path, monkeypatch):
    """(the folder, the problems): more than a batch of them, and only the later ones with a difficulty."""
    monkeypatch.setattr(output, "BATCH", 4)
    problems = starter("train", 10)
    records = [Record(problem, {"difficulty": 0.25} if n > 5 else {}) for n, problem in enumerate(problems)]
    for problem in problems:
        problem.difficulty_score = None
    write_part(tmp_path, "00-00000", records)
    counts = Counts(10, Counter({"licence": 3}))
    steps = [Done("filter/1-text", tmp_path, counts, 1.0)]
    assert write_dataset(tmp_path / "dataset", [tmp_path / "kept/00-00000.jsonl.gz"], steps, "a = 1") == {"starter": 10}
    return tmp_path / "dataset", problems


def rows(folder, name, cache):
    return load_dataset("parquet", data_files=str(folder / f"{name}.parquet"), split="train", cache_dir=str(cache))


def test_trl_gets_a_conversation_and_a_problem_that_can_be_judged(written, tmp_path):
    folder, problems = written
    found = rows(folder, "trl", tmp_path / "cache")
    assert found["id"] == [problem.id for problem in problems]
    assert [message["role"] for message in found[0]["prompt"]] == ["user"]
    problem = Problem.from_dict(json.loads(found[3]["problem"]))
    with Judge(workers=1) as judge:
        assert judge.check(problem, code=problems[3].solutions[0]["code"]).accepted


def test_verl_gets_its_columns_whether_or_not_there_is_a_difficulty(written, tmp_path):
    folder, problems = written
    found = rows(folder, "verl", tmp_path / "cache")
    assert set(found.column_names) == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert [row["index"] for row in found["extra_info"]] == list(range(10))
    assert [row["difficulty"] for row in found["extra_info"]][6:] == [0.25] * 4
    assert all(math.isnan(row["difficulty"]) for row in found["extra_info"][:6])
    assert Problem.from_dict(json.loads(found[9]["reward_model"]["ground_truth"])).id == problems[9].id


def test_ours_has_the_difficulty_that_was_found_and_the_card_says_how_it_was_made(written):
    folder, _ = written
    scores = [problem.difficulty_score for problem in read_problems(folder / "problems.parquet")]
    assert scores == [None] * 6 + [0.25] * 4
    card = (folder / "README.md").read_text()
    assert "10 problems" in card and "| filter/1-text | 10 | licence 3 |" in card and "a = 1" in card


def test_half_surrogate_pairs_and_scores_of_two_types_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "BATCH", 2)
    scores = (1, 2, 0.5, None)
    problems = [Problem(f"{n}", starter_code="x = '\ud83d'", difficulty_score=score) for n, score in enumerate(scores)]
    write_part(tmp_path, "00-00000", map(Record, problems))
    write_dataset(tmp_path / "dataset", [tmp_path / "kept/00-00000.jsonl.gz"], [], "")
    found = rows(tmp_path / "dataset", "verl", tmp_path / "cache")
    assert [row["difficulty"] for row in found["extra_info"]][:3] == [1.0, 2.0, 0.5]
    assert json.loads(found[0]["reward_model"]["ground_truth"])["starter_code"] == problems[0].starter_code
    assert "x = '\\ud83d'" in found[0]["prompt"][0]["content"]
