"""Plain TRL with a clock in it: what step.py compares with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.sampling.bench import Bench
from microcoder import Judge, Problem, Solution
from microcoder.config import load
from microcoder.prompts import messages, prompt
from microcoder.schema import ACCEPTED
from microcoder.training.step import load_model

TEMPERATURE, LR = 0.8, 1e-6


class Plain(GRPOTrainer):
    """GRPOTrainer; only the clock is ours."""

    clock: Clock

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        return self.clock.time("generation_s", super()._generate_single_turn, *args, **kwargs)

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        return self.clock.time("training_s", super().training_step, *args, **kwargs)


class Clock(TrainerCallback):
    """Seconds of each step, by what they were spent on."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.steps: list[dict[str, Any]] = []
        self.begin()

    def begin(self) -> None:
        self.now: dict[str, Any] = {"generation_s": 0.0, "judging_s": 0.0, "training_s": 0.0, "optimizer_s": 0.0}
        self.started = time.perf_counter()

    def time(self, name: str, call: Any, *args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        result = call(*args, **kwargs)
        self.now[name] += time.perf_counter() - started
        return result

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.begin()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self.optimizer_started = time.perf_counter()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        self.bench.wait()
        self.now["optimizer_s"] = time.perf_counter() - self.optimizer_started

    def on_step_end(self, *_: Any, **__: Any) -> None:
        now = self.now
        waited = now["generation_s"] + now["judging_s"]
        now["step_s"] = time.perf_counter() - self.started
        now["update_s"] = now.pop("training_s") - waited + now.pop("optimizer_s")
        now["other_s"] = now["step_s"] - waited - now["update_s"]
        self.steps.append(now)
        self.begin()


def plain_trl(bench: Bench, problems: list[Problem], folder: Path) -> list[dict[str, Any]]:
    """The seconds of each step."""
    args, clock = bench.args, Clock(bench)
    micro = min(args.micro, bench.sequences)
    chat = bench.tokenizer.chat_template is not None
    asked = [messages(problem) if chat else prompt(problem) + "\n" for problem in problems]
    with Judge(time_limit_s=args.time_limit) as judge:

        def reward(completions: list[Any], number: list[int], completion_ids: list[list[int]], **_: Any) -> list[Any]:
            clock.now["tokens"] = sum(map(len, completion_ids))
            texts = [each if isinstance(each, str) else each[0]["content"] for each in completions]
            return clock.time("judging_s", judged, judge, [problems[n] for n in number], texts, clock.now)

        trainer = Plain(
            model=load_model(load(None, []), bench.source),
            processing_class=bench.tokenizer,
            reward_funcs=reward,
            train_dataset=Dataset.from_dict({"prompt": asked, "number": range(len(problems))}),
            args=GRPOConfig(
                output_dir=str(folder),
                per_device_train_batch_size=micro,
                gradient_accumulation_steps=bench.sequences // micro,
                num_generations=args.samples,
                max_completion_length=args.limit,
                max_steps=args.trl_steps,
                temperature=TEMPERATURE,
                learning_rate=LR,
                lr_scheduler_type="constant",
                beta=0.0,
                bf16=bench.cuda,
                gradient_checkpointing=False,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                use_cpu=not bench.cuda,
                dataloader_pin_memory=bench.cuda,
            ),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.clock = clock
        trainer.train()
    return clock.steps


def judged(judge: Judge, problems: list[Problem], texts: list[str], now: dict[str, Any]) -> list[float | None]:
    pairs = [(each, Solution(each.id, completion=texts[n], id=str(n))) for n, each in enumerate(problems)]
    verdicts = {int(solution.id): verdict for solution, verdict in judge.map(pairs)}
    ordered = [verdicts[n] for n in range(len(pairs))]
    now["judging_floor_s"] = max(verdict.cpu_s for verdict in ordered)
    now["time_limit"] = sum(verdict.verdict == "time_limit" for verdict in ordered)
    now["accuracy"] = sum(verdict.verdict == ACCEPTED for verdict in ordered) / len(ordered)
    return [None if each.verdict == "internal_error" else float(each.verdict == ACCEPTED) for each in ordered]
