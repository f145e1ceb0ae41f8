"""A folder of the cache is made once, by one process, and appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .source import ModelError, Progress


def cache() -> Path:
    """`MICROCODER_CACHE`, or ~/.cache/microcoder."""
    return Path(os.environ.get("MICROCODER_CACHE") or "~/.cache/microcoder").expanduser().resolve()


def make_once(folder: Path, make: Callable[[Path], None], progress: Progress) -> None:
    """Let `make` fill an empty folder beside `folder`, then rename it; whatever stops it, nothing is left behind.

    Of several processes (or threads) that want the folder one makes it and the others wait for that.
    """
    part = folder.with_name(folder.name + ".part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(folder.name + ".lock"), f"another process is making {folder}; waiting", progress):
            if folder.exists():
                return
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed: it cannot be alive, we are alone
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
