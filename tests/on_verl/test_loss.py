"""verl's loss, with ours registered in it, is `grpo.policy_loss` for every reduction, clip and KL."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.utils.losses import ppo_loss
from verl_runs import settings, theirs

from microcoder.grpo import Objective, policy_loss

PROMPT, LENGTHS = 2, (4, 1, 3)


def nested(rows):
    return torch.nested.as_nested_tensor(list(rows), layout=torch.jagged)


CASES = [
    (reduction, dual_clip, kl, "token", "ppo")
    for reduction in ("token_mean", "sequence_mean", "dr_grpo")
    for dual_clip in (0.0, 1.5)
    for kl in (0.0, 0.1)
]
OTHERS = [("sequence", "ppo"), ("sequence", "cispo"), ("token", "cispo"), ("token", "divergence")]
CASES += [("token_mean", 0.0, 0.1, *kinds) for kinds in OTHERS]


@pytest.mark.parametrize(("reduction", "dual_clip", "kl", "ratio", "clip"), CASES)
def test_the_loss_and_its_gradient_are_those_of_grpo(reduction, dual_clip, kl, ratio, clip):
    config = settings(
        f"grpo.reduction={reduction}", f"grpo.dual_clip={dual_clip}", f"grpo.kl={kl}", f"grpo.ratio={ratio}",
        f"grpo.clip={clip}",
    )  # fmt: skip
    actor = omega_conf_to_dataclass(theirs(config).actor_rollout_ref.actor)
    draw = torch.Generator().manual_seed(0)
    width, limit = max(LENGTHS), config.train.max_response_tokens
    mask = torch.tensor([[n < length for n in range(width)] for length in LENGTHS])  # (3, 4)
    new, old, ref = (torch.randn(len(LENGTHS), width, generator=draw) for _ in range(3))
    advantages = torch.tensor([1.0, -0.5, -2.0])
    totals = {"tokens": 20, "sequences": 6}  # of an update that this is a part of

    leaf = new.clone().requires_grad_()
    expected = policy_loss(
        leaf, old, advantages, mask, Objective(0.2, 0.28, dual_clip or None, kl, reduction, ratio, clip),
        ref_logprobs=ref if kl else None, limit=limit, **totals,
    )  # fmt: skip
    expected.loss.backward()

    ours = new.clone().requires_grad_()
    rows = [ours[n, :length] for n, length in enumerate(LENGTHS)]
    # verl has a log-probability for every token of prompt and response: that of the token after it
    whole = nested(torch.cat([ours.new_zeros(PROMPT - 1), row, ours.new_zeros(1)]) for row in rows)
    fields = {"old_log_probs": old, "ref_log_prob": ref, "advantages": advantages[:, None].expand_as(old)}
    data = TensorDict(
        {name: nested(value[n, :length] for n, length in enumerate(LENGTHS)) for name, value in fields.items()}
        | {
            "response_mask": nested(torch.ones(length) for length in LENGTHS),
            "prompts": nested(torch.ones(PROMPT).long() for _ in LENGTHS),
            "responses": nested(torch.ones(length).long() for length in LENGTHS),
            "input_ids": nested(torch.ones(PROMPT + length).long() for length in LENGTHS),
        },
        batch_size=len(LENGTHS),
    )
    tensordict_utils.assign_non_tensor(
        data, dp_size=1, batch_num_tokens=totals["tokens"], global_batch_size=totals["sequences"]
    )
    loss, metrics = ppo_loss(actor, {"log_probs": whole}, data)
    loss.backward()
    torch.testing.assert_close(loss, expected.loss)
    torch.testing.assert_close(ours.grad, leaf.grad)
    assert metrics["microcoder/tokens"].aggregate() == sum(LENGTHS)
    assert metrics["microcoder/clip_high"].aggregate() == int(expected.clip_high)
