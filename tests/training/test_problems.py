"""Which problems a run trains on."""

from __future__ import annotations

import pytest

from microcoder.config import DataConfig
from microcoder.files import write_problems
from microcoder.schema import Problem, Test
from microcoder.training.problems import DataError, load_problems


@pytest.fixture
def file(tmp_path):
    """Four problems: two of known difficulty, one that no solution was run on, one line that is none."""
    tests = [Test("1\n", "1\n")]
    found = [Problem(f"p/{score}", tests=tests, difficulty_score=score) for score in (0.2, 0.8)]
    found.append(Problem("p/unverified", tests=tests, difficulty_score=0.8, tags=["unverified", "graphs"]))
    write_problems(tmp_path / "problems.jsonl", found)
    with open(tmp_path / "problems.jsonl", "a") as out:
        out.write("{}\n")
    return str(tmp_path / "problems.jsonl")


def ids(loaded):
    return [problem.id for problem in loaded.problems]


def test_problems_with_a_refused_tag_are_left_out_of_training_and_counted(file):
    loaded = load_problems(DataConfig(train=file, refuse=["unverified"]), "train")
    assert ids(loaded) == ["p/0.2", "p/0.8"]
    assert loaded.dropped == {"unreadable": 1, "tagged unverified": 1}
    tested = load_problems(DataConfig(test=file, refuse=["unverified"]), "test")
    assert ids(tested) == ["p/0.2", "p/0.8", "p/unverified"]


def test_difficulty_chooses_by_the_score(file):
    loaded = load_problems(DataConfig(train=file, difficulty=[0.5, 1]), "train")
    assert ids(loaded) == ["p/0.8", "p/unverified"] and loaded.dropped["outside data.difficulty"] == 1


def test_when_nothing_is_left_the_error_says_what_was_left_out(file):
    with pytest.raises(DataError, match=r"2 outside data\.difficulty, 1 tagged graphs, 1 unreadable"):
        load_problems(DataConfig(train=file, refuse=["graphs"], difficulty=[0.9, 1]), "train")
