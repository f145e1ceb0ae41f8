"""Measure a running test from outside: CPU time, memory, time in the run queue, whether it has ended."""

import math
import os
import resource
import select
import time


def over(pid: int, fd: int, seconds: float) -> bool:
    """Wait for at most so long until `fd` is readable, or, without one, until the child has ended."""
    if fd >= 0:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(math.ceil(max(seconds, 0.01) * 1000)))
    end = time.monotonic() + seconds
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def cpu(pid: int) -> float:
    """CPU seconds of a child so far, all its threads together."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the number that clock_getcpuclockid would give
    except OSError:  # not on this system; what wait4 reports in the end still decides
        return 0.0


def resident(pid: int) -> int:
    """Resident KiB of a process at this moment."""
    try:
        with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 10
    except (OSError, IndexError):
        return 0


def peak(pid: int) -> int:
    """Peak resident KiB of a process that is still there."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def at_rest(pid: int) -> bool:
    """Whether no thread of a process runs or stands in line for a core at this moment; True where that is not known."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                if file.read().rpartition(b") ")[2].startswith(b"R"):
                    return False
    except OSError:
        pass
    return True


def run_queue_delay(pid: int) -> float:
    """Seconds that the busiest-waiting thread of a process stood in line for a core."""
    longest = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                longest = max(longest, int(file.read().split()[1]))
    except (OSError, IndexError, ValueError):
        pass
    return longest / 1e9
