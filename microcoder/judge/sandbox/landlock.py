"""Landlock: limit the files that a process can use, by path and irrevocably.

In the full sandbox the private root already hides everything, and this is the second lock. Where user namespaces are
forbidden it is the first one: only the interpreter's files can be read, only the candidate's own folder written.
"""

import ctypes
import functools
import os
from collections.abc import Iterable

from . import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE = 1, 2, 4
_READ = _READ_FILE | 8  # and read_dir
_LIST = 8  # read_dir
# access rights by ABI version: version 1 knows 13, later ones add refer, truncate and ioctl_dev
_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_FILE_RIGHTS = 1 | 2 | 4 | 0x4000 | 0x8000  # those that make sense on a file that is no folder


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]


@functools.cache
def version() -> int:
    """Return the kernel's Landlock ABI version, 0 if it has none."""
    if not kernel.LINUX:
        return 0
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def ruleset(
    readable: Iterable[str], writable: Iterable[str], listable: Iterable[str] = (), executable: Iterable[str] = ()
) -> int:
    """A descriptor of a ruleset: TCP, abstract sockets and signals to the outside are refused too, where known."""
    abi = version()
    rights = _RIGHTS[min(abi, 5)]
    rules = _Ruleset(rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    fd = kernel.syscall("landlock_create_ruleset", ctypes.byref(rules), size, 0)
    whole = rights & ~_EXECUTE
    for paths, allowed in (
        (readable, _READ), (writable, whole), (listable, _LIST), (executable, _READ_FILE | _EXECUTE)
    ):  # fmt: skip
        for path in paths:
            _add(fd, path, allowed & rights)
    if os.path.exists("/dev/null"):
        _add(fd, "/dev/null", (_READ | _WRITE_FILE) & rights)
    return fd


def _add(ruleset_fd: int, path: str, allowed: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that is not there needs no permission
    try:
        if not os.path.isdir(path):
            allowed &= _FILE_RIGHTS
        rule = _PathRule(allowed, fd)
        kernel.syscall("landlock_add_rule", ruleset_fd, 1, ctypes.byref(rule), 0)
    finally:
        os.close(fd)


def restrict(ruleset_fd: int) -> None:
    """Enforce the ruleset on this process. Needs no_new_privs."""
    kernel.syscall("landlock_restrict_self", ruleset_fd, 0)
