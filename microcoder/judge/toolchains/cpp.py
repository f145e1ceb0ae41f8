"""C++: the machine's g++, step by step. What it makes is a static binary.

<bits/stdc++.h> is precompiled once for all of a user's judges (120 MB under MICROCODER_CACHE or ~/.cache/microcoder):
without it a candidate takes three times as long.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from typing import Any

from ..boxes import Toolchain
from ..sandbox.native import RESULT
from . import Language, NoCompiler, kept, loaders, said

SOURCE = "solution.cpp"
FLAGS = ["-std=c++17", "-O2", "-DONLINE_JUDGE", "-w"]  # a precompiled header serves those who compile alike
WORDS = ["-fmax-errors=3", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"]
LINK = ["-static", "-fno-use-linker-plugin"]


class Cpp(Language):
    name, title = "cpp", "C++"
    install = (
        "install g++ (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++ glibc-static libstdc++-static)"
    )
    trial = '#include <cstdio>\nint main() { std::puts("1"); }\n'

    def find(self, layer: str) -> Toolchain:
        """g++, with the precompiled header where there is a place for it."""
        compiler = self.tool("g++")
        ready, shown = header(compiler, layer)
        include = ["-I", shown] if shown else []
        try:
            steps = (
                step(compiler, *FLAGS, *WORDS, *include, "-S", SOURCE, "-o", "solution.s"),
                step(compiler, "-c", "solution.s", "-o", "solution.o"),
                step(compiler, *LINK, "solution.o", "-o", RESULT),
            )
            verbose = said(compiler, "-E", "-v", "-x", "c++", os.devnull)
            libraries = library_folders(compiler)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoCompiler(f"{compiler} does not work: {error}; {self.install}") from None
        listed = verbose.partition("#include <...>")[2].partition("End of search list")[0]
        headers = [line.strip() for line in listed.splitlines()[1:]]
        folders = tuple(folder for folder in (*headers, *libraries) if os.path.isdir(folder))
        programs = (*(step[0] for step in steps), *loaders())
        return Toolchain(steps, programs, folders, ready)

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        return {"file": SOURCE, "steps": tools.steps, "result": RESULT}

    def complaint(self, errors: str) -> list[str]:
        context = ("In file included", "                 from")
        return [line for line in errors.splitlines() if not line.startswith(context) and "In function" not in line]


def step(compiler: str, *arguments: str) -> tuple[str, ...]:
    """Return the program that g++ would start for a step, with its arguments. g++ itself never runs boxed."""
    with tempfile.TemporaryDirectory() as folder:  # it looks whether its input is there
        for name in (SOURCE, "solution.s", *(word for word in arguments if word.endswith(".o"))):
            open(os.path.join(folder, name), "w").close()
        described = said(compiler, "-###", *arguments, cwd=folder)
    commands = [line for line in described.splitlines() if line.startswith(" ")]
    if len(commands) != 1:
        raise FileNotFoundError(f"`g++ -### {' '.join(arguments)}` names {len(commands)} commands in place of one")
    name, *rest = shlex.split(commands[0])
    if os.path.basename(name) == "collect2":  # starts the linker, with the same arguments
        name = said(compiler, "-print-prog-name=ld")
    if (path := shutil.which(name)) is None:
        raise FileNotFoundError(f"it needs {name}, which is not there")
    return path, *rest


def library_folders(compiler: str) -> list[str]:
    return said(compiler, "-print-search-dirs").partition("libraries: =")[2].split("\n")[0].split(":")


def header(compiler: str, layer: str = "full") -> tuple[str, str]:
    """The folder of the precompiled header, made on first use, and what boxes call it; empty if it cannot be made."""

    def precompile(folder: str) -> None:
        made = os.path.join(folder, "bits", "stdc++.h.gch")
        os.makedirs(os.path.dirname(made))
        source = os.path.join(folder, "all.h")
        with open(source, "w") as file:
            file.write("#include <bits/stdc++.h>\n")
        subprocess.run([compiler, *FLAGS, source, "-o", made], check=True, capture_output=True)

    try:
        version = [line for line in said(compiler, "-v").splitlines() if not line.startswith("COLLECT_GCC=")]
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    return kept("cpp", f"{version}{FLAGS}", precompile, layer)
