"""The reward manager asks our judge about one response at a time, and says what the judge said."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl import DataProto
from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
from verl_runs import settings

from microcoder.files import write_problems
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.schema import Problem, Test, Verdict
from microcoder.training.verl.settings import NAME

TOKENIZER = load_tokenizer(resolve("nano"))
DOUBLE = Problem("double", kind="stdin", tests=[Test("2\n", "4\n"), Test("5\n", "10\n")])


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "problems.jsonl"
    write_problems(path, [DOUBLE])
    config = OmegaConf.create({"microcoder": {"problems": str(path), "judge": settings().judge.model_dump()}})
    manager = get_reward_manager_cls(NAME)(config, TOKENIZER, None)
    yield manager
    manager.judge.close()


def response(text):
    """As verl's agents hand it in, with padding at its end."""
    ids = TOKENIZER(text)["input_ids"]
    mask = torch.tensor([[1, 1, *[1] * len(ids), 0, 0]])
    batch = TensorDict({"responses": torch.tensor([[*ids, 0, 0]]), "attention_mask": mask}, batch_size=1)
    about = {"problem": "double", "prompt_ids": TOKENIZER("Double it.").input_ids}
    return DataProto(batch=batch, non_tensor_batch={"extra_info": np.array([about], dtype=object)})


@pytest.mark.parametrize(
    ("text", "verdict", "reward"),
    [
        ("```python\nprint(2 * int(input()))\n```", "accepted", 1.0),
        ("```python\nprint(input())\n```", "wrong_answer", 0.0),
        ("no program", "no_code", 0.0),
    ],
)
def test_a_response_earns_what_the_judge_says(manager, text, verdict, reward):
    found = asyncio.run(manager.run_single(response(text)))
    about = found["reward_extra_info"]
    assert (found["reward_score"], Verdict.from_dict(about["verdict"]).verdict) == (reward, verdict)
    assert about["asked"] <= about["judged"]


def test_the_same_program_is_judged_once_at_a_time(manager):
    async def twice():
        handed_in = [manager.verdict("double", "```python\nprint(2 * int(input()))\n```") for _ in range(2)]
        return await asyncio.gather(*handed_in)

    first, second = asyncio.run(twice())
    assert first is second
    assert not manager.pending
