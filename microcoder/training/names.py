"""verl's names -> ours. TRL's trainer counts by our names; nobody who reads a run asks which engine made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {
    "actor/loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "actor/kl_loss": "kl",
}
SHARES = {  # of the tokens that an update counted
    "actor/microcoder/clip_low": "clip_low",
    "actor/microcoder/clip_high": "clip_high",
}
TOKENS = "actor/microcoder/tokens"
UPDATE = ("old_log_prob", "ref", "adv", "update_actor")  # parts of a step that are its update


def metrics_of(
    metrics: Mapping[str, Any], seconds: Mapping[str, float], rollout: Mapping[str, float]
) -> dict[str, Any]:
    """A step's metrics by our names: verl's metrics, its clock, and the seconds of the rollout."""
    found = {ours: float(metrics[theirs]) for theirs, ours in NAMES.items() if theirs in metrics}
    tokens = max(float(metrics[TOKENS]), 1.0)
    found |= {ours: float(metrics[theirs]) / tokens for theirs, ours in SHARES.items()}
    checkpoint = seconds.get("save_checkpoint", 0.0)
    step = seconds["step"] - checkpoint
    update = sum(seconds.get(part, 0.0) for part in UPDATE)
    return {
        **found,
        **rollout,
        "update_s": update,
        "checkpoint_s": checkpoint,
        "other_s": step - update - rollout["generation_s"] - rollout["judging_s"],  # weights handed over, above all
        "step_s": step,
    }
