"""The update by packed passes: each prompt is computed once for its responses, nothing is padded.

1. An update is made of whole problems, `ppo_mini_batch_size` of them, in the order of the step.
2. Passes are filled by a budget of tokens. Responses without advantage are left out, unless there is a KL.
3. The first update of a step is made by the policy that sampled: its old log-probabilities are its own. Those of the
   later updates are computed before the first one.
4. The sampler's log-probabilities are not quite the trainer's: their differences are kept for the metrics, and tokens
   may be weighed by them (truncated importance sampling).
5. Every device makes the same number of passes: one that has fewer makes idle ones, whose gradient is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor

from ..collect import Response
from ..grpo import Loss, Objective, policy_loss, token_logprobs
from .packed import Packed, fill, inputs, pack
from .plan import Batches

Score = Callable[[Any, Packed], Tensor]


@dataclass
class Pass:
    """Responses that go through the model together."""

    rows: list[Response]
    idle: bool = False  # only there so that all devices make as many passes
    old: Tensor | None = None  # (responses, longest) log-probabilities; None: those of the pass itself
    reference: Tensor | None = None


@dataclass
class Update:
    """The passes of one update on this device."""

    passes: list[Pass] = field(default_factory=list)
    tokens: int = 0  # of all responses of the update on all devices, also of those that are left out


@dataclass
class PackedUpdates:
    """Deals out the responses of a step to updates and passes, and computes their losses.

    importance  whether tokens are weighed by p_trainer / p_sampler: "none", "token" or "sequence"; at most `cap`
    score       (model, packed) -> log-probabilities (responses, longest)
    reference   (packed, score) -> the same under the reference policy; None: there is no KL
    """

    counts: Batches
    objective: Objective
    accelerator: Any
    score: Score
    reference: Callable[[Packed, Score], Tensor] | None = None
    importance: str = "none"
    cap: float = 2.0
    differences: list[Tensor] = field(default_factory=list)  # log p_trainer - log p_sampler of each token trained on

    @property
    def device(self) -> Any:
        return self.accelerator.device

    def deal(self, responses: Sequence[Response]) -> list[Update]:
        """The updates of a step, from this device's responses."""
        share = self.counts.mini * self.counts.samples // self.counts.devices
        updates = []
        for first in range(0, len(responses), share):
            rows = responses[first : first + share]
            live = [row for row in rows if row.ids and (row.advantage or self.objective.kl)]
            parts = fill([(row.prompt, row.ids) for row in live], self.counts.pass_tokens)
            passes = [Pass([live[n] for n in numbers]) for numbers in parts]
            tokens, most = self._over_devices(sum(len(row.ids) for row in rows), len(passes))
            shortest = min(
                (row for row in rows if row.ids), key=lambda row: len(row.prompt) + len(row.ids), default=None
            )
            if shortest is not None:
                passes += [Pass([shortest], idle=True) for _ in range(most - len(passes))]
            updates.append(Update(passes, tokens))
        return updates

    def _over_devices(self, tokens: int, passes: int) -> tuple[int, int]:
        """The sum of tokens and the most passes over all devices."""
        mine = torch.tensor([[tokens, passes]], device=self.device)
        found = self.accelerator.gather(mine)
        return int(found[:, 0].sum()), int(found[:, 1].max())

    @torch.no_grad()
    def remember(self, model: Any, updates: Sequence[Update]) -> None:
        """Compute old log-probabilities where they are not those of the pass itself, and those of the reference."""
        for n, update in enumerate(updates):
            for part in update.passes:
                if n or self.reference is not None:
                    packed = self.packed(part)
                    part.old = self.score(model, packed) if n else None
                    part.reference = self.reference(packed, self.score) if self.reference is not None else None

    def packed(self, part: Pass) -> Packed:
        return pack([(row.prompt, row.ids) for row in part.rows], self.device)

    def loss(self, model: Any, part: Pass, update: Update, limit: int) -> Loss:
        """The part of the update's loss that a pass gives."""
        packed = self.packed(part)
        logprobs = self.score(model, packed)
        advantages = torch.tensor([0.0 if part.idle else row.advantage for row in part.rows], device=self.device)
        mask = packed.mask & (not part.idle)
        old = logprobs.detach() if part.old is None else part.old
        sampled = torch.tensor([value for row in part.rows for value in row.logprobs], device=self.device)
        gap = (old - old.masked_scatter(packed.mask, sampled.to(old.dtype))) * mask  # (responses, longest)
        self.differences.append(gap[mask])
        return policy_loss(
            logprobs,
            old,
            advantages,
            mask,
            self.objective,
            ref_logprobs=part.reference,
            weights=self._weights(gap),
            tokens=update.tokens,
            sequences=self.counts.mini * self.counts.samples,
            limit=limit,
        )

    def _weights(self, gap: Tensor) -> Tensor | None:
        if self.importance == "none":
            return None
        if self.importance == "sequence":
            gap = gap.sum(1, keepdim=True).expand_as(gap)
        return gap.exp().clamp(max=self.cap)

    def mismatch(self) -> dict[str, float]:
        """How far sampler and trainer are apart in a step: the difference of the log-probabilities of a token, its mean
        and 99th percentile, the KL between them, and the effective share of the tokens when they are weighed."""
        mine = torch.cat(self.differences).float().cpu() if self.differences else torch.zeros(0)
        self.differences.clear()
        gap = torch.cat(gather_object([mine]))
        if not len(gap):
            return {}
        weight = gap.clamp(-20, 20).exp()
        return {
            "mismatch_mean": float(gap.abs().mean()),
            "mismatch_p99": float(np.quantile(gap.abs(), 0.99)),
            "mismatch_kl": float((weight - 1 - gap).mean()),
            "mismatch_ess": float(weight.sum() ** 2 / (len(gap) * (weight**2).sum())),
        }

    def run(self, model: Any, update: Update, limit: int, count: Callable[[Loss], None]) -> Tensor:
        """All passes of an update, forward and backward; devices exchange gradients in the last one."""
        total = torch.zeros((), device=self.device)
        if not update.passes:  # nothing to learn from, on any device
            total = 0.0 * next(weight for weight in model.parameters() if weight.requires_grad).sum()
            self.accelerator.backward(total)
            return total.detach()
        for n, part in enumerate(update.passes, 1):
            with nullcontext() if n == len(update.passes) else self.accelerator.no_sync(model):
                result = self.loss(model, part, update, limit)
                count(result)
                # gradients are averaged over the devices
                self.accelerator.backward(result.loss * self.accelerator.num_processes)
            total += result.loss.detach()
        return total


def scored(model: Any, packed: Packed, *, temperature: float, autocast: Callable[[], Any]) -> Tensor:
    """Log-probabilities of the packed responses: by TRL's fused head on a GPU, by ours on a CPU."""
    if packed.ids.is_cuda:
        with autocast():
            found = model(**inputs(packed), shift_labels=packed.labels, fused_lm_head=True).log_probs
        return packed.unpacked(found.float())
    kept = packed.ids.size(1) - packed.prompts
    logits = model(**inputs(packed), logits_to_keep=kept).logits
    found = token_logprobs(logits, packed.labels[:, packed.prompts :], temperature)
    return packed.unpacked(torch.cat([found.new_zeros(1, packed.prompts), found], 1))
