"""Batch sizes are settings in problems; an engine counts in responses, passes and updates. Here is the arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..config import Config


class PlanError(ValueError):
    """Settings that do not fit together; the message has the numbers that would."""


@dataclass(frozen=True)
class Batches:
    problems: int  # of a step
    samples: int  # responses to each
    mini: int  # problems in an update
    micro: int  # responses in a pass, on one device
    devices: int

    @property
    def responses(self) -> int:
        return self.problems * self.samples

    @property
    def updates(self) -> int:
        """Of one step."""
        return self.problems // self.mini

    @property
    def passes(self) -> int:
        """Of one update, on each device: TRL's gradient_accumulation_steps."""
        return self.mini * self.samples // (self.micro * self.devices)

    def words(self) -> str:
        devices = f" x {self.devices} devices" if self.devices > 1 else ""
        return (
            f"a step = {self.problems} problems x {self.samples} samples = {self.responses} responses = {self.updates} "
            f"update{'s' * (self.updates > 1)} x {self.passes} pass{'es' * (self.passes > 1)} x {self.micro} "
            f"responses{devices}"
        )


def batches(config: Config, devices: int = 1) -> Batches:
    """The numbers of one step; settings that do not divide are refused with some that do."""
    train, samples = config.train, config.grpo.samples
    problems = train.train_batch_size
    mini = train.ppo_mini_batch_size or problems
    if problems % mini:
        raise PlanError(
            f"train.train_batch_size={problems} is no multiple of train.ppo_mini_batch_size={mini}, so a step would "
            f"end within an update, and a checkpoint could not be exact; "
            f"set train.ppo_mini_batch_size to one of {_some(_divisors(problems))}"
        )
    if problems % devices:
        unit = math.lcm(devices, train.ppo_mini_batch_size or 1)
        fitting = sorted({max(1, problems // unit) * unit, (problems // unit + 1) * unit})
        raise PlanError(
            f"train.train_batch_size={problems} cannot be dealt out to {devices} devices in whole groups; "
            f"set it to {' or '.join(map(str, fitting))}"
        )
    share = mini * samples
    if share % devices:
        raise PlanError(
            f"an update has {mini} problems x {samples} samples = {share} responses, which {devices} devices cannot "
            f"share evenly; try train.ppo_mini_batch_size={math.lcm(mini, devices)}"
        )
    micro = min(train.micro_batch_size, share // devices)
    if share // devices % micro:
        raise PlanError(
            f"train.micro_batch_size={micro} does not divide the {share // devices} responses of an update on a "
            f"device; set it to one of {_some(_divisors(share // devices))}"
        )
    return Batches(problems, samples, mini, micro, devices)


def order(problems: int, counts: Batches, steps: int, seed: int) -> list[int]:
    """The numbers of the problems of all steps, one step after the other.

    Each epoch is shuffled anew, and what is left of it after its last whole step is dropped. A longer run begins with
    the steps of a shorter one, so a run that goes on from any step meets what it would have met.
    """
    if problems < counts.problems:
        raise PlanError(
            f"a step has train.train_batch_size={counts.problems} different problems, but there are only {problems} "
            f"to train on; set train.train_batch_size={problems}, or bring more problems"
        )
    generator = torch.Generator().manual_seed(seed)
    found: list[int] = []
    while len(found) < steps * counts.problems:
        shuffled = torch.randperm(problems, generator=generator).tolist()
        found += shuffled[: problems // counts.problems * counts.problems]
    return found[: steps * counts.problems]


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[-8:]))
