"""Trainings small enough for tests: nano on the easiest starter problems, a second or so for each step.

One thread, so that sums are made in one order here and in a process that is started from here.
"""

from __future__ import annotations

from typing import Any

import torch
from safetensors.torch import load_file

from microcoder.config import Config, load, to_toml
from microcoder.runs import Run, latest_checkpoint, read_metrics
from microcoder.training.launch import train
from microcoder.training.ranks import Silent

torch.set_num_threads(1)

TINY = (
    "data.test=none",
    "data.difficulty=[1,1]",
    "data.train_size=12",
    "grpo.samples=4",
    "train.train_batch_size=2",
    "train.max_response_tokens=48",
    "train.lr=1e-4",
    "train.steps=2",
    "judge.workers=2",
)


class Listening(Silent):
    """An observer that keeps what it is told in words."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def settings(*more: str) -> Config:
    return load(None, [*TINY, *more])


def trained(path: Any, *more: str, observer: Any = None, **options: Any) -> list[dict[str, Any]]:
    """A run from its beginning to its end in `path`; the lines of its metrics."""
    config = settings(*more)
    with Run.create(path, to_toml(config), {}) as run:
        train(config, run, observer or Silent(), **options)
    return read_metrics(path)


def resumed(path: Any, *more: str, observer: Any = None) -> list[dict[str, Any]]:
    config = settings(*more)
    with Run.resume(path) as run:
        train(config, run, observer or Silent())
    return read_metrics(path)


def weights(path: Any, file: str = "model.safetensors") -> dict[str, torch.Tensor]:
    """Of the newest checkpoint."""
    checkpoint = latest_checkpoint(path)
    assert checkpoint is not None
    return load_file(checkpoint / file)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether the tensors are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics without what a clock said."""
    return [{k: v for k, v in line.items() if not k.endswith("_s")} for line in lines]
