"""What a process and its descendants hold: memory, descriptors, files. Read from /proc through psutil."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil  # type: ignore[import-untyped,unused-ignore]


def family() -> list[psutil.Process]:
    """Every descendant of this process."""
    return psutil.Process().children(recursive=True)


def adopt_orphans() -> None:
    """A descendant whose parent dies becomes this process's child, so that `family` goes on seeing it."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_family(but: Sequence[psutil.Process] = ()) -> int:
    """Kill every descendant but these, and what those start meanwhile, until there are none. How many there were."""
    killed = 0
    while left := [process for process in family() if process not in but]:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        killed += len(psutil.wait_procs(left, timeout=10)[0])
    return killed


def trusted() -> list[psutil.Process]:
    """The descendants that are the judge's own (workers, zygotes): those in this process's pid namespace."""
    return [p for p in family() if _levels(p.pid) == _levels(os.getpid())]


def _levels(pid: int) -> int:
    """How many pid namespaces deep a process is; 0 when it has just gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
    return len(line.split()) - 1


def sample() -> dict[str, float]:
    """One row of figures. Memory in MB; a descendant that ends while it is looked at counts as nothing."""
    row = {"main_mb": 0.0, "others_mb": 0.0, "processes": 0.0, "main_fds": 0.0, "others_fds": 0.0, "zombies": 0.0}
    for process in [psutil.Process(), *family()]:
        whose = "main" if process.pid == os.getpid() else "others"
        try:
            with process.oneshot():
                row[f"{whose}_mb"] += process.memory_info().rss / 1e6
                row["zombies"] += process.status() == psutil.STATUS_ZOMBIE
                row["processes"] += 1
                row[f"{whose}_fds"] += process.num_fds()
        except psutil.Error:
            continue
    row["threads"] = psutil.Process().num_threads()
    row["temp_files"] = _entries(tempfile.gettempdir()) + _entries("/dev/shm")
    row["mounts"] = len(Path("/proc/self/mountinfo").read_text().splitlines())
    return row


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0
