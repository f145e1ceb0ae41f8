"""A program in either language, ready to be run: what its box needs is found out here, and C++ compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from . import cpp
from .boxes import Box, Limits, Zygote

NAMES = {"python": "Python", "cpp": "C++"}
# Modules that a box imports once if its candidate does, and packages that a zygote keeps for all candidates using them.
AHEAD = (
    "array cmath dataclasses datetime decimal enum fractions io queue random statistics struct threading time "
    "contextlib calendar textwrap concurrent.futures asyncio abc numbers timeit inspect hashlib unicodedata pprint"
).split()
HEAVY = ("numpy", "scipy", "pandas", "sympy", "networkx", "sortedcontainers")


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
        binary, fault = cpp.compiled(zygotes.zygote("compiler"), source)
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
