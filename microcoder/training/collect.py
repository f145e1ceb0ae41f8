"""One step's responses: sampled, judged while others are still being written, rewarded, masked, weighed.

1. A reward is 1 for an accepted program and 0 for any other; a fault of the judge is no reward, and leaves the group.
2. The same program for the same problem is judged once.
3. Dynamic sampling (DAPO): groups without signal are replaced by those of other problems, in a few rounds. The replaced
   ones are kept among the rollouts, marked as discarded, and in the accuracy, which would be flattered without them.
4. A verdict that comes too late is no reward either, and its group teaches nothing: what takes long is seldom right,
   so the mean of the others alone would be flattered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

import torch

from ..config import GrpoConfig
from ..grpo import (
    Stage,
    ends_in_repetition,
    group_advantages,
    has_signal,
    overlong_penalty,
    repeat_tokens,
    truncation_mask,
)
from ..judge.base import Judging
from ..judge.extract import code_block
from ..sampling import Completion
from ..schema import ACCEPTED, Problem, Verdict

Sample = Callable[[list[list[int]]], Iterable[Completion]]  # prompts -> completions of each


@dataclass(slots=True)
class Response:
    problem: Problem
    prompt: list[int]
    sample: int
    ids: list[int]
    logprobs: list[float]
    truncated: bool
    text: str
    verdict: Verdict
    repeated: bool = False
    masked: bool = False
    discarded: bool = False
    reward: float | None = None
    advantage: float = 0.0
    cut: bool = False  # its verdict was not waited for

    @property
    def accepted(self) -> bool:
        return self.verdict.verdict == ACCEPTED

    @property
    def faulty(self) -> bool:
        return self.verdict.verdict == "internal_error"


@dataclass
class Batch:
    responses: list[Response]  # what is trained on: groups of `samples` rows
    discarded: list[Response] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    resampled: int = 0  # groups that took a discarded one's place


def respond(
    numbers: Sequence[int],
    problems: Sequence[Problem],
    prompts: Sequence[list[int]],
    sample: Sample,
    decode: Callable[[list[int]], str],
    judge: Judging,
    straggler_s: float = 0.0,
) -> tuple[list[Response], dict[str, float]]:
    """All responses to the problems `numbers`, in order, judged; and the seconds it took.

    Verdicts that are not there `straggler_s` after the end of generation are cut; 0: all are waited for.
    """
    started = time.perf_counter()
    pending: dict[tuple[int, str | None], Future[Verdict]] = {}
    asked: dict[Future[Verdict], float] = {}  # when
    found: list[tuple[Completion, str, Future[Verdict]]] = []
    for completion in sample([prompts[n] for n in numbers]):
        text = decode(completion.ids)
        key = numbers[completion.prompt], code_block(text)
        if key not in pending:
            now = time.perf_counter()
            pending[key] = judge.submit(problems[key[0]], text)
            asked[pending[key]] = now
        found.append((completion, text, pending[key]))
    generated = time.perf_counter()
    verdicts, judging = _verdicts(asked, generated, judge, straggler_s)
    found.sort(key=lambda item: (item[0].prompt, item[0].sample))
    message = f"not judged: cut {straggler_s:g} s after the end of generation (rollout.straggler_s)"
    responses = [
        Response(
            problem=problems[numbers[completion.prompt]],
            prompt=prompts[numbers[completion.prompt]],
            sample=completion.sample,
            ids=completion.ids,
            logprobs=completion.logprobs,
            truncated=completion.truncated,
            text=text,
            verdict=verdicts.get(future) or Verdict("internal_error", message=message),
            cut=future not in verdicts,
        )
        for completion, text, future in found
    ]
    return responses, {"generation_s": generated - started, **judging}


def _verdicts(
    asked: Mapping[Future[Verdict], float], generated: float, judge: Judging, straggler_s: float
) -> tuple[dict[Future[Verdict], Verdict], dict[str, float]]:
    """Those that were waited for, and the seconds it took. `asked` says when each was asked for."""
    done, late = wait(asked, timeout=straggler_s or None)
    waited = time.perf_counter() - generated
    for future in late:
        judge.drop(future)
    verdicts = {future: future.result() for future in done}
    # No judge could have spared us this: a program ends no sooner than its CPU time after it was handed in.
    ends = [asked[future] + verdict.cpu_s for future, verdict in verdicts.items()]
    floor = waited if late else min(waited, max(0.0, max(ends, default=0.0) - generated))
    return verdicts, {"judging_s": waited, "judging_floor_s": floor}


def collect(
    numbers: Sequence[int],
    ask: Callable[[Sequence[int], int], tuple[list[Response], dict[str, float]]],
    others: Sequence[int],
    settings: GrpoConfig,
    stage: Stage,
    seed: int,
    step: int,
    first_row: int = 0,
) -> Batch:
    """One step. `ask(numbers, seed)` responds to problems; `others` are the numbers that may stand in."""
    samples = settings.samples
    responses, seconds = ask(numbers, _seed(seed, step, 0, first_row))
    batch = Batch(responses, seconds=dict(seconds))
    draw = random.Random(f"{seed} {step} {first_row}")
    for turn in range(1, settings.dynamic_sampling + 1):
        silent = (~signal(batch.responses, samples)).nonzero()[:, 0].tolist()
        free = [n for n in others if n not in numbers]
        fresh = draw.sample(free, min(len(silent), len(free)))
        if not fresh:
            break
        numbers = [*numbers, *fresh]
        more, seconds = ask(fresh, _seed(seed, step, turn, first_row))
        for name, value in seconds.items():
            batch.seconds[name] += value
        _replace(batch, silent, more, samples)
    weigh(batch.responses, settings, stage, seed, step, first_row)
    return batch


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


def weigh(
    responses: list[Response], settings: GrpoConfig, stage: Stage, seed: int, step: int, first_row: int
) -> None:
    """Rewards, mask and advantages, into the responses."""
    limit = stage.max_response_tokens
    m = settings.repeat_tokens or repeat_tokens(limit)
    rewards, valid = rewards_of(responses)
    buffer = limit // 5 if settings.overlong_buffer == "auto" else settings.overlong_buffer
    if buffer:
        lengths = torch.tensor([len(response.ids) for response in responses])
        rewards = rewards + overlong_penalty(lengths, limit, min(buffer, limit))
    if settings.control == "shuffled_rewards":
        order = valid.nonzero()[:, 0]
        generator = torch.Generator().manual_seed(_seed(seed, step, 1 << 20, first_row))
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
    advantages = group_advantages(rewards, settings.samples, std=settings.advantage_std, valid=valid)
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
    """(0/1 rewards, which of them are known), each (n,)."""
    rewards = torch.tensor([float(response.accepted) for response in responses])
    return rewards, torch.tensor([not response.faulty for response in responses])


def signal(responses: Sequence[Response], samples: int) -> torch.Tensor:
    """(groups,) True where the rewards are not all equal and none was cut."""
    rewards, valid = rewards_of(responses)
    return has_signal(rewards, samples, valid) & ~_incomplete(responses, samples)


def _incomplete(responses: Sequence[Response], samples: int) -> torch.Tensor:
    """(groups,) True where a response was cut."""
    return torch.tensor([response.cut for response in responses]).reshape(-1, samples).any(1)


def _seed(seed: int, step: int, turn: int, first_row: int) -> int:
    return random.Random(f"{seed} {step} {turn} {first_row}").getrandbits(62)
