"""A program in either language, ready to be run: what its box needs is found out here, and C++ compiled.

A C++ program is compiled once, in a box of its own that can execute the compiler's steps and nothing else; what comes
out is a static binary, which runs in a box like that of a Python program. <bits/stdc++.h> is precompiled once for all
of a user's judges (120 MB under MICROCODER_CACHE or ~/.cache/microcoder): without it a candidate takes three times as
long.
"""

from __future__ import annotations

import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Protocol

from .boxes import Box, Limits, Toolchain, Zygote
from .sandbox.native import RESULT, SOURCE
from .sandbox.root import PRECOMPILED, closed_to_others

NAMES = {"python": "Python", "cpp": "C++"}
# Modules that a box imports once if its candidate does, and packages that a zygote keeps for all candidates using them.
AHEAD = (
    "array cmath dataclasses datetime decimal enum fractions io queue random statistics struct threading time "
    "contextlib calendar textwrap concurrent.futures asyncio abc numbers timeit inspect hashlib unicodedata pprint"
).split()
HEAVY = ("numpy", "scipy", "pandas", "sympy", "networkx", "sortedcontainers")


FLAGS = ["-std=c++17", "-O2", "-DONLINE_JUDGE", "-w"]  # a precompiled header serves those who compile alike
WORDS = ["-fmax-errors=3", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"]
LINK = ["-static", "-fno-use-linker-plugin"]
COMPILING = Limits(30.0, 1 << 30, 64 << 20)
INSTALL = "install g++ (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++ glibc-static libstdc++-static)"


class CompileError(Exception):
    """The program does not compile; the message is the compiler's."""


class Zygotes(Protocol):
    unfit: set[str]

    def zygote(self, name: str) -> Zygote: ...


def opener(
    zygotes: Zygotes, source: str, language: str, kind: str, limits: Limits, entry: str = "", setup: str = "",
    errors: bool = False,
) -> Callable[[], Box]:  # fmt: skip
    """Opens a box with the program, as often as one is needed. CompileError, for C++ here and for Python by the box."""
    if language == "cpp":
        binary, fault = compiled(zygotes.zygote("compiler"), source)
        if fault:
            raise CompileError(fault)
        return lambda: Box(zygotes.zygote("plain"), binary, "binary", limits, errors=True)
    heavy, ahead = packages(source, zygotes.unfit), imported(source, AHEAD)
    if kind == "function":  # LeetCode has these at hand without an import
        ahead += tuple(name for name in ("datetime", "random") if name in source and name not in ahead)

    def opened() -> Box:
        zygote = zygotes.zygote("heavy" if heavy else "plain")
        box = Box(zygote, source, kind, limits, entry, setup, heavy, ahead, errors)
        if box.compile_error:
            box.close()
            raise CompileError(box.compile_error)
        return box

    return opened


# --- checkers in C++

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.M)
TESTLIB = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:[^<>\"\n]*/)?testlib\.h[>\"].*$", re.M)
# The judge's own main puts the three files into the box's folder and calls that of the checker. A checker that ends
# without a verdict, which for a function other than main is undefined, is stopped by what follows it.
CALL = """
#undef main
#include <cstdio>
#include <cstdlib>
static void microcoder_file(const char* name, unsigned long size) {
    FILE* file = fopen(name, "wb");
    if (!file) exit(3);
    char part[1 << 16];
    while (size) {
        unsigned long most = size < sizeof part ? size : sizeof part, got = fread(part, 1, most, stdin);
        if (!got || fwrite(part, 1, got, file) != got) exit(3);
        size -= got;
    }
    fclose(file);
}
int main() {
    unsigned long sizes[3];
    if (scanf("%lu %lu %lu", sizes, sizes + 1, sizes + 2) != 3 || getchar() != 10) return 3;
    const char* names[] = {"input.txt", "output.txt", "answer.txt"};
    for (int n = 0; n < 3; n++) microcoder_file(names[n], sizes[n]);
    char words[4][16] = {"checker", "input.txt", "output.txt", "answer.txt"};
    char* arguments[] = {words[0], words[1], words[2], words[3], nullptr};
    return microcoder_checker(4, arguments);
}
"""


def is_cpp(checker: str) -> bool:
    """Whether a checker is C++: it includes something. All others are Python."""
    return INCLUDE.search(checker) is not None


def checker_program(checker: str) -> str:
    """A C++ checker, `checker input output answer`, as a program that reads the three files from its standard input.

    testlib.h is the user's: MICROCODER_TESTLIB is its path. NoTestlib where a checker needs it and it is not there.
    """
    if TESTLIB.search(checker):
        path = os.environ.get("MICROCODER_TESTLIB", "")
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            found = f"MICROCODER_TESTLIB is {path!r}: {error}" if path else "MICROCODER_TESTLIB is not set"
            raise NoTestlib(f"the checker includes testlib.h, and {found}; set it to the path of testlib.h") from None
        checker = TESTLIB.sub(lambda _: text, checker, count=1)
        checker = TESTLIB.sub("", checker)
    return f"#define main microcoder_checker\n{checker}\n{CALL}"


def checker_input(given: str, output: str, expected: str) -> bytes:
    """The three files of a checker as one: their sizes, then the files."""
    files = [text.encode("utf-8", "surrogatepass") for text in (given, output, expected)]
    return b"%d %d %d\n" % tuple(map(len, files)) + b"".join(files)


class NoTestlib(Exception):
    """A checker needs testlib.h, which is not there."""


# --- what a program imports


def packages(source: str, unfit: set[str]) -> tuple[str, ...]:
    """The large packages that a program imports, less those that no zygote can keep."""
    return tuple(name for name in imported(source, HEAVY) if name not in unfit)


def imported(source: str, names: Iterable[str]) -> tuple[str, ...]:
    """Which of these modules a program imports, at a glance: a wrong guess costs time only."""
    mentioned = [name for name in names if name in source]
    if not mentioned:
        return ()
    lines = (line.lstrip()[:200] for line in source.splitlines())
    imports = " ".join(line for line in lines if line.startswith(("import ", "from ")))
    return tuple(name for name in mentioned if name in imports)


class NoCompiler(Exception):
    """C++ cannot be judged on this machine; the message says why and what to do."""


@functools.cache
def toolchain(layer: str = "full") -> Toolchain:
    """Return the g++ of this machine as a Toolchain, with the precompiled header."""
    if sys.platform != "linux":
        raise NoCompiler(f"C++ is judged on Linux only, not on {sys.platform}")
    compiler = shutil.which("g++", path=os.environ.get("PATH", os.defpath))
    if compiler is None:
        raise NoCompiler(f"there is no g++ here, so C++ cannot be judged: {INSTALL}")
    ready = header(compiler)
    if ready and layer != "full" and os.getuid() == 0 and closed_to_others([ready]):
        ready = ""  # the boxes run as nobody
    include = ["-I", PRECOMPILED if layer == "full" else ready] if ready else []
    try:
        steps = (
            _step(compiler, *FLAGS, *WORDS, *include, "-S", SOURCE, "-o", "solution.s"),
            _step(compiler, "-c", "solution.s", "-o", "solution.o"),
            _step(compiler, *LINK, "solution.o", "-o", RESULT),
        )
        verbose = _said(compiler, "-E", "-v", "-x", "c++", os.devnull)
        libraries = _said(compiler, "-print-search-dirs").partition("libraries: =")[2].split("\n")[0].split(":")
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoCompiler(f"{compiler} does not work: {error}; {INSTALL}") from None
    listed = verbose.partition("#include <...>")[2].partition("End of search list")[0]
    headers = [line.strip() for line in listed.splitlines()[1:]]
    folders = tuple(folder for folder in (*headers, *libraries) if os.path.isdir(folder))
    programs = (*(step[0] for step in steps), *glob.glob("/lib*/ld-*.so*"))
    return Toolchain(steps, programs, folders, ready)


def _step(compiler: str, *arguments: str) -> tuple[str, ...]:
    """Return the program that g++ would start for a step, with its arguments. g++ itself never runs boxed."""
    with tempfile.TemporaryDirectory() as folder:  # it looks whether its input is there
        for name in (SOURCE, "solution.s", "solution.o"):
            open(os.path.join(folder, name), "w").close()
        said = _said(compiler, "-###", *arguments, cwd=folder)
    commands = [line for line in said.splitlines() if line.startswith(" ")]
    if len(commands) != 1:
        raise FileNotFoundError(f"`g++ -### {' '.join(arguments)}` names {len(commands)} commands in place of one")
    name, *rest = shlex.split(commands[0])
    if os.path.basename(name) == "collect2":  # starts the linker, with the same arguments
        name = _said(compiler, "-print-prog-name=ld")
    if (path := shutil.which(name)) is None:
        raise FileNotFoundError(f"it needs {name}, which is not there")
    return path, *rest


def header(compiler: str) -> str:
    """Return the folder of the precompiled header, made on first use; "" if it cannot be made."""
    cache = os.path.expanduser(os.environ.get("MICROCODER_CACHE") or "~/.cache/microcoder")
    try:
        version = [line for line in _said(compiler, "-v").splitlines() if not line.startswith("COLLECT_GCC=")]
        folder = os.path.join(cache, "cpp", hashlib.sha256(f"{version}{FLAGS}".encode()).hexdigest()[:16])
        if os.path.isdir(folder):
            return folder
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(folder):
                _precompile(compiler, folder)
        return folder
    except (OSError, subprocess.CalledProcessError):
        return ""


def _precompile(compiler: str, folder: str) -> None:
    part = f"{folder}.part"
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed: it cannot be alive, we hold the lock
    made = os.path.join(part, "bits", "stdc++.h.gch")
    os.makedirs(os.path.dirname(made))
    try:
        source = os.path.join(part, "all.h")
        with open(source, "w") as file:
            file.write("#include <bits/stdc++.h>\n")
        subprocess.run([compiler, *FLAGS, source, "-o", made], check=True, capture_output=True)
        for path in (made, os.path.dirname(made), part):
            os.chmod(path, 0o755)  # boxes may run as another user
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _said(*command: str, cwd: str = "/") -> str:
    plain = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=plain, cwd=cwd)
    return (done.stdout + done.stderr).strip()


def compiled(zygote: Zygote, source: str) -> tuple[bytes, str]:
    """Compile a program; return (binary, error message), one of which is empty."""
    steps = json.dumps(toolchain(zygote.layer).steps).encode()
    with Box(zygote, steps, "compile", COMPILING, errors=True) as box:
        outcome = box.run(source.encode("utf-8", "surrogatepass"))
    if not outcome.status and outcome.output:
        return outcome.output, ""
    if outcome.cpu_s >= COMPILING.time_s or outcome.overdue:
        return b"", f"compiling took over {COMPILING.time_s:.0f} s"
    context = ("In file included", "                 from")
    lines = [line for line in outcome.errors.splitlines() if not line.startswith(context) and "In function" not in line]
    return b"", "\n".join(lines[:5])[:500] or "the compiler crashed on this program"


def try_out(compiler: Zygote, plain: Zygote) -> None:
    """Whether a right program is compiled and runs here: if so, what fails afterwards is the program's own doing."""
    binary, fault = compiled(compiler, '#include <cstdio>\nint main() { std::puts("1"); }\n')
    if fault:
        raise NoCompiler(f"g++ cannot compile in the sandbox: {fault}; {INSTALL}")
    with Box(plain, binary, "binary", Limits(5.0, 1 << 28, 1 << 20), errors=True) as box:
        outcome = box.run(b"")
    if outcome.output != b"1\n":
        raise NoCompiler(f"what g++ makes does not run in the sandbox: {outcome.status} {outcome.errors[:200]}")
