"""A box: process 1 of a candidate's own namespaces. It compiles the program once and forks a process for each test.

It never runs candidate code itself, cannot be traced or signalled by it, and holds nothing secret: the program, the
input of the present test, and the socket on which it reports how a test process ended.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import builtins
import fcntl
import gc
import json
import os
import resource
import signal
import sys
import time
import types
from _socket import socket, socketpair
from typing import Any, NamedTuple

from . import kernel, landlock, program, root, seccomp, watch, wire

ADDRESS_SPACE_SLACK = 1 << 30  # for stacks of threads and mappings: resident memory is what is judged
OPEN_FILES = 128  # each can be a socket with a buffer that no limit counts
PROCESSES = 256  # threads, in effect
WATCH_SECONDS = 0.05  # how often the memory of a running test is looked at
MOST_FILES = 100_000  # that a test may make where no file system of its own counts them: they must be removed again


class Stock(NamedTuple):
    """Objects that a zygote makes once for all its boxes."""

    modules: dict[str, types.ModuleType]
    box_filter: seccomp.Filter | None  # None: the layer has no filters
    test_filter: seccomp.Filter | None


class SandboxedRun:
    def __init__(self, job: dict[str, Any], sock: socket, fds: list[int], stock: Stock) -> None:
        self.job, self.stock = job, stock
        self.stdin = job["kind"] in ("stdin", "binary", "hosted", "compile")
        self.errors: bool = job["errors"]  # what the program writes to standard error is kept, in place of a report
        self.module = stock.modules.get(job["kind"], stock.modules["stdin"])
        self.scratch: str = job["scratch"]
        self.full = job["layer"] == "full"
        self.open_to = 4 if self.stdin else 6  # the descriptors of a test process: see program.py
        self.sock = socket(fileno=out_of_the_way(sock.detach()))
        self.kept = [out_of_the_way(fd) for fd in fds]  # for the process that is reused; a forked one gets its own
        for fd in range(6):  # occupied, so that whatever is opened or received lies above
            os.dup2(self.kept[0], fd)
        self.arrange(*map(os.dup, self.kept))
        self.ready = False
        self.ruleset = -1
        self.filter: seccomp.Filter | None = None
        self.own_file = b""  # the program's text, where it wants to read itself
        self.seen = 0  # most KiB that a running test was seen to have
        self.runner: _Runner | None = None

    def arrange(self, given: int, output: int, report: int) -> None:
        """Put every descriptor where the test process will look for it. The three given ones, above 5, are used up."""
        null = os.open(os.devnull, os.O_RDWR)
        if self.errors:
            wanted: tuple[int, ...] = (given, output, report, null)
        else:
            wanted = (given, output, null, report) if self.stdin else (null, null, null, report, output, given)
        for target, fd in enumerate(wanted):
            os.dup2(fd, target)
        for fd in (given, output, report, null):
            os.close(fd)

    def main(self) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.lock_down()
        if fault := self.prepare():
            wire.send(self.sock, {"compile_error": fault})
            return
        wire.send(self.sock, {"ready": True})
        self.ready = True
        gc.freeze()
        while order := wire.receive_order(self.sock):
            self.time_s, fds = order
            if fds:
                self.arrange(*fds)
            result = self.forked() if fds else self.reused()
            self.sock.sendall(wire.RESULT.pack(*result))

    def prepare(self) -> str:
        """Compile the program, once for all tests; return the error, if any."""
        given = 0 if self.stdin else program.INPUT
        try:
            source, setup, self.entry = json.loads(os.pread(given, os.fstat(given).st_size, 0))
            source = source.removeprefix("\ufeff")
            self.setup = compile(setup, "<setup>", "exec") if setup else None
            self.code = compile(source, "solution.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            return f"{type(error).__name__}: {error}"[:500]
        sys.modules[self.module.__name__] = self.module
        self.finish = program.needs_finishing(source)
        self.own_file = program.give_source(self.module, source, self.scratch)
        sys.set_int_max_str_digits(0)  # after compiling: there a long number takes quadratic time
        program.import_ahead(self.job["imports"], self.module, everything=self.job["kind"] == "function")
        return ""

    def lock_down(self) -> None:
        """From here on this process has no capabilities, no files but the interpreter's, no network, and limits."""
        layer = self.job["layer"]
        self.mounted = root.enter_box() if self.full else []
        os.chdir(self.scratch)
        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: OPEN_FILES,
            resource.RLIMIT_FSIZE: self.job["output_bytes"],
            resource.RLIMIT_AS: self.job["memory_bytes"] + ADDRESS_SPACE_SLACK + self.job["own_bytes"],
        }
        if reserved := self.job["reserved"]:  # of which a runtime writes to little: what it may write to is limited
            limits[resource.RLIMIT_DATA] = limits[resource.RLIMIT_AS]
            limits[resource.RLIMIT_AS] += reserved
        if self.full:  # counted for this user namespace alone; elsewhere it would count the user's other processes
            limits[resource.RLIMIT_NPROC] = PROCESSES
        for which, value in limits.items():
            _limit(which, value)
        if os.getuid() == 0:
            try:
                os.setgroups([])
                os.setresgid(root.NOBODY, root.NOBODY, root.NOBODY)
                os.setresuid(root.NOBODY, root.NOBODY, root.NOBODY)
            except OSError:  # nobody is not mapped here; the private root still hides everything
                if not self.full:
                    raise
        if not kernel.LINUX:
            return
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if layer == "rlimits":
            return
        kernel.drop_capabilities()
        if landlock.version():
            if self.full:
                everything = landlock.ruleset(["/"], [self.scratch], executable=self.job["executable"])
                landlock.restrict(everything)
                os.close(everything)
            if (allowed := self.allowed()) is not None:
                self.ruleset = out_of_the_way(landlock.ruleset(*allowed))
        if self.stock.box_filter is not None:
            self.stock.box_filter.install()
        self.filter = self.test_filter()

    def allowed(self) -> tuple[list[str], ...] | None:
        """What a test process may read, write, list and execute, if that is less than the box may."""
        return None if self.full else (self.job["readable"], [self.scratch], self.job["listable"])

    def test_filter(self) -> seccomp.Filter | None:
        return self.stock.test_filter

    def forked(self) -> tuple[Any, ...]:
        """Run one test in a fresh process; its changes to memory, modules and files are gone afterwards."""
        self.end_runner()
        return (*self.once(), True, self.sweep())

    def once(self) -> tuple[int, float, int, float, bool]:
        """Wait status, CPU seconds, peak KiB, wall seconds, overdue."""
        self.put_own_file()
        pid = kernel.bare_clone()
        if pid == 0:
            try:
                self.enter_test()
                program.leave(self.run_once())
            finally:
                program.leave(70)
        start = time.monotonic()
        fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        overdue = self.outwait(pid, fd)
        if fd >= 0:
            os.close(fd)
        return (*self.reap(pid), time.monotonic() - start, overdue)

    def put_own_file(self) -> None:
        if self.own_file:
            with open(os.path.join(self.scratch, program.NAME), "wb") as file:
                file.write(self.own_file)

    def run_once(self) -> int:
        if self.stdin:
            return program.run_stdin(self.code, self.module, self.finish, aloud=self.errors)
        return program.run_value(self.code, self.module, self.setup, self.entry)

    def enter_test(self, keep: int = 0) -> None:
        """The last steps before the candidate's code: close what is not its own, and give up the box's rights."""
        if not self.full:
            self.enter_test_outside_namespaces()
        if self.ruleset >= 0:
            landlock.restrict(self.ruleset)
        os.closerange(self.open_to + keep, OPEN_FILES)
        _signal.signal(signal.SIGINT, signal.default_int_handler)  # as elsewhere; the module's own is slow after a fork
        if self.filter is not None:
            self.filter.install()
        gc.enable()

    def enter_test_outside_namespaces(self) -> None:
        """Where no process 1 guards the box: die with it, and reach no process but this one."""
        if kernel.LINUX:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.filter is None:
            os.setpgid(0, 0)  # it may start others; they are ended as a group
        else:
            self.filter = self.filter_of(os.getpid())

    def filter_of(self, pid: int) -> seccomp.Filter:
        return seccomp.Filter(seccomp.test_program(pid))

    def outwait(self, pid: int, fd: int, used: float = 0.0) -> bool:
        """Wait until `fd` says that a test is over; end one that uses up its CPU time or memory, or sleeps too long.

        The limits are watched from here, where the program can neither disarm nor outlast them, and on the precise
        clock: the kernel's own timers (setitimer, RLIMIT_CPU) count ticks, and on a loaded host charge a program
        for time that it did not have. True if the test was ended for sleeping.
        """
        start = time.monotonic()
        limit = self.time_s
        sleep = max(2 * limit, limit + 1)
        most = self.job["memory_bytes"] >> 10
        files = self.files()
        wait = limit
        still = 0  # looks in a row that found it at rest, after its time to sleep was over
        self.seen = 0
        while not watch.over(pid, fd, min(wait, WATCH_SECONDS)):
            cpu = limit - (watch.cpu(pid) - used)
            idle = sleep - (time.monotonic() - start)
            if idle <= 0:  # time spent waiting for a core is the host's doing, not the program's
                idle += watch.run_queue_delay(pid)
            # Nor is time that a virtual machine's host took away. It looks like sleep: is the program at rest?
            still = still + 1 if idle <= 0 and watch.at_rest(pid) else 0
            self.seen = max(self.seen, watch.resident(pid))
            if cpu <= 0 or still > 1 or self.seen > most or self.files() - files > MOST_FILES:
                os.kill(pid, signal.SIGKILL)
                return cpu > 0 and still > 1
            wait = min(cpu, idle)
        return False

    def files(self) -> int:
        """Count the files on the scratch folder's file system; 0 if it has a limit of its own."""
        if self.full:
            return 0
        found = os.statvfs(self.scratch)
        return found.f_files - found.f_ffree

    def reap(self, pid: int) -> tuple[int, float, int]:
        """Wait for a test process to end; return its wait status, CPU seconds and peak KiB."""
        _, status, usage = os.wait4(pid, 0)
        if self.filter is None:  # it could start others; with the filter it could not
            try:
                os.killpg(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        peak = max(usage.ru_maxrss // (1 if kernel.LINUX else 1024), self.seen)
        return status, usage.ru_utime + usage.ru_stime, peak

    def sweep(self) -> bool:
        """Empty the scratch folder; True if that failed and the box must not be used again."""
        try:
            root.clear(self.scratch, self.mounted)
            return False
        except OSError:
            return True

    def reused(self) -> tuple[Any, ...]:
        """Run one test in a process that earlier tests ran in: faster, and state can leak from one to the next."""
        self.put_own_file()
        if self.runner is None:
            self.runner = _Runner(self)
        fresh = self.runner.tests == 0
        result = self.runner.run()
        if self.runner.ended:
            self.runner = None
        return (*result, fresh, self.sweep())

    def end_runner(self) -> None:
        if self.runner is not None:
            self.runner.end()
            self.runner = None


class _Runner:
    """The process that runs many tests of one candidate in turn."""

    def __init__(self, box: SandboxedRun) -> None:
        self.box = box
        box.arrange(*map(os.dup, box.kept))
        ours, theirs = socketpair()
        self.sock = socket(fileno=out_of_the_way(ours.detach()))
        high = out_of_the_way(theirs.detach())
        os.dup2(high, box.open_to)
        os.close(high)
        self.pid = kernel.bare_clone()
        if self.pid == 0:
            try:
                box.enter_test(keep=1)
                self.loop(socket(fileno=box.open_to))
            finally:
                program.leave(70)
        os.close(box.open_to)
        self.tests = 0
        self.ended = False

    def loop(self, control: socket) -> None:
        box, module = self.box, self.box.module
        scope, shared = vars(module), vars(builtins)
        fresh, functions = dict(scope), dict(shared)
        files = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD, 32) for fd in range(box.open_to)}
        while control.recv(1):
            status = box.run_once()
            if status or _thread._count() or program.spent:
                program.leave(status)  # threads cannot be undone; the next test gets a new process
            scope.clear()
            scope.update(fresh)
            if shared != functions:
                shared.clear()
                shared.update(functions)
            sys.modules[module.__name__] = module
            sys.setrecursionlimit(program.RECURSION_LIMIT)
            sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # type: ignore
            gc.collect()  # what the program opened is closed now: open(0) closes descriptor 0
            for fd, copy in files.items():
                os.dup2(copy, fd)
            program.open_streams()
            control.send(b"d")

    def run(self) -> tuple[int, float, int, float, bool]:
        """Wait status, CPU seconds, peak KiB, wall seconds, overdue."""
        start, before = time.monotonic(), watch.cpu(self.pid)
        if self.tests:
            os.kill(self.pid, signal.SIGCONT)
        self.tests += 1
        overdue, said = False, b""
        try:
            self.sock.send(b"g")
            overdue = self.box.outwait(self.pid, self.sock.fileno(), before)
            said = self.sock.recv(1)
        except ConnectionError:
            pass
        if said == b"d":
            os.kill(self.pid, signal.SIGSTOP)  # whatever it says, it does no more until the next test
            return 0, watch.cpu(self.pid) - before, watch.peak(self.pid), time.monotonic() - start, False
        self.ended = True
        self.sock.close()
        os.kill(self.pid, signal.SIGKILL)  # or it would be waited for, if all it did was to close its socket
        status, cpu, peak = self.box.reap(self.pid)
        return status, cpu - before, peak, time.monotonic() - start, overdue

    def end(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        self.sock.close()


def out_of_the_way(fd: int) -> int:
    """Move `fd` to a number above those that a test process uses."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD, 32)
    os.close(fd)
    return high


def _limit(which: int, value: int) -> None:
    """Lower a resource limit; keep one that is lower already."""
    now = resource.getrlimit(which)[1]
    if now != resource.RLIM_INFINITY:
        value = min(value, now)
    resource.setrlimit(which, (value, value))
