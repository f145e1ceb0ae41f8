"""One writer for a run directory: a lock that the system takes back when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from .disk import RunError, writing


def take(path: Path, otherwise: str = "choose another name with train.name=...") -> IO[bytes]:
    """The lock of the directory `path`; a live holder is named in the refusal, and what else can be done."""
    name = path / ".lock"
    with writing(name):
        lock = open(name, "a+b", buffering=0)
    try:
        _lock(lock, path, otherwise)
        with writing(name):
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
    except BaseException:
        lock.close()
        raise
    return lock


def release(lock: IO[bytes]) -> None:
    """Let go at once, even where a forked child still holds the file open."""
    if not lock.closed:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
        lock.close()


def _lock(lock: IO[bytes], path: Path, otherwise: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().decode() or "another process"  # it may not have written its name yet
        raise RunError(f"{path} is in use by {holder}; wait until that has ended, or {otherwise}") from None
    except OSError:
        pass  # a file system without locks: two writers are then the user's to avoid
