"""verl's synchronous trainer with our rollouts, our advantages and our loss. verl keeps what it is good at: Ray, FSDP,
vLLM, old and reference log-probabilities, the optimizer, checkpoints, trackers.

Pinned to verl 0.9.1: the methods overridden here are private to it, and a test trains with them.

1. The trainer runs in this process, not in a Ray actor of its own, so that it writes the run directory itself.
2. Advantages need the tokens of a response, for the repeat test, which verl's advantage estimators never see: they are
   worked out here from what is in TransferQueue, and written over verl's.
3. Rows are put in the order of problems and samples first: they come as they finish, and a run could not be repeated.
4. Dynamic sampling is ours too, in rounds, before verl puts the sampling processes to sleep: verl's own goes on without
   a bound, and takes the problems of later steps.
5. A checkpoint is a folder like TRL's, weights and all, with verl's own in a folder within.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf, open_dict
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from transformers import AutoConfig, GenerationConfig
from verl.trainer.ppo.utils import create_rl_dataset, need_critic, need_reference_policy
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, trainer_base
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils
from verl.utils.config import validate_config
from verl.utils.dataset.rl_dataset import collate_fn

from ...collect import Response
from ...config import Config
from ...grpo import Stage, mismatch
from ...models import ModelSource, resolve
from ...models.weights import end_tokens, load_tokenizer
from ...runs import Run, checkpoints, latest_checkpoint, write_rollouts
from ...runs.disk import write_whole
from ...schema import Problem, Verdict
from ..launch import begin, problems_of, same_problems, stage_words, stages_left, steps_done
from ..plan import Batches, PlanError, batches, order
from ..recorder import TrainingObserver, saving, tested, write_down
from ..step import Batch, continued, evaluation, measures, records, resample, texts, weigh
from .session import base_folder, named, session, write_files
from .settings import compiled, metrics_of
from .worker import TrainingProcess

POLL_S = 0.2  # between looks for finished responses
trainer_base.tqdm = partial(trainer_base.tqdm, disable=True)  # the run says how far it is


@dataclass
class VerlSetup:
    """Objects that all stages of a run on verl share."""

    config: Config
    run: Run
    counts: Batches
    observer: TrainingObserver
    problems: Mapping[str, Problem]
    numbers: Sequence[int]  # of the training problems, in the order of the run
    tests: int
    ends: frozenset[int]
    decode: Callable[[list[int]], str]  # of a prompt, with its special tokens


class VerlStageTrainer(PPOTrainerSync):
    """One stage of a run."""

    def __init__(self, settings: Any, setup: VerlSetup, stage: Stage, last: int) -> None:
        self.setup, self.stage, self.last = setup, stage, last
        self.rows: list[Row] = []
        self.batch = Batch([])
        self.mismatch: dict[str, float] = {}
        self.saved: Path | None = None  # a checkpoint that is not yet complete
        super().__init__(settings)
        self.replay_buffer.poll_interval = POLL_S

    def _init_dataloader(self) -> None:
        super()._init_dataloader()  # which tells the learning rate's schedule of all steps
        self.total_training_steps = self.last
        others = str(Path(self.config.data.train_files).with_name("others.parquet"))
        self.others = create_rl_dataset(others, self.config.data, self.tokenizer, self.processor)

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(TrainingProcess)

    # --- rollouts and advantages

    def on_sample_end(self) -> None:
        """Nothing yet: more may have to be sampled with these weights."""

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], **options: Any) -> Any:
        config, counts, step = self.setup.config, self.setup.counts, self.global_steps
        rows = read(batch, self.setup.problems, self.setup.ends)
        self.batch = Batch(whole(rows, counts.samples, counts.problems), seconds=seconds(rows))

        def more(fresh: Sequence[int], turn: int) -> tuple[list[Response], dict[str, float]]:
            place = {-1 - number: n for n, number in enumerate(fresh)}  # numbered as in others.parquet
            asked = self._answers(collate_fn([self.others[number] for number in fresh]), "train")
            found = sorted(asked, key=lambda row: place[row.index])  # its samples stay in order
            rows.extend(found)
            return whole(found, counts.samples, len(fresh)), seconds(found)

        numbers = self.setup.numbers[(step - 1) * counts.problems : step * counts.problems]
        resample(self.batch, numbers, more, range(len(self.others)), config.grpo, config.train.seed, step)
        super().on_sample_end()
        self.setup.observer.phase("updating")
        weigh(self.batch.responses, config.grpo, self.stage, config.train.seed, step, first_row=0)
        of = {id(row.response): row for row in rows}
        self.rows = [of[id(response)] for response in self.batch.responses]
        if self.batch.discarded:
            keys = [of[id(response)].key for response in self.batch.discarded]
            transfer_queue.kv_clear(keys=keys, partition_id=batch.partition_id)
        chosen = KVBatchMeta(
            partition_id=batch.partition_id,
            keys=[row.key for row in self.rows],
            tags=[row.tag for row in self.rows],
            extra_info=batch.extra_info,
        )
        return super()._balance_batch(chosen, metrics, **options)  # it pads what is not whole, which never happens now

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_advantage(batch, metrics)  # the weights of what vLLM sampled are worked out there
        of = {row.key: row.response for row in self.rows}
        old = transfer_queue.kv_batch_get(batch.keys, batch.partition_id, ["old_log_probs"])["old_log_probs"].unbind()
        gaps = [
            value.float().cpu() - torch.tensor(of[key].logprobs) for key, value in zip(batch.keys, old, strict=True)
        ]
        self.mismatch = mismatch(torch.cat(gaps))
        values = [torch.full((len(of[key].ids),), of[key].advantage) for key in batch.keys]
        nested = torch.nested.as_nested_tensor(values, layout=torch.jagged)  # (n, t of each)
        fields = TensorDict({"advantages": nested}, batch_size=len(values))
        return transfer_queue.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)

    # --- the end of a step

    def _compute_metrics(self, batch: Any, metrics: Any, timing_raw: Any, global_steps: int, epoch: int) -> None:
        setup, stage = self.setup, self.stage
        found = measures(self.batch, setup.counts.samples)
        found_texts = texts([*self.batch.responses, *self.batch.discarded], setup.decode)
        write_rollouts(setup.run.path, global_steps, records(self.batch, stage.temperature), *found_texts)
        line = {
            **found,
            "step": global_steps,
            "updates": global_steps * setup.counts.updates,
            "temperature": stage.temperature,
            "max_response_tokens": stage.max_response_tokens,
            **self.mismatch,
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
            answers = self._answers(part, "val")
            transfer_queue.kv_clear(keys=[row.key for row in answers], partition_id="val")
            rows += answers
        responses = whole(rows, train.eval_tries, self.setup.tests)
        cut = continued(responses, self.stage, self.setup.config.grpo, train.eval_max_response_tokens)
        found = {**evaluation(responses, train.eval_tries), **cut, "evaluation_s": time.perf_counter() - started}
        kept = records(Batch(responses), train.eval_temperature)
        write_rollouts(self.setup.run.path, step, kept, *texts(responses, self.setup.decode), test=True)
        if step == 0:
            self.setup.run.log(0, found)
            self.setup.observer.note(f"before: test accuracy {tested(found)}")
            return _numbers(found)
        return found

    def _answers(self, part: dict[str, Any], partition: str) -> list[Row]:
        """Ask for responses and wait for them; they stay in TransferQueue."""
        names = np.array([f"{partition}{row['index']}-{self.global_steps}" for row in part["extra_info"]], dtype=object)
        asked = tensordict_utils.get_tensordict({**part, "uid": names})
        tensordict_utils.assign_non_tensor_data(asked, "global_steps", self.global_steps)
        tensordict_utils.assign_non_tensor_data(asked, "validate", partition == "val")
        tags = [{"is_prompt": True, "status": "pending", "global_steps": self.global_steps} for _ in names]
        transfer_queue.kv_batch_put(keys=list(names), partition_id=partition, tags=tags)
        self.agent_loop_manager.generate_sequences(asked)
        batch, _ = self.replay_buffer.sample(self.global_steps, partition_id=partition, batch_size=len(names))
        return read(batch, self.setup.problems, self.setup.ends)

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
    """Return the metrics that are plain numbers, for trackers."""
    return {name: value for name, value in line.items() if isinstance(value, int | float)}


def native(step: int) -> str:
    """The folder of verl's own within a checkpoint."""
    return f"global_step_{step}"


FIELDS = ["index", "session_id", "extra_info", "prompts", "responses", "rollout_log_probs", "extra_fields"]


@dataclass
class Row:
    key: str  # TransferQueue's, as is the tag
    tag: dict[str, Any]
    index: int  # of its row in the file
    response: Response
    times: Mapping[str, float]  # started, ended, asked, judged: by the clocks of the nodes


def read(batch: Any, problems: Mapping[str, Problem], ends: Collection[int]) -> list[Row]:
    """In the order of problems and samples, whatever the order in which they came.

    A response is truncated when it does not end in an end token.
    """
    if not batch.keys:
        return []
    data = transfer_queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=FIELDS)
    tensors = {name: data[name].unbind() for name in ("prompts", "responses", "rollout_log_probs")}
    values = {name: list(data[name]) for name in ("index", "session_id", "extra_info", "extra_fields")}
    rows = []
    for n, key in enumerate(batch.keys):
        ids, extra = tensors["responses"][n].tolist(), values["extra_fields"][n]
        judged = extra["reward_extra_info"]
        problem = problems[values["extra_info"][n]["problem"]]
        response = Response(
            problem=problem,
            prompt=tensors["prompts"][n].tolist(),
            sample=int(values["session_id"][n]),
            ids=ids,
            logprobs=tensors["rollout_log_probs"][n].tolist(),
            truncated=not ids or ids[-1] not in ends,
            text=judged["text"],
            verdict=replace(Verdict.from_dict(judged["verdict"]), problem_id=problem.id),
        )
        times = {name: {**extra, **judged}[name] for name in ("started", "ended", "asked", "judged")}
        rows.append(Row(key, batch.tags[n], int(values["index"][n]), response, times))
    return sorted(rows, key=lambda row: (row.index, row.response.sample))


def whole(rows: Sequence[Row], samples: int, problems: int) -> list[Response]:
    """Return all responses of a step; raise if verl has lost some."""
    if len(rows) != samples * problems:
        raise RuntimeError(
            f"verl brought {len(rows)} responses of {problems} problems x {samples}: generation or judging failed; "
            "why is in Ray's logs, /tmp/ray/session_latest/logs"
        )
    return [row.response for row in rows]


def seconds(rows: Sequence[Row]) -> dict[str, float]:
    """As `collect.Collector` has them: judging_s is what it took once generation was over."""
    generated = max(row.times["ended"] for row in rows)
    waited = max(0.0, max(row.times["judged"] for row in rows) - generated)
    least = max(row.times["asked"] + row.response.verdict.cpu_s for row in rows) - generated
    return {
        "generation_s": generated - min(row.times["started"] for row in rows),
        "judging_s": waited,
        "judging_floor_s": min(waited, max(0.0, least)),
    }


def train(config: Config, run: Run, observer: TrainingObserver) -> None:
    """Train until all steps are done; `run` is open, new or resumed."""
    counts = batches(config, config.cluster.processes)
    source = resolve(config.model.name, progress=observer.note)
    if source.adapter:
        raise PlanError(
            f"{source.name} is an adapter, and verl begins with a whole model; merge it first: "
            f"microcoder export {source.name} FOLDER, then model.name=FOLDER; or use run.engine=trl"
        )
    tokenizer = load_tokenizer(source, config.model.chat)
    loaded = problems_of(config, tokenizer, observer)
    begin(config, run, observer)
    same_problems(loaded, config, run, observer)
    observer.note(counts.words())
    numbers = order(len(loaded["train"][0]), counts, config.train.steps, config.train.seed)
    limit, style = config.train.eval_max_response_tokens, config.data.style
    write_files(run.path / "data", loaded["train"], numbers, loaded["test"], limit, style)
    problems = named(loaded["train"], loaded["test"])
    ends = frozenset(end_tokens(SimpleNamespace(generation_config=_generation(source)), tokenizer))
    tests = len(loaded["test"][0])
    setup = VerlSetup(config, run, counts, observer, problems, numbers, tests, ends, tokenizer.decode)
    for stage, last in stages_left(config, run, counts):
        train_stage(setup, source, stage, last)


def train_stage(setup: VerlSetup, source: ModelSource, stage: Stage, last: int) -> None:
    """From the newest checkpoint to step `last`."""
    config, run, counts, observer = setup.config, setup.run, setup.counts, setup.observer
    observer.phase("loading")
    checkpoint, done = latest_checkpoint(run.path), steps_done(run, counts)
    resume_from = str(checkpoint.resolve() / native(done)) if checkpoint else None
    changed = compiled(config, stage, counts, source.path, run.path.resolve(), resume_from)
    changed["trainer.val_before_train"] = bool(setup.tests) and not run.metrics
    settings = composed(changed)
    observer.note(stage_words(stage, done, last, checkpoint))
    with session(config, settings):
        trainer = VerlStageTrainer(settings, setup, stage, last)
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
    validate_config(settings, use_reference_policy=need_reference_policy(settings), use_critic=need_critic(settings))
    OmegaConf.resolve(settings)
    return settings


def _generation(source: ModelSource) -> GenerationConfig:
    try:
        return GenerationConfig.from_pretrained(source.path)
    except OSError:  # it has none of its own
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(source.path))
