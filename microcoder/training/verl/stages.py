"""A run on verl: its stages one after the other, each a Ray session of its own that goes on from a checkpoint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ray
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from transformers import AutoConfig, GenerationConfig
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1 import AgentLoopManagerTQ
from verl.utils.config import validate_config

from ...config import Config
from ...grpo import Stage
from ...models import ModelSource, resolve
from ...models.weights import end_tokens, load_tokenizer
from ...runs import Run, latest_checkpoint
from ..batches import PlanError, batches, order
from ..on_verl import Setup, StageTrainer, native
from ..recording import Observer
from ..training import begin, problems_of, quiet, stage_words, stages_left, steps_done
from .files import write_files
from .session import base_folder, session
from .settings import compiled


def train(config: Config, run: Run, observer: Observer) -> None:
    """Train until all steps are done; `run` is open, new or resumed."""
    quiet()
    counts = batches(config, config.cluster.processes)
    source = resolve(config.model.name, progress=observer.note)
    if source.adapter:
        raise PlanError(f"{source.name} is an adapter, which verl is not given; use run.engine=trl, or merge it first")
    tokenizer = load_tokenizer(source)
    loaded = problems_of(config, tokenizer, observer)
    begin(config, run, None)
    observer.note(counts.words())
    numbers = order(len(loaded["train"][0]), counts, config.train.steps, config.train.seed)
    write_files(run.path / "data", loaded["train"], numbers, loaded["test"], config.train.eval_max_response_tokens)
    problems = {problem.id: problem for split in loaded.values() for problem in split[0]}
    ends = frozenset(end_tokens(SimpleNamespace(generation_config=_generation(source)), tokenizer))
    setup = Setup(config, run, counts, observer, problems, len(loaded["test"][0]), ends)
    for stage, last in stages_left(config, run, counts):
        train_stage(setup, source, stage, last)


def train_stage(setup: Setup, source: ModelSource, stage: Stage, last: int) -> None:
    """From the newest checkpoint to step `last`."""
    config, run, counts, observer = setup.config, setup.run, setup.counts, setup.observer
    observer.phase("loading")
    checkpoint, done = latest_checkpoint(run.path), steps_done(run, counts)
    resume_from = str(checkpoint.resolve() / native(done)) if checkpoint else None
    changed = compiled(config, stage, counts, source.path, run.path.resolve(), resume_from)
    changed["trainer.val_before_train"] = bool(setup.tests) and not run.metrics()
    settings = composed(changed)
    observer.note(stage_words(stage, done, last, checkpoint))
    with session(config, settings):
        trainer = StageTrainer(settings, setup, stage, last)
        trainer.init()
        manager = AgentLoopManagerTQ.create(
            config=settings,
            llm_client=trainer.get_llm_client(),
            teacher_client=None,
            reward_loop_worker_handles=trainer.get_reward_handles(),
        )
        workers = [*manager.agent_loop_workers, *trainer.get_reward_handles()]
        ray.get([worker.__ray_ready__.remote() for worker in workers])  # or the first step would be charged for them
        observer.phase("sampling, judging")
        trainer.fit(manager)


def composed(changed: dict[str, Any]) -> Any:
    """verl's own settings with ours in them; a name that verl does not have is a fault."""
    with initialize_config_dir(base_folder(), version_base=None):
        settings = compose("ppo_trainer")
    for name, value in changed.items():
        OmegaConf.update(settings, name.removeprefix("+"), value, force_add=name.startswith("+"))
    validate_config(
        settings, use_reference_policy=need_reference_policy(settings), use_critic=need_critic(settings)
    )
    OmegaConf.resolve(settings)
    return settings


def _generation(source: ModelSource) -> GenerationConfig:
    try:
        return GenerationConfig.from_pretrained(source.path)
    except OSError:  # it has none of its own
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(source.path))
