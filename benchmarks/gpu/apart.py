"""A measurement in a process of its own, with a budget of seconds: what `step` and `shape` share.

The process writes a JSON line when it begins with the first step (step 0) and one for each step (`Lines`). Meanwhile
this process looks twice a second how much of the GPU is in use. Who has written all steps has 20 seconds to end.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from microcoder.judge.sandbox import kernel
from microcoder.runs.disk import plain, read_lines
from microcoder.study.launch import tail
from microcoder.training.launch import versions

POLL_S, GRACE_S = 0.5, 20.0
GIB = 1 << 30
Line = dict[str, Any]


class Lines:
    """The file of lines, in the process that writes it. Each line gets the time, and what torch has of the GPU."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def write(self, step: int, **line: Any) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "at": time.time(), **torch_memory(), **line}) + "\n")


def torch_memory() -> dict[str, float]:
    """The most that torch has had allocated and reserved in this process so far, in GiB."""
    import torch

    if not torch.cuda.is_available():
        return {}
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return {"allocated_gib": allocated / GIB, "reserved_gib": reserved / GIB}


def apart(
    module: str, spec: dict[str, Any], folder: Path, steps: int, budget: float, tell: Callable[[list[Line]], None]
) -> dict[str, Any]:
    """Run `python -m MODULE SPEC` until it ends or its budget is spent; return its lines and how it ended.

    spec    is handed over as a file; `lines` in it names the file to write to, `folder` a folder of its own
    steps   how many are wanted
    tell    is called with all lines whenever new ones have come
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, path = folder / "log", folder / "lines.jsonl"
    path.unlink(missing_ok=True)
    file = folder / "spec.json"
    file.write_text(json.dumps({**spec, "lines": str(path), "folder": str(folder)}, indent=1))
    gpu, started, lines = Gpu(), time.time(), list[Line]()
    deadline, late = started + budget, False
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(file)],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=functools.partial(kernel.die_with_parent, os.getpid()),
        )
    try:
        while process.poll() is None and not late:
            time.sleep(POLL_S)
            gpu.look()
            if len(now := read_lines(path)) > len(lines):
                tell(lines := now)
                if lines[-1]["step"] >= steps:
                    deadline = min(deadline, time.time() + GRACE_S)
            late = time.time() > deadline
    finally:
        _end(process)
    lines = read_lines(path)
    done = lines[-1]["step"] if lines else 0
    found: dict[str, Any] = {"lines": lines, "started": started, "seconds": time.time() - started, "gpu_gib": gpu.most}
    if done < steps:
        why = f"stopped after its budget of {budget:g} s" if late else f"exit status {process.returncode}"
        found["failed"] = f"{why}, {done} of {steps} steps done; the end of {log}:\n{tail(log, 30)}"
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it has started: its session."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)


class Gpu:
    """How much of the first GPU is in use, by all processes, as NVIDIA's library says (and nvidia-smi shows)."""

    def __init__(self) -> None:
        self.most: float | None = None  # GiB; None: there is no GPU
        self._handle = ctypes.c_void_p()
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
            known = not self._library.nvmlInit_v2()
            known = known and not self._library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._handle))
        except (OSError, AttributeError):
            known = False
        self._known = known

    @property
    def name(self) -> str:
        text = ctypes.create_string_buffer(96)
        if not self._known or self._library.nvmlDeviceGetName(self._handle, text, 96):
            return ""
        return text.value.decode()

    def look(self) -> None:
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        if self._known and not self._library.nvmlDeviceGetMemoryInfo(self._handle, memory):
            self.most = max(self.most or 0.0, memory[2] / GIB)


# --- results


def setting() -> dict[str, Any]:
    """The machine and the versions. torch is not asked: it would take memory of the GPU."""
    return {"gpu": Gpu().name, "cores": os.cpu_count(), **versions()}


def write_json(path: Path | None, found: Any) -> None:
    """Write the results so far, whole or not at all."""
    if path is not None:
        part = path.with_name(f".{path.name}.part")
        part.write_text(json.dumps(plain(found), indent=1) + "\n")
        part.replace(path)


def mean(lines: Sequence[Line]) -> Line:
    """The mean of every figure that all lines have."""
    names = [name for name in lines[0] if all(isinstance(line.get(name), int | float) for line in lines)]
    return {name: sum(line[name] for line in lines) / len(lines) for name in names}


def table(rows: Sequence[Line], columns: Sequence[tuple[str, str, str]]) -> str:
    """A table of text. A column has a title, the name of its figure, and how that is written, such as ".1f"."""
    cells = [[title for title, _, _ in columns]]
    cells += [["" if row.get(name) is None else format(row[name], form) for _, name, form in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
