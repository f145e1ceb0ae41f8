"""The update by packed passes: each prompt is computed once for its responses, nothing is padded.

1. An update is made of whole problems, `ppo_mini_batch_size` of them, in the order of the step.
2. Passes are filled by a budget of tokens. Responses without advantage are left out, unless there is a KL.
3. The first update of a step is made by the policy that sampled: its old log-probabilities are its own. Those of the
   later updates are computed before the first one ends.
4. The sampler's log-probabilities are not quite the trainer's: their differences are kept for the metrics, and tokens
   may be weighed by them (truncated importance sampling).
5. Every device makes the same number of passes: one that has fewer makes idle ones, whose gradient is 0.
6. On a single device the update may begin while the last programs are still being judged (`flow`): with the groups that
   are judged, in the order in which they are. What has to be known first, the tokens of an update, is known from
   sampling. So sums are added up in another order each time, which a GPU does anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..collect import Response
from ..grpo import Loss, Objective, effective_share, mismatch, policy_loss, token_logprobs
from .packed import Packed, fill, inputs, pack
from .plan import Batches
from .step import Tail

Score = Callable[[Any, Packed], Tensor]


@dataclass
class Pass:
    """Responses that go through the model together."""

    rows: list[Response]
    idle: bool = False  # only there so that all devices make as many passes


@dataclass
class Update:
    """The passes of one update on this device."""

    passes: Iterable[Pass] = ()
    tokens: int = 0  # that are trained on, of all responses on all devices, also of those that are left out
    first: bool = True  # of its step
    count: int = 0  # of the passes; 0: unknown, there is one device


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
    sharded: bool = False  # gradients lie in shares on several devices
    old: dict[int, Tensor] = field(default_factory=dict)  # by id(response): its log-probabilities before the step
    differences: list[Tensor] = field(default_factory=list)  # log p_trainer - log p_sampler of each token trained on
    weighed: list[Tensor] = field(default_factory=list)  # the weights of the tokens trained on, where they have any

    @property
    def device(self) -> Any:
        return self.accelerator.device

    def deal(self, responses: Sequence[Response]) -> list[Update]:
        """The updates of a step, from this device's responses."""
        updates: list[Update] = []
        for rows in self._shares(responses):
            passes = self._passes(rows)
            tokens, most = self._over_devices(sum(sum(row.trained) for row in rows), len(passes))
            shortest = min(
                (row for row in rows if row.ids), key=lambda row: len(row.prompt) + len(row.tokens), default=None
            )
            if shortest is not None:
                passes += [Pass([shortest], idle=True) for _ in range(most - len(passes))]
            updates.append(Update(passes, tokens, not updates, len(passes)))
        return updates

    def flow(self, responses: Sequence[Response], tail: Tail, model: Any) -> list[Update]:
        """The updates of a step whose responses are still being judged. Only on a single device."""
        shares = list(self._shares(responses))
        later = [row for rows in shares[1:] for row in rows]
        updates = []
        for n, rows in enumerate(shares):
            meanwhile = None if n else lambda: self.remember(model, self._passes(later))
            passes = self._flowing(rows, n * self.counts.mini, tail, meanwhile)
            updates.append(Update(passes, sum(sum(row.trained) for row in rows), first=n == 0))
        return updates

    def _flowing(
        self, rows: Sequence[Response], begin: int, tail: Tail, meanwhile: Callable[[], None] | None
    ) -> Iterator[Pass]:
        """Passes of judged groups, the first of which has the number `begin`. `meanwhile` is for the time until the
        others are judged; it is done before the end in any case.
        """
        samples = self.counts.samples
        groups = {begin + n: rows[n * samples : (n + 1) * samples] for n in range(len(rows) // samples)}
        ready: list[Response] = []
        while groups:
            found = sorted(groups.keys() & tail.done())
            ready += [row for number in found for row in groups.pop(number)]
            *full, last = self._passes(ready) or [Pass([])]
            yield from full
            ready = last.rows
            if not found:  # something has to be waited for: what there is goes first
                if ready:
                    yield last
                    ready = []
                elif meanwhile is not None:
                    meanwhile()
                    meanwhile = None
                else:
                    tail.done(wait=True)
        if ready:
            yield Pass(ready)
        if meanwhile is not None:
            meanwhile()

    def _shares(self, responses: Sequence[Response]) -> Iterator[Sequence[Response]]:
        """The responses of each update."""
        share = self.counts.mini * self.counts.samples // self.counts.devices
        for first in range(0, len(responses), share):
            yield responses[first : first + share]

    def _passes(self, rows: Sequence[Response]) -> list[Pass]:
        live = [row for row in rows if self._live(row)]
        parts = fill([(row.prompt, row.tokens) for row in live], self.counts.pass_tokens)
        return [Pass([live[n] for n in numbers]) for numbers in parts]

    def _live(self, row: Response) -> bool:
        """Whether it is trained on, or may be: its group may not be judged yet."""
        unknown = row.reward is None and not row.faulty
        return bool(row.ids and (row.advantage or self.objective.kl or unknown))

    def _over_devices(self, tokens: int, passes: int) -> tuple[int, int]:
        """The sum of tokens and the most passes over all devices."""
        mine = torch.tensor([[tokens, passes]], device=self.device)
        found = self.accelerator.gather(mine)
        return int(found[:, 0].sum()), int(found[:, 1].max())

    @torch.no_grad()
    def remember(self, model: Any, parts: Iterable[Pass]) -> None:
        """Keep the log-probabilities of the responses of later updates, as the policy is now."""
        self.old.clear()
        for part in parts:
            packed = self.packed(part)
            found = self.score(model, packed)[packed.mask].split(packed.lengths)
            self.old.update({id(row): values for row, values in zip(part.rows, found, strict=True)})

    def packed(self, part: Pass) -> Packed:
        return pack([(row.prompt, row.tokens) for row in part.rows], self.device)

    def loss(self, model: Any, part: Pass, update: Update, limit: int) -> Loss:
        """The part of the update's loss that a pass gives."""
        packed = self.packed(part)
        logprobs = self.score(model, packed)
        advantages = torch.tensor([0.0 if part.idle else row.advantage for row in part.rows], device=self.device)
        trained = torch.tensor([flag for row in part.rows for flag in row.trained], device=self.device)
        mask = packed.mask.masked_scatter(packed.mask, trained) & (not part.idle)  # (responses, longest)
        old = logprobs.detach()
        if not update.first:
            old = pad_sequence([self.old[id(row)] for row in part.rows], batch_first=True)
        sampled = torch.tensor([value for row in part.rows for value in row.sampled], device=self.device)
        gap = (old - old.masked_scatter(packed.mask, sampled.to(old.dtype))) * mask  # (responses, longest)
        self.differences.append(gap[mask])
        return policy_loss(
            logprobs,
            old,
            advantages,
            mask,
            self.objective,
            ref_logprobs=self._referred(packed),
            weights=self._weights(gap, mask),
            tokens=update.tokens,
            sequences=self.counts.mini * self.counts.samples,
            limit=limit,
        )

    @torch.no_grad()
    def _referred(self, packed: Packed) -> Tensor | None:
        return None if self.reference is None else self.reference(packed, self.score)

    def _weights(self, gap: Tensor, mask: Tensor) -> Tensor | None:
        if self.importance == "none":
            return None
        if self.importance == "sequence":
            gap = gap.sum(1, keepdim=True).expand_as(gap)
        found = gap.exp().clamp(max=self.cap)
        self.weighed.append(found[mask])
        return found

    def mismatch(self) -> dict[str, float]:
        """How far sampler and trainer are apart in a step, on all devices. Where tokens are weighed, also
        effective_sample_size: the share that the weights leave, bounded by the cap as they are."""
        mine = torch.cat(self.differences).float().cpu() if self.differences else torch.zeros(0)
        used = torch.cat(self.weighed).float().cpu() if self.weighed else torch.zeros(0)
        self.differences.clear()
        self.weighed.clear()
        gap, used = torch.cat(gather_object([mine])), torch.cat(gather_object([used]))
        return {**mismatch(gap), **({"effective_sample_size": effective_share(used)} if len(used) else {})}

    def run(self, model: Any, update: Update, limit: int, count: Callable[[Loss], None]) -> Tensor:
        """All passes of an update, forward and backward; devices exchange gradients in the last one."""
        total = torch.zeros((), device=self.device)
        n = 0
        for n, part in enumerate(update.passes, 1):
            last = n == update.count
            # shares of gradients are exchanged in every pass: whole ones would not fit
            with nullcontext() if last or self.sharded else self.accelerator.no_sync(model):
                result = self.loss(model, part, update, limit)
                count(result)
                self._backward(result.loss * self.accelerator.num_processes, last)  # which averages over the devices
            total += result.loss.detach()
        if not n:  # nothing to learn from, on any device
            self._backward(nothing(self.device), last=True)
        return total

    def _backward(self, loss: Tensor, last: bool) -> None:
        engine = getattr(self.accelerator, "deepspeed_engine_wrapped", None)
        if engine is None:
            self.accelerator.backward(loss)
        else:  # DeepSpeed makes its step in the last one
            engine.backward(loss, sync_gradients=last)


def nothing(device: Any) -> Tensor:
    """A loss that no weight has a part in. One of a weight times 0 would be a DTensor where weights are sharded."""
    return torch.zeros((), device=device, requires_grad=True)


def scored(model: Any, packed: Packed, *, autocast: Callable[[], Any]) -> Tensor:
    """Log-probabilities (responses, longest) of packed responses; see `share_prompts`."""
    with autocast():
        found = model(**inputs(packed))
    return packed.unpacked(found.float())


# --- padded passes, as TRL makes them


def trained_tokens(inputs: dict[str, Any]) -> Tensor:
    """(n, t) 1 at tokens that are trained on: not at padding, nor where the model was told something between turns."""
    mask: Tensor = inputs["completion_mask"]
    return mask if "tool_mask" not in inputs else mask * inputs["tool_mask"]


def padded_logprobs(model: Any, ids: Tensor, mask: Tensor, keep: int, temperature: float) -> Tensor:
    """(n, keep) log-probabilities of the last tokens of padded rows."""
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    output = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=keep + 1)
    return token_logprobs(output.logits[:, :-1], ids[:, -keep:], temperature)  # each predicts the token after it


def alike(mask: Tensor, keep: int, live: Tensor | None, rows: int) -> Iterator[tuple[Tensor, int, int]]:
    """(which rows, first column, column after the last) of passes over rows of like length, without their padding.

    mask   (n, prompt + keep), prompts padded on the left, responses on the right
    live   numbers of the rows that count; None: all
    """
    prompt = mask.size(1) - keep
    before, after = mask[:, :prompt].sum(1), mask[:, prompt:].sum(1)  # (n,)
    live = torch.arange(len(mask), device=mask.device) if live is None else live.to(mask.device)
    order = live[(after[live] * 100_000 + before[live]).argsort(stable=True)]
    for pick in order.split(rows) if len(order) else ():
        yield pick, prompt - int(before[pick].max()), prompt + max(int(after[pick].max()), 1)


def dealt(
    window: list[dict[str, Any]], micro: int, only_live: bool, most: Callable[[int], int]
) -> list[dict[str, Any]]:
    """Divide an update into passes of similar length: the same gradient in less time.

    Responses of like length come together and the padding is cut. With `only_live`, those with advantage 0 are left
    out; what needs fewer passes leaves the first ones empty, as many on every device, so that they stay in step.
    """
    rows = [name for name, value in window[0].items() if isinstance(value, Tensor) and value.dim() > 0]
    joined = {name: torch.cat([part[name] for part in window]) for name in rows}
    order = (joined["completion_mask"].sum(1) * 100_000 + joined["prompt_mask"].sum(1)).argsort(stable=True)
    if only_live:
        live = joined["advantages"][order] != 0
        order = torch.cat([order[live], order[~live]])
        needed = most(max(1, -(-int(live.sum()) // micro)))
        order = order[: max(int(live.sum()), needed)]  # every pass that is made has a row
    else:
        needed = len(window)
    empty = {name: value[:0] for name, value in joined.items()}
    return [empty] * (len(window) - needed) + [_part(joined, pick) for pick in order.tensor_split(needed)]


def _part(joined: dict[str, Tensor], pick: Tensor) -> dict[str, Tensor]:
    part = {name: value[pick] for name, value in joined.items()}
    start = part["prompt_mask"].size(1) - int(part["prompt_mask"].sum(1).max())
    end = max(int(part["completion_mask"].sum(1).max()), 1)
    for name, value in part.items():
        if value.dim() == 2:
            part[name] = value[:, start:] if name.startswith("prompt") else value[:, :end]
    return part
