"""Responses of the next step, sampled and judged while this one trains (`rollout.ahead=1`).

1. Step t trains on responses that were sampled from the weights after step t - 2, one step older than those that it
   changes; `staleness` in the metrics is 1. The first step of a run or of a stage samples its own: its staleness is 0.
2. Which weights sample what follows from the step alone, never from how long something takes. Where the sampler shares
   the model with the update, the next step is sampled first, and only judged meanwhile; a server samples meanwhile too.
3. A checkpoint holds the responses of the next step, so that a resumed run trains on the very same ones, and nothing is
   thrown away. The last step of a stage samples nothing ahead: a run that is given more steps later begins there anew.
4. Tokens are weighed by p_trainer / p_sampler (`grpo.importance`), whose effective sample size is in the metrics.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..collect import Response, Try
from ..runs.disk import write_whole
from ..schema import Problem, Verdict
from .step import Batch

APART = ("problem", "prompt", "verdict", "earlier")  # fields of a response that are written in another form


@dataclass
class NextBatch:
    step: int
    batch: Future[Batch]

    def whole(self) -> Batch:
        """The batch with all of its verdicts."""
        batch = self.batch.result()
        if batch.tail is not None:
            while batch.tail.responding.left:
                batch.tail.done(wait=True)
            batch.tail.done()
            batch.seconds, batch.tail = batch.tail.seconds, None
        return batch


class Ahead:
    """Hands out the batch of a step, and begins the next one.

    sample    (step) -> its batch, from the weights that the sampler has
    refresh   bring the sampler the newest weights
    apart     whether `sample` may run while the model is trained
    """

    def __init__(self, sample: Callable[[int], Batch], refresh: Callable[[], None], apart: bool) -> None:
        self.sample, self.refresh = sample, refresh
        self.pool = ThreadPoolExecutor(1) if apart else None
        self.next: NextBatch | None = None

    def take(self, step: int, last: int, saved: Callable[[], Batch | None]) -> Batch:
        """The batch of `step`; begin the next unless this is the `last`. `saved`: what a checkpoint has of it."""
        clock = time.perf_counter
        started = sampled = judged = clock()
        found = saved() if self.next is None else None
        if found is None:
            stale = self.next is not None
            if not stale:
                self.refresh()
                self.begin(step)
            self.wait()
            sampled = clock()
            found = self._begun().whole()
            found.staleness = int(stale)
            judged = clock()
        self.next, began = None, clock()
        if step < last:
            self.refresh()
            began = clock()
            self.begin(step + 1)
        found.sampled_s = found.seconds["generation_s"]
        found.seconds = {
            "generation_s": sampled - started + clock() - began,
            "judging_s": judged - sampled,
            "judging_floor_s": min(found.seconds["judging_floor_s"], judged - sampled),
        }
        return found

    def begin(self, step: int) -> None:
        future: Future[Batch] = Future()
        if self.pool is not None:
            future = self.pool.submit(self.sample, step)
        else:
            future.set_result(self.sample(step))
        self.next = NextBatch(step, future)

    def wait(self) -> None:
        """Until the sampler is free."""
        if self.next is not None:
            self.next.batch.result()

    def _begun(self) -> NextBatch:
        assert self.next is not None
        return self.next

    def save(self, file: Path, problems: Sequence[Problem]) -> None:
        """Write down the next step's batch, if there is one."""
        if self.next is None:
            file.unlink(missing_ok=True)  # of a try that was to go further
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        batch, numbers = self.next.whole(), {id(problem): n for n, problem in enumerate(problems)}
        record = {
            "step": self.next.step,
            "seconds": batch.seconds,
            "resampled": batch.resampled,
            "responses": [_record(row, numbers) for row in batch.responses],
            "discarded": [_record(row, numbers) for row in batch.discarded],
        }
        write_whole(file, gzip.compress(json.dumps(record).encode(), mtime=0))


def saved(file: Path, step: int, problems: Sequence[Problem], prompts: Sequence[list[int]]) -> Batch | None:
    """The batch of a step, as a checkpoint has it; None: it has none."""
    if not file.exists():
        return None
    record = json.loads(gzip.decompress(file.read_bytes()))
    if record["step"] != step:
        raise RuntimeError(f"{file} has the responses of step {record['step']}, and step {step} is next")
    responses, discarded = (
        [_response(row, problems, prompts) for row in record[k]] for k in ("responses", "discarded")
    )
    return Batch(responses, discarded, record["seconds"], record["resampled"], staleness=1)


def _record(row: Response, numbers: dict[int, int]) -> dict[str, Any]:
    plain = {field.name: getattr(row, field.name) for field in fields(row) if field.name not in APART}
    earlier = [asdict(one) for one in row.earlier]
    return {**plain, "number": numbers[id(row.problem)], "verdict": asdict(row.verdict), "earlier": earlier}


def _response(record: dict[str, Any], problems: Sequence[Problem], prompts: Sequence[list[int]]) -> Response:
    number = record.pop("number")
    record["verdict"] = Verdict.from_dict(record["verdict"])
    record["earlier"] = [Try(**{**one, "verdict": Verdict.from_dict(one["verdict"])}) for one in record["earlier"]]
    return Response(problem=problems[number], prompt=prompts[number], **record)
