"""`grpo.policy_loss` as one of verl's policy losses. The KL term, which verl adds after it, is the same k3."""

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import register_policy_loss

from ...grpo import Objective, policy_loss
from .settings import NAME, REDUCTIONS

OURS: dict[str, Any] = {theirs: ours for ours, theirs in REDUCTIONS.items()}


@register_policy_loss(NAME)
def loss(
    old_log_prob: torch.Tensor,  # (n, t)
    log_prob: torch.Tensor,  # (n, t)
    advantages: torch.Tensor,  # (n, t), the same all over a row
    response_mask: torch.Tensor,  # (n, t)
    loss_agg_mode: str,
    config: Any,
    rollout_is_weights: torch.Tensor | None = None,  # (n, t)
) -> tuple[torch.Tensor, dict[str, Any]]:
    totals = config.global_batch_info
    result = policy_loss(
        log_prob,
        old_log_prob,
        advantages[:, 0],
        response_mask,
        Objective(
            config.clip_ratio_low, config.clip_ratio_high, config.clip_ratio_c or None, reduction=OURS[loss_agg_mode]
        ),
        weights=rollout_is_weights,
        tokens=totals["batch_num_tokens"],
        sequences=totals["global_batch_size"],
        limit=config.loss_scale_factor,
    )
    # verl takes the mean of these over passes: a quotient of two such means is that of the sums
    counted = {name: float(getattr(result, name)) for name in ("tokens", "clip_low", "clip_high")}
    return result.loss * totals["dp_size"], {f"microcoder/{name}": value for name, value in counted.items()}
