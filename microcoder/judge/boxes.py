"""The trusted side of sandboxes: start zygotes, open a box for a candidate, run tests in it, end it."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from .sandbox import root, wire
from .sandbox.root import PACKAGE

MAIN_STACK = 512 << 20  # deep recursion through C code needs it; decided at exec, so it is set before
COMPILE_SECONDS = 2.0, 10.0, 100.0  # of CPU at least and at most, between them as many as a test has; and of wall
ZYGOTE_SECONDS = 60  # a zygote that is silent for so long will not answer; importing a large package takes a few
BEAT, BEAT_SECONDS = bytes(8), 10.0  # an empty message between worker and pool, and how often it is sent
_START = (
    "import sys; sys.path.insert(0, {root!r}); "
    "from microcoder.judge.sandbox.zygote import main; main({fd}, {layer!r}, {tools!r})"
)


class BoxError(Exception):
    """The sandbox failed, not the candidate."""


class Unfit(BoxError):
    """Packages start threads on import, so a zygote cannot load them for its boxes."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"{', '.join(names)} cannot be loaded ahead of time: importing it starts threads")
        self.names = names


class Broken(BoxError):
    """The box died, or fell silent, while the candidate's code ran in it."""


class Abandoned(BaseException):
    """The process that asked for the verdict has ended: drop everything."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler, and the files of the machine that it needs."""

    steps: tuple[tuple[str, ...], ...] = ()  # its commands, one after the other
    programs: tuple[str, ...] = ()  # those of the commands, and the loader that starts them
    folders: tuple[str, ...] = ()  # headers and libraries
    precompiled: str = ""  # a folder; the full sandbox shows it under a name of its own
    environment: tuple[str, ...] = ()  # "NAME=value"; nothing of the user's environment is passed on
    files: tuple[tuple[str, str], ...] = ()  # names and contents, as os.fsdecode has them, to lie beside each program


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program that is compiled already is executed. Nothing in it comes from the program."""

    command: tuple[str, ...] = ("solution",)
    file: str = ""  # where the program is put, for the runtime that the command names; "": the program is executed
    environment: tuple[str, ...] = ()
    reserved: int = 0  # bytes of address space that a runtime takes without using them


@dataclass(slots=True)
class Limits:
    time_s: float
    memory_bytes: int
    output_bytes: int
    runtime_bytes: int = 0  # of the memory, what is the language's own


@dataclass(slots=True)
class Outcome:
    """How a test process ended. `output` holds at most the output limit."""

    status: int  # as wait() gives it
    cpu_s: float
    wall_s: float
    memory_mb: float
    overdue: bool
    fresh: bool  # no earlier test ran in the same process
    output: bytes
    output_full: bool
    report: str  # what went wrong, where the program itself can say; for messages only
    errors: str = ""  # its standard error, where that is kept

    @property
    def signal(self) -> int:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0


class Zygote:
    """A warmed-up interpreter to clone boxes from; with a `toolchain`, for boxes that compile."""

    def __init__(self, layer: str, watch: socket.socket | None = None, toolchain: Toolchain | None = None) -> None:
        self.layer = layer
        self.watch = watch
        self.sock, theirs = socket.socketpair()
        found = toolchain or Toolchain()
        tools = {"programs": found.programs, "folders": found.folders, "precompiled": found.precompiled}
        start = _START.format(root=os.path.dirname(PACKAGE), fd=theirs.fileno(), layer=layer, tools=tools)
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-X", "utf8", "-c", start],
            pass_fds=[theirs.fileno()],
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_before_exec,
            start_new_session=True,
        )
        theirs.close()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ZYGOTE_SECONDS, 0))
        try:
            answer, _ = wire.receive(self.sock)
        except (EOFError, OSError) as error:
            self.close()
            raise BoxError(f"the {layer} sandbox did not start: {error}") from None
        if "error" in answer:
            self.close()
            raise BoxError(f"the {layer} sandbox did not start: {answer['error']}")

    def beat(self) -> None:
        """Send a sign of life to the process that waits for the verdict."""
        if self.watch is not None:
            self.watch.sendall(BEAT)

    def close(self) -> None:
        self.sock.close()
        self.process.kill()
        self.process.wait()


class Box:
    """One candidate's box. Use as a context manager: on leaving, every process of it is dead.

    kind: "stdin", a program; "function", a call with LeetCode's names at hand; "value", an expression, nothing at hand;
    "binary", a program that is compiled already; "hosted", one that a runtime executes; "compile", the compiler: source
    is its commands, a test's input the program, its output the binary.
    errors: keep what is written to standard error.
    """

    def __init__(
        self, zygote: Zygote, source: str | bytes, kind: str, limits: Limits, entry: str = "", setup: str = "",
        preload: tuple[str, ...] = (), imports: tuple[str, ...] = (), errors: bool = False,
        launch: Launch | None = None,
    ) -> None:  # fmt: skip
        self.zygote, self.limits, self.errors = zygote, limits, errors
        self.most_errors = 1 << 14 if kind == "compile" else limits.output_bytes
        self.compile_error = ""
        self.pidfd = -1
        self.scratch = "/tmp" if zygote.layer == "full" else tempfile.mkdtemp(prefix="microcoder-")
        if zygote.layer != "full":
            os.chmod(self.scratch, 0o777)  # it may run as another user; the name is unguessable enough
        self.fds = [_memory_file(name) for name in ("input", "output", "report")]
        self.sock, theirs = socket.socketpair()
        # The zygote reads this, and later boxes come from its memory: nothing of problem or program is in it.
        job = {
            "layer": zygote.layer, "kind": kind, "preload": preload, "imports": imports, "scratch": self.scratch,
            "memory_bytes": limits.memory_bytes, "output_bytes": limits.output_bytes, "errors": errors,
            **asdict(launch or Launch()),
        }  # fmt: skip
        try:
            _fill(self.fds[0], source if isinstance(source, bytes) else json.dumps([source, setup, entry]).encode())
            if kind == "binary":  # what somebody could write to is not executed
                self.fds[0] = _read_only(self.fds[0])
            try:
                wire.send(zygote.sock, job, (theirs.fileno(), *self.fds))
                theirs.close()
                answer, fds = wire.receive(zygote.sock, max_fds=1)
            except (EOFError, OSError) as error:
                raise BoxError(f"the zygote is gone: {error}") from None
            if "unfit" in answer:
                raise Unfit(answer["unfit"])
            if "error" in answer:
                raise BoxError(answer["error"])
            self.pid = answer["pid"]
            self.pidfd = fds[0] if fds else -1
            self._await_compilation()
            if self.compile_error and kind in ("binary", "hosted", "compile"):  # there was nothing to compile
                raise BoxError(f"the box did not start: {self.compile_error}")
        except BaseException:
            theirs.close()
            self.close()
            raise

    def _await_compilation(self) -> None:
        least, most, wall = COMPILE_SECONDS
        limit, end = min(max(least, self.limits.time_s), most), time.monotonic() + wall
        while not self._readable(0.5):
            if self._cpu() > limit or time.monotonic() > end:
                self.compile_error = f"compiling took over {limit:.0f} s"
                return
        try:
            answer, _ = wire.receive(self.sock)
        except (EOFError, ConnectionError):
            if self.zygote.process.poll() is not None:
                raise BoxError("the zygote died") from None
            self.compile_error = "the compiler crashed on this program"
            return
        if "error" in answer:
            raise BoxError(answer["error"])
        self.compile_error = answer.get("compile_error", "")

    def _cpu(self) -> float:
        """Return the CPU seconds of process 1: the time that compiling took."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:  # it is gone, or this is not Linux
            return 0.0

    def run(self, data: bytes, reuse: bool = False, time_s: float | None = None) -> Outcome:
        """Run one test with the input `data`; return how it ended. Raise Broken if the box itself failed.

        time_s: CPU seconds of this test, where they are not those of the box.
        """
        if reuse:  # the process that runs the tests has these already
            fds = self.fds
            for fd in fds[1:]:
                _fill(fd, b"")
        else:  # new ones: flags, locks and modes of a file would be a way to leave something for the next test
            fds = [_memory_file(name) for name in ("input", "output", "report")]
        try:
            _fill(fds[0], data)
            result = self._order(() if reuse else tuple(fds), time_s or self.limits.time_s)
            return self._outcome(result, fds[1], fds[2])
        finally:
            if not reuse:
                for fd in fds:
                    os.close(fd)

    def _order(self, fds: tuple[int, ...], time_s: float) -> tuple[Any, ...]:
        hard = 20 * time_s + 60  # far above: the box itself ends a test that sleeps
        try:
            socket.send_fds(self.sock, [wire.ORDER.pack(time_s)], fds)
            if not self._readable(hard):
                raise Broken(f"no answer from the box in {hard:.0f} s")
            return wire.RESULT.unpack(wire.exactly(self.sock, wire.RESULT.size))
        except (EOFError, ConnectionError):
            raise Broken("the box died") from None

    def _outcome(self, result: tuple[Any, ...], output: int, report: int) -> Outcome:
        status, cpu, peak, wall, overdue, fresh, unclean = result
        self.unclean = self.unclean or unclean
        size, most = os.fstat(output).st_size, self.limits.output_bytes
        text = _read(output, min(size, most))
        outcome = Outcome(status, cpu, wall, peak / 1024, overdue, fresh, text, size >= most, "")
        if self.errors:
            size = os.fstat(report).st_size
            outcome.errors = _read(report, min(size, most, self.most_errors)).decode("utf-8", "replace")
            outcome.output_full |= size >= most
        else:
            outcome.report = os.pread(report, 1000, 0).decode("utf-8", "replace")
        return outcome

    unclean = False  # a test left something behind that could not be removed: open a new box for the next

    def _readable(self, seconds: float) -> bool:
        """Wait for the box to answer in time; meanwhile watch whether the process that asked still lives."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if self.zygote.watch is not None:
            poll.register(self.zygote.watch, select.POLLHUP | select.POLLRDHUP)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for fd, _ in poll.poll(min(left, BEAT_SECONDS) * 1000):
                if fd == self.sock.fileno():
                    return True
                raise Abandoned
            self.zygote.beat()
        return False

    def close(self) -> None:
        """Kill process 1 of the box and wait: the kernel ends all others with it before this returns."""
        if self.pidfd >= 0:
            try:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            poll = select.poll()
            poll.register(self.pidfd, select.POLLIN)
            poll.poll(10_000)
            os.close(self.pidfd)
            self.pidfd = -1
        self.sock.close()  # without a pidfd the box leaves when it sees this
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        if self.scratch != "/tmp":
            _remove(self.scratch)

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


Process = TypeVar("Process")


def started(start: Callable[[], Process]) -> Process:
    """Start a process, again if it is killed while it starts: that is no candidate's doing and counts against none."""
    for _ in range(4):
        try:
            return start()
        except BoxError:
            continue
    return start()


def _remove(folder: str) -> None:
    try:
        root.clear(folder)
        os.rmdir(folder)
    except OSError:
        pass


def _before_exec() -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = MAIN_STACK if hard == resource.RLIM_INFINITY else min(MAIN_STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def _environment() -> dict[str, str]:
    """Return the environment of a zygote: only what the loader needs to start the interpreter."""
    # Sets iterate alike in every worker, so verdicts repeat; symbols are bound now, not in every fork.
    # One heap for all threads: each further one would reserve 64 MB of the address space.
    fixed = {"PYTHONHASHSEED": "0", "LD_BIND_NOW": "1", "MALLOC_ARENA_MAX": "1"}
    fixed |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")}
    return fixed | {k: os.environ[k] for k in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if k in os.environ}


def _memory_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _read_only(fd: int) -> int:
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    return again


def _fill(fd: int, data: bytes) -> None:
    """Make the file hold exactly `data`, with its position at the start and no flags that an earlier test set."""
    if os.fstat(fd).st_size:
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)
        os.ftruncate(fd, 0)
    view, at = memoryview(data), 0
    while at < len(data):
        at += os.pwrite(fd, view[at:], at)
    os.lseek(fd, 0, os.SEEK_SET)


def _read(fd: int, size: int) -> bytes:
    parts, at = [], 0
    while at < size:
        part = os.pread(fd, size - at, at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)
