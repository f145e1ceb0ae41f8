"""Go: the machine's compiler and linker, called without the `go` command, which would start them as processes.

1. What is made is a static binary. Programs import the packages below, which no contest goes beyond, and no others.
2. The compiled library of Go 1.20 and later is in a cache that each user fills: it is made once (20 s, 60 MB under
   MICROCODER_CACHE or ~/.cache/microcoder). Earlier versions are installed with it.
3. A program has one processor, since CPU time counts for all threads, and its collector knows the memory limit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from ..boxes import Launch, Limits, Toolchain
from ..sandbox.native import RESULT
from . import Language, NoCompiler, kept, said

FILE = "solution.go"
RESERVED = 2 << 30  # of address space
SPARE = 16 << 20  # of memory, that the collector leaves free
PACKAGES = (
    "bufio bytes cmp container/heap container/list container/ring context crypto/md5 crypto/sha1 crypto/sha256 "
    "encoding/base64 encoding/binary encoding/csv encoding/hex encoding/json errors flag fmt hash hash/adler32 "
    "hash/crc32 hash/crc64 hash/fnv hash/maphash html index/suffixarray io io/fs io/ioutil iter log maps math math/big "
    "math/bits math/cmplx math/rand math/rand/v2 os os/exec os/signal path path/filepath reflect regexp regexp/syntax "
    "runtime runtime/debug slices sort strconv strings sync sync/atomic syscall text/scanner text/tabwriter "
    "text/template time unicode unicode/utf16 unicode/utf8 unique unsafe"
).split()
# Nothing is fetched: neither another version of Go, nor modules, nor what a user's settings ask for.
ALONE = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOPROXY": "off", "GOENV": "off", "GO111MODULE": "on",
         "GOWORK": "off", "CGO_ENABLED": "0", "GOEXPERIMENT": ""}  # fmt: skip


class Go(Language):
    name, title = "go", "Go"
    install = "install Go (Debian, Ubuntu: apt-get install golang-go; Fedora: dnf install golang; or go.dev/dl)"
    trial = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(1) }\n'
    reserved = RESERVED

    def find(self, layer: str) -> Toolchain:
        go = self.tool("go")
        try:
            root, tools, version = said(go, "env", "GOROOT", "GOTOOLDIR", "GOVERSION", **ALONE).splitlines()
            folder, shown, library = self.library(go, root, version, layer)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise NoCompiler(f"{go} does not work: {error}; {self.install}") from None
        programs = tuple(os.path.realpath(os.path.join(tools, name)) for name in ("compile", "link"))
        self.open_to_boxes(layer, [*programs, root])
        config = "".join(f"packagefile {name}={path.replace(folder, shown, 1)}\n" for name, path in library.items())
        steps = (
            (programs[0], "-p", "main", "-complete", "-pack", "-importcfg", "importcfg", "-o", "solution.o", FILE),
            (programs[1], "-importcfg", "importcfg", "-s", "-w", "-o", RESULT, "solution.o"),
        )
        folders = () if folder else (os.path.realpath(root),)
        return Toolchain(steps, programs, folders, folder, ("GOMAXPROCS=1",), (("importcfg", config),))

    def library(self, go: str, root: str, version: str, layer: str) -> tuple[str, str, dict[str, str]]:
        """(the folder in the cache, what boxes call it, the file of each compiled package); no folder if Go has one."""
        ready = os.path.join(os.path.realpath(root), "pkg", said(go, "env", "GOOS", **ALONE))
        ready += "_" + said(go, "env", "GOARCH", **ALONE)
        if os.path.exists(os.path.join(ready, "fmt.a")):
            found = os.walk(ready)
            files = [os.path.join(folder, name) for folder, _, names in found for name in names if name.endswith(".a")]
            return "", "", {os.path.relpath(path, ready).removesuffix(".a"): path for path in files}
        folder, shown = kept("go", f"{version}{root}{PACKAGES}", lambda part: _compile(go, part), layer)
        if not folder:
            raise self.missing(
                "there is no folder for Go's compiled library that boxes can read (MICROCODER_CACHE names another)"
            )
        with open(os.path.join(folder, "names")) as file:
            names = file.read().split()
        return folder, shown, {name: os.path.join(folder, f"{n}.a") for n, name in enumerate(names)}

    def order(self, tools: Toolchain, source: str) -> dict[str, Any]:
        return {"file": FILE, "steps": tools.steps, "result": RESULT, "files": dict(tools.files)}

    def launch(self, tools: Toolchain, limits: Limits) -> Launch:
        heap = max(limits.memory_bytes - SPARE, limits.memory_bytes // 2)
        return Launch(environment=("GOMAXPROCS=1", f"GOMEMLIMIT={heap}"), reserved=RESERVED)


def _compile(go: str, folder: str) -> None:
    """Compile the library, as `go` does for its users, and copy what comes out."""
    build = os.path.join(folder, "build")
    own = {**ALONE, "GOCACHE": build, "GOPATH": build}
    known = [name for name in said(go, "list", "std", **own).split() if name in PACKAGES]
    form = "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}"
    rows = [row.split(" ", 1) for row in said(go, "list", "-export", "-deps", "-f", form, *known, **own).splitlines()]
    for n, (_, path) in enumerate(rows):
        shutil.copyfile(path, os.path.join(folder, f"{n}.a"))
    with open(os.path.join(folder, "names"), "w") as file:
        file.write("\n".join(name for name, _ in rows))
    shutil.rmtree(build)
