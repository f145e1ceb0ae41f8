"""AdamW that takes less memory: moments in 8 bits, weights in bfloat16.

1. Moments in 8 bits. A block of 256 values has one scale in float32, its largest magnitude. Each value has a code of 8
   bits: its ratio to the scale, on levels that are an eighth of an octave (9%) apart. The first moment has a sign and
   16 octaves, the second 32, which its square root halves. So a value is off by a share of itself, however large its
   neighbours are. Even distances would not do: beside a neighbour that is a thousand times larger, the noise of a first
   moment would be several times the root of its second.
2. Rounding is at random, up with the probability that makes the mean right. A second moment changes by a thousandth a
   step, and to the nearest level it would never change at all. A second moment above 0 does not become 0.
3. Weights in bfloat16 are rounded at random too, from a step computed in float32: at a learning rate of 1e-6 most steps
   are smaller than half the distance of two numbers in bfloat16, and to the nearest one a weight would never move.
   Gradients of such weights are gathered in float32.
4. What is random follows from the seed and the number of the step alone, so a run that goes on from a checkpoint goes
   on bit for bit, and all devices round alike.
5. Small weights, such as norms and biases, have their moments in float32.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor

BLOCK = 256  # values with one scale
SMALLEST = 4096  # values of a weight from which on its moments have 8 bits
PIECE = 1 << 16  # blocks that are computed at a time: what is needed meanwhile stays small
OCTAVE = 8  # levels that lie within a factor of 2

_sizes = [2 ** (-n / OCTAVE) for n in range(255)][::-1]  # to 1
SIGNED = (*(-size for size in _sizes[-127:][::-1]), 0.0, *_sizes[-127:])  # the levels of a first moment
UNSIGNED = (0.0, *_sizes)  # and of a second


class CompactAdamW(torch.optim.Optimizer):
    """AdamW whose moments have `bits` bits, 8 or 32. Weights may be in float32 or bfloat16."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        bits: int = 8,
        seed: int = 0,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "bits": bits, "seed": seed}
        super().__init__(params, {**options, "steps": 0})
        alone = not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1
        for weight in chain(*(group["params"] for group in self.param_groups)):
            if alone and weight.dtype != torch.float32:  # devices exchange gradients of the weights' type
                weight.grad_dtype = torch.float32

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all weights that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for number, group in enumerate(self.param_groups):
            group["steps"] += 1
            chance: dict[Any, torch.Generator] = {}  # by device
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if weight.device not in chance:
                    seed = _seed(group["seed"], number, group["steps"])
                    chance[weight.device] = torch.Generator(weight.device).manual_seed(seed)
                state = self.state[weight]
                if not state:
                    state.update(_moments(weight, group["bits"]))
                _update(weight, weight.grad, state, group, chance[weight.device])
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over saved moments. torch's own way would give codes the type of their weights."""
        super().load_state_dict(state_dict)
        weights = list(chain(*(group["params"] for group in self.param_groups)))
        saved = chain(*(group["params"] for group in state_dict["param_groups"]))
        for weight, number in zip(weights, saved, strict=True):
            if number in state_dict["state"]:
                values = state_dict["state"][number]
                self.state[weight] = {name: value.to(weight.device, copy=True) for name, value in values.items()}


def _seed(*numbers: int) -> int:
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")


def _moments(weight: Tensor, bits: int) -> dict[str, Tensor]:
    """Both moments at 0: as (blocks, 256) codes with their scales, or in float32."""
    blocks = -(-weight.numel() // BLOCK)
    if bits == 32 or weight.numel() < SMALLEST:
        return {name: torch.zeros(blocks, BLOCK, device=weight.device) for name in ("first", "second")}
    found = {}
    for name, levels in (("first", SIGNED), ("second", UNSIGNED)):
        code = levels.index(0.0)
        found[name] = torch.full((blocks, BLOCK), code, dtype=torch.uint8, device=weight.device)
        found[f"{name}_scale"] = torch.zeros(blocks, device=weight.device)
    return found


def _update(
    weight: Tensor, grad: Tensor, state: dict[str, Tensor], group: dict[str, Any], chance: torch.Generator
) -> None:
    """One step of AdamW, some blocks at a time."""
    (one, two), lr = group["betas"], group["lr"]
    rate = lr / (1 - one ** group["steps"])
    root = math.sqrt(1 - two ** group["steps"])
    flat, slope = weight.view(-1), grad.reshape(-1)
    for start in range(0, len(state["first"]), PIECE):
        blocks = slice(start, start + PIECE)
        here = slice(start * BLOCK, (start + PIECE) * BLOCK)
        g = _in_blocks(slope[here].float())
        first = _read(state, "first", SIGNED, blocks).lerp_(g, 1 - one)
        second = _read(state, "second", UNSIGNED, blocks).mul_(two).addcmul_(g, g, value=1 - two)
        away = (first / (second.sqrt() / root).add_(group["eps"])).view(-1)[: len(flat[here])]
        value = flat[here].float() * (1 - lr * group["weight_decay"])
        value.sub_(away, alpha=rate)
        flat[here] = rounded(value, chance) if weight.dtype == torch.bfloat16 else value
        _write(state, "first", SIGNED, blocks, first, chance)
        _write(state, "second", UNSIGNED, blocks, second, chance)


def _in_blocks(values: Tensor) -> Tensor:
    missing = -len(values) % BLOCK
    return (torch.nn.functional.pad(values, (0, missing)) if missing else values).view(-1, BLOCK)


def _read(state: dict[str, Tensor], name: str, levels: tuple[float, ...], blocks: slice) -> Tensor:
    """A moment of some blocks in float32, to be changed in place."""
    values = state[name][blocks]
    if f"{name}_scale" not in state:
        return values
    return decoded(values, state[f"{name}_scale"][blocks], levels)


def _write(
    state: dict[str, Tensor], name: str, levels: tuple[float, ...], blocks: slice, values: Tensor, chance: Any
) -> None:
    if f"{name}_scale" in state:
        state[name][blocks], state[f"{name}_scale"][blocks] = encoded(values, levels, chance)


def encoded(values: Tensor, levels: tuple[float, ...], chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Codes of values (blocks, 256), and the scale of each block. Rounds at random, so that the mean is right."""
    steps = _table(levels, values.device)
    scales = values.abs().amax(1)
    ratio = values / scales.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
    below = torch.bucketize(ratio, steps, out_int32=True, right=True).sub_(1).clamp_(0, len(levels) - 2)
    low = steps[below]
    share = (ratio - low).div_(steps[below + 1].sub_(low))  # of the way to the next level
    below += torch.rand(share.shape, device=share.device, generator=chance) < share
    if levels[0] == 0:
        below += (below == 0) & (ratio > 0)
    return below.to(torch.uint8), scales


def decoded(codes: Tensor, scales: Tensor, levels: tuple[float, ...]) -> Tensor:
    """The values of codes (blocks, 256)."""
    return _table(levels, codes.device)[codes.int()].mul_(scales[:, None])


@cache  # a copy to a GPU would wait for it each time
def _table(levels: tuple[float, ...], device: Any) -> Tensor:
    return torch.tensor(levels, device=device)


def rounded(values: Tensor, chance: torch.Generator) -> Tensor:
    """Values in bfloat16, rounded at random, so that the mean is right."""
    bits = values.contiguous().view(torch.int32)
    noise = torch.randint(1 << 16, bits.shape, device=bits.device, dtype=torch.int32, generator=chance)
    return ((bits + noise) & -(1 << 16)).view(torch.float32).to(torch.bfloat16)
