"""What a model's name stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]  # takes a line to show


class ModelError(ValueError):
    """A model that cannot be had; the message says why and what to type instead."""


@dataclass(frozen=True)
class ModelSource:
    """Where the weights of a model are."""

    name: str  # as it was asked for
    path: str  # a folder, or a hub id: what transformers' from_pretrained takes
    adapter: str | None = None  # the folder of a PEFT adapter to put on it
    note: str = ""  # what is worth knowing of these weights, for a log


@dataclass(frozen=True)
class KnownModel:
    """A model that has a name of its own here."""

    name: str
    parameters: int  # 0: not known, as the weights are not there
    size_mb: int  # of the weights on disk
    description: str
    where: str  # the folder of the weights, or where they will come from
