"""Safe writing of a run's files: replace a whole file, or append one line. A kill at any moment damages neither.

A line counts once its line end is written. Text after the last line end is left from a kill: readers skip it, and the
next writer removes it. A write that fails half-way (a full disk) is undone before the error is raised. One process
writes at a time: it holds a lock, which the system releases when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from ..files import json_line

LINE = 1 << 24  # most bytes of a line; a longer one was not written by a run


class RunError(ValueError):
    """A run directory that cannot be used as asked; the message says why and what to type instead."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: readers find the old bytes or the new ones, and these survive a power cut."""
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        try:
            with open(part, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append one line. It is on the disk when this returns; after an error, nothing of it is there."""
    line = json_line(plain(record))
    with writing(path), open(path, "a+b", buffering=0) as file:
        end = _cut_torn_line(file)
        try:
            rest = memoryview(line)
            while rest:  # a nearly full disk writes a part, and refuses only the next one
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise
        if end == 0:
            _sync_folder(path.parent)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines, each with a step; [] if there is no file."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # the last piece is empty, or an incomplete line
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            if not isinstance(record["step"], int):
                raise TypeError
            records.append({"step": record.pop("step"), **record})
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(f"{path}:{number} is not a record with a step; remove that line to use the rest") from None
    return records


def opened(path: Path) -> BinaryIO:
    """Open a file of an untrusted run directory. Raise OSError unless it is a regular file and no link.

    Reading a pipe could wait forever, reading a device could do anything, and a link may lead to private files.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the complete lines, without those that are too long and an incomplete one at the end."""
    long = False
    while piece := file.readline(LINE):
        if piece.endswith(b"\n"):
            if not long:
                yield piece
            long = False
        else:
            long = True


def plain(value: Any) -> Any:
    """Convert a value for JSON: numbers of numpy and torch to Python's, numbers that are not finite to None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into a RunError that says what to do."""
    try:
        yield
    except OSError as error:
        raise full_disk(path) if is_full(error) else RunError(f"cannot write {path}: {error.strerror}") from error


def is_full(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def full_disk(path: Path) -> RunError:
    return RunError(
        f"the disk is full, so {path} could not be written; every step logged before is safe: "
        f"free some space (df -h {path.parent}), then go on with --resume"
    )


def _cut_torn_line(file: IO[bytes]) -> int:
    """Remove an incomplete last line; return the offset where the next line begins."""
    end = file.seek(0, os.SEEK_END)
    if end:
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            end = file.read().rfind(b"\n") + 1
            file.truncate(end)
    return end


def _sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that a new file in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_lock(path: Path, otherwise: str = "choose another name with train.name=...") -> IO[bytes]:
    """Lock the directory `path`. If another process holds the lock, the error names it and says what to do."""
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


def release_lock(lock: IO[bytes]) -> None:
    """Unlock at once, even if a forked child still holds the file open."""
    if not lock.closed:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
        lock.close()


def _lock(lock: IO[bytes], path: Path, otherwise: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().decode() or "another process"  # the process may not have written its name yet
        raise RunError(f"{path} is in use by {holder}; wait until that has ended, or {otherwise}") from None
    except OSError:
        pass  # a file system without locks: the user has to avoid two writers
