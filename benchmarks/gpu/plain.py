"""An arm of `step` in a process of its own: TRL's GRPOTrainer as its users set it up, with our judge as its reward.

    python -m benchmarks.gpu.plain SPEC.json      # written by `step`

Nothing of MicroCoder's trainer is in it; only the clock is ours, around methods of TRL. What both sides share:

1. The problems of each step, in the same order, and their prompts: the messages go through the tokenizer's chat
   template, and the tokens are compared with MicroCoder's.
2. The judge with its settings; the same program for the same problem is judged once.
3. cuDNN's attention is off, which plans anew for each shape; `cudnn_attention=true` turns it on, as torch has it.

Words of an arm are arguments of GRPOConfig, and `dtype`: that of the weights, float32 (TRL's default, and ours).
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.gpu.apart import Lines
from microcoder.collect import Collector
from microcoder.config import Config, load
from microcoder.judge.base import Judging
from microcoder.judge.extract import code_block
from microcoder.judge.remote import open_judge
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.prompts import messages, prompt
from microcoder.schema import Problem
from microcoder.training.plan import batches, order
from microcoder.training.problems import load_problems, with_prompts

PARTS = ("generation", "sync", "judging", "rollout", "training", "optimizer")


class Clock(TrainerCallback):
    """Seconds of a step by what they were spent on; a line for each step.

    generation_s   the sampler, from its call to its last response
    sync_s         the weights' way to vLLM
    judging_s      the reward function: all that happens between the last response and the rewards
    scoring_s      what else comes before the updates: old log-probabilities, padding
    update_s       forward, backward, optimizer
    """

    def __init__(self, lines: Lines, updates: int) -> None:
        self.lines, self.updates = lines, updates
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.figures: dict[str, Any] = {}
        self.started = self.optimizer_started = 0.0

    def around(self, owner: Any, name: str, part: str, wait: bool = True) -> None:
        """Time a method; `wait`: until the GPU has done all of it."""
        method = getattr(owner, name)

        @functools.wraps(method)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            found = method(*args, **kwargs)
            if wait and torch.cuda.is_available():
                torch.cuda.synchronize()
            self.spent[part] += time.perf_counter() - started
            return found

        setattr(owner, name, timed)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.lines.write(0)
        self.started = time.perf_counter()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self.optimizer_started = time.perf_counter()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.spent["optimizer"] += time.perf_counter() - self.optimizer_started

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """TRL's step is an update; ours is a batch of responses."""
        if state.global_step % self.updates:
            return
        spent, now = self.spent, time.perf_counter()
        found = {
            "generation_s": spent["generation"] - spent["sync"],
            "sync_s": spent["sync"],
            "judging_s": spent["judging"],
            "scoring_s": spent["rollout"] - spent["generation"] - spent["judging"],
            "update_s": spent["training"] - spent["rollout"] + spent["optimizer"],
        }
        found["step_s"] = now - self.started
        found["other_s"] = found["step_s"] - spent["training"] - spent["optimizer"]
        self.lines.write(state.global_step // self.updates, **found, **self.figures)
        self.spent, self.figures = dict.fromkeys(PARTS, 0.0), {}
        self.started = time.perf_counter()


def main() -> None:
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    spec = json.loads(Path(sys.argv[1]).read_text())
    run(load(None, spec["words"]), spec["trl"], spec["folder"], Lines(spec["lines"]), vllm=spec["vllm"])


def run(config: Config, asked: dict[str, Any], folder: str, lines: Lines, vllm: bool) -> GRPOTrainer:
    """Train by TRL with the sizes and problems of a MicroCoder configuration; return the trainer, for tests."""
    counts, source = batches(config), resolve(config.model.name)
    tokenizer = load_tokenizer(source)
    loaded, prompts = with_prompts(load_problems(config.data, "train"), tokenizer, config)
    numbers = order(len(loaded.problems), counts, config.train.steps, config.train.seed)
    clock = Clock(lines, counts.updates)
    torch.backends.cuda.enable_cudnn_sdp(bool(asked.pop("cudnn_attention", False)))
    longest = max(map(len, prompts))
    with open_judge({**config.judge.options(), "queue": 2 * counts.responses}) as judge:
        trainer = GRPOTrainer(
            model=source.path,
            processing_class=tokenizer,
            reward_funcs=reward_of(judge, loaded.problems, clock),
            train_dataset=Dataset.from_dict(
                {"prompt": [asked_of(tokenizer, loaded.problems[n], prompts[n]) for n in numbers], "number": numbers}
            ),
            args=settings(config, asked, folder, vllm, longest),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        clock.around(trainer, "training_step", "training", wait=False)
        clock.around(trainer, "_generate_and_score_completions", "rollout")
        clock.around(trainer, "_generate_single_turn", "generation")
        if vllm:
            clock.around(trainer.vllm_generation, "sync_weights", "sync")
        trainer.train()
    return trainer


def settings(config: Config, asked: dict[str, Any], folder: str, vllm: bool, longest: int) -> GRPOConfig:
    """TRL's settings for the same step; `asked` wins over them. longest: tokens of a prompt."""
    train, cuda = config.train, torch.cuda.is_available()
    asked = dict(asked)
    counts = batches(config)
    update = counts.mini * counts.samples  # responses
    micro = min(int(asked.pop("per_device_train_batch_size")), update)
    if update % micro:
        fits = max(n for n in range(1, micro) if update % n == 0)
        raise ValueError(f"per_device_train_batch_size={micro} does not divide the {update} of an update; take {fits}")
    return GRPOConfig(
        output_dir=folder,
        model_init_kwargs={"dtype": asked.pop("dtype", "float32")},
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=update // micro,
        steps_per_generation=counts.responses // micro,
        max_steps=train.steps * counts.updates,
        **{
            "num_generations": counts.samples,
            "max_completion_length": train.max_response_tokens,
            "temperature": config.grpo.temperature,
            "loss_type": "dapo",  # the mean over tokens
            "beta": config.grpo.kl,
            "epsilon": config.grpo.eps,
            "epsilon_high": config.grpo.eps_high,
            "learning_rate": train.lr,
            "lr_scheduler_type": "constant",
            "max_grad_norm": train.max_grad_norm,
            "bf16": cuda,
            "use_cpu": not cuda,
            "dataloader_pin_memory": cuda,
            "seed": train.seed,
            "shuffle_dataset": False,  # it is in the order of MicroCoder's steps
            "save_strategy": "no",
            "logging_steps": counts.updates,
            "report_to": "none",
            "disable_tqdm": True,
            "use_vllm": vllm,
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": 0.3,
            "vllm_max_model_length": longest + train.max_response_tokens,
            **asked,
        },
    )


def asked_of(tokenizer: Any, problem: Problem, ids: list[int]) -> Any:
    """What TRL makes a problem's prompt of; refuse tokens that are not MicroCoder's."""
    if tokenizer.chat_template is None:
        asked: Any = prompt(problem) + "\n"
        found = tokenizer(text=asked)["input_ids"]
    else:
        asked = messages(problem)
        found = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=True)["input_ids"]
    if list(found) != list(ids):
        raise ValueError(f"the prompt of {problem.id} has other tokens here than in MicroCoder")
    return asked


def reward_of(judge: Judging, problems: list[Problem], clock: Clock) -> Callable[..., list[float | None]]:
    """TRL's reward function: 1 for an accepted program, 0 for any other, none for a fault of the judge."""

    def reward(completions: list[Any], number: list[int], completion_ids: list[Any], **_: Any) -> list[float | None]:
        started = time.perf_counter()
        texts = [one if isinstance(one, str) else one[0]["content"] for one in completions]
        collector: Collector[int] = Collector(judge)
        rewards: list[float | None] = [None] * len(texts)
        for n, verdict in collector(
            range(len(texts)),
            lambda n: (number[n], code_block(texts[n])),
            lambda n: (problems[number[n]], texts[n]),
        ):
            if verdict is not None and verdict.verdict != "internal_error":
                rewards[n] = float(verdict.accepted)
        clock.spent["judging"] += time.perf_counter() - started
        clock.figures = figures(rewards, number, [len(ids) for ids in completion_ids])
        return rewards

    return reward


def figures(rewards: list[float | None], number: list[int], lengths: list[int]) -> dict[str, Any]:
    """By the names that MicroCoder's metrics have."""
    groups: dict[int, set[float]] = {one: set() for one in number}
    for one, found in zip(number, rewards, strict=True):
        groups[one] |= set() if found is None else {found}
    known = [one for one in rewards if one is not None]
    return {
        "tokens": sum(lengths),
        "length_mean": sum(lengths) / len(lengths),
        "accuracy": sum(known) / len(known) if known else None,
        "no_signal_share": sum(len(found) < 2 for found in groups.values()) / len(groups),
    }


if __name__ == "__main__":
    main()
