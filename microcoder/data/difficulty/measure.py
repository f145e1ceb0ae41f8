"""Measure a model's pass rates: sample a few attempts at each problem, and judge them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

from ...collect import Responding, load_sampler
from ...judge.base import Judging
from ...models import resolve
from ...schema import Problem, SchemaError
from ..record import Record
from .calibrate import Point

TOGETHER = 64  # problems sampled at a time


class PassRate(NamedTuple):
    """A model's successes at one problem."""

    id: str
    successes: int
    attempts: int  # fewer if the judge failed; 0 if a problem cannot be judged or its prompt is too long


def pass_rates(
    records: Iterable[Record],
    model_name: str,
    attempts: int = 4,
    *,
    judge: Judging,
    temperature: float = 1.0,
    limit: int = 1024,
    seed: int = 0,
    batch: int = 512,
    style: str = "code",
    chat: Mapping[str, Any] | None = None,
    note: Callable[[str], None] | None = None,
) -> Iterator[PassRate]:
    """Sample and judge attempts; yield pass rates in the order of the records.

    limit   most tokens of an attempt; fewer if the model's context is too small
    judge   is not closed here
    style   of the prompts
    chat    arguments of the model's chat template
    """
    from ...sampling import Sampling  # loads torch

    model = load_sampler(resolve(model_name, progress=note), batch=batch, note=note, chat=chat)
    room = model.context or 1 << 30
    stream = iter(records)
    for turn in count():
        chunk = [record.problem for record in islice(stream, TOGETHER)]
        if not chunk:
            return
        prompts = [model.prompt(problem, style) if _can_be_judged(problem) else [] for problem in chunk]
        asked = [n for n, prompt in enumerate(prompts) if prompt and len(prompt) + min(limit, room // 2) <= room]
        left = room - max((len(prompts[n]) for n in asked), default=0)
        sampling = Sampling(temperature, min(limit, left), attempts, seed=seed + turn)
        sample = partial(model.sampler, sampling=sampling)
        responses, _ = Responding(asked, chunk, prompts, sample, model.text, judge).all()
        rates = {n: [0, 0] for n in range(len(chunk))}  # (successes, attempts)
        for place, response in enumerate(responses):
            if not response.faulty:
                rate = rates[asked[place // attempts]]
                rate[0], rate[1] = rate[0] + response.accepted, rate[1] + 1
        yield from (PassRate(problem.id, *rates[n]) for n, problem in enumerate(chunk))


def points(records: Iterable[Record], rates: Iterable[PassRate]) -> Iterator[Point]:
    """Yield each record's difficulty with its pass rate, for `calibrate`; both must be in the same order."""
    for record, rate in zip(records, rates, strict=True):
        yield float(record.notes["difficulty"]), rate.successes, rate.attempts


def _can_be_judged(problem: Problem) -> bool:
    try:
        problem.check()
    except SchemaError:
        return False
    return True
