"""The end of each step of a stage: metrics, rollouts, evaluations, warnings; when to save and when to stop."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accelerate.utils import gather_object
from transformers import TrainerCallback

from ..advise import Advice, new_advice
from ..config import Config
from ..judge.base import Judging
from ..models import ModelSource
from ..runs import Run, RunError, best_step, checkpoints, write_rollouts
from .memory import saved_bytes
from .plan import Batches
from .step import Batch, continued, evaluation, measures, records, texts

if TYPE_CHECKING:  # verl has an environment of its own, without TRL
    from .trl import TrlStageTrainer


class TrainingObserver(Protocol):
    """Receiver of progress: the live display, or nothing."""

    def step(self, metrics: dict[str, Any]) -> None: ...
    def phase(self, name: str) -> None: ...
    def note(self, text: str) -> None: ...
    def warn(self, advice: Advice) -> None: ...


@dataclass
class TrlSetup:
    """Objects that all stages of a run share."""

    config: Config
    run: Run
    source: ModelSource
    counts: Batches
    judge: Judging
    observer: TrainingObserver
    train: tuple[Sequence[Any], list[list[int]]]  # problems and their prompts
    test: tuple[Sequence[Any], list[list[int]]]
    crowded: bool = False  # the sampler has to give its memory to the update
    engine: Any = None  # vLLM, which samples in all stages
    leaving: Callable[[], bool] = lambda: False  # whether the training is to end after this step


class StepRecorder(TrainerCallback):
    """Record each step, evaluate, save checkpoints, and end the stage."""

    trainer: TrlStageTrainer

    def __init__(self, setup: TrlSetup, last: int) -> None:
        self.setup, self.last = setup, last
        self.started = self.optimizer_started = 0.0
        self.optimizing = 0.0
        self.norms: list[float] = []  # of the gradients of a step's updates but its last
        self.finished: int | None = None  # the step that has just ended
        self.left = False  # SIGTERM has come: the training ends with this step

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 0 and not self.setup.run.metrics:
            before = self.evaluate(0)
            if before and self.trainer.is_world_process_zero():
                self.setup.run.log(0, before)
                self.setup.observer.note(f"before: test accuracy {tested(before)}")
        self.reset()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.setup.observer.phase("sampling, judging, updating")
        step, begins = divmod(state.global_step, self.setup.counts.updates)
        if begins == 0 and self.saves(step + 1) and self.trainer.is_world_process_zero():
            room_for_checkpoint(self.setup, self.trainer.model, step + 1)

    def saves(self, step: int) -> bool:
        """Whether a step ends with a checkpoint, as far as can be known before."""
        return step >= self.last or step % self.setup.config.train.save_every == 0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.optimizer_started = time.perf_counter()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.optimizing += time.perf_counter() - self.optimizer_started

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if self.finished is None:  # within a step, or the end of training
            self.norms += [float(logs["grad_norm"])] if "grad_norm" in logs else []
            return
        self.left = bool(self.trainer.most(self.setup.leaving()))  # it came to any of the ranks
        ends = self.left or self.finished >= self.last
        control.should_training_stop = control.should_training_stop or ends
        control.should_save = ends or self.saves(self.finished)
        self.finished = None

    def finish(self, logs: dict[str, Any]) -> dict[str, Any]:
        """The end of a step: measured, perhaps evaluated, written down. Returns its metrics."""
        step, train = self.trainer.steps_done(), self.setup.config.train
        metrics = self.metrics(step, logs)
        if step == train.steps or (train.eval_every and step % train.eval_every == 0):
            metrics |= self.evaluate(step)
        if self.trainer.is_world_process_zero():
            write_down(self.setup.run, self.setup.observer, self.setup.config, metrics)
        self.finished = step
        self.reset()
        return metrics

    def metrics(self, step: int, logs: dict[str, Any]) -> dict[str, Any]:
        trainer, counts = self.trainer, self.setup.counts
        batch = trainer.gathered()
        sums = trainer.sums()
        tokens = max(sums["tokens"], 1)
        found = measures(batch, counts.samples, self.setup.config.grpo.turns)
        kl = {"kl": sums["kl"] / tokens} if self.setup.config.grpo.kl else {}
        if trainer.is_world_process_zero():
            found_texts = texts([*batch.responses, *batch.discarded], trainer.prompt_text)
            write_rollouts(self.setup.run.path, step, records(batch, trainer.stage.temperature), *found_texts)
        seconds = batch.seconds
        update_s = trainer.seconds["training"] - trainer.seconds["rollout"] + self.optimizing
        step_s = time.perf_counter() - self.started - trainer.seconds["checkpoint"]
        return {
            **found,
            "step": step,
            "updates": step * counts.updates,
            "temperature": trainer.stage.temperature,
            "max_response_tokens": trainer.stage.max_response_tokens,
            "clip_low": sums["clip_low"] / tokens,
            "clip_high": sums["clip_high"] / tokens,
            **kl,
            **(trainer.packed.mismatch() if trainer.packed is not None else {}),
            "loss": sums["loss"] / counts.updates,
            "grad_norm": sum([*self.norms, float(logs["grad_norm"])]) / counts.updates,
            "learning_rate": logs["learning_rate"],
            **seconds,
            "update_s": update_s,
            "checkpoint_s": trainer.seconds["checkpoint"],
            "other_s": step_s - update_s - seconds["generation_s"] - seconds["judging_s"],  # the floor is a part of it
            "step_s": step_s,
            **({"staleness": batch.staleness, "sampled_s": batch.sampled_s} if self.setup.config.rollout.ahead else {}),
            "tokens_per_s": found["tokens"] / max(batch.sampled_s or seconds["generation_s"], 1e-9),
        }

    def evaluate(self, step: int) -> dict[str, Any]:
        """Answer the test problems, dealt out to the devices; keep the answers, and return their metrics."""
        problems, prompts = self.setup.test
        if not problems:
            return {}
        started, train, trainer = time.perf_counter(), self.setup.config.train, self.trainer
        self.setup.observer.phase("evaluating")
        trainer.refresh()
        mine = range(trainer.accelerator.process_index, len(problems), trainer.accelerator.num_processes)
        limit = train.eval_max_response_tokens
        top = self.setup.config.eval_top()
        sampling = trainer.sampling(train.eval_temperature, train.eval_tries, train.seed, limit, top)
        responses, _ = trainer.respond(list(mine), problems, prompts, sampling).all()
        responses = gather_object(responses)
        found = evaluation(responses, train.eval_tries)
        found |= continued(responses, trainer.stage, self.setup.config.grpo, limit)
        if trainer.is_world_process_zero():
            rows = records(Batch(responses), train.eval_temperature)
            write_rollouts(self.setup.run.path, step, rows, *texts(responses, trainer.prompt_text), test=True)
        return {**found, "evaluation_s": time.perf_counter() - started}

    def drop_old(self) -> None:
        """Remove all checkpoints but the newest whole ones and, where it is asked for, the best one."""
        run, train, updates = self.setup.run, self.setup.config.train, self.setup.counts.updates
        if not self.trainer.is_world_process_zero():
            return
        whole = checkpoints(run.path)
        best = best_step(run.metrics, [n // updates for n in whole]) if train.keep_best else None
        kept = whole[-train.keep_checkpoints :] + [n for n in whole if n // updates == best]
        for path in run.path.glob("checkpoints/checkpoint-*"):
            if int(path.name.rpartition("-")[2]) not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def reset(self) -> None:
        self.optimizing = 0.0
        self.trainer.seconds = dict.fromkeys(self.trainer.seconds, 0.0)
        self.trainer.counted = None
        self.norms.clear()
        self.started = time.perf_counter()


def write_down(run: Run, observer: TrainingObserver, config: Config, metrics: dict[str, Any]) -> None:
    """Record the metrics of a step, show them, and give warnings about them."""
    run.log(metrics["step"], {name: value for name, value in metrics.items() if name != "step"})
    observer.step(metrics)
    for advice in new_advice(run.metrics, config.model_dump()):
        observer.warn(advice)


def tested(metrics: dict[str, Any]) -> str:
    """12.5% (9.1 to 16.0; 100 problems, mean of 4 tries)."""
    if metrics.get("test_accuracy") is None:
        return "not measured"
    low, high = metrics["test_accuracy_low"], metrics["test_accuracy_high"]
    # where all problems scored the same, resampling them says nothing
    within = f"{low:.1%} to {high:.1%}; " if low is not None and low < high else ""
    counted = f"{metrics['test_problems']} problems, mean of {metrics['test_tries']} tries"
    return f"{metrics['test_accuracy']:.1%} ({within}{counted})"


def room_for_checkpoint(setup: TrlSetup, model: Any, step: int) -> None:
    """Before a step that ends with a checkpoint: refuse it where the disk has no room for that."""
    folder = setup.run.path
    needed, free = checkpoint_bytes(setup.config, model), shutil.disk_usage(folder).free
    if needed > free:
        raise RunError(
            f"the checkpoint of step {step} takes about {needed / 1e9:.2f} GB, and {folder} has {free / 1e9:.2f} GB "
            "free; an old one is removed only when the new one is whole. Free some space, then go on: "
            f"microcoder train {folder} --resume"
        )


def checkpoint_bytes(config: Config, model: Any) -> int:
    """About what a checkpoint takes: what is trained, and the optimizer's states."""
    found = sum(
        getattr(weight, "ds_numel", weight.numel()) * saved_bytes(config, weight.element_size())
        for weight in model.parameters()
        if weight.requires_grad
    )
    return int(found) + (1 << 20)


FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """While a checkpoint is written into `folder`, which is removed again if that fails."""
    try:
        yield
    except Exception as error:
        full = _full(error, folder)
        shutil.rmtree(folder, ignore_errors=True)
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise


def _full(error: Exception, folder: Path) -> bool:
    """safetensors quotes the system's error in words; torch knows only that its stream has failed."""
    if isinstance(error, OSError):
        return error.errno in FULL
    return any(f"os error {number}" in str(error) for number in FULL) or shutil.disk_usage(folder.parent).free < 1 << 20
