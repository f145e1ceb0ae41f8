"""A program that rests is ended, one that could not run is not: the clock jumps here, as after a machine's halt."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from microcoder.judge.sandbox import box, kernel, watch

pytestmark = pytest.mark.skipif(not kernel.LINUX, reason="needs /proc")
BUSY = "import time\nwhile time.process_time() < 0.6: pass"
THREAD = (
    "import threading, time\ndef work():\n while time.process_time() < 0.6: pass\nthreading.Thread(target=work).start()"
)


def outwaited(monkeypatch, code, limit=5.0, jump=1000.0):
    """Watch a program as a box does, on a machine that stands still once: whether it was overdue, and its status."""
    run = object.__new__(box.SandboxedRun)
    run.job, run.full, run.time_s = {"memory_bytes": 1 << 30}, True, limit
    calls, now = [], time.monotonic

    def clock():
        calls.append(1)
        return now() + (jump if len(calls) > 1 else 0.0)

    monkeypatch.setattr(box, "time", SimpleNamespace(monotonic=clock))
    process = subprocess.Popen([sys.executable, "-c", f"print('begun', flush=True)\n{code}"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    fd = os.pidfd_open(process.pid)
    try:
        return run.outwait(process.pid, fd), process.wait(timeout=30)
    finally:
        os.close(fd)
        process.kill()
        process.communicate()


@pytest.mark.parametrize("code", [BUSY, THREAD], ids=["busy", "a busy thread"])
def test_a_program_that_works_is_not_overdue_because_the_machine_stood_still(monkeypatch, code):
    assert outwaited(monkeypatch, code) == (False, 0)


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import time\nwhile True: time.sleep(0.003)",
        "import threading, time\nfor _ in range(9): threading.Thread(target=time.sleep, args=(60,)).start()",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    ],
    ids=["asleep", "in naps", "in threads", "stopped"],
)
def test_a_program_that_rests_is_overdue(monkeypatch, code):
    overdue, status = outwaited(monkeypatch, code)
    assert overdue and status < 0


def test_a_busy_program_is_ended_by_its_cpu_time_all_the_same(monkeypatch):
    overdue, status = outwaited(monkeypatch, "while True: pass", limit=0.3)
    assert not overdue and status < 0


def test_what_is_gone_is_at_rest():
    assert watch.at_rest(2**22 + 1)
