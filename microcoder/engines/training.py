"""A run: its stages one after the other, a line of metrics and the rollouts of each step, evaluations, checkpoints.

Going on with a run gives the very weights of a run that was never stopped: it begins at the last checkpoint, which
always lies between two steps, and drops what was recorded after it.
"""

from __future__ import annotations

import gc
import logging
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate.utils import gather_object
from transformers import PrinterCallback, TrainerCallback
from transformers import logging as transformers_logging

from .. import __version__
from ..advise import Advice, new_advice
from ..config import Config
from ..grpo import PlateauWatch, Stage, WatchState, plan, segments
from ..judge import Judge
from ..models import ModelSource, resolve
from ..run import Run, latest_checkpoint, write_rollouts
from .batches import Batches, batches
from .collect import measures, records
from .evaluate import evaluation
from .on_trl import StageTrainer, load_tokenizer
from .problems import load_problems, with_prompts
from .ranks import devices, share, together

WINDOW, COOLDOWN, INCREMENT, HIGHEST = 30, 40, 0.2, 1.8  # of the watch over D, where temperature is auto


class Observer(Protocol):
    """Who is told how it goes: the live display, or nobody."""

    def step(self, metrics: dict[str, Any]) -> None: ...
    def phase(self, name: str) -> None: ...
    def note(self, text: str) -> None: ...
    def warn(self, advice: Advice) -> None: ...


@dataclass
class Setup:
    """What all stages share."""

    config: Config
    run: Run
    source: ModelSource
    counts: Batches
    judge: Judge
    observer: Observer
    train: tuple[Sequence[Any], list[list[int]]]  # problems and their prompts
    test: tuple[Sequence[Any], list[list[int]]]


def train(config: Config, run: Run, observer: Observer, choose: Callable[[Config], float] | None = None) -> None:
    """Train until all steps are done; `run` is open, new or resumed. `choose` picks a temperature that is auto."""
    quiet()
    counts = batches(config, devices())
    source = resolve(config.model.name, progress=observer.note)
    tokenizer = load_tokenizer(source)
    loaded = {}
    for split in ("train", "test"):
        found, prompts = with_prompts(load_problems(config.data, split), tokenizer, config.data.max_prompt_tokens)
        observer.note(f"{split}: {getattr(config.data, split)}, {found.words()}")
        loaded[split] = (found.problems, prompts)
    begin(config, run, choose)
    together()
    observer.note(counts.words())
    options = {**config.judge.options(), "queue": 2 * counts.responses}  # generation must not wait for the judge
    options["workers"] = share(options["workers"]) if config.judge.workers == "auto" else options["workers"]
    with Judge(**options) as judge:
        setup = Setup(config, run, source, counts, judge, observer, loaded["train"], loaded["test"])
        while (done := steps_done(run, counts)) < config.train.steps:
            stages = plan_of(config, run)
            _, (stage, _, last) = next(
                (n, part) for n, part in enumerate(segments(stages, config.train.steps)) if part[2] > done
            )
            run.update(stages=[asdict(each) for each in stages])
            train_stage(setup, stage, last)
            gc.collect()


def begin(config: Config, run: Run, choose: Callable[[Config], float] | None) -> None:
    """Where the run goes on from, and the temperature it began with."""
    done = steps_done(run, batches(config, devices()))
    run.rewind(done)
    run.update(asked=[[step, temperature] for step, temperature in run.info.get("asked", []) if step <= done + 1])
    if run.info.get("temperature") is None:
        temperature = config.grpo.temperature
        if temperature == "auto":
            if devices() > 1:
                raise ValueError(
                    'grpo.temperature="auto" works on one device only; choose beforehand: microcoder calibrate'
                )
            if choose is None:
                raise ValueError('grpo.temperature is "auto", but nothing was given to choose it with')
            temperature = choose(config)
        run.update(temperature=temperature, hardware=hardware(), versions=versions(), seed=config.train.seed)


def plan_of(config: Config, run: Run) -> tuple[Stage, ...]:
    """The stages of the settings, and those that the watch over D has asked for so far."""
    entries: dict[int, dict[str, Any]] = {}  # what changes, by the step from which on
    for stage in config.train.stages:
        entries[stage.at_step] = stage.model_dump(exclude_none=True, exclude={"at_step"})
    for step, temperature in run.info["asked"]:
        entries[step] = {**entries.get(step, {}), "temperature": temperature}
    now = {"temperature": run.info["temperature"], "max_response_tokens": config.train.max_response_tokens}
    stages = []
    for step, entry in sorted(entries.items()):
        if config.grpo.temperature == "auto" and entry.items() <= now.items():
            continue  # T(D) was there already, which nobody who wrote the stage could know
        stages.append({"at_step": step, **entry})
        now |= entry
    return plan(run.info["temperature"], config.train.max_response_tokens, stages)


def steps_done(run: Run, counts: Batches) -> int:
    checkpoint = latest_checkpoint(run.path)
    return _number(checkpoint) // counts.updates if checkpoint else 0


def train_stage(setup: Setup, stage: Stage, last: int) -> None:
    """From the newest checkpoint to step `last`, or to the step at which the watch asks for another stage."""
    config, run = setup.config, setup.run
    setup.observer.phase("loading")
    recorder = Recorder(setup, last)
    trainer = StageTrainer(
        config,
        stage,
        setup.counts,
        setup.source,
        *setup.train,
        setup.judge,
        str(run.path / "checkpoints"),
        callbacks=[recorder],
    )
    trainer.remove_callback(PrinterCallback)
    recorder.trainer = trainer
    checkpoint = latest_checkpoint(run.path)
    setup.observer.note(
        f"stage: temperature {stage.temperature:g}, up to {stage.max_response_tokens} tokens, "
        f"steps {steps_done(run, setup.counts) + 1} to {last}" + (f", from {checkpoint.name}" if checkpoint else "")
    )
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    together()  # the next stage begins with the checkpoint that the first process has just written


class Recorder(TrainerCallback):
    """Writes down each step, evaluates, saves, and ends the stage."""

    trainer: StageTrainer

    def __init__(self, setup: Setup, last: int) -> None:
        self.setup, self.last = setup, last
        self.started = self.optimizer_started = 0.0
        self.optimizing = 0.0
        self.watch: PlateauWatch | None = None
        if setup.config.grpo.temperature == "auto":
            target = setup.run.info["diversity_target"]
            self.watch = PlateauWatch(target, WINDOW, COOLDOWN, INCREMENT, HIGHEST)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 0 and not self.setup.run.metrics():
            before = self.evaluate()
            if before and self.trainer.is_world_process_zero():
                self.setup.run.log(0, before)
                self.setup.observer.note(f"before: test accuracy {tested(before)}")
        self.reset()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.setup.observer.phase("generating and judging")

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.optimizer_started = time.perf_counter()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.optimizing += time.perf_counter() - self.optimizer_started

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs: dict[str, Any] = kwargs["logs"]
        updates = self.setup.counts.updates
        if "loss" not in logs or state.global_step % updates:  # the end of training, or within a step
            return
        step, train = state.global_step // updates, self.setup.config.train
        metrics = self.metrics(step, logs)
        if step == train.steps or (train.eval_every and step % train.eval_every == 0):
            metrics |= self.evaluate()
        if self.trainer.is_world_process_zero():
            self.record(step, metrics)
        asked = self.asked()
        if step >= self.last or asked:
            control.should_training_stop = True
        control.should_save = step >= self.last or asked or step % train.save_every == 0
        self.reset()

    def metrics(self, step: int, logs: dict[str, Any]) -> dict[str, Any]:
        trainer, counts = self.trainer, self.setup.counts
        batch = trainer.gathered()
        sums, tokens = trainer.sums, max(trainer.sums["tokens"], 1)
        found = measures(batch, counts.samples)
        kl = {"kl": sums["kl"] / tokens} if self.setup.config.grpo.kl else {}
        if trainer.is_world_process_zero():
            statements = {row.problem.id: row.problem.statement for row in [*batch.responses, *batch.discarded]}
            write_rollouts(self.setup.run.path, step, records(batch, trainer.stage.temperature), statements)
        seconds = batch.seconds
        update_s = trainer.seconds["training"] - trainer.seconds["rollout"] + self.optimizing
        step_s = time.perf_counter() - self.started - trainer.seconds["checkpoint"]
        return {
            **found,
            "step": step,
            "updates": step * counts.updates,
            "temperature": trainer.stage.temperature,
            "max_response_tokens": trainer.stage.max_response_tokens,
            "entropy": sums["entropy"] / tokens,
            "clip_low": sums["clip_low"] / tokens,
            "clip_high": sums["clip_high"] / tokens,
            **kl,
            "loss": sums["loss"] / counts.updates,
            "grad_norm": float(logs["grad_norm"]),
            "learning_rate": logs["learning_rate"],
            **seconds,
            "update_s": update_s,
            "checkpoint_s": trainer.seconds["checkpoint"],
            "other_s": step_s - update_s - sum(seconds.values()),
            "step_s": step_s,
            "tokens_per_s": found["tokens"] / max(seconds["generation_s"], 1e-9),
        }

    def evaluate(self) -> dict[str, Any]:
        """The test problems, dealt out to the devices."""
        problems, prompts = self.setup.test
        if not problems:
            return {}
        started, train, trainer = time.perf_counter(), self.setup.config.train, self.trainer
        self.setup.observer.phase("evaluating")
        mine = range(trainer.accelerator.process_index, len(problems), trainer.accelerator.num_processes)
        responses, _ = trainer.respond(
            list(mine),
            problems,
            prompts,
            temperature=train.eval_temperature,
            limit=trainer.stage.max_response_tokens,
            samples=train.eval_tries,
            seed=train.seed,
        )
        found = evaluation(gather_object(responses), train.eval_tries)
        return {**found, "evaluation_s": time.perf_counter() - started}

    def record(self, step: int, metrics: dict[str, Any]) -> None:
        run, observer = self.setup.run, self.setup.observer
        run.log(step, {name: value for name, value in metrics.items() if name != "step"})
        observer.step(metrics)
        for advice in new_advice(run.metrics()):
            observer.warn(advice)

    def asked(self) -> bool:
        """Whether D is about to settle too low; the stage that is asked for is written down."""
        if self.watch is None:
            return False
        state, decision = WatchState(), None
        for line in self.setup.run.metrics():  # the whole run each time: nothing to keep, nothing to lose
            if line["step"] and line.get("diversity") is not None:
                state, decision = self.watch.update(state, line["step"], line["diversity"], line["temperature"])
        if decision is None:
            return False
        self.setup.observer.note(decision.reason)
        asked = [*self.setup.run.info["asked"], [decision.step + 1, decision.temperature]]
        self.setup.run.update(asked=asked)
        return True

    def reset(self) -> None:
        self.optimizing = 0.0
        self.trainer.seconds = dict.fromkeys(self.trainer.seconds, 0.0)
        self.trainer.sums = dict.fromkeys(self.trainer.sums, 0.0)
        self.started = time.perf_counter()


def tested(metrics: dict[str, Any]) -> str:
    """12.5% (9.1 to 16.0; 100 problems, mean of 4 tries)."""
    if metrics.get("test_accuracy") is None:
        return "not measured"
    low, high = metrics["test_accuracy_low"], metrics["test_accuracy_high"]
    within = "" if low is None else f"{low:.1%} to {high:.1%}; "
    counted = f"{metrics['test_problems']} problems, mean of {metrics['test_tries']} tries"
    return f"{metrics['test_accuracy']:.1%} ({within}{counted})"


def quiet() -> None:
    """The run says what there is to say; the libraries' progress bars and reminders do not."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("trl").setLevel(logging.ERROR)  # it warns of every response without a reward; we count them


def hardware() -> dict[str, Any]:
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return {"machine": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpus": gpus}


def versions() -> dict[str, str]:
    found = {"microcoder": __version__, "python": platform.python_version()}
    for name in ("torch", "transformers", "trl", "accelerate", "peft", "vllm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _number(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


