"""A model's pass rates: a few attempts at each problem, sampled, and judged while others are still being written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import count, islice
from typing import NamedTuple

from ...judge.base import Judging
from ...models import resolve
from ...prompts import messages
from ...schema import Problem, SchemaError, Verdict
from ..record import Record
from .calibrate import Point

TOGETHER = 64  # problems sampled at a time


class PassRate(NamedTuple):
    """A model's successes at one problem."""

    id: str
    successes: int
    attempts: int  # fewer than asked for where the judge was at fault; 0 for what cannot be judged or is too long


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
    note: Callable[[str], None] | None = None,
) -> Iterator[PassRate]:
    """Sample and judge attempts; yield pass rates in the order of the records. `limit` is in tokens, and less where the
    model's window is too small for it; `judge` belongs to the caller."""
    import torch

    from ...models.weights import end_tokens, load, load_tokenizer
    from ...sampling import Sampling, encode, sampler_for

    source = resolve(model_name, progress=note)
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    model, tokenizer = load(source, dtype).eval().to(device), load_tokenizer(source)
    sampler = sampler_for(model, end_tokens(model, tokenizer), batch=batch, note=note)
    room = getattr(model.config, "max_position_embeddings", None) or 1 << 30
    stream = iter(records)
    for turn in count():
        chunk = [record.problem for record in islice(stream, TOGETHER)]
        if not chunk:
            return
        asked = [
            (n, prompt)
            for n, problem in enumerate(chunk)
            if _can_be_judged(problem)
            and len(prompt := encode(tokenizer, messages(problem))) + min(limit, room // 2) <= room
        ]
        verdicts: list[list[Future[Verdict]]] = [[] for _ in chunk]
        left = room - max((len(prompt) for _, prompt in asked), default=0)
        sampling = Sampling(temperature, min(limit, left), attempts, seed=seed + turn)
        for completion in sampler([prompt for _, prompt in asked], sampling):
            n, text = asked[completion.prompt][0], tokenizer.decode(completion.ids, skip_special_tokens=True)
            verdicts[n].append(judge.submit(chunk[n], text))
        for problem, futures in zip(chunk, verdicts, strict=True):
            known = [verdict for future in futures if (verdict := future.result()).verdict != "internal_error"]
            yield PassRate(problem.id, sum(verdict.accepted for verdict in known), len(known))


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
