"""verl's custom reward function, called as its reward managers call it; tests/on_verl has the managers themselves."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace

import pytest
from faulty_judge import Faulty

import microcoder as mc
from microcoder.data.dataset import for_verl
from microcoder.files import write_problems
from microcoder.rewards.reward import CodeReward
from microcoder.rewards.verl import compute_score, compute_score_async, compute_score_batched

ONE = {"workers": 1}
DOUBLE = mc.Problem("double", tests=[mc.Test("2", "4"), mc.Test("0", "0")])
RIGHT, HALF = "```python\nprint(2 * int(input()))\n```", "```python\nprint(4)\n```"


def row(text):
    """The arguments for a response to a row of verl.parquet."""
    made = for_verl(DOUBLE, 0)
    truth, about = made["reward_model"]["ground_truth"], {**made["extra_info"], "num_turns": None}
    return {"data_source": made["data_source"], "solution_str": text, "ground_truth": truth, "extra_info": about}


@pytest.mark.parametrize(("text", "verdict", "score"), [(RIGHT, "accepted", 1.0), (HALF, "wrong_answer", 0.0)])
def test_one_response(text, verdict, score):
    expected = {"score": score, "acc": score, "judge_fault": 0.0, "verdict": verdict}
    assert compute_score(**row(text), judge=ONE, reward_router_address=None) == expected
    assert inspect.iscoroutinefunction(compute_score_async)  # by which verl tells them apart
    assert asyncio.run(compute_score_async(**row(text), judge=ONE)) == expected


def test_many_at_once_and_shapes():
    rows = [row(RIGHT), row(HALF)]
    lists = {f"{name}s": [one[name] for one in rows] for name in rows[0]}
    assert [found["score"] for found in compute_score_batched(**lists, judge=ONE, shape="share")] == [1.0, 0.5]


def test_problems_from_a_file_by_id(tmp_path):
    write_problems(tmp_path / "p.jsonl", [DOUBLE])
    given = row(RIGHT) | {"ground_truth": "not a problem"}
    assert compute_score(**given, judge=ONE, problems=str(tmp_path / "p.jsonl"))["score"] == 1.0
    write_problems(tmp_path / "n.jsonl", [replace(DOUBLE, id="7")])
    numbered = given | {"extra_info": {"id": 7}}
    assert compute_score(**numbered, judge=ONE, problems=str(tmp_path / "n.jsonl"))["score"] == 1.0


def test_a_fault_of_the_judge_is_a_number_that_can_be_chosen_and_is_logged(monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    assert compute_score(**row(RIGHT), on_fault=-1.0) == {
        "score": -1.0, "acc": 0.0, "judge_fault": 1.0, "verdict": "internal_error",
    }  # fmt: skip
