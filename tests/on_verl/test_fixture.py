"""The fixture that TRL's trainer is held against, through verl: Ray, TransferQueue, FSDP on the CPU, verl's own passes.

Advantages, mask, D, loss and gradients are those of `grpo` called directly.
"""

from __future__ import annotations

import random

import pytest
import torch
import transfer_queue
from rollout_fixture import (
    END,
    LIMIT,
    PROBLEMS,
    SAMPLES,
    TEMPERATURE,
    direct_advantages,
    direct_update,
    distance,
    fixture,
)
from transfer_queue import KVBatchMeta
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl_runs import settings, spied

from microcoder.grpo import Stage, diversity
from microcoder.training.verl.settings import metrics_of

GROUPS = 4


def put(rows):
    """Into TransferQueue, as verl's agents do, in no order."""
    keys, tags = [], []
    for row in rows:
        judged = {"verdict": row.verdict.to_dict(), "text": "", "asked": 2.0, "judged": 3.0}
        output = AgentLoopOutput(
            prompt_ids=row.prompt,
            response_ids=row.ids,
            response_mask=[1] * len(row.ids),
            response_logprobs=[0.0] * len(row.ids),
            reward_score=float(row.accepted),
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={"reward_extra_info": judged, "started": 1.0, "ended": 2.0},
        )
        index = PROBLEMS.index(row.problem)
        ids = torch.tensor(row.prompt + row.ids)
        field = {**output.as_dict(), "index": index, "session_id": row.sample, "uid": f"u{index}"}
        field |= {"extra_info": {"problem": row.problem.id}, "input_ids": ids, "position_ids": torch.arange(len(ids))}
        field |= {"loss_mask": field["response_mask"], "multi_modal_inputs": {}}
        keys.append(f"u{index}_{row.sample}_0")
        tags.append({"seq_len": len(ids), "prompt_len": len(row.prompt), "response_len": len(row.ids)})
        fields = list_of_dict_to_tensordict([field])
        transfer_queue.kv_batch_put(keys=keys[-1:], partition_id="train", fields=fields, tags=tags[-1:])
    order = random.Random(1).sample(range(len(keys)), len(keys))
    return KVBatchMeta(partition_id="train", keys=[keys[n] for n in order], tags=[tags[n] for n in order])


def test_advantages_mask_diversity_loss_and_gradients_are_those_of_grpo(tmp_path):
    config = settings(
        "grpo.preset=microcoder",
        "grpo.rho=0.5",
        "grpo.kl=0.001",
        f"train.max_response_tokens={LIMIT}",
        "train.max_grad_norm=1e9",
        f"train.train_batch_size={GROUPS}",
        f"train.ppo_mini_batch_size={GROUPS // 2}",
        "train.micro_batch_size=4",
        "train.steps=1",
    )
    rows = [row for group in fixture()[:GROUPS] for row in group]
    advantages = direct_advantages(rows, config)
    prompts, stage, metrics = [group[0].prompt for group in fixture()], Stage(1, TEMPERATURE, LIMIT), {}
    with spied(tmp_path / "run", config, stage, PROBLEMS, prompts, frozenset([END])) as trainer:
        batch = put(rows)
        batch.extra_info["temperature"] = TEMPERATURE
        batch = trainer._balance_batch(batch, metrics=metrics)
        batch = trainer._compute_old_log_prob(batch, metrics)
        batch = trainer._compute_ref_log_prob(batch, metrics)
        batch = trainer._compute_advantage(batch, metrics)
        written = transfer_queue.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["advantages"])
        trainer._update_actor(batch, metrics)
        (updates,) = trainer.actor_rollout_wg.noted()
        found = trainer.batch

    number = {f"u{PROBLEMS.index(row.problem)}_{row.sample}_0": n for n, row in enumerate(rows)}
    order = [number[key] for key in batch.keys]
    for n, values in zip(order, written["advantages"].unbind(), strict=True):
        assert values.tolist() == [advantages[n]] * len(rows[n].ids)
    assert [row.ids for row in found.responses] == [row.ids for row in rows]
    assert [row.reward is None for row in found.responses] == [row.faulty for row in rows]
    without = direct_advantages(rows, settings("grpo.preset=microcoder", "grpo.mask=none"))
    assert all(row.masked for row, a, b in zip(found.responses, advantages, without, strict=True) if a != b)
    assert diversity([row.ids for row in found.responses], SAMPLES) == diversity([row.ids for row in rows], SAMPLES)

    losses, half = [], len(rows) // 2
    for at, (weights, gradients) in zip((0, half), updates, strict=True):
        members = order[at : at + half]
        tokens = sum(len(rows[n].ids) for n in members)
        sums, expected = direct_update(
            [rows[n] for n in members], advantages[members], weights, config, tokens, len(members)
        )
        assert distance(gradients, expected) < 1e-5
        losses.append(sums["loss"])
    assert any(not torch.equal(updates[0][0][name], updates[1][0][name]) for name in updates[0][0])
    line = metrics_of(metrics, {"step": 1.0}, found.seconds)
    assert line["loss"] == pytest.approx(sum(losses) / 2, rel=1e-5, abs=1e-7)
