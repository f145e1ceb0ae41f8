"""A program in any language, ready to be run: what its box needs is found out here, and it is compiled.

Python is the fast path: a box compiles the program itself and forks. The others are compiled once, in a box of their
own, and every test executes the result (see toolchains).
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from .boxes import Box, Launch, Limits, Toolchain, Zygote
from .toolchains import Language, NoCompiler
from .toolchains.cpp import Cpp
from .toolchains.go import Go
from .toolchains.java import Java
from .toolchains.javascript import JavaScript
from .toolchains.rust import Rust

LANGUAGES: dict[str, Language] = {
    one.name: one for one in (Cpp(), Java(), JavaScript(), Go(), Rust())
}  # besides Python
MOST_WORDS = 1 << 14  # of a compiler's
NAMES = {"python": "Python"} | {name: language.title for name, language in LANGUAGES.items()}
# Modules that a box imports once if its candidate does, and packages that a zygote keeps for all candidates using them.
AHEAD = (
    "array cmath dataclasses datetime decimal enum fractions io queue random statistics struct threading time "
    "contextlib calendar textwrap concurrent.futures asyncio abc numbers timeit inspect hashlib unicodedata pprint"
).split()
HEAVY = ("numpy", "scipy", "pandas", "sympy", "networkx", "sortedcontainers")
LARGE = ("scipy", "pandas", "sympy", "networkx")  # of them: a zygote keeps the package, not all of its parts
SORTED = ("SortedList", "SortedDict", "SortedSet")  # of sortedcontainers


class CompileError(Exception):
    """The program does not compile; the message is the compiler's."""


class Zygotes(Protocol):
    unfit: set[str]

    def zygote(self, name: str) -> Zygote: ...


def opener(
    zygotes: Zygotes, source: str, language: str, kind: str, limits: Limits, entry: str = "", setup: str = "",
    errors: bool = False,
) -> Callable[[], Box]:  # fmt: skip
    """Opens a box with the program, as often as one is needed. CompileError, here or for Python by the box."""
    if language in LANGUAGES:
        made, fault = compiled(zygotes.zygote(language), language, source)
        if fault:
            raise CompileError(fault)
        return lambda: program_box(zygotes, language, made, limits)
    heavy, ahead = prepared(source, zygotes.unfit, at_hand=kind == "function")

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


def prepared(source: str, unfit: set[str], at_hand: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages that the zygote keeps and the modules that the box imports for a program.

    at_hand: also those that LeetCode lets a program use without an import.
    """
    heavy, ahead = packages(source, unfit), imported(source, AHEAD)
    if at_hand:
        ahead += tuple(name for name in ("datetime", "random") if name in source and name not in ahead)
        if "sortedcontainers" not in unfit and any(name in source for name in SORTED):
            heavy = tuple(dict.fromkeys((*heavy, "sortedcontainers")))
            ahead += ("sortedcontainers",)
    return heavy, ahead


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


@functools.cache
def toolchain(language: str, layer: str = "full") -> Toolchain:
    """The tools of a language on this machine. NoCompiler if they are missing."""
    return LANGUAGES[language].find(layer)


def compiled(zygote: Zygote, language: str, source: str) -> tuple[bytes, str]:
    """Compile a program; return (what is to be run, error message), one of which is empty."""
    known, tools = LANGUAGES[language], toolchain(language, zygote.layer)
    source = source.removeprefix("\ufeff")
    order, limits = known.order(tools, source), known.compiling
    launch = Launch(environment=tools.environment, reserved=known.reserved)
    with Box(zygote, json.dumps(order).encode(), "compile", limits, errors=True, launch=launch) as box:
        outcome = box.run(source.encode("utf-8", "surrogatepass"))
    if not outcome.status and outcome.output:
        try:
            return known.made(outcome.output, source), ""
        except ValueError as error:
            return b"", str(error)
    if outcome.cpu_s >= limits.time_s or outcome.overdue:
        return b"", f"compiling took over {limits.time_s:.0f} s"
    said = outcome.errors or outcome.output[:MOST_WORDS].decode("utf-8", "replace")  # some use the one, some the other
    return b"", "\n".join(known.complaint(said)[:5])[:500] or "the compiler crashed on this program"


def program_box(zygotes: Zygotes, language: str, program: bytes, limits: Limits) -> Box:
    """A box with a compiled program."""
    zygote = zygotes.zygote(language)
    launch = LANGUAGES[language].launch(toolchain(language, zygote.layer), limits)
    if launch.file:  # a runtime executes it, whose files the language's own zygote has
        return Box(zygote, program, "hosted", limits, errors=True, launch=launch)
    return Box(zygotes.zygote("plain"), program, "binary", limits, errors=True, launch=launch)


def with_runtime(limits: Limits, language: str) -> Limits:
    """The limits of a program: what the runtime of its language needs for itself is not counted against it."""
    own = LANGUAGES[language].runtime_bytes if language in LANGUAGES else 0
    return replace(limits, memory_bytes=limits.memory_bytes + own, runtime_bytes=own)


def try_out(zygotes: Zygotes, language: str) -> None:
    """Whether a right program is compiled and runs here: if so, what fails afterwards is the program's own doing."""
    known = LANGUAGES[language]
    program, fault = compiled(zygotes.zygote(language), language, known.trial)
    if fault:
        raise NoCompiler(f"{known.title} cannot be compiled in the sandbox: {fault}; {known.install}")
    limits = with_runtime(Limits(5.0, 1 << 28, 1 << 20), language)
    with program_box(zygotes, language, program, limits) as box:
        outcome = box.run(b"")
    if outcome.output != b"1\n":
        said = f"{outcome.status} {outcome.output[:200]!r} {outcome.errors[:200]}"
        raise NoCompiler(f"what is compiled from {known.title} does not run in the sandbox: {said}; {known.install}")
