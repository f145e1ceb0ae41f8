"""vLLM for all stages of a run, in the training's processes or a server: made once, and closed at the run's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..models import ModelSource
from ..runs import Run, RunError
from ..sampling.vllm import VllmSampler, in_process
from .memory import MemoryPlan
from .ranks import devices, rank
from .served import ServedSampler, ServerGone


@contextmanager
def engine_of(
    need: MemoryPlan, source: ModelSource, run: Run, note: Callable[[str], None]
) -> Iterator[VllmSampler | ServedSampler | None]:
    """The sampler of all stages; None where each stage makes its own from the model that it trains.

    Raise VllmError, before anything has happened, where it cannot be had; RunError when a server is gone later.
    """
    rollout = need.config.rollout
    if rollout.engine != "vllm":
        yield None
        return
    found: Any
    if rollout.server:
        names = [need.config.model.name, source.path]
        folder = run.path / "weights"
        found = ServedSampler(rollout.server, names, need.context, need.rows, folder, rank())
        run.update(vllm=found.record())
        note(f"vLLM: a server at {found.url}, weights by {found.backend}")
    else:
        torch.cuda.empty_cache()
        found = in_process(source.path, rollout.memory, need.context, need.rows, need.crowded)
        made = {"memory": rollout.memory, "context": need.context, "rows": need.rows, "sleeps": need.crowded}
        run.update(vllm=made)
        asleep = ", asleep during updates" if need.crowded else ""
        note(f"vLLM: {rollout.memory:.1%} of the GPU, {need.context:,} tokens of context{asleep}")
    try:
        yield found
    except ServerGone as error:
        raise RunError(
            f"the vLLM server is gone: {error}; start it again ({found.start}), then go on from the last checkpoint: "
            f"microcoder train {run.path} --resume"
        ) from error
    finally:
        if rollout.server or devices() == 1:  # ranks: it ends the process group, and ends with its process
            found.close()
