"""One step's batch: responses rewarded, masked and weighed; its metrics and rollouts; the accuracy of an evaluation.

1. A reward is 1 for an accepted program and 0 for any other; a fault of the judge is no reward, and leaves the group.
2. Dynamic sampling (DAPO): groups without signal are replaced by those of other problems, in a few rounds. The replaced
   ones are kept among the rollouts, marked as discarded, and in the accuracy, which would be flattered without them.
3. A verdict that comes too late is no reward either, and its group teaches nothing: what takes long is seldom right,
   so the mean of the others alone would be flattered.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..collect import FAULT, Responding, Response, Try
from ..config import Config, GrpoConfig
from ..grpo import (
    Stage,
    diversity,
    ends_in_repetition,
    group_advantages,
    has_signal,
    overlong_penalty,
    repeat_tokens,
    truncation_mask,
)
from ..judge.extract import code_block
from ..models import ModelSource
from ..models.weights import load
from ..quoting import Quoted
from ..schema import ACCEPTED, Problem, bands, in_order
from ..stats import bootstrap


@dataclass
class Batch:
    responses: list[Response]  # what is trained on: groups of `samples` rows
    discarded: list[Response] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    resampled: int = 0  # groups that took a discarded one's place
    tail: Tail | None = None  # what is still being judged
    staleness: int = 0  # steps between the weights that sampled it and those that it trains
    sampled_s: float = 0.0  # where that was ahead of its step: how long it took

    def __getstate__(self) -> dict[str, Any]:
        """What other processes get: the tail holds the judge and, in an update, the model."""
        return self.__dict__ | {"tail": None}


def joined(parts: Sequence[Batch]) -> Batch:
    """The batch of a step, of the parts that each device has."""
    return Batch(
        [row for part in parts for row in part.responses],
        [row for part in parts for row in part.discarded],
        {name: max(part.seconds[name] for part in parts) for name in parts[0].seconds},
        sum(part.resampled for part in parts),
        staleness=parts[0].staleness,
        sampled_s=max(part.sampled_s for part in parts),
    )


@dataclass
class Tail:
    """The groups of a batch that are still being judged; each is weighed as soon as it is."""

    responding: Responding
    samples: int
    weigh: Callable[[list[Response], int], None]  # (a group, the number of its first row)

    def __post_init__(self) -> None:
        self._done: set[int] = set()

    @property
    def seconds(self) -> dict[str, float]:
        """The times so far, as `Collector` has them."""
        return self.responding.seconds

    def done(self, wait: bool = False) -> set[int]:
        """The groups whose advantages are known; `wait` for another verdict if there is one left."""
        if self.responding.left:
            self.responding.settle(wait)
        rows = self.responding.responses
        for first in range(0, len(rows), self.samples):
            group = rows[first : first + self.samples]
            if first // self.samples not in self._done and not any(row.pending for row in group):
                self.weigh(group, first)
                self._done.add(first // self.samples)
        return self._done


def collect(
    numbers: Sequence[int],
    ask: Callable[[Sequence[int], int], Responding],
    others: Sequence[int],
    settings: GrpoConfig,
    stage: Stage,
    seed: int,
    step: int,
    first_row: int = 0,
    flows: bool = False,
) -> Batch:
    """One step. `ask(numbers, seed)` responds to problems; `others` are the numbers that may stand in. `flows`: the
    batch may be returned while it is being judged (not where a step needs all of its rewards at once).
    """
    samples = settings.samples
    responding = ask(numbers, drawn(seed, step, 0, first_row))
    if flows and not settings.dynamic_sampling and settings.control == "none":

        def one(group: list[Response], row: int) -> None:
            weigh(group, settings, stage, seed, step, first_row + row)

        return Batch(responding.responses, seconds=responding.seconds, tail=Tail(responding, samples, one))
    responses, seconds = responding.all()
    batch = Batch(responses, seconds=seconds)

    def more(fresh: Sequence[int], turn: int) -> tuple[list[Response], dict[str, float]]:
        return ask(fresh, drawn(seed, step, turn, first_row)).all()

    resample(batch, numbers, more, others, settings, seed, step, first_row)
    weigh(batch.responses, settings, stage, seed, step, first_row)
    return batch


def spare(problems: int, busy: Collection[int], device: int, devices: int) -> list[int]:
    """What a device may draw for dynamic sampling: no problem of the step, and none that another device may draw."""
    return [n for n in range(problems) if n not in busy][device::devices]


def resample(
    batch: Batch,
    numbers: Sequence[int],
    more: Callable[[Sequence[int], int], tuple[list[Response], dict[str, float]]],
    others: Sequence[int],
    settings: GrpoConfig,
    seed: int,
    step: int,
    first_row: int = 0,
) -> None:
    """Dynamic sampling. `more(numbers, turn)` responds to problems; `numbers` are those of the batch."""
    draw = random.Random(f"{seed} {step} {first_row}")
    for turn in range(1, settings.dynamic_sampling + 1):
        silent = (~signal(batch.responses, settings.samples)).nonzero()[:, 0].tolist()
        free = [n for n in others if n not in numbers]
        if not (fresh := draw.sample(free, min(len(silent), len(free)))):
            break
        numbers = [*numbers, *fresh]
        found, seconds = more(fresh, turn)
        for name, value in seconds.items():
            batch.seconds[name] += value
        _replace(batch, silent, found, settings.samples)


def _replace(batch: Batch, silent: list[int], more: list[Response], samples: int) -> None:
    """Put each new group that has signal in the place of one that has none; discard the others."""
    for n, good in enumerate(signal(more, samples).tolist()):
        group = more[n * samples : (n + 1) * samples]
        if good and silent:
            at = silent.pop(0) * samples
            group, batch.responses[at : at + samples] = batch.responses[at : at + samples], group
            batch.resampled += 1
        for response in group:
            response.discarded = True
        batch.discarded += group


def weigh(responses: list[Response], settings: GrpoConfig, stage: Stage, seed: int, step: int, first_row: int) -> None:
    """Set reward, mask and advantage of each response."""
    limit = stage.max_response_tokens
    m = settings.repeat_tokens or repeat_tokens(limit)
    rewards, valid = rewards_of(responses)
    buffer = limit // 5 if settings.overlong_buffer == "auto" else settings.overlong_buffer
    if buffer:
        lengths = torch.tensor([len(response.ids) for response in responses])
        rewards = rewards + overlong_penalty(lengths, limit, min(buffer, limit))
    if settings.control == "shuffled_rewards":
        order = valid.nonzero()[:, 0]
        generator = torch.Generator().manual_seed(drawn(seed, step, 1 << 20, first_row))
        rewards[order] = rewards[order[torch.randperm(len(order), generator=generator)]]
    for response in responses:
        response.repeated = ends_in_repetition(response.ids, m, settings.repeat)
    masked = truncation_mask(
        torch.tensor([response.truncated for response in responses]),
        [response.verdict.verdict for response in responses],
        torch.tensor([response.repeated for response in responses]),
        mask=settings.mask,
        rho=settings.rho,
        mask_outcome=settings.mask_outcome,
        seed=seed,
        step=step,
        rows=range(first_row, first_row + len(responses)),
    )
    counted = valid if settings.masked_in_group else valid & ~masked
    advantages = group_advantages(rewards, settings.samples, std=settings.advantage_std, valid=counted)
    incomplete = _incomplete(responses, settings.samples).repeat_interleave(settings.samples)
    advantages = advantages.masked_fill(masked | incomplete, 0.0)
    for n, response in enumerate(responses):
        response.masked = bool(masked[n])
        response.reward = float(rewards[n]) if valid[n] else None
        response.advantage = float(advantages[n])


def also_accuracy(responses: Sequence[Response]) -> float | None:
    """The share that the judge's second policy accepts; None where it has none."""
    also = [response.verdict.also for response in responses if response.verdict.also and not response.faulty]
    return sum(verdict == ACCEPTED for verdict in also) / len(also) if also else None


def rewards_of(responses: Sequence[Response]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return 0/1 rewards (n,), and which of them are known (n,)."""
    rewards = torch.tensor([float(response.accepted) for response in responses])
    return rewards, torch.tensor([not response.faulty for response in responses])


def signal(responses: Sequence[Response], samples: int) -> torch.Tensor:
    """Return (groups,) True for groups with different rewards and no cut response."""
    rewards, valid = rewards_of(responses)
    return has_signal(rewards, samples, valid) & ~_incomplete(responses, samples)


def _incomplete(responses: Sequence[Response], samples: int) -> torch.Tensor:
    """Return (groups,) True for groups with a cut response."""
    return torch.tensor([response.cut for response in responses]).reshape(-1, samples).any(1)


def drawn(*numbers: int) -> int:
    """Return a seed that follows from numbers."""
    return random.Random(" ".join(map(str, numbers))).getrandbits(62)


def measures(batch: Batch, samples: int, turns: int = 1) -> dict[str, Any]:
    """Compute the metrics of a step from its responses.

    With several turns these are of the last tries, but for tokens and entropy, which are of all, and D, which is of the
    first: they answered the same prompt.
    """
    rows = batch.responses
    everything = [*rows, *batch.discarded]
    rewards = [row.reward for row in rows if row.reward is not None]
    lengths = [len(row.ids) for row in rows]
    finished = [len(row.ids) for row in rows if not row.truncated]
    verdicts: dict[str, int] = {}
    for row in everything:
        verdicts[row.verdict.verdict] = verdicts.get(row.verdict.verdict, 0) + 1
    judged = [row.accepted for row in everything if not row.faulty]
    also = also_accuracy(everything)
    taught = signal(rows, samples).tolist()  # (groups,)
    return {
        "reward": _mean(rewards),
        "accuracy": _mean(judged),
        **(_repairs(everything) if turns > 1 else {}),
        **({} if also is None else {"accuracy_also": also}),
        "length_mean": _mean(lengths),
        "length_max": max(lengths),
        "length_finished": _mean(finished),
        "truncated_share": _mean([row.truncated for row in rows]),
        "repeated_share": _mean([row.repeated for row in rows]),
        "masked_share": _mean([row.masked for row in rows]),
        "masked_signal_share": _mean([row.masked and taught[n // samples] for n, row in enumerate(rows)]),
        "entropy": -_mean([value for row in rows for one in row.tries for value in one.logprobs]),
        "diversity": diversity([row.first.ids for row in rows], samples),
        "no_signal_share": 1 - _mean(taught),
        "no_code_share": verdicts.get("no_code", 0) / len(everything),
        "judge_faults": sum(row.faulty and not row.cut for row in everything),
        "cut_stragglers": sum(row.cut for row in everything),
        "resampled": batch.resampled,
        "tests_mean": _mean([_tests(row.problem) for row in everything]),
        "quoted_share": _quoted(everything),
        "rows": len(everything),
        "tokens": sum(len(one.ids) for row in everything for one in row.tries),
        "verdicts": verdicts,
    }


def _repairs(rows: Sequence[Response]) -> dict[str, float]:
    """The accuracy of first tries; of those that were followed by another, the share whose last try is accepted."""
    first = [row.first.verdict for row in rows]
    again = [row.accepted for row in rows if row.earlier and not row.faulty]
    return {
        "accuracy_first": _mean([verdict.verdict == ACCEPTED for verdict in first if verdict.verdict != FAULT]),
        "repaired_share": _mean(again),
    }


def records(batch: Batch, temperature: float, first_row: int = 0) -> list[dict[str, Any]]:
    """Return the rollouts of a step as records for the run directory."""
    return [
        {
            "row": first_row + n,
            "problem": row.problem.id,
            "sample": row.sample,
            "completion": row.text,
            "code": code_block(row.text) or "",
            "verdict": row.verdict.verdict,
            "strategy": row.verdict.strategy,
            "message": row.verdict.message,
            "reward": row.reward,
            "advantage": row.advantage,
            "length": len(row.ids),
            "truncated": row.truncated,
            "repeated": row.repeated,
            "masked": row.masked,
            "discarded": row.discarded,
            "cut": row.cut,
            "temperature": temperature,
            **({"earlier": [_earlier(one) for one in row.earlier]} if row.earlier else {}),
        }
        for n, row in enumerate([*batch.responses, *batch.discarded])
    ]


def _earlier(one: Try) -> dict[str, Any]:
    return {
        "completion": one.text,
        "code": code_block(one.text) or "",
        "verdict": one.verdict.verdict,
        "message": one.verdict.message,
        "told": one.message,
        "length": len(one.ids),
        "truncated": one.truncated,
    }


def texts(responses: Sequence[Response], decode: Callable[[list[int]], str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the statements and the prompts of the responses' problems, by id."""
    found = {row.problem.id: row for row in responses}
    return (
        {name: row.problem.statement for name, row in found.items()},
        {name: decode(row.prompt) for name, row in found.items()},
    )


def _quoted(responses: Sequence[Response]) -> float:
    """The share of the accepted programs that compare with inputs of their tests; 0 where none is accepted."""
    tests = {row.problem.id: Quoted(row.problem) for row in responses if row.accepted}
    found = [tests[row.problem.id](code_block(row.text) or "") for row in responses if row.accepted]
    return _mean(found) if found else 0.0


def _tests(problem: Problem) -> int:
    """How many tests decide; asserts are counted by the word, since one text may hold many."""
    return len(problem.tests) + sum(text.count("assert ") for text in problem.asserts)


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values) if values else float("nan")


def evaluation(responses: Sequence[Response], tries: int) -> dict[str, Any]:
    """The metrics of an evaluation. `responses` are groups of `tries`, one group a problem.

    A fault of the judge counts as neither right nor wrong. The interval is the 95% bootstrap over the problems, since
    the tries of one problem are alike.
    """
    groups = [responses[n : n + tries] for n in range(0, len(responses), tries)]
    scores = [_score(group) for group in groups]
    known = np.array([score for score in scores if score is not None])
    low, high = bootstrap(known)
    also = also_accuracy(responses)
    return {
        "test_accuracy": float(known.mean()) if len(known) else None,
        **({} if also is None else {"test_accuracy_also": also}),
        "test_accuracy_low": low,
        "test_accuracy_high": high,
        "test_pass_at_k": float((known > 0).mean()) if len(known) else None,
        "test_tries": tries,
        "test_problems": len(groups),
        "test_length": float(np.mean([len(row.ids) for row in responses])),
        "test_truncated_share": float(np.mean([row.truncated for row in responses])),
        "test_diversity": diversity([row.ids for row in responses], tries) if tries > 1 else None,
        "test_judge_faults": sum(row.faulty for row in responses),
        "test_by_difficulty": _by_difficulty(groups, scores),
    }


def continued(responses: Sequence[Response], stage: Stage, grpo: GrpoConfig, limit: int) -> dict[str, float]:
    """The metrics of an evaluation whose limit is larger than that of training: what training would have cut.

    test_accuracy_cut      accuracy with every response cut at the limit of training; what is cut counts as wrong
    test_cut_share         share of the responses that are cut there
    test_continued_share   of those that do not end in repetition there: the share that is right in the end; NaN: none
    """
    if limit <= stage.max_response_tokens:
        return {}
    short = stage.max_response_tokens
    m = grpo.repeat_tokens or repeat_tokens(short)
    known = [row for row in responses if not row.faulty]
    cut = [row for row in known if len(row.ids) > short]
    straight = [row.accepted for row in cut if not ends_in_repetition(row.ids[:short], m, grpo.repeat)]
    return {
        "test_accuracy_cut": _mean([row.accepted and len(row.ids) <= short for row in known]),
        "test_cut_share": len(cut) / max(len(known), 1),
        "test_continued_share": _mean(straight),
    }


def _score(group: Sequence[Response]) -> float | None:
    judged = [row.accepted for row in group if not row.faulty]
    return sum(judged) / len(judged) if judged else None


def _by_difficulty(groups: Sequence[Sequence[Response]], scores: Sequence[float | None]) -> dict[str, dict[str, float]]:
    """Mean accuracy and number of problems for each band of difficulty, from easy to hard."""
    found: dict[str, list[float]] = {}
    for band, score in zip(bands(group[0].problem for group in groups), scores, strict=True):
        if band and score is not None:
            found.setdefault(band, []).append(score)
    return {
        band: {"accuracy": sum(found[band]) / len(found[band]), "problems": len(found[band])}
        for band in in_order(found)
    }


def weights_of(config: Config) -> dict[str, Any]:
    """Return the options with which the settings load the weights."""
    kind = {} if config.model.attention == "auto" else {"attn_implementation": config.model.attention}
    return {"dtype": torch.bfloat16 if config.model.dtype == "bfloat16" else torch.float32, **kind}


def load_model(config: Config, source: ModelSource) -> Any:
    """Load the model that is trained, without its dropout: that would make another policy of each pass."""
    model = load(source, **weights_of(config))
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        for name, value in vars(part).items():
            if "dropout" in name and isinstance(value, float):  # such as attention_dropout, which functions are given
                setattr(part, name, 0.0)
    return model
