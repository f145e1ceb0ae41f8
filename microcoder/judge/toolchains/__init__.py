"""What a language besides Python needs: its tools on this machine, how a program is compiled, how the result is run.

One file a language, each with a `Language`. A program is compiled once, in a box that can execute the steps of the
compiler and nothing else; what comes out is bytes, which another box runs. Where these are a static binary, the box is
as bare as can be. Where they need a runtime (Java, JavaScript), the runtime is executed in their place.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ..boxes import Launch, Limits, Toolchain
from ..sandbox.native import RESULT
from ..sandbox.root import PRECOMPILED, closed_to_others

ONE_HEAP = ("MALLOC_ARENA_MAX=1",)  # or the C library would reserve 64 MB of address space for each thread


class NoCompiler(Exception):
    """A language cannot be judged on this machine; the message says why and what to do."""


class Language:
    """A language; the defaults are those of one whose compiler makes binaries."""

    name = ""
    title = ""
    install = ""  # what to type where its tools are missing
    trial = ""  # a program that prints 1
    compiling = Limits(30.0, 1 << 30, 64 << 20)  # of each step
    reserved = 0  # bytes of address space that compiling takes without using them
    runtime_bytes = 0  # memory that a runtime needs for itself: a program gets it on top of its own limit

    def find(self, layer: str) -> Toolchain:
        """The tools on this machine, for boxes of a layer of the sandbox. NoCompiler if they cannot be used."""
        raise NotImplementedError

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        """What a box is told about compiling this program: the file that holds it, the steps, and their result."""
        return {"file": f"solution.{self.name}", "steps": tools.steps, "result": RESULT}

    def made(self, output: bytes, source: str) -> bytes:
        """The program to be run, from what the compiler gave. ValueError with the reason if it is none."""
        return output

    def launch(self, tools: Toolchain, limits: Limits) -> Launch:
        """How the program is run. `limits` include the memory of the runtime."""
        return Launch()

    def complaint(self, errors: str) -> list[str]:
        """The lines that say what is wrong, from all that the compiler wrote."""
        return errors.splitlines()

    def missing(self, reason: str) -> NoCompiler:
        return NoCompiler(f"{reason}, so {self.title} cannot be judged: {self.install}")

    def tool(self, name: str) -> str:
        """The path of a program. NoCompiler if it is not there, or this is no Linux."""
        if sys.platform != "linux":
            raise NoCompiler(f"{self.title} is judged on Linux only, not on {sys.platform}")
        path = shutil.which(name, path=os.environ.get("PATH", os.defpath))
        if path is None:
            raise self.missing(f"there is no {name} here")
        return path

    def open_to_boxes(self, layer: str, paths: Iterable[str]) -> None:
        """NoCompiler where boxes, which run as nobody for root, could not read these. The full sandbox shows them."""
        if layer != "full" and os.getuid() == 0 and (closed := closed_to_others(list(paths))):
            raise self.missing(f"{closed} is closed to other users, as whom the {layer} sandbox runs programs")


def said(*command: str, cwd: str = "/", **environment: str) -> str:
    """What a program of the machine prints, on either stream."""
    plain = {**os.environ, "LC_ALL": "C", **environment}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=plain, cwd=cwd)
    return (done.stdout + done.stderr).strip()


def loaders() -> list[str]:
    """The programs that the kernel starts in place of one that is linked dynamically."""
    return glob.glob("/lib*/ld-*.so*")


def kept(language: str, version: str, make: Callable[[str], None], layer: str) -> tuple[str, str]:
    """A folder in the user's cache that `make` fills, once for each version: (where it is, what boxes call it).

    Two empty texts where there is no place for it, or where boxes could not read it.
    """
    cache = os.path.expanduser(os.environ.get("MICROCODER_CACHE") or "~/.cache/microcoder")
    folder = os.path.join(cache, language, hashlib.sha256(version.encode()).hexdigest()[:16])
    try:
        if not os.path.isdir(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            with open(f"{folder}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not os.path.isdir(folder):
                    _fill(folder, make)
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    if layer != "full" and os.getuid() == 0 and closed_to_others([folder]):
        return "", ""  # the boxes run as nobody
    return folder, PRECOMPILED if layer == "full" else folder


def _fill(folder: str, make: Callable[[str], None]) -> None:
    part = f"{folder}.part"
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed: it cannot be alive, we hold the lock
    os.makedirs(part)
    try:
        make(part)
        for path, folders, files in os.walk(part):
            for name in (".", *folders, *files):
                os.chmod(os.path.join(path, name), 0o755)  # boxes may run as another user
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
