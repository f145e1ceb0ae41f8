"""verl's synchronous trainer with our rollouts, our advantages and our loss. verl keeps what it is good at: Ray, FSDP,
vLLM, old and reference log-probabilities, the optimizer, checkpoints, trackers.

Pinned to verl 0.9.1: the methods overridden here are private to it, and a test trains with them.

1. The trainer runs in this process, not in a Ray actor of its own, so that it writes the run directory itself.
2. Advantages need the tokens of a response, for the repeat test, which verl's advantage estimators never see: they are
   worked out here from what is in TransferQueue, and written over verl's.
3. Rows are put in the order of problems and samples first: they come as they finish, and a run could not be repeated.
4. A checkpoint is a folder like TRL's, weights and all, with verl's own in a folder within.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue
from omegaconf import open_dict
from tensordict import TensorDict
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils

from ..config import Config
from ..grpo import Stage
from ..runs import Run, checkpoints, write_rollouts
from ..runs.disk import write_whole
from ..schema import Problem
from .batches import Batches
from .collect import Batch, weigh
from .evaluate import evaluation
from .measuring import measures, records
from .names import metrics_of
from .recording import Observer, tested, write_down
from .saving import saving
from .verl.reading import Row, read, seconds, whole
from .verl.worker import TrainingProcess

POLL_S = 0.2  # between looks for finished responses
trainer_base.tqdm = partial(trainer_base.tqdm, disable=True)  # the run says how far it is


@dataclass
class Setup:
    """What all stages share."""

    config: Config
    run: Run
    counts: Batches
    observer: Observer
    problems: Mapping[str, Problem]
    tests: int
    ends: frozenset[int]


class StageTrainer(PPOTrainerSync):
    """One stage of a run."""

    def __init__(self, settings: Any, setup: Setup, stage: Stage, last: int) -> None:
        self.setup, self.stage, self.last = setup, stage, last
        self.rows: list[Row] = []
        self.batch = Batch([])
        self.saved: Path | None = None  # a checkpoint that is not yet complete
        super().__init__(settings)
        self.replay_buffer.poll_interval = POLL_S

    def _init_dataloader(self) -> None:
        super()._init_dataloader()  # which tells the learning rate's schedule of all steps
        self.total_training_steps = self.last

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(TrainingProcess)

    # --- rollouts and advantages

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], **options: Any) -> Any:
        self.setup.observer.phase("updating")
        counts = self.setup.counts
        self.rows = read(batch, self.setup.problems, self.setup.ends)
        self.batch = Batch(whole(self.rows, counts.samples, counts.problems), seconds=seconds(self.rows))
        place = {row.key: n for n, row in enumerate(self.rows)}
        batch.reorder(sorted(range(len(batch.keys)), key=lambda n: place[batch.keys[n]]))
        return super()._balance_batch(batch, metrics, **options)  # it pads what is not whole, which never happens now

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_advantage(batch, metrics)  # the weights of what vLLM sampled are worked out there
        config, step = self.setup.config, self.global_steps
        weigh(self.batch.responses, config.grpo, self.stage, config.train.seed, step, first_row=0)
        of = {row.key: row.response for row in self.rows}
        values = [torch.full((len(of[key].ids),), of[key].advantage) for key in batch.keys]
        nested = torch.nested.as_nested_tensor(values, layout=torch.jagged)  # (n, t of each)
        fields = TensorDict({"advantages": nested}, batch_size=len(values))
        return transfer_queue.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)

    # --- the end of a step

    def _compute_metrics(self, batch: Any, metrics: Any, timing_raw: Any, global_steps: int, epoch: int) -> None:
        setup, stage = self.setup, self.stage
        found = measures(self.batch, setup.counts.samples)
        statements = {row.problem.id: row.problem.statement for row in self.batch.responses}
        write_rollouts(setup.run.path, global_steps, records(self.batch, stage.temperature), statements)
        line = {
            **found,
            "step": global_steps,
            "updates": global_steps * setup.counts.updates,
            "temperature": stage.temperature,
            "max_response_tokens": stage.max_response_tokens,
            **metrics_of(metrics, timing_raw, self.batch.seconds),
            "tokens_per_s": found["tokens"] / max(self.batch.seconds["generation_s"], 1e-9),
            **{name: metrics.pop(name) for name in list(metrics) if name.startswith(("test_", "evaluation_"))},
        }
        write_down(setup.run, setup.observer, setup.config, line)
        metrics.update(_numbers(line))
        if self.saved:
            self._complete(self.saved)
        setup.observer.phase("sampling, judging")

    def _validate(self) -> dict[str, Any]:
        step, train = self.global_steps, self.setup.config.train
        due = step in (0, train.steps) or (train.eval_every and step % train.eval_every == 0)
        if not self.setup.tests or not due:
            return {}
        started = time.perf_counter()
        self.setup.observer.phase("evaluating")
        rows: list[Row] = []
        for part in self.val_dataloader:
            rows += self._answers(part)
        responses = whole(rows, train.eval_tries, self.setup.tests)
        found = {**evaluation(responses, train.eval_tries), "evaluation_s": time.perf_counter() - started}
        if step == 0:
            self.setup.run.log(0, found)
            self.setup.observer.note(f"before: test accuracy {tested(found)}")
            return _numbers(found)
        return found

    def _answers(self, part: dict[str, Any]) -> list[Row]:
        names = np.array([f"test-{row['index']}-{self.global_steps}" for row in part["extra_info"]], dtype=object)
        asked = tensordict_utils.get_tensordict({**part, "uid": names})
        tensordict_utils.assign_non_tensor_data(asked, "global_steps", self.global_steps)
        tensordict_utils.assign_non_tensor_data(asked, "validate", True)
        tags = [{"is_prompt": True, "status": "pending", "global_steps": self.global_steps} for _ in names]
        transfer_queue.kv_batch_put(keys=list(names), partition_id="val", tags=tags)
        self.agent_loop_manager.generate_sequences(asked)
        batch, _ = self.replay_buffer.sample(self.global_steps, partition_id="val", batch_size=len(names))
        rows = read(batch, self.setup.problems, self.setup.ends)
        transfer_queue.kv_clear(keys=batch.keys, partition_id="val")
        return rows

    # --- checkpoints

    def _save_checkpoint(self) -> None:
        """As a folder like TRL's, but for the file that says it is complete: the step has yet to be written down."""
        updates = self.global_steps * self.setup.counts.updates
        folder = (self.setup.run.path / "checkpoints" / f"checkpoint-{updates}").resolve()
        with saving(folder):
            shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
            with open_dict(self.config):
                self.config.trainer.default_local_dir = str(folder)
            super()._save_checkpoint()
            weights = folder / native(self.global_steps) / "actor" / "huggingface"
            for file in weights.iterdir():
                file.rename(folder / file.name)
        self.saved = folder

    def _complete(self, folder: Path) -> None:
        state = {"global_step": self.global_steps * self.setup.counts.updates, "engine": "verl"}
        write_whole(folder / "trainer_state.json", json.dumps(state).encode())
        for old in checkpoints(self.setup.run.path)[: -self.setup.config.train.keep_checkpoints]:
            shutil.rmtree(folder.parent / f"checkpoint-{old}")
        self.saved = None


def _numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """What a tracker can take."""
    return {name: value for name, value in line.items() if isinstance(value, int | float)}


def native(step: int) -> str:
    """The folder of verl's own within a checkpoint."""
    return f"global_step_{step}"
