"""TRL's GRPOTrainer with our rollouts, our advantages and our loss. TRL keeps what it is good at: models, devices,
padding, old and reference log-probabilities, the optimizer, checkpoints, trackers.

Pinned to `trl>=1.16,<1.17`: the methods overridden here are private to it, and a test calls each.

1. A trainer lives for one stage: temperature and limit are frozen in many places inside TRL, so a new stage is a new
   trainer that goes on from the last one's checkpoint.
2. The dataset's `prompt` is the number of a problem; `rollout_func` makes the prompt, the responses and their rewards.
   The dataset is the whole run in order: TRL's own shuffling would begin again with the first epoch on resuming.
3. Each device responds to whole groups, so that advantages need no exchange between devices.
4. The loss is divided by totals over the whole update, which are counted when TRL has dealt out a batch. Responses with
   advantage 0 add nothing to its gradient (unless there is a KL), so no pass is spent on them.
5. A step's data is random only through (seed, step): TRL's generator states matter for nothing but the order in which
   responses are dealt out to updates, and they are in the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOTrainer
from trl.models import unwrap_model_for_generation

from ..collect import Repair, Responding
from ..config import Config
from ..grpo import Objective, Stage, policy_loss
from ..judge.base import Judging
from ..models import ModelSource
from ..models.weights import load_tokenizer
from ..prompts import feedback
from ..sampling import Completion, Sampling, encode_next, sampler_for
from ..schema import Problem
from .ahead import Ahead, saved
from .arguments import adapter, arguments, optimizer_of
from .packed import share_prompts
from .plan import Batches, importance_of, objective_of, order
from .ranks import together
from .recorder import saving
from .sharding import allow_on_cpu
from .step import Batch, collect, drawn, joined, load_model, spare
from .update import PackedUpdates, Update, alike, dealt, nothing, padded_logprobs, scored, trained_tokens

SUMS = ("tokens", "clip_low", "clip_high", "kl", "loss")


class TrlStageTrainer(GRPOTrainer):
    """TRL's GRPOTrainer with our rollouts, advantages and loss: trains one stage of a run."""

    def __init__(
        self,
        config: Config,
        stage: Stage,
        counts: Batches,
        source: ModelSource,
        problems: Sequence[Problem],
        prompts: Sequence[list[int]],
        judge: Judging,
        folder: str,
        callbacks: Sequence[TrainerCallback] = (),
        note: Callable[[str], None] | None = None,
        crowded: bool = False,
        engine: Any = None,
        last: int = 0,
    ) -> None:
        self.sampler: Any = engine
        self.sharded = config.run.layout in ("fsdp", "zero3")  # a rank holds only its share of the weights
        self.copied = self.sharded or engine is not None  # the sampler has a copy of the weights
        self.refreshed = -1  # the update after which that was made
        self.note, self.crowded = note, crowded
        self.config, self.stage, self.counts, self.judge = config, stage, counts, judge
        self.problems, self.prompts, self.folder = problems, prompts, Path(folder)
        self.objective: Objective = objective_of(config)
        self.batch, self.last = Batch([]), last or config.train.steps
        next_batch = partial(self._collect, flows=True)  # its last programs may be judged while this step trains
        self.ahead = Ahead(next_batch, self.refresh, bool(config.rollout.server)) if config.rollout.ahead else None
        self.seconds = dict.fromkeys(("training", "rollout", "checkpoint"), 0.0)
        self.counted: torch.Tensor | None = None
        self.order = order(len(problems), counts, config.train.steps, config.train.seed)
        super().__init__(
            model=load_model(config, source),
            args=arguments(config, stage, counts, folder),
            processing_class=load_tokenizer(source),
            train_dataset=Dataset.from_dict({"prompt": [str(n) for n in self.order]}),
            reward_funcs=self._known_rewards,
            rollout_func=lambda prompts, _: self._rollout([int(prompt) for prompt in prompts]),
            peft_config=adapter(config),
            callbacks=list(callbacks),
        )
        self.optimizer_cls_and_kwargs = optimizer_of(config)
        if engine is not None:
            engine.end_tokens = sorted(self.eos_token_ids)
        self.packed = self._packed_updates() if counts.pass_tokens else None
        self.updates: list[Update] = []
        if self.ref_model is not None and source.adapter:  # which TRL does not know of: it loads the model by its name
            reference, start = self.accelerator.unwrap_model(self.ref_model), self.accelerator.unwrap_model(self.model)
            reference.load_state_dict(start.state_dict())

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        self.is_fsdp_enabled = allow_on_cpu(self.accelerator, self.args) or self.is_fsdp_enabled

    # --- rollouts

    def steps_done(self) -> int:
        """Number of whole steps done; TRL counts updates."""
        return int(self.state.global_step) // self.counts.updates

    @property
    def flows(self) -> bool:
        """Whether updates begin while the last programs are judged; on a CPU sums are the same in every run instead."""
        one = self.accelerator.num_processes == 1
        return self.packed is not None and one and self.accelerator.device.type != "cpu"

    def _rollout(self, numbers: list[int]) -> dict[str, Any]:
        started, step = time.perf_counter(), self.steps_done() + 1
        if numbers != [n for n in self._dealt(step) for _ in range(self.counts.samples)]:
            raise RuntimeError("TRL dealt out a batch that is not made of whole groups; was it another version of TRL?")
        if self.ahead is None:
            self.refresh()
            self.batch = self._collect(step, self.flows)
        else:
            self.batch = self.ahead.take(step, self.last, partial(self._saved_ahead, step))
        if self.crowded and hasattr(self.sampler, "release"):
            self.sampler.release()
        self.seconds["rollout"] += time.perf_counter() - started
        rows = self.batch.responses
        found = {"prompt_ids": [row.prompt for row in rows], "completion_ids": [row.tokens for row in rows]}
        more = {} if self.config.grpo.turns == 1 else {"env_mask": [row.trained for row in rows]}
        return {**found, **more, "logprobs": None}

    def _dealt(self, step: int) -> list[int]:
        """The problems of a step that this device responds to."""
        share = self.counts.problems // self.counts.devices
        first = self.accelerator.process_index * share
        return self._problems_of(step)[first : first + share]

    def _problems_of(self, step: int) -> list[int]:
        return self.order[(step - 1) * self.counts.problems : step * self.counts.problems]

    def _kept_ahead(self) -> Path:
        """Where the checkpoint of now has the responses of the next step, or will have them."""
        return self.folder / f"checkpoint-{self.state.global_step}" / f"ahead-{self.accelerator.process_index}.json.gz"

    def _saved_ahead(self, step: int) -> Batch | None:
        """The batch of a step, as the checkpoint has it; None: a device lacks its part, so that all sample anew."""
        found = saved(self._kept_ahead(), step, self.problems, self.prompts)
        return None if self.most(found is None) else found

    def _collect(self, step: int, flows: bool) -> Batch:
        """Respond to the problems of a step."""
        samples, groups, process = self.counts.samples, self._dealt(step), self.accelerator.process_index

        def ask(chosen: Sequence[int], seed: int) -> Responding:
            sampling = self.sampling(self.stage.temperature, samples, seed)
            turns, straggler_s = self.config.grpo.turns, self.config.rollout.straggler_s
            return self.respond(chosen, self.problems, self.prompts, sampling, straggler_s, turns)

        return collect(
            groups,
            ask,
            spare(len(self.problems), self._problems_of(step), process, self.counts.devices),
            self.config.grpo,
            self.stage,
            self.config.train.seed,
            step,
            first_row=process * len(groups) * samples,
            flows=flows,
        )

    def sampling(
        self, temperature: float, samples: int, seed: int, limit: int = 0, top: tuple[float, int] | None = None
    ) -> Sampling:
        """`limit` and `top` (p and k) of evaluations; without them, those of training."""
        top_p, top_k = top or (self.config.rollout.top_p, self.config.rollout.top_k)
        return Sampling(temperature, limit or self.stage.max_response_tokens, samples, top_p, top_k, seed)

    def respond(
        self,
        numbers: Sequence[int],
        problems: Sequence[Problem],
        prompts: Sequence[list[int]],
        sampling: Sampling,
        straggler_s: float = 0.0,
        turns: int = 1,
    ) -> Responding:
        """Responses of the model as it is now; also how it is evaluated, with one turn."""
        sample = partial(self.sample, sampling=sampling)
        repair = self._repair(sampling, turns) if turns > 1 else None
        return Responding(numbers, problems, prompts, sample, self.text, self.judge, straggler_s, repair)

    def _repair(self, sampling: Sampling, turns: int) -> Repair:
        def encode(ids: list[int], message: str) -> list[int]:
            return encode_next(self._tokenizer, ids, message, self.eos_token_ids, self.config.model.chat)

        def sample(prompts: list[list[int]], turn: int) -> Iterator[Completion]:
            return self.sample(prompts, replace(sampling, samples=1, seed=drawn(sampling.seed, turn)))

        grpo = self.config.grpo
        return Repair(turns, partial(feedback, show=grpo.feedback), encode, sample, grpo.trained_turns == "all")

    def sample(self, prompts: list[list[int]], sampling: Sampling) -> Iterator[Completion]:
        """Completions of the model as it is now; also how it is evaluated."""
        if self.copied:
            yield from self.sampler(prompts, sampling)
            return
        training = self.model_wrapped.training
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
            model.eval()
            try:
                yield from self._sampler_of(model)(prompts, sampling)
            finally:
                model.train(training)

    def refresh(self) -> None:
        """Before responses are sampled: where the sampler has a copy of the weights, that is made new, if it is old.

        Where ranks hold shares of the weights, this is all that they do together until responses are judged, so each
        may sample as often as it needs to, as in dynamic sampling and later turns.
        """
        if self.ahead is not None:
            self.ahead.wait()
        asleep = getattr(self.sampler, "asleep", False)
        if not self.copied or (self.refreshed == self.state.global_step and not asleep):
            return
        model = self.accelerator.unwrap_model(self.model_wrapped)
        if self.sampler is None:
            self.sampler = self._new_sampler(model)
        else:
            self.sampler.refresh(model)
        self.refreshed = self.state.global_step

    def _sampler_of(self, model: Any) -> Any:
        if self.sampler is None:
            self.sampler = self._new_sampler(model)
        self.sampler.model = model
        return self.sampler

    def _new_sampler(self, model: Any) -> Any:
        """Made once: it keeps room for keys and values, and captured graphs."""
        rollout, ends = self.config.rollout, self.eos_token_ids
        return sampler_for(model, ends, rollout.engine, rollout.batch, rollout.memory, self.note, self.sharded)

    def text(self, ids: list[int]) -> str:
        """Decode a completion."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))

    def prompt_text(self, ids: list[int]) -> str:
        """Decode a prompt as the model sees it, with its special tokens."""
        return str(self._tokenizer.decode(ids))

    def _known_rewards(self, completions: list[Any], **_: Any) -> list[float | None]:
        return [row.reward for row in self.batch.responses]

    def gathered(self) -> Batch:
        """Gather the step's batch from all devices."""
        return joined(gather_object([self.batch]))

    # --- advantages and loss

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        advantages = [row.advantage for row in self.batch.responses]
        output["advantages"] = torch.tensor(advantages, device=self.accelerator.device)
        return output

    def _packed_updates(self) -> PackedUpdates:
        for model in filter(None, (self.model, self.ref_model)):
            plain = self.accelerator.unwrap_model(model)
            share_prompts(plain.get_base_model() if hasattr(plain, "get_base_model") else plain, self.stage.temperature)
        score = partial(scored, autocast=self._autocast)
        return PackedUpdates(
            self.counts,
            self.objective,
            self.accelerator,
            score,
            self._reference if self.objective.kl else None,
            importance_of(self.config),
            self.config.grpo.importance_cap,
            self.config.run.layout != "replicated",
        )

    def _autocast(self) -> Any:
        """DeepSpeed casts in its engine only, and passes without gradients go around that."""
        if not self.is_deepspeed_enabled or torch.is_grad_enabled():
            return self.accelerator.autocast()
        settings = self.accelerator.state.deepspeed_plugin.deepspeed_config["torch_autocast"]
        return torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=settings["enabled"])

    def _reference(self, packed: Any, score: Any) -> torch.Tensor:
        """Log-probabilities under the reference policy: a model of its own, or this one without its adapter."""
        if self.ref_model is not None:
            return score(self.ref_model, packed)
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return score(self.model, packed)

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        if self.packed is not None:
            turn = self._step % self.counts.updates
            if turn == 0:
                self._rollout([int(row["prompt"]) for row in generation_batch])
                if self.batch.tail is None:
                    self.updates = self.packed.deal(self.batch.responses)
                    self.packed.remember(self.model, [part for one in self.updates[1:] for part in one.passes])
                else:
                    self.updates = self.packed.flow(self.batch.responses, self.batch.tail, self.model)
            return {"update": self.updates[turn]}
        before = self._buffered_inputs
        inputs: dict[str, Any] = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is None or self._buffered_inputs is before:
            return inputs
        passes = self.counts.passes
        for first in range(0, len(self._buffered_inputs), passes):
            window = self._buffered_inputs[first : first + passes]
            counted = torch.stack([trained_tokens(part).sum() for part in window]).sum()
            total = int(self.accelerator.gather(counted).sum())
            parts = dealt(window, self.counts.micro, not self.objective.kl, self.most)
            self._buffered_inputs[first : first + passes] = [{**part, "update_tokens": total} for part in parts]
        return self._buffered_inputs[0]

    def most(self, number: int) -> int:
        """Return the maximum over all devices."""
        return int(self.accelerator.gather(torch.tensor([number], device=self.accelerator.device)).max())

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        mask = trained_tokens(inputs)  # (n, t)
        if not len(ids):  # nothing to learn from in this pass, on any device
            return nothing(ids.device)
        logprobs, _, _ = self._get_per_token_logps_and_entropies(model, ids, attention, mask.size(1))
        old = inputs.get("old_per_token_logps")
        result = policy_loss(
            logprobs,
            logprobs.detach() if old is None else old,
            inputs["advantages"],
            mask,
            self.objective,
            ref_logprobs=inputs.get("ref_per_token_logps"),
            tokens=inputs["update_tokens"],
            sequences=self.counts.mini * self.counts.samples,
            limit=self.stage.max_response_tokens,
        )
        self._count(result)
        return result.loss * self.accelerator.num_processes  # which averages the gradients

    def _count(self, result: Any) -> None:
        kl = torch.zeros_like(result.loss) if result.kl is None else result.kl
        parts = (result.tokens, result.clip_low, result.clip_high, kl, result.loss.detach())
        stacked = torch.stack([part.float() for part in parts])  # kept where it is: reading it would stop the GPU
        self.counted = stacked if self.counted is None else self.counted + stacked

    def sums(self) -> dict[str, float]:
        """What the step's passes have counted, over all devices."""
        counted = torch.zeros(len(SUMS), device=self.accelerator.device) if self.counted is None else self.counted
        totals = self.accelerator.reduce(counted, reduction="sum").tolist()
        return dict(zip(SUMS, totals, strict=True))

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, Any]:
        """At the stage's temperature. Where nothing is learned (old and reference log-probabilities), responses of like
        length go together and the padding is cut; those that are not trained on are left out.
        """
        if torch.is_grad_enabled() or kwargs.get("compute_aux_loss"):
            return self._logprobs(model, input_ids, attention_mask, logits_to_keep, *args, **kwargs)
        found = torch.zeros(len(input_ids), logits_to_keep, device=input_ids.device)
        rows = kwargs.pop("batch_size", None) or len(input_ids)
        parts = list(alike(attention_mask, logits_to_keep, self._live(len(input_ids)), rows))
        if self.sharded:  # weights are gathered in each pass, so that all ranks have to make as many
            idle = list(alike(attention_mask, logits_to_keep, torch.tensor([0]), 1))
            parts += idle * (self.most(len(parts)) - len(parts))
        for pick, start, end in parts:
            ids, mask = input_ids[pick, start:end], attention_mask[pick, start:end]
            keep = end - (input_ids.size(1) - logits_to_keep)
            with self._autocast():
                logprobs = self._logprobs(model, ids, mask, keep, *args, **kwargs)[0]
            found[pick, :keep] = logprobs.to(found.dtype)
        return found, None, None

    def _live(self, rows: int) -> torch.Tensor | None:
        """Which of a step's responses are trained on, where it is their old log-probabilities that are asked for."""
        responses = self.batch.responses
        if torch.is_grad_enabled() or self.objective.kl or rows != len(responses):
            return None
        return torch.tensor([n for n, row in enumerate(responses) if row.advantage], dtype=torch.long)

    def _logprobs(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, Any]:
        """TRL's fused head on a GPU; on a CPU, where that scores the prompts too, ours."""
        if input_ids.device.type != "cpu" or kwargs.get("compute_aux_loss"):
            found: tuple[Any, Any, Any] = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
            )
            return found
        rows = kwargs.get("batch_size") or len(input_ids)
        parts = zip(input_ids.split(rows), attention_mask.split(rows), strict=True)
        logprobs = [padded_logprobs(model, *part, logits_to_keep, self.stage.temperature) for part in parts]
        return torch.cat(logprobs), None, None

    # --- the clock and the trackers

    finish_step: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    drop_old: Callable[[], None] | None = None

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """At the end of a step, trackers are told its metrics too, by the names they have in metrics.jsonl."""
        if self.finish_step is not None and "loss" in logs and self.state.global_step % self.counts.updates == 0:
            metrics = self.finish_step(logs)
            logs = logs | {name: value for name, value in metrics.items() if isinstance(value, int | float)}
        super().log(logs, *args, **kwargs)

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        started = time.perf_counter()
        if self.packed is None:
            loss: torch.Tensor = super().training_step(model, inputs, *args, **kwargs)
        else:
            model.train()
            update, batch = self._prepare_inputs(inputs)["update"], self.batch
            waited = batch.seconds["judging_s"]
            loss = self.packed.run(model, update, self.stage.max_response_tokens, self._count)
            if batch.tail is not None:
                batch.seconds = batch.tail.seconds
            self.seconds["rollout"] += batch.seconds["judging_s"] - waited
            self._step += 1
        self.seconds["training"] += time.perf_counter() - started
        return loss

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        started = time.perf_counter()
        with saving(self.folder / f"checkpoint-{self.state.global_step}"):
            if self.ahead is not None:  # first, on all devices: what comes next makes the checkpoint whole
                self.ahead.save(self._kept_ahead(), self.problems)
                together()
            super()._save_checkpoint(*args, **kwargs)
        if self.drop_old is not None:
            self.drop_old()
        self.seconds["checkpoint"] += time.perf_counter() - started

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """TRL writes a card into every checkpoint that says how to publish it; a run directory has no use for one."""
