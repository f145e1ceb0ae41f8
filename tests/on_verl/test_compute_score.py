"""verl's own reward manager, with the settings of docs/howto/rewards.md and a row of verl.parquet."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from rewards_page import titled
from tensordict import TensorDict
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager

from microcoder.data.dataset import for_verl
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.schema import Problem, Test

TOKENIZER = load_tokenizer(resolve("nano"))
DOUBLE = Problem("double", tests=[Test("2\n", "4\n"), Test("5\n", "10\n")])


def manager(name):
    words = [line.lstrip("+") for line in titled("verl").splitlines() if "custom_reward_function" in line]
    page = OmegaConf.from_dotlist(words)
    own = {
        "reward": {
            "reward_manager": {"source": "register", "name": "naive"},
            "custom_reward_function": {"name": name, "reward_kwargs": {"judge": "here"}},
        }
    }
    return load_reward_manager(OmegaConf.merge(page, own), TOKENIZER)


def response(text):
    ids = TOKENIZER(text)["input_ids"]
    mask = torch.tensor([[1, 1, *[1] * len(ids), 0]])
    batch = TensorDict({"responses": torch.tensor([[*ids, 0]]), "attention_mask": mask}, batch_size=1)
    row = for_verl(DOUBLE, 0)
    columns = {name: np.array([row[name]], dtype=object) for name in ("data_source", "reward_model", "extra_info")}
    return DataProto(batch=batch, non_tensor_batch=columns)


@pytest.mark.parametrize("name", ["compute_score", "compute_score_async"])
@pytest.mark.parametrize(
    ("text", "verdict", "score"),
    [("```python\nprint(2 * int(input()))\n```", "accepted", 1.0), ("no program", "no_code", 0.0)],
)
def test_the_naive_manager_scores_a_response(name, text, verdict, score):
    async def scored():
        return await manager(name).run_single(response(text))  # which keeps the loop that it was made in

    found = asyncio.run(scored())
    assert (found["reward_score"], found["reward_extra_info"]["verdict"]) == (score, verdict)
