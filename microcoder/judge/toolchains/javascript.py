"""JavaScript: Node.js runs the program; compiling is a look at its syntax.

1. The memory limit is that of V8's old space. What Node needs besides for itself is not the program's, see RUNTIME.
2. The garbage collector has no threads of its own: CPU time counts for all threads.
3. The stack is as large as the memory limit, less what a crash needs.
4. A program is a CommonJS module (`require`), or an ES module if only that makes sense of it (`import`).
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from ..boxes import Launch, Limits, Toolchain
from ..sandbox.native import SPARE
from . import ONE_HEAP, Language, NoCompiler, loaders, said

FILE = "solution.js"
RUNTIME = 128 << 20  # of memory, for Node: its code, the heap of the young, the program's compiled code
RESERVED = 8 << 30  # of address space: V8 reserves gigabytes for what it may come to need
FLAGS = ("--experimental-detect-module", "--no-warnings", "--single-threaded-gc")
ENVIRONMENT = (*ONE_HEAP, "OPENSSL_CONF=/dev/null")  # the machine's is not there, which Node takes for an error
LIBRARIES = "/usr/share/nodejs"  # Debian's Node reads parts of itself from there
ERROR = re.compile(r"^\w*Error: .*$", re.M)
PLACE = re.compile(rf"{re.escape(FILE)}:\d+")


class JavaScript(Language):
    name, title = "javascript", "JavaScript"
    install = "install Node.js, 18.19 or later (Debian, Ubuntu: apt-get install nodejs; Fedora: dnf install nodejs)"
    trial = "console.log(1);\n"
    reserved = RESERVED
    runtime_bytes = RUNTIME

    def find(self, layer: str) -> Toolchain:
        found = self.tool("node")  # perhaps a script that leads to it
        try:
            node = os.path.realpath(said(found, "-p", "process.execPath"))
        except (OSError, subprocess.CalledProcessError) as error:
            raise NoCompiler(f"{found} does not work: {error}; {self.install}") from None
        self.open_to_boxes(layer, [node])
        folders = (LIBRARIES,) if os.path.isdir(LIBRARIES) else ()
        return Toolchain(((node, *FLAGS, "--check", FILE),), (node, *loaders()), folders, "", ENVIRONMENT)

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        return {"file": FILE, "steps": tools.steps, "result": FILE}

    def launch(self, tools: Toolchain, limits: Limits) -> Launch:
        heap = limits.memory_bytes - limits.runtime_bytes
        stack = max(heap - SPARE, SPARE) - SPARE // 2
        sizes = (f"--max-old-space-size={heap >> 20}", f"--stack-size={stack >> 10}")
        return Launch((tools.programs[0], *FLAGS, *sizes, FILE), FILE, ENVIRONMENT, RESERVED)

    def complaint(self, errors: str) -> list[str]:
        place, error = PLACE.search(errors), ERROR.search(errors)
        return [f"{place[0]}: {error[0]}"] if place and error else errors.splitlines()
