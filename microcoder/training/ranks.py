"""Several devices: the first process writes the run directory and speaks, the others only work along."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..runs import Run, read_info, read_metrics


def devices() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def first() -> bool:
    """Whether this process writes files and prints: rank 0."""
    return rank() == 0


def share(workers: int) -> int:
    """This process's part of a machine's cores; one that feeds a GPU keeps a core for itself."""
    return max(1, workers // int(os.environ.get("LOCAL_WORLD_SIZE", "1")) - _cuda())


def together() -> None:
    """Wait for all processes: a barrier."""
    if devices() > 1:
        from accelerate import PartialState

        PartialState(cpu=not _cuda()).wait_for_everyone()


def told(value: Any) -> Any:
    """The first process's value, in all processes."""
    if devices() == 1:
        return value
    from accelerate.utils import broadcast_object_list

    together()  # which begins the connection
    return broadcast_object_list([value])[0]


def gathered(rows: list[Any]) -> list[Any]:
    """The rows of all processes, in all processes."""
    if devices() == 1:
        return rows
    from accelerate.utils import gather_object

    together()
    return list(gather_object(rows))


def open_run(make: Callable[[], Run], path: Path) -> Any:
    """The run in the first process, a FollowedRun of it in the others, once it is there."""
    if first():
        run = make()
        together()
        return run
    together()
    return FollowedRun(path)


class FollowedRun:
    """The run in processes other than the first: it can be read, and writing does nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def info(self) -> dict[str, Any]:
        return read_info(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return read_metrics(self.path)

    def update(self, **fields: Any) -> None: ...
    def rewind(self, step: int) -> None: ...

    def __enter__(self) -> FollowedRun:
        return self

    def __exit__(self, *_: object) -> None: ...


class Silent:
    """An observer that does nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...

    def step(self, metrics: dict[str, Any]) -> None: ...
    def phase(self, name: str) -> None: ...
    def note(self, text: str) -> None: ...
    def warn(self, advice: Any) -> None: ...


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()
