"""Rust: rustc makes an object (edition 2021, -O), and the machine's linker a static binary of it and the library.

rustc would start the linker itself, as a process. So it is asked once what it would link a program with: the library,
and a small object that it makes for every program, which leads to the allocator: the usual one, or the program's own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from typing import Any

from ..boxes import Toolchain
from ..sandbox.native import RESULT
from . import Language, NoCompiler, loaders, said
from .cpp import library_folders, step

FILE, OBJECT, ALLOCATOR = "solution.rs", "solution.o", "allocator.o"
FLAGS = ("--edition=2021", "-O", "-Ctarget-feature=+crt-static", "-Ccodegen-units=1", "--crate-type=bin",
         "--crate-name=solution", "-Awarnings", "--error-format=short", "--color=never")  # fmt: skip
OWN_ALLOCATOR = "#[global_allocator]\nstatic OWN: std::alloc::System = std::alloc::System;\n"
LINK = ("-static", "-nodefaultlibs", "-fno-use-linker-plugin", "-Wl,--gc-sections")
END = ("-lgcc_eh", "-lgcc", "-lc", "-lm", "-lpthread", "-ldl", "-Wl,--end-group")
SUMMARY = re.compile(r"^error: (?:aborting due to|could not compile)")


class Rust(Language):
    name, title = "rust", "Rust"
    install = "install Rust and gcc (Debian, Ubuntu: apt-get install rustc; Fedora: dnf install rust; or rustup.rs)"
    trial = 'fn main() {\n    println!("1");\n}\n'

    def find(self, layer: str) -> Toolchain:
        """rustc, not the proxy that rustup has in its place, and the linker that gcc calls."""
        proxy, gcc = self.tool("rustc"), self.tool("gcc")
        try:
            root = os.path.realpath(said(proxy, "--print", "sysroot"))
            rustc = os.path.join(root, "bin", "rustc")
            self.open_to_boxes(layer, [rustc])
            libraries, usual = linked_with(rustc, self.trial)
            _, own = linked_with(rustc, OWN_ALLOCATOR + self.trial)
            link = step(gcc, *LINK, OBJECT, ALLOCATOR, "-Wl,--start-group", *libraries, *END, "-o", RESULT)
            folders = [os.path.join(root, "lib"), *library_folders(gcc), *map(os.path.dirname, libraries)]
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoCompiler(f"{proxy} does not work: {error}; {self.install}") from None
        compile_ = (rustc, *FLAGS, f"--sysroot={root}", "--emit=obj", "-o", OBJECT, FILE)
        there = tuple(folder for folder in dict.fromkeys(folders) if os.path.isdir(folder))
        files = (("usual", os.fsdecode(usual)), ("own", os.fsdecode(own)))
        return Toolchain((compile_, link), (rustc, link[0], *loaders()), there, files=files)

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        allocator = dict(tools.files)["own" if "#[global_allocator]" in source else "usual"]
        return {"file": FILE, "steps": tools.steps, "result": RESULT, "files": {ALLOCATOR: allocator}}

    def complaint(self, errors: str) -> list[str]:
        return [line for line in errors.splitlines() if not SUMMARY.match(line)]


def linked_with(rustc: str, program: str) -> tuple[list[str], bytes]:
    """What a program is linked with: the files of the library, in order, and the object that leads to the allocator."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, FILE), "w") as file:
            file.write(program)
        options = ["-Csave-temps", "--print=link-args", "-Clinker=true", "-Clinker-flavor=gcc"]
        words = shlex.split(said(rustc, *FLAGS, *options, FILE, cwd=folder, TMPDIR=folder))  # it keeps what is there
        objects = [word for word in words if word.endswith(".rcgu.o") and "-cgu." not in word]
        libraries = [word for word in words if word.endswith(".rlib")]
        if not libraries or len(objects) != 1:
            raise FileNotFoundError(f"it names {len(libraries)} libraries and {len(objects)} objects besides its own")
        with open(os.path.join(folder, objects[0]), "rb") as file:
            return libraries, file.read()
