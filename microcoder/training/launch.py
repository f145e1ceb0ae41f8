"""A run from its opening to its summary: new or resumed, its stages one after the other, each from a checkpoint.

Going on with a run gives the very weights of a run that was never stopped: it begins at the last checkpoint, which
always lies between two steps, and drops what was recorded after it.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback

from .. import __version__
from ..config import Config, load, settings, to_toml, toml_value
from ..evaluation.suite import problem_digest
from ..files import FileError
from ..grpo import Stage, plan, segments
from ..judge import JudgeError
from ..judge.remote import open_judge
from ..models import NANO, ModelError, ModelSource, resolve
from ..models.weights import load_tokenizer
from ..runs import Run, RunError, latest_checkpoint, read_info, read_metrics
from ..runs.disk import write_whole
from ..runs.plot import plot_dynamics
from ..sampling import VllmError
from ..schema import Problem
from ..starter.drafts import LABELS
from .plan import Batches, PlanError, batches, beyond, fitted, lacking, stages_of
from .problems import ProblemsError, load_problems, overlap, with_prompts
from .ranks import (
    Silent,
    Terminated,
    devices,
    first,
    noticing,
    open_run,
    report,
    share,
    shared,
    start,
    together,
    wanted,
)
from .recorder import StepRecorder, TrainingObserver, TrlSetup
from .served import engine_of
from .sharding import words

CHANGEABLE = {  # settings that may be other ones when a run goes on, for they change nothing that was done
    "train.steps",
    "train.eval_every",
    "train.save_every",
    "train.keep_checkpoints",
    "train.trackers",
    "train.folder",
    "train.name",
    "judge.on",
    "judge.workers",
    "judge.queue",
    "judge.remember",
    "rollout.batch",
    "rollout.server",
    "cluster.address",
    "run.processes",  # `with_layout` compares what they come to
    "run.layout",
}
REFUSALS = (PlanError, ProblemsError, ModelError, RunError, FileError, JudgeError, VllmError)  # what a user can mend


def launch(config: Config, folder: Path, *, resume: bool = False, observer: TrainingObserver | None = None) -> Run:
    """Train in `folder`, from the beginning or from the last checkpoint; write the summary; return the run, closed.

    On several GPUs, ranks are started that do so, and `observer` is told nothing: the first rank prints. Raise one of
    REFUSALS where it cannot be done. `observer` is told how it goes, and entered where it is a context.
    """
    try:
        count = wanted(config)
        batches(config, count or devices())
        if count:
            start(config, folder, resume, count)
            return Run.closed(folder)
    except ValueError as error:
        raise error if isinstance(error, REFUSALS) else PlanError(str(error)) from None
    try:
        return _launch(config, folder, resume, observer)
    except Exception as error:
        report(error)
        raise


def _launch(config: Config, folder: Path, resume: bool, observer: TrainingObserver | None) -> Run:
    try:
        run: Run = open_run(lambda: _open(config, folder, resume), folder)
    except ValueError as error:
        raise error if isinstance(error, REFUSALS) else PlanError(str(error)) from None
    watching: Any = observer if observer is not None and first() else Silent()
    try:
        with run, watching if hasattr(watching, "__enter__") else nullcontext():
            watching.phase("loading")
            _engine(config, run, watching)
        if first():
            finish(folder, config)  # when the run has said how it ended
    except Exception as error:
        begun = bool(run.metrics)
        if not begun and not resume and first():
            shutil.rmtree(folder, ignore_errors=True)  # made above, and nothing has happened in it: free the name
        # while models are being loaded, others' errors are about settings too; later they are faults, to be traced
        if not begun and isinstance(error, ValueError | OSError) and not isinstance(error, REFUSALS):
            raise PlanError(str(error)) from None
        raise
    return run


def _engine(config: Config, run: Run, observer: TrainingObserver) -> None:
    if config.run.engine == "verl":
        from .verl import session

        return session.train(config, run, observer)
    train(config, run, observer)


def _open(config: Config, folder: Path, resume: bool) -> Run:
    """Open the run, new or to be gone on with, once all that can be known beforehand is in order."""
    batches(config, devices())
    stages_of(config)
    if lacks := lacking(config):
        raise PlanError("\n".join(f"missing: {lack}" for lack in lacks))
    if not resume:
        return Run.create(folder, to_toml(config), {"engine": config.run.engine, "model": config.model.name})
    same_settings(config, folder)
    return Run.resume(folder)


def same_settings(config: Config, folder: Path) -> None:
    """Refuse to go on with a run under other settings: they would make it another run."""
    if not (folder / "config.toml").exists():
        raise PlanError(f"{folder} holds no run to go on with; leave out --resume to begin one")
    before = load(folder / "config.toml")
    changed = [
        f"{name} was {toml_value(was)}, now {toml_value(now)}"
        for name, _ in settings()
        for was, now in [(attrgetter(name)(before), attrgetter(name)(config))]
        if now != was and name not in CHANGEABLE
    ]
    if changed:
        raise PlanError(
            f"{folder} was begun with other settings: {'; '.join(changed)}; "
            f"to go on with its own: microcoder train {folder} --resume"
        )


def train(config: Config, run: Run, observer: TrainingObserver) -> None:
    """Train until all steps are done; `run` is open, new or resumed."""
    source = resolve(config.model.name, progress=observer.note)
    tokenizer = load_tokenizer(source, config.model.chat)
    loaded = problems_of(config, tokenizer, observer)
    longest = max(len(prompt) for _, prompts in loaded.values() for prompt in prompts)
    need = fitted(with_layout(config, run), source, longest)
    began = same_start(config, source, run)
    begin(config, run, observer)
    same_problems(loaded, config, run, observer)
    run.update(layout=need.config.run.layout, processes=devices(), start=began)
    together()
    config = need.config
    counts = batches(config, devices())
    observer.note(counts.words())
    if devices() > 1:
        observer.note(f"layout: {words(config.run.layout, devices())}")
    observer.note(f"memory: {need.words()}")
    if warning := beyond(need):
        observer.note(warning)
    most = max(counts.responses, len(loaded["test"][0]) * config.train.eval_tries)
    options = {**config.judge.options(), "queue": 2 * most}  # generation must not wait for the judge
    if config.judge.workers == "auto" and config.judge.on == "here":
        options["workers"] = share(options["workers"])
    with open_judge(options) as judge, engine_of(need, source, run, observer.note) as engine, noticing() as leaving:
        splits = loaded["train"], loaded["test"]
        setup = TrlSetup(config, run, source, counts, judge, observer, *splits, need.crowded, engine, leaving)
        for stage, last in stages_left(config, run, counts):
            left = train_stage(setup, stage, last)
            gc.collect()
            if left and steps_done(run, counts) < config.train.steps:
                raise Terminated("SIGTERM")


def same_start(config: Config, source: ModelSource, run: Run) -> str:
    """Return the folder's name of the weights that the run began with.

    `model.name=runs/a` has newer weights once runs/a was trained further. They are refused where an adapter or the KL
    is relative to the first ones.
    """
    now = Path(source.adapter or source.path).name
    before = run.info.get("start", now)
    if before != now and latest_checkpoint(run.path) and (config.grpo.kl or config.model.lora_rank):
        raise PlanError(
            f"{run.path} was begun with {before} of model.name={config.model.name}, which has {now} now, and its "
            f"{'adapter' if config.model.lora_rank else 'KL'} is relative to the first: bring that back, or begin "
            "a new run"
        )
    return before


def same_problems(loaded: Loaded, config: Config, run: Run, observer: TrainingObserver) -> None:
    """Keep a digest of the problems in run.json. Warn when a run goes on with other problems than it began with."""
    found = {
        split: hashlib.sha256("".join(map(problem_digest, problems)).encode()).hexdigest()[:16]
        for split, (problems, _) in loaded.items()
    }
    before = run.info.get("problems", found)
    for split in found if latest_checkpoint(run.path) else ():
        if found[split] != before[split]:
            observer.note(
                f"warning: data.{split}={getattr(config.data, split)} has changed since the run began; "
                "the next steps are not those that the run would have made"
            )
    run.update(problems=before)


def with_layout(config: Config, run: Run) -> Config:
    """The settings with the layout that the run was begun in. Refuse another one, and another number of processes."""
    before = {name: run.info[name] for name in ("layout", "processes") if name in run.info}
    asked = config.run.layout
    if not before or not latest_checkpoint(run.path):
        return config
    if before["processes"] != devices() or asked not in ("auto", before["layout"]):
        now = f"{devices()} process{'es' * (devices() > 1)}, layout {asked}"
        raise PlanError(
            f"{run.path} was begun with {before['processes']} process{'es' * (before['processes'] > 1)}, layout "
            f"{before['layout']}; here: {now}. Each process draws responses of its own, and a checkpoint has the "
            f"shares of each, so it would be another run; set run.processes={before['processes']} run.layout="
            f"{before['layout']}, or begin a new run with its weights: model.name={run.path}"
        )
    return config.model_copy(update={"run": config.run.model_copy(update={"layout": before["layout"]})})


Loaded = dict[str, tuple[list[Problem], list[list[int]]]]  # of both splits the problems and their prompts


def problems_of(config: Config, tokenizer: Any, observer: TrainingObserver) -> Loaded:
    """Of both splits the problems that are short enough, and their prompts."""
    loaded = {}
    for split in ("train", "test"):
        found, prompts = with_prompts(load_problems(config.data, split, config.judge.sandbox), tokenizer, config)
        observer.note(f"{split}: {getattr(config.data, split)}, {found.words()}")
        loaded[split] = (found.problems, prompts)
    if warning := overlap(loaded["train"][0], loaded["test"][0]):
        observer.note(warning)
    return loaded


def stages_left(config: Config, run: Run, counts: Batches) -> Iterator[tuple[Stage, int]]:
    """Stage after stage, each with its last step, until all steps are done; the next one is planned when it is due."""
    while (done := steps_done(run, counts)) < config.train.steps:
        stages = plan_of(config, run)
        stage, _, last = next(part for part in segments(stages, config.train.steps) if part[2] > done)
        run.update(stages=[asdict(each) for each in stages])
        yield stage, last


def stage_words(stage: Stage, done: int, last: int, checkpoint: Path | None) -> str:
    return (
        f"stage: temperature {stage.temperature:g}, up to {stage.max_response_tokens} tokens, "
        f"steps {done + 1} to {last}" + (f", from {checkpoint.name}" if checkpoint else "")
    )


def begin(config: Config, run: Run, observer: TrainingObserver) -> None:
    """Where the run goes on from, and the temperature it began with: T(D) chooses it where it is auto.

    Nothing has been refused: from now on the settings are the run's.
    """
    run.rewind(steps_done(run, batches(config, devices())))
    if first():
        write_whole(run.path / "config.toml", to_toml(config).encode())  # more steps, say, for the next --resume
    if not shared(run.info.get("temperature") is None):  # the others may read run.json when the first has written it
        return
    temperature = config.grpo.temperature
    if temperature == "auto":
        from .calibration import calibrate

        found = calibrate(config, observer)
        temperature = found.temperature
        observer.note(found.choice.reason)
        run.update(calibration=found.record())
    run.update(temperature=temperature, hardware=hardware(), versions=versions(), seed=config.train.seed)


def plan_of(config: Config, run: Run) -> tuple[Stage, ...]:
    """The stages of the settings."""
    entries: dict[int, dict[str, Any]] = {}  # what changes, by the step from which on
    for stage in config.train.stages:
        entries[stage.at_step] = stage.model_dump(exclude_none=True, exclude={"at_step"})
    for step, temperature in run.info.get("asked", []):  # runs of older versions could ask for warmer stages
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


def train_stage(setup: TrlSetup, stage: Stage, last: int) -> bool:
    """From the newest checkpoint to step `last`, or to the end of the step in which SIGTERM comes: then return True."""
    from .trl import TrlStageTrainer  # not above: verl has an environment of its own, without TRL

    config, run = setup.config, setup.run
    setup.observer.phase("loading")
    recorder = StepRecorder(setup, last)
    trainer = TrlStageTrainer(
        config,
        stage,
        setup.counts,
        setup.source,
        *setup.train,
        setup.judge,
        str(run.path / "checkpoints"),
        callbacks=[recorder],
        note=setup.observer.note,
        crowded=setup.crowded,
        engine=setup.engine,
        last=last,
    )
    trainer.remove_callback(PrinterCallback)
    recorder.trainer, trainer.finish_step, trainer.drop_old = trainer, recorder.finish, recorder.drop_old
    checkpoint = latest_checkpoint(run.path)
    setup.observer.note(stage_words(stage, steps_done(run, setup.counts), last, checkpoint))
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    trainer.sampler = None  # its room is the next stage's
    together()  # the next stage begins with the checkpoint that the first process has just written
    return recorder.left


def hardware() -> dict[str, Any]:
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return {"machine": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpus": gpus}


def versions() -> dict[str, str]:
    found = {"microcoder": __version__, "python": platform.python_version()}
    for name in ("torch", "transformers", "trl", "verl", "ray", "accelerate", "peft", "vllm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _number(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def summarise(path: str | Path, config: Config) -> dict[str, Any]:
    """Summarise a run in one record; before and after are its first and last evaluation."""
    path = Path(path)
    metrics = read_metrics(path)
    tests = [line for line in metrics if line.get("test_accuracy") is not None]
    spent = ("step_s", "checkpoint_s", "evaluation_s")
    before, after = (tests[0], tests[-1]) if len(tests) > 1 else (None, None)
    return {
        "run": str(path),
        "status": read_info(path)["status"],
        "model": config.model.name,
        "preset": config.grpo.preset,
        "steps": metrics[-1]["step"] if metrics else 0,
        "train_seconds": round(sum(line.get(name) or 0 for line in metrics for name in spent), 1),
        "before": _tested(before, config) if before else None,
        "after": _tested(after, config) if after else None,
        "gain_points": 100 * (after["test_accuracy"] - before["test_accuracy"]) if before and after else None,
    }


def finish(path: str | Path, config: Config) -> dict[str, Any]:
    """Write summary.json and dynamics.png."""
    path = Path(path)
    summary = summarise(path, config)
    (path / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    metrics = read_metrics(path)
    if metrics:
        plot_dynamics(metrics, path / "dynamics.png", f"{path.name}: {config.model.name}, {config.grpo.preset}")
    return summary


def _tested(line: dict[str, Any], config: Config) -> dict[str, Any]:
    found = {name.removeprefix("test_"): value for name, value in line.items() if name.startswith("test_")}
    unseen = _unseen(line, config)
    return {"step": line["step"], **found, **({"unseen_accuracy": unseen} if unseen is not None else {})}


def _unseen_bands(config: Config) -> set[str]:
    """Bands of the starter problems that nano's own training never saw."""
    if config.model.name != "nano" or config.data.test != "starter":
        return set()
    seen = set(json.loads((NANO / "training.json").read_text(encoding="utf-8"))["depths"])
    bands = {LABELS[depth] for depth in LABELS if depth not in seen} - {LABELS[depth] for depth in seen}
    return bands | {str(depth) for depth in LABELS if depth not in seen}  # older runs counted by depth


def _unseen(line: dict[str, Any], config: Config) -> float | None:
    bands = _unseen_bands(config)
    parts = [part for band, part in (line.get("test_by_difficulty") or {}).items() if band in bands]
    problems = sum(part["problems"] for part in parts)
    return sum(part["accuracy"] * part["problems"] for part in parts) / problems if problems else None
