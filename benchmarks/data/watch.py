"""Runs a command of the data pipeline and watches its whole process tree, step by step, through /proc (psutil).

Memory is PSS, resident memory with shared pages divided among those who share them, added up over the main process and
all its descendants and looked at five times a second (RSS where PSS may not be read).

CPU time is that of the whole machine, without what the watching takes: programs that the judge has run leave no other
trace. So the machine must be quiet. That of the main process alone is its own, whatever else goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

EVERY_S = 0.2
RUN = ["-c", "from microcoder.cli import main; main()", "data", "run"]
WRITE = """
import sys
from pathlib import Path
from microcoder.data.dataset import write_dataset
from microcoder.data.report import page, steps_of
from microcoder.data.parts import kept_parts
out = Path(sys.argv[1])
steps = steps_of(out)
write_dataset(out / "dataset", kept_parts(steps[-1].folder), steps, "")
(out / "report.html").write_text(page(out), encoding="utf-8")
"""
OUTPUT = ["-c", WRITE]


@dataclass
class Usage:
    """Of one step."""

    peak_mb: float = 0.0  # of the tree
    main_mb: float = 0.0  # the peak of the main process
    cpu_s: float = 0.0  # of the machine
    own_s: float = 0.0  # of the main process alone


@dataclass
class Watched:
    seconds: float
    steps: dict[str, Usage] = field(default_factory=dict)  # filter/2-duplicates, ..., and "output" for what comes then


def watched(words: list[str], out: Path) -> Watched:
    """Python with these words, to its end, which has to be a good one."""
    log = out.with_name(f"{out.name}.log")
    started = time.monotonic()
    with open(log, "a") as file:
        run = subprocess.Popen([sys.executable, *words], stdout=file, stderr=file)
    found = Watched(0.0)
    main, before = psutil.Process(run.pid), (_busy(), 0.0)
    while run.poll() is None:
        usage = found.steps.setdefault(_step(out), Usage())
        try:
            memory, times = _memory(main), main.cpu_times()
        except psutil.Error:
            continue
        cpu, own = _busy(), times.user + times.system
        usage.peak_mb, usage.main_mb = max(usage.peak_mb, sum(memory)), max(usage.main_mb, memory[0])
        usage.cpu_s += cpu - before[0]
        usage.own_s += own - before[1]
        before = cpu, own
        time.sleep(EVERY_S)
    if run.returncode:
        raise SystemExit(f"python {' '.join(words)} ended with {run.returncode}:\n{log.read_text()[-2000:]}")
    found.seconds = time.monotonic() - started
    return found


def seconds(out: Path) -> dict[str, dict[str, Any]]:
    """What the steps themselves wrote down: seen, kept, dropped, seconds."""
    found = {}
    for path in sorted(out.glob("*/*/done.json"), key=os.path.getmtime):
        done = json.loads(path.read_text())
        name = f"{path.parent.parent.name}/{path.parent.name}"
        found[name] = {**done, "seen": done["kept"] + sum(done["dropped"].values())}
    return found


def _step(out: Path) -> str:
    """The one that has begun and is not done."""
    begun = {path.parent for path in out.glob("*/*/step.json")} - {path.parent for path in out.glob("*/*/done.json")}
    return "/".join(begun.pop().parts[-2:]) if begun else "output"


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)


def _memory(main: psutil.Process) -> list[float]:
    """MB of each process, the main one first; one that ends while it is looked at counts as nothing."""
    memory = [_resident(main) / 1e6]
    for process in main.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            memory.append(_resident(process) / 1e6)
    return memory


def _busy() -> float:
    """CPU seconds of all processes but this one, since the machine was started."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq) - time.process_time()
