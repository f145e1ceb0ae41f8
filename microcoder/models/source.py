"""Location of a model's weights: a folder, its newest complete checkpoint, an adapter; and the package's cache."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Progress = Callable[[str], None]  # takes a line to show


class ModelError(ValueError):
    """A model that cannot be found or loaded; the message says why and what to type instead."""


@dataclass(frozen=True)
class ModelSource:
    """The location of a model's weights."""

    name: str  # as given
    path: str  # a folder, or a hub id: what transformers' from_pretrained takes
    adapter: str | None = None  # the folder of a PEFT adapter for it
    note: str = ""  # a remark on these weights, for a log


@dataclass(frozen=True)
class KnownModel:
    """A model with a name of its own, such as nano."""

    name: str
    parameters: int  # 0: not known, since the weights are not on this machine
    size_mb: int  # of the weights on disk
    description: str
    where: str  # the folder of the weights, or the place they will be downloaded from


CHECKPOINT = re.compile(r"checkpoint-(\d+)")
BINS = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def find(folder: Path) -> tuple[Path, str]:
    """Return (folder with the weights, note): the folder itself, or its newest complete checkpoint."""
    if holds_model(folder) or is_adapter(folder):
        return folder, ""
    numbered = [
        (int(match[1]), path)
        for parent in (folder / "checkpoints", folder)
        if parent.is_dir()
        for path in parent.iterdir()
        if (match := CHECKPOINT.fullmatch(path.name))
    ]
    skipped: list[str] = []
    for _, path in sorted(numbered, reverse=True):
        if holds_model(path) or is_adapter(path):
            return path, f"{', '.join(skipped)} not complete, {path.name} taken" if skipped else ""
        skipped.append(path.name)
    if skipped:
        raise ModelError(
            f"no checkpoint of {folder} has all its weights: {', '.join(skipped)}; go on with the run until one has"
        )
    if files := sorted(folder.glob("*.gguf")):
        raise ModelError(f"{folder} holds GGUF files; name one of them, such as {files[0]}")
    raise ModelError(
        f"{folder} holds no model: there is neither config.json with whole *.safetensors, nor a PEFT adapter "
        "(adapter_config.json with its weights), nor checkpoints/checkpoint-N; name the folder that has them"
    )


def holds_model(folder: Path) -> bool:
    """Whether the folder has a config and all the weights, none of them cut off."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            shards = set(json.loads(index.read_bytes())["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):  # the index itself is cut off
            return False
        return all(header(folder / shard) is not None for shard in shards)
    return header(folder / "model.safetensors") is not None or any((folder / name).is_file() for name in BINS)


def is_adapter(folder: Path) -> bool:
    """Whether the folder is a PEFT adapter with all its weights."""
    whole = header(folder / "adapter_model.safetensors") is not None or (folder / "adapter_model.bin").is_file()
    return whole and (folder / "adapter_config.json").is_file()


def base_of(adapter: Path) -> str:
    """Return the base model of an adapter: a folder or a hub id."""
    try:
        base = json.loads((adapter / "adapter_config.json").read_bytes())["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError):
        base = None
    if not isinstance(base, str) or not base:
        raise ModelError(f'{adapter}/adapter_config.json has no "base_model_name_or_path"; write the base model there')
    return base


def parameters(folder: Path) -> int:
    """Return the number of parameters in the folder's model.safetensors; 0 if there is none."""
    tensors = header(folder / "model.safetensors") or {}
    return sum(math.prod(tensor["shape"]) for tensor in tensors.values())


def header(path: Path) -> dict[str, Any] | None:
    """Read the header of a safetensors file: its tensors (8 bytes with the length of the JSON, the JSON, the values).

    Return None if there is no such file or its end is missing, for example after a kill of the writer.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if 8 + length > size:
                return None
            tensors = json.loads(file.read(length))
        tensors.pop("__metadata__", None)
        end = max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return tensors if size == 8 + length + end else None


def cache() -> Path:
    """Return the cache folder: `MICROCODER_CACHE`, or ~/.cache/microcoder."""
    return Path(os.environ.get("MICROCODER_CACHE") or "~/.cache/microcoder").expanduser().resolve()


def make_once(folder: Path, make: Callable[[Path], None], progress: Progress) -> None:
    """Make a folder atomically: `make` fills an empty folder beside it, which is then renamed or removed.

    If several processes (or threads) need the folder, one makes it and the others wait.
    """
    part = folder.with_name(folder.name + ".part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(folder.name + ".lock"), f"another process is making {folder}; waiting", progress):
            if folder.exists():
                return
            shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed: we hold the lock
            part.mkdir()
            try:
                make(part)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise ModelError(
            f"cannot write {folder}: {error.strerror or error}; "
            "choose another place for the cache with: export MICROCODER_CACHE=/a/folder"
        ) from None


@contextlib.contextmanager
def _alone(path: Path, waiting: str, progress: Progress) -> Iterator[None]:
    import fcntl  # Unix only, and this module must be importable elsewhere

    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
