"""What a training would do, worked out without doing it: `microcoder train --dry-run`."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers.integrations import get_available_reporting_integrations

from ..config import Config
from ..grpo import Stage, plan, segments
from ..models import ModelError, is_cached, resolve
from ..models.weights import load_tokenizer
from .batches import Batches, batches, order
from .problems import DataError, load_problems, with_prompts
from .ranks import devices
from .verl.refusals import lacking as lacking_for_verl
from .verl.settings import compiled

GIB = 1 << 30


@dataclass
class Plan:
    lines: list[tuple[str, str]] = field(default_factory=list)  # what, in words
    missing: list[str] = field(default_factory=list)  # what stands in the way

    def say(self, what: str, words: str) -> None:
        self.lines.append((what, words))


def describe(config: Config, folder: Path) -> Plan:
    """The resolved plan: stages, batches, tokens, memory, and what is missing. Downloads nothing."""
    made = Plan()
    made.say("run", f"{folder}{' (exists already)' if folder.exists() else ''}")
    counts = batches(config, config.cluster.processes if config.run.engine == "verl" else devices())
    shape = _model(config, made)
    longest = _problems(config, counts, made)
    preset = config.grpo.preset
    made.say("algorithm", f"{preset}: clip {config.grpo.eps:g} / {config.grpo.eps_high:g}, {_extras(config)}")
    made.say("batches", counts.words())
    _stages(config, counts, made)
    if shape is not None:
        made.say("memory", _memory(config, counts, shape, longest))
    made.say("judge", f"{config.judge.options()['workers']} workers, policy {config.judge.policy}")
    made.say("evaluation", _evaluation(config))
    if config.run.engine == "verl":
        settings = compiled(config, stages_of(config)[0], counts, config.model.name, folder)
        for name, value in settings.items():
            made.say("verl", f"{name} = {value}")
    made.missing += lacking(config)
    return made


def lacking(config: Config) -> list[str]:
    """Packages and devices that the settings ask for and that are not here."""
    if config.run.engine == "verl":
        return lacking_for_verl(config)
    found = []
    vllm = config.rollout.engine == "vllm"
    for package, wanted in (("vllm", vllm), ("peft", config.model.lora_rank > 0)):
        if wanted and importlib.util.find_spec(package) is None:
            found.append(f"the package {package}, which the settings ask for: pip install {package}")
    if vllm and not torch.cuda.is_available():
        found.append("a CUDA GPU, which rollout.engine=vllm needs: use rollout.engine=auto here")
    if config.rollout.engine == "graph" and not torch.cuda.is_available():
        found.append("a CUDA GPU, which rollout.engine=graph needs: use rollout.engine=auto here")
    known = get_available_reporting_integrations() if config.train.trackers else []
    found += [f"the tracker {name}: pip install {name}" for name in config.train.trackers if name not in known]
    return found


def _model(config: Config, made: Plan) -> Any:
    """The model on the meta device: shapes without weights; None where it cannot be known yet."""
    name = config.model.name
    try:
        if not is_cached(name):
            if name != "smollm2-135m" and not Path(name).expanduser().is_dir():
                resolve(name)  # which downloads nothing of these, and refuses what is no hub id either
            made.say("model", f"{name}: to be downloaded when training starts")
            return None
        source = resolve(name)
        from transformers import AutoConfig, AutoModelForCausalLM

        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source.path))
    except (ModelError, OSError, ValueError) as error:
        made.say("model", name)
        made.missing.append(f"the model {name}: {str(error).splitlines()[0]}")
        return None
    count = sum(parameter.numel() for parameter in model.parameters())
    how = f"LoRA of rank {config.model.lora_rank}" if config.model.lora_rank else "all weights"
    note = f" ({source.note})" if source.note else ""
    made.say("model", f"{name}: {count / 1e6:,.1f} M parameters, training {how}{note}")
    return model


def _problems(config: Config, counts: Batches, made: Plan) -> int:
    """Says what there is to train and test on; returns the longest prompt, as far as it can be known."""
    longest = 0
    tokenizer = load_tokenizer(resolve(config.model.name)) if is_cached(config.model.name) else None
    for split in ("train", "test"):
        try:
            loaded = load_problems(config.data, split)
            if tokenizer is not None:
                loaded, prompts = with_prompts(loaded, tokenizer, config.data.max_prompt_tokens)
                longest = max([longest, *map(len, prompts)])
            if split == "train":
                order(len(loaded.problems), counts, 1, 0)  # raises where they are too few for a step
            made.say(split, f"{getattr(config.data, split)}: {loaded.words()}")
        except (DataError, ValueError, OSError) as error:
            made.say(split, getattr(config.data, split))
            made.missing.append(f"problems to {split} on: {error}")
    return longest or config.data.max_prompt_tokens


def stages_of(config: Config) -> tuple[Stage, ...]:
    """The stages that the settings name."""
    # auto is not known yet; 10 stands for it, which no stage asks for, so that each is a change
    first = 10.0 if config.grpo.temperature == "auto" else config.grpo.temperature
    given = [stage.model_dump(exclude_none=True) for stage in config.train.stages]
    return plan(first, config.train.max_response_tokens, given)


def _stages(config: Config, counts: Batches, made: Plan) -> None:
    planned = stages_of(config)
    auto = config.grpo.temperature == "auto"
    for stage, begin, end in segments(planned, config.train.steps):
        temperature = "T(D)" if auto and stage.temperature == planned[0].temperature else f"{stage.temperature:g}"
        most = counts.responses * stage.max_response_tokens
        made.say(
            "stage",
            f"steps {begin} to {end}: temperature {temperature}, up to {stage.max_response_tokens} tokens a response, "
            f"{most:,} a step; {(end - begin + 1) * counts.updates} updates",
        )


def _extras(config: Config) -> str:
    grpo = config.grpo
    mask = f"conditional mask (rho {grpo.rho:g}, {grpo.mask_outcome})" if grpo.mask == "conditional" else grpo.mask
    parts = [
        f"KL {grpo.kl:g}" if grpo.kl else "no KL",
        mask if grpo.mask == "conditional" else f"mask {mask}",
        grpo.reduction.replace("_", " "),
    ]
    parts += [f"dynamic sampling, up to {grpo.dynamic_sampling} rounds"] * bool(grpo.dynamic_sampling)
    parts += ["overlong shaping"] * bool(grpo.overlong_buffer)
    parts += [f"CONTROL: {grpo.control}"] * (grpo.control != "none")
    return ", ".join(parts)


def _memory(config: Config, counts: Batches, model: Any, prompt: int) -> str:
    """A rough estimate for one device: the large parts, counted."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    size = 2 if config.model.dtype == "bfloat16" else 4
    text = model.config.get_text_config()
    trained = weights
    if config.model.lora_rank:
        linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
        trained = sum(config.model.lora_rank * (m.in_features + m.out_features) for m in linear)
    limit = max([config.train.max_response_tokens, *(s.max_response_tokens or 0 for s in config.train.stages)])
    length = prompt + limit
    kept = 2 if config.model.gradient_checkpointing else 16  # activations of a layer that wait for the backward pass
    activations = counts.micro * length * text.hidden_size * text.num_hidden_layers * kept * size
    logits = 3 * counts.micro * limit * text.vocab_size * size
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    rows = min(config.rollout.batch, counts.responses // counts.devices)
    cache = 2 * rows * length * text.num_hidden_layers * heads * head * size
    reference = weights * size if config.grpo.kl and not config.model.lora_rank else 0
    parts = {
        "weights": weights * size + reference,
        "gradients and Adam": trained * (size + 8),
        "a pass": activations + logits,
        "key-value cache": cache,
    }
    total = parts["weights"] + parts["gradients and Adam"] + max(parts["a pass"], parts["key-value cache"])
    each = ", ".join(f"{name} {value / GIB:.2f}" for name, value in parts.items())
    return f"about {total / GIB:.2f} GiB on a device ({each}; passes and cache do not meet)"


def _evaluation(config: Config) -> str:
    if config.data.test == "none":
        return "none"
    train = config.train
    often = f"before, every {train.eval_every} steps, after" if train.eval_every else "before and after"
    limit = f", up to {train.eval_max_response_tokens} tokens" if train.eval_max_response_tokens else ""
    return f"{often}: mean of {train.eval_tries} tries at temperature {train.eval_temperature:g}{limit}"
