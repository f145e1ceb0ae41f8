"""Plan a training without running it (`--dry-run`): batches, stages, memory, disk, how to start it, what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..config import Config
from ..grpo import segments
from ..models import ModelError, hub_fault, is_cached, resolve
from ..models.source import find
from ..models.weights import load_shape, load_tokenizer
from .memory import GIB, Device, MemoryPlan, here, saved_bytes
from .model_shape import ModelShape
from .plan import Batches, batches, beyond, lacking, order, probe_words, settled, stacked, stages_of
from .problems import ProblemsError, load_problems, overlap, with_prompts
from .ranks import devices, torchrun
from .ranks import wanted as ranks_wanted
from .sharding import words
from .verl.settings import compiled, cpus

MACHINE = 8  # GPUs of a machine, as far as a plan for other machines can know


@dataclass
class TrainingPlan:
    lines: list[tuple[str, str]] = field(default_factory=list)  # what, in words
    missing: list[str] = field(default_factory=list)  # what stands in the way

    def say(self, what: str, words: str) -> None:
        self.lines.append((what, words))


def describe(
    config: Config,
    folder: Path,
    resume: bool = False,
    device: Device | None = None,
    note: Callable[[str], None] | None = None,
) -> TrainingPlan:
    """Work out the plan: stages, batches, tokens, memory, and what is missing. Download no weights.

    `device`: the GPU to plan for; None: what is here. `note` is told of a GGUF file that is converted.
    """
    made = TrainingPlan()
    made.say("run", f"{folder}{' (exists already)' if folder.exists() else ''}")
    trl = config.run.engine == "trl"
    ranks = _ranks(config, device) if trl else config.cluster.processes
    elsewhere = device is not None or not trl
    device = device or here(ranks)
    shape, model = _model(config, made, note)
    config = settled(config, model, device.gpu)
    counts = batches(config, ranks)
    tokenizer = None
    if model is not None:
        try:
            tokenizer = load_tokenizer(resolve(config.model.name), config.model.chat)
        except ModelError as error:
            made.missing.append(str(error))
    longest = _problems(config, counts, made, tokenizer)
    need = MemoryPlan(config, counts, shape, longest, device) if shape is not None and trl else None
    if need is not None:
        counts = batches(need.fitted().config, ranks)
    preset = config.grpo.preset
    made.say("algorithm", f"{preset}: clip {config.grpo.eps:g} / {config.grpo.eps_high:g}, {_extras(config)}")
    made.say("optimizer", _optimizer(config))
    made.say("batches", counts.words())
    if trl and ranks > 1 and (each := counts.problems // ranks) % counts.updates:
        made.say("", f"a device has {each} of the problems: an update cuts through its groups of {counts.samples}")
    _stages(config, counts, made)
    if trl:
        made.say("device", _devices(device, ranks, elsewhere))
    if need is not None:
        most = need.fitted()
        made.say("layout", words(most.config.run.layout, ranks))
        made.say("memory", "on each device " * (ranks > 1) + most.words())
        made.say("sampling", most.sampling_words())
        if warning := beyond(most):
            made.say("", warning)
        made.say("checkpoints", _disk(most))
        made.missing += filter(None, [need.lack()])
    elif not trl:
        made.say("memory", "not planned for verl; python -m benchmarks.training scale estimates that of cluster-*")
    made.say("judge", f"{_judges(config, elsewhere)}, policy {config.judge.policy}")
    made.say("evaluation", _evaluation(config))
    _start(config, ranks, device.gpu, made)
    if not trl:
        settings = compiled(config, stages_of(config)[0], counts, config.model.name, folder)
        for name, value in settings.items():
            made.say("verl", f"{name} = {value}")
    made.missing += lacking(config, device.gpu)
    if not resume and (folder / "config.toml").exists():
        made.missing.append(f"a free name: {folder} holds a run; go on with it by --resume, or set train.name=...")
    return made


def _ranks(config: Config, elsewhere: Device | None) -> int:
    """The processes of a plan: those that there would be here, or as many as are asked for, for GPUs elsewhere."""
    asked = config.run.processes
    return asked if elsewhere is not None and asked != "auto" else ranks_wanted(config) or devices()


def _model(config: Config, made: TrainingPlan, tell: Callable[[str], None] | None) -> tuple[ModelShape | None, Any]:
    """The model's shape, a guess by its name where it is not here yet, or None; and its configuration, or None."""
    name = config.model.name
    try:
        if not is_cached(name):
            folder = Path(name).expanduser()
            if folder.is_dir():
                find(folder)  # which refuses one that holds no model
            elif name != "smollm2-135m":
                resolve(name)  # which downloads nothing of these, and refuses a broken GGUF file or what is no hub id
                if fault := hub_fault(name):
                    raise ModelError(f"it is not on this machine, and {fault}; bring its folder: model.name=./folder")
            shape = ModelShape.guess(name)
            sizes = "; until then its sizes are guessed from its name" if shape else ""
            made.say("model", f"{name}: to be downloaded when training starts{sizes}")
            return shape, None
        source = resolve(name, progress=tell)
        model = load_shape(source)
    except (ModelError, OSError, ValueError) as error:
        made.say("model", name)
        made.missing.append(f"the model {name}: {str(error).splitlines()[0]}")
        return ModelShape.guess(name), None
    made.missing += filter(None, [stacked(config, source)])
    shape = ModelShape.of(model, config.model.lora_targets)
    how = f"LoRA of rank {config.model.lora_rank}" if config.model.lora_rank else "all weights"
    note = f" ({source.note})" if source.note else ""
    made.say("model", f"{name}: {shape.parameters / 1e6:,.1f} M parameters, training {how}{note}")
    return shape, model.config


def _problems(config: Config, counts: Batches, made: TrainingPlan, tokenizer: Any) -> int:
    """Says what there is to train and test on; returns the longest prompt, as far as it can be known."""
    longest, found = 0, {}
    for split in ("train", "test"):
        try:
            loaded = load_problems(config.data, split, config.judge.sandbox)
            if tokenizer is not None:
                loaded, prompts = with_prompts(loaded, tokenizer, config)
                longest = max([longest, *map(len, prompts)])
            if split == "train":
                order(len(loaded.problems), counts, 1, 0)  # raises where they are too few for a step
            found[split] = loaded.problems
            made.say(split, f"{getattr(config.data, split)}: {loaded.words()}")
        except (ProblemsError, ValueError, OSError) as error:
            made.say(split, getattr(config.data, split))
            made.missing.append(f"problems to {split} on (data.{split}): {error}")
    if warning := overlap(found.get("train", []), found.get("test", [])):
        made.say("", warning)
    return longest or config.data.max_prompt_tokens


def _stages(config: Config, counts: Batches, made: TrainingPlan) -> None:
    planned = stages_of(config)
    auto = config.grpo.temperature == "auto"
    if auto:
        made.say("T(D)", f"before step 1: {probe_words(config)}")
    for stage, begin, end in segments(planned, config.train.steps):
        temperature = "T(D)" if auto and stage.temperature == planned[0].temperature else f"{stage.temperature:g}"
        turns = config.grpo.turns
        most = counts.responses * turns * stage.max_response_tokens
        what = "response" if turns == 1 else f"try, {turns} tries a response"
        made.say(
            "stage",
            f"steps {begin} to {end}: temperature {temperature}, up to {stage.max_response_tokens} tokens a {what}, "
            f"{most:,} a step; {(end - begin + 1) * counts.updates} updates",
        )


def _extras(config: Config) -> str:
    grpo = config.grpo
    mask = f"mask {grpo.mask}"
    if grpo.mask == "conditional":
        mask = f"conditional mask (rho {grpo.rho:g}, {grpo.mask_outcome})"
    if grpo.mask != "none" and not grpo.masked_in_group:
        mask += ", masked responses leave their group"
    parts = [
        f"KL {grpo.kl:g}" if grpo.kl else "no KL",
        mask,
        grpo.reduction.replace("_", " "),
    ]
    parts += [f"dynamic sampling, up to {grpo.dynamic_sampling} rounds"] * bool(grpo.dynamic_sampling)
    parts += ["overlong shaping"] * bool(grpo.overlong_buffer)
    trained = {"all": "all tries", "last": "the last try"}[grpo.trained_turns]
    parts += [f"{grpo.turns} turns (told: {grpo.feedback}; {trained} trained)"] * (grpo.turns > 1)
    parts += [f"CONTROL: {grpo.control}"] * (grpo.control != "none")
    return ", ".join(parts)


def _optimizer(config: Config) -> str:
    train = config.train
    warmup = f", warm-up over {train.warmup_steps} steps" if train.warmup_steps else ""
    decay = f", weight decay {train.weight_decay:g}" if train.weight_decay else ""
    name = {"adamw": "AdamW", "adam8bit": "AdamW in 8 bits"}[train.optimizer]
    return f"{name}, learning rate {train.lr:g} ({train.schedule}{warmup}){decay}"


def _evaluation(config: Config) -> str:
    if config.data.test == "none":
        return "none"
    train = config.train
    often = f"before, every {train.eval_every} steps, after" if train.eval_every else "before and after"
    limit = f", up to {train.eval_max_response_tokens} tokens" if train.eval_max_response_tokens else ""
    top_p, top_k = config.eval_top()
    top = f", top_p {top_p:g}" * (top_p < 1) + f", top_k {top_k}" * (top_k > 0)
    return f"{often}: mean of {train.eval_tries} tries at temperature {train.eval_temperature:g}{top}{limit}"


def _devices(device: Device, ranks: int, elsewhere: bool) -> str:
    """What trains: the GPUs that torch sees, the CPU, or the GPU that the plan is for."""
    if elsewhere:
        return f"{ranks} GPUs, each of {device.memory / GIB:.0f} GiB" if ranks > 1 else device.words()
    if not device.gpu:
        return "the CPU: torch sees no GPU" + f"; {ranks} processes share it" * (ranks > 1)
    visible = torch.cuda.device_count()
    used = min(ranks, visible)
    names = dict.fromkeys(torch.cuda.get_device_name(n) for n in range(used))
    of = f" of {visible}" * (used < visible)
    return f"{used}{of} GPU{'s' * (visible > 1)}: {', '.join(names)}"


def _disk(need: MemoryPlan) -> str:
    """The bytes of checkpoints: weights, and the optimizer's states of those that are trained."""
    model, train = need.config.model, need.config.train
    trained = need.shape.adapted * model.lora_rank or need.shape.parameters
    size = 2 if model.dtype == "bfloat16" and not model.lora_rank else 4
    one, most = saved_bytes(need.config, size) * trained / GIB, train.keep_checkpoints + 1 + train.keep_best
    return (
        f"one every {train.save_every} steps, {one:,.2f} GiB with the optimizer's states; "
        f"up to {most} at a time, {most * one:,.1f} GiB of disk"
    )


def _judges(config: Config, elsewhere: bool) -> str:
    """The judge's workers: counted where the training will run."""
    if elsewhere and config.judge.workers == "auto" and config.judge.on == "here":
        return "a worker for each core of a machine, less one for each of its GPUs"
    return f"{config.judge.options()['workers']} workers"


def _start(config: Config, ranks: int, gpu: bool, made: TrainingPlan) -> None:
    """Say how several processes are started, and that nobody has tried it on several GPUs."""
    if config.run.engine == "verl":
        nodes, each = config.cluster.nodes, config.cluster.gpus_per_node
        kind = f"of {each} GPUs" if each else "without GPUs"
        where = f"one machine {kind}: .venv-verl/bin/microcoder train ..."
        if nodes > 1:
            where = (
                f"{nodes} machines {kind}: ray start --head on the first, ray start --address=HOST:6379 on the others, "
                "then .venv-verl/bin/microcoder train ... on the first"
            )
        made.say("start", f"{where}; Ray needs {cpus(config)} CPUs in all")
        if each:
            made.say("", "never run: verl on GPUs, vLLM under verl, several machines")
        return
    if ranks == 1:
        return
    if ranks > MACHINE:
        each = next(n for n in range(MACHINE, 0, -1) if ranks % n == 0)
        made.say("start", f"on each of {ranks // each} machines of {each} GPUs: {torchrun(ranks // each, each)}")
        made.say("", "without run.processes; HOST is one of them, and train.folder lies on a disk that all of them see")
    else:
        made.say("start", f"microcoder train ... starts {ranks} processes on one machine")
    if gpu:
        made.say("", "never run on several GPUs, so no time is known; two CPU processes: docs/explanation/scale.md")
