"""The policy loss: log-probabilities of the sampled tokens, a ratio that is kept in bounds, and three reductions.

The ratio is that of each token, or of a whole response, by its mean log-ratio (GSPO). What bounds do, A the advantage:

    ppo          min(r A, clip(r) A): a token that went beyond its bound has no gradient any more
    cispo        clip(r) A log p, with no gradient through clip(r): every token keeps one, of bounded weight
    divergence   r A, but for tokens whose probability went further than the bound, |p - p_old|, in the direction of
                 their advantage: rare tokens have large ratios without having moved far (DPPO, by total variation)

Where we differ from the paper, whose equation 1 shows one ratio per response:

1. Ratio and clip are per token unless asked for, as in GRPO, DAPO and both engines.
2. The sum is divided by totals of the whole optimizer update, which the caller passes. So the losses of micro-batches
   and ranks add up, however the batch is split. An engine that averages over them multiplies by their number first.
3. A log-ratio is limited to +-20: e^20 is beyond any clip, and e^89 would be infinite in float32 and its gradient NaN.
4. The KL term, if used, is relative to a fixed reference policy, as in GRPO; equation 1 has the old policy.
5. The dual clip (Ye et al., 2020) is off by default; verl has it on, TRL off.

The paper's ratio is at temperature T(D) in both policies, so the logits are divided by it here. All arithmetic is
float32 (float64 for float64 logits), but no float32 copy of all logits is made: with 8K tokens and a vocabulary of 150k
it would take 5 GB a response, and twice that in the backward pass. Rows are processed in chunks, and the backward pass
computes the softmax again from the logits instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 512  # tokens; at 150k words a chunk takes 0.3 GB in float32


def token_logprobs(logits: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """Return the log-probability (n, t) of each of `ids` (n, t) under softmax(`logits` (n, t, words) / temperature)."""
    _check_logits(logits, temperature)
    if ids.shape != logits.shape[:2]:
        raise ValueError(
            f"ids are of shape {tuple(ids.shape)} and logits of shape {tuple(logits.shape)}; pass one id for each "
            "position, shifted so that logits[i, j] predict ids[i, j]: logits[:, :-1] with ids[:, 1:]"
        )
    return _TokenLogprobs.apply(logits, ids, temperature)


@torch.no_grad()
def token_entropy(logits: Tensor, temperature: float) -> Tensor:
    """Return the entropy (n, t) in nats of softmax(`logits` (n, t, words) / temperature), without a gradient."""
    _check_logits(logits, temperature)
    entropy = torch.empty(logits.shape[:2], dtype=_wide(logits), device=logits.device)  # (n, t)
    for part in _parts(logits):
        entropy[part] = torch.special.entr(_scaled(logits[part], temperature).softmax(-1)).sum(-1)
    return entropy


class _TokenLogprobs(torch.autograd.Function):
    """Log-probability of ids: z[id] - logsumexp(z), z = logits / temperature. Derivative: one-hot(id) - softmax(z)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ids: Tensor, temperature: float) -> Tensor:
        total = torch.empty(ids.shape, dtype=_wide(logits), device=logits.device)  # (n, t)
        for part in _parts(logits):
            total[part] = _scaled(logits[part], temperature).logsumexp(-1)
        ctx.save_for_backward(logits, ids, total)
        ctx.temperature = temperature
        return _scaled(logits.gather(-1, ids[..., None])[..., 0], temperature) - total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        logits, ids, total = ctx.saved_tensors
        grad_logits = torch.empty_like(logits)  # (n, t, words)
        grad = grad / ctx.temperature  # (n, t)
        for part in _parts(logits):
            softmax = (_scaled(logits[part], ctx.temperature) - total[part][:, None]).exp_()  # (chunk, words)
            chunk = softmax.mul_(-grad[part][:, None])
            grad_logits[part] = chunk.scatter_add_(-1, ids[part][:, None], grad[part][:, None])
        return grad_logits, None, None


def _parts(logits: Tensor) -> Iterator[tuple[int, slice]]:
    """Yield views of at most CHUNK positions of one row. For logits[:, :-1] flattening would make a copy."""
    for row in range(logits.shape[0]):
        for start in range(0, logits.shape[1], CHUNK):
            yield row, slice(start, start + CHUNK)


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    return logits.to(_wide(logits)) / temperature


def _wide(logits: Tensor) -> torch.dtype:
    return torch.promote_types(logits.dtype, torch.float32)


def _check_logits(logits: Tensor, temperature: float) -> None:
    if logits.dim() != 3:
        raise ValueError(f"logits are of shape {tuple(logits.shape)}; they must be (rows, tokens, words)")
    if not temperature > 0:
        raise ValueError(f"the temperature is {temperature}; it must be above 0: pass the one that was sampled with")


Reduction = Literal["token_mean", "sequence_mean", "dr_grpo"]
Ratio = Literal["token", "sequence"]
Clip = Literal["ppo", "cispo", "divergence"]
LOG_RATIO_BOUND = 20.0


@dataclass(frozen=True)
class Objective:
    """Settings of the loss. GRPO: kl = 0.001 and eps_high = eps = 0.2; clip-higher: kl = 0 and eps_high = 0.28."""

    eps: float = 0.2  # the ratio is clipped to [1 - eps, 1 + eps_high]; divergence: the probability may move so far
    eps_high: float = 0.28
    dual_clip: float | None = None  # c > 1: a token with advantage A < 0 loses at most c |A|
    kl: float = 0.0  # weight of the divergence from the reference policy; 0 needs no reference
    reduction: Reduction = "token_mean"
    ratio: Ratio = "token"
    clip: Clip = "ppo"

    def __post_init__(self) -> None:
        if not 0 < self.eps <= 1:
            raise ValueError(f"eps is {self.eps}; the ratio's lower bound 1 - eps must be from 0 to below 1: try 0.2")
        if not self.eps_high > 0:
            raise ValueError(f"eps_high is {self.eps_high}; the ratio's upper bound must lie above 1: try 0.28")
        if self.dual_clip is not None and not self.dual_clip > 1:
            raise ValueError(f"dual_clip is {self.dual_clip}; it must be above 1, such as 3.0, or None to leave it off")
        if not self.kl >= 0:
            raise ValueError(f"kl is {self.kl}; a negative weight would drive the policy away: use 0 for no KL term")
        for name, kinds in (("reduction", Reduction), ("ratio", Ratio), ("clip", Clip)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(get_args(kinds))}")
        if self.dual_clip is not None and self.clip != "ppo":
            raise ValueError(f"dual_clip belongs to clip ppo, and clip is {self.clip}; leave dual_clip off")
        if self.ratio == "sequence" and self.clip == "divergence":
            raise ValueError("clip divergence looks at single tokens, and ratio is sequence; set ratio to token")


class Loss(NamedTuple):
    """The loss to differentiate, and sums over tokens for metrics (divide them by `tokens`). All are scalars."""

    loss: Tensor
    tokens: Tensor  # response tokens in this micro-batch
    clip_low: Tensor  # tokens beyond the lower bound: with A < 0, but for cispo whatever their A
    clip_high: Tensor  # tokens beyond the upper bound: with A > 0, but for cispo whatever their A
    clip_dual: Tensor  # tokens with A < 0 whose ratio lies above dual_clip
    ratio: Tensor
    kl: Tensor | None  # None without a reference


def policy_loss(
    logprobs: Tensor,  # (n, t) of the policy, differentiable
    old_logprobs: Tensor,  # (n, t) of the policy that sampled
    advantages: Tensor,  # (n,)
    mask: Tensor,  # (n, t) 1 at response tokens; values at other positions have no effect
    objective: Objective,
    *,
    ref_logprobs: Tensor | None = None,  # (n, t) of the reference policy
    weights: Tensor | None = None,  # (n, t) importance weight of each token, if another engine sampled; None: all 1
    tokens: int,  # response tokens, sequences: totals of the whole optimizer update,
    sequences: int,  # over all its micro-batches and ranks
    limit: int,  # the response limit, which dr_grpo divides by
) -> Loss:
    """Return this micro-batch's part of the update's loss: the objective and kl * k3 of each token, reduced.

    A row whose advantage the truncation mask set to 0 still counts in `tokens` and `sequences`.
    """
    _check(logprobs, old_logprobs, advantages, mask, objective, ref_logprobs)
    response = mask.bool()  # (n, t)
    advantage = advantages.to(logprobs.dtype)[:, None]  # (n, 1)
    log_ratio = _log_ratio(logprobs, old_logprobs, response)  # (n, t)
    if objective.ratio == "sequence":
        mean = log_ratio.sum(1, keepdim=True) / response.sum(1, keepdim=True).clamp(min=1)
        log_ratio = mean.expand_as(log_ratio).masked_fill(~response, 0)
    ratio = log_ratio.exp()  # (n, t)
    clipped = ratio.clamp(1 - objective.eps, 1 + objective.eps_high)
    low, high = ratio < 1 - objective.eps, ratio > 1 + objective.eps_high
    if objective.clip == "divergence":
        moved = (logprobs.exp() - old_logprobs.exp()).masked_fill(~response, 0).detach()
        low, high = moved < -objective.eps, moved > objective.eps_high
    if objective.clip == "cispo":
        per_token = -clipped.detach() * advantage * logprobs.masked_fill(~response, 0)
    else:
        low, high = low & (advantage < 0), high & (advantage > 0)
        if objective.clip == "ppo":
            per_token = -torch.min(ratio * advantage, clipped * advantage)
        else:
            per_token = -ratio.masked_fill(low | high, 0) * advantage
    if objective.dual_clip is not None:
        bounded = torch.min(per_token, -objective.dual_clip * advantage)
        per_token = torch.where(advantage < 0, bounded, per_token)
    if weights is not None:
        per_token = per_token * weights
    k3 = None
    if ref_logprobs is not None:
        gap = _log_ratio(ref_logprobs, logprobs, response)  # (n, t)
        k3 = gap.expm1() - gap  # Schulman's estimator of KL(policy, reference): never negative
        if objective.kl:
            per_token = per_token + objective.kl * k3

    per_row = (per_token * response).sum(1)  # (n,)
    loss = _reduced(per_row, response, objective.reduction, tokens, sequences, limit)
    with torch.no_grad():  # outside the response the ratio is 1, which is never clipped, and k3 is 0
        return Loss(
            loss=loss,
            tokens=response.sum(),
            clip_low=low.sum(),
            clip_high=high.sum(),
            clip_dual=((advantage < 0) & (ratio > (objective.dual_clip or torch.inf))).sum(),
            ratio=(ratio * response).sum(),
            kl=None if k3 is None else k3.sum(),
        )


def _reduced(per_row: Tensor, response: Tensor, how: Reduction, tokens: int, sequences: int, limit: int) -> Tensor:
    # max(..., 1): an update without any response token has a loss of 0, not 0 / 0
    if how == "token_mean":
        return per_row.sum() / max(tokens, 1)
    if how == "sequence_mean":
        return (per_row / response.sum(1).clamp(min=1)).sum() / max(sequences, 1)
    return per_row.sum() / max(sequences * limit, 1)


def _log_ratio(above: Tensor, below: Tensor, response: Tensor) -> Tensor:
    """Return log(above / below) (n, t), limited; 0 outside the response, where padding may hold any value, even NaN."""
    return (above - below).masked_fill(~response, 0).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)


def _check(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    objective: Objective,
    ref_logprobs: Tensor | None,
) -> None:
    if objective.kl and ref_logprobs is None:
        raise ValueError(
            f"the objective has kl = {objective.kl}, but there are no ref_logprobs to stay close to; "
            "pass them, or set kl to 0"
        )
    shapes = {"old_logprobs": old_logprobs.shape, "mask": mask.shape}
    if ref_logprobs is not None:
        shapes["ref_logprobs"] = ref_logprobs.shape
    for name, shape in shapes.items():
        if logprobs.dim() != 2 or shape != logprobs.shape:
            raise ValueError(
                f"logprobs are of shape {tuple(logprobs.shape)} and {name} of shape {tuple(shape)}; "
                "both must be (rows, tokens)"
            )
    if advantages.shape != logprobs.shape[:1]:
        raise ValueError(
            f"advantages are of shape {tuple(advantages.shape)}; pass one for each of the {len(logprobs)} rows"
        )


def mismatch(gap: Tensor) -> dict[str, float]:
    """Measure how far trainer and sampler are apart. `gap`: log p_trainer - log p_sampler of each token, (tokens,).

    Returns the mean and the 99th percentile of the differences, the KL between the two, and the effective share of the
    tokens when they are weighed.
    """
    if not len(gap):
        return {}
    weight = gap.clamp(-20, 20).exp()
    return {
        "mismatch_mean": float(gap.abs().mean()),
        "mismatch_p99": float(np.quantile(gap.abs(), 0.99)),  # torch's own takes 16 million values at most
        "mismatch_kl": float((weight - 1 - gap).mean()),
        "mismatch_ess": effective_share(weight),
    }


def effective_share(weights: Tensor) -> float:
    """Return the effective sample size of weighed tokens as a share of them: 1 where all weights are equal."""
    return float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))
