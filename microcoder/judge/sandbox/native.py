"""Boxes whose test processes execute something: a compiler's steps, the binaries that it makes, or a runtime.

Such a process gets the filter of every test process before it becomes the program, which can then start nothing: no
process, and no other program. A binary can open its folder and its standard streams, and no more; a runtime such as
Java's also what it is installed with.
"""

import ctypes
import json
import os
import resource
import signal
import struct
from abc import ABC, abstractmethod
from typing import Any

from . import kernel, seccomp
from .box import SandboxedRun

SPARE = 16 << 20  # of the memory limit that the stack does not get: without end, recursion is a crash and no more
NOT_EXECUTED = 126  # as a shell says
RESULT = "solution"  # the name of a compiler's result, where that is one file
ENTRY = struct.Struct("!II")  # where it is several: before each, the lengths of its name and of its content


class Native(SandboxedRun, ABC):
    arguments: list[str]
    password = 0

    def test_filter(self) -> seccomp.Filter | None:
        self.password = int.from_bytes(os.urandom(8))
        return seccomp.Filter(seccomp.test_program(None, self.password)) if self.stock.test_filter else None

    def filter_of(self, pid: int) -> seccomp.Filter:
        return seccomp.Filter(seccomp.test_program(pid, self.password))

    @abstractmethod
    def program(self) -> int:
        """Return a descriptor of the file to execute."""

    def allowed_tools(self) -> tuple[list[str], ...] | None:
        """What a compiler or a runtime may read, write, list and execute, if that is less than the box may."""
        if self.full:
            return None
        return self.job["readable"], [self.scratch], self.job["listable"], self.job["executable"]

    def enter_test(self, keep: int = 0) -> None:
        os.dup2(self.program(), self.open_to, inheritable=False)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores these, and ignored they would stay
            signal.signal(number, signal.SIG_DFL)
        super().enter_test(keep=1)

    def run_once(self) -> int:
        """Execute the program in this process; return only if that fails."""
        arguments, environment = _strings(self.arguments), _strings(self.job["environment"])
        try:
            flags = kernel.AT_EMPTY_PATH
            kernel.syscall("execveat", self.open_to, b"", arguments, environment, flags, self.password)
        except OSError as error:
            os.write(2, f"the program cannot be executed: {error.strerror}".encode())
        return NOT_EXECUTED


def _strings(words: list[str]) -> Any:
    return (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)


class Binary(Native):
    """Each test executes the candidate's binary, in a fresh process."""

    def prepare(self) -> str:
        self.arguments = self.job["command"]
        return ""

    def allowed(self) -> tuple[list[str], ...] | None:
        return ["/dev/urandom", "/dev/zero"], [self.scratch]

    def program(self) -> int:
        return self.kept[0]

    def enter_test(self, keep: int = 0) -> None:
        stack = max(self.job["memory_bytes"] - SPARE, SPARE)
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (stack if hard == resource.RLIM_INFINITY else min(stack, hard), hard))
        super().enter_test()


class Hosted(Binary):
    """Each test executes a runtime, which finds the candidate's program as a file in its folder."""

    def lock_down(self) -> None:
        self.job["output_bytes"] = max(self.job["output_bytes"], os.fstat(0).st_size)  # the program is a file too
        super().lock_down()

    def prepare(self) -> str:
        self.own_file = os.pread(0, os.fstat(0).st_size, 0)
        return super().prepare()

    def put_own_file(self) -> None:
        """Write the program anew: an earlier test could have changed the file."""
        with open(self.job["file"], "wb") as file:
            file.write(self.own_file)

    def allowed(self) -> tuple[list[str], ...] | None:
        return self.allowed_tools()

    def program(self) -> int:
        return os.open(self.arguments[0], os.O_RDONLY)


class Compiler(Native):
    """A test is one compilation, of several steps: the source is its input, the binary its output."""

    def filter_of(self, pid: int) -> seccomp.Filter:
        return seccomp.Filter(seccomp.test_program(pid, self.password, compiles=True))

    def prepare(self) -> str:
        self.order: dict[str, Any] = json.loads(os.pread(0, os.fstat(0).st_size, 0))
        return ""

    def allowed(self) -> tuple[list[str], ...] | None:
        return self.allowed_tools()

    def program(self) -> int:
        return os.open(self.arguments[0], os.O_RDONLY)

    def forked(self) -> tuple[Any, ...]:
        with open(self.order["file"], "wb") as file:
            file.write(os.pread(0, os.fstat(0).st_size, 0))
        for name, text in self.order.get("files", {}).items():
            with open(name, "wb") as file:
                file.write(os.fsencode(text))
        status, cpu, peak, wall, overdue = 0, 0.0, 0, 0.0, False
        for step in self.order["steps"]:
            self.arguments = step
            status, used, most, took, overdue = self.once()
            cpu, peak, wall = cpu + used, max(peak, most), wall + took
            if status:
                break
        else:
            self.hand_over()
        return status, cpu, peak, wall, overdue, True, self.sweep()

    def hand_over(self) -> None:
        """The binary becomes the output; a step could have written anything there."""
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)
        result = self.order["result"]
        try:
            if not result.startswith("."):
                with _plain(result) as file:
                    while os.sendfile(1, file.fileno(), None, 1 << 20):
                        pass
                return
            for folder, _, names in os.walk("."):  # all with this ending
                for name in (os.path.join(folder, name) for name in names if name.endswith(result)):
                    with _plain(name) as file:
                        content = file.read()
                    os.write(1, ENTRY.pack(len(os.fsencode(name)), len(content)) + os.fsencode(name) + content)
        except OSError:
            pass  # no output then, or not all of it, which says enough


def _plain(name: str) -> Any:
    return open(name, "rb", opener=lambda path, _: os.open(path, os.O_RDONLY | os.O_NOFOLLOW))


BOXES: dict[str, type[SandboxedRun]] = {"binary": Binary, "hosted": Hosted, "compile": Compiler}
