"""The few kernel calls that Python's standard library does not offer, through ctypes."""

import ctypes
import os
import platform
import signal
import sys
from typing import Any

MACHINE = platform.machine()
LINUX = sys.platform == "linux"
# System call numbers that differ between the two architectures the full sandbox knows: (x86_64, aarch64).
_NUMBERS = {
    "clone": (56, 220), "pivot_root": (155, 41), "capset": (126, 91), "seccomp": (317, 277), "execveat": (322, 281),
}  # fmt: skip
_SAME = {
    "open_tree": 428, "move_mount": 429, "mount_setattr": 442,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
}  # fmt: skip
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE)

CLONE_NEWNS, CLONE_NEWIPC = 0x00020000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
_SIGCHLD = 17
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2

libc = ctypes.CDLL(None, use_errno=True)


def supported() -> bool:
    """Whether the system call numbers of this machine are known."""
    return LINUX and _COLUMN is not None


def syscall(name: str, *args: Any) -> int:
    if name in _SAME:
        number = _SAME[name]
    elif _COLUMN is None:
        raise OSError(38, f"{name}: unknown machine {MACHINE}")
    else:
        number = _NUMBERS[name][_COLUMN]
    wide = [ctypes.c_ulong(a & (2**64 - 1)) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return _checked(name, result)


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


bare_syscall = ctypes.PyDLL(None).syscall  # keeps the interpreter's lock: right for a fork, and cheap


def bare_clone(flags: int = 0) -> int:
    """fork(), with new namespaces if `flags` say so, but without the interpreter's and the C library's fork hooks.

    Sound only in a process that has one thread and has had no other: then there are no locks to mend. The hooks touch
    so much memory that leaving them out makes a test process twice as cheap. What they would have done besides:
    reseed `random`, which a judge that wants repeatable verdicts does not want.
    """
    if _COLUMN is None:
        return os.fork()
    pid: int = bare_syscall(_NUMBERS["clone"][_COLUMN], flags | _SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError("clone: no process could be made")
    return pid


def set_thread_stacks(size: int) -> None:
    """Set the default stack size of threads, which would otherwise be as large as the main thread's."""
    attributes = ctypes.create_string_buffer(256)  # a pthread_attr_t takes 56 or 64
    if hasattr(libc, "pthread_setattr_default_np"):
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
        libc.pthread_setattr_default_np(attributes)


def single_thread() -> bool:
    return not LINUX or len(os.listdir("/proc/self/task")) == 1


def unshare(flags: int) -> None:
    _checked("unshare", libc.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = [s.encode() or None for s in (source, target, kind)]
    result = libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None)
    _checked(f"mount {kind or source} on {target}", result)


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _checked(f"umount {target}", libc.umount2(target.encode(), flags))


class _MountAttr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns_fd")]


def set_mount_attributes(fd: int, path: str, attributes: int, flags: int) -> None:
    what = _MountAttr(attributes, 0, 0, 0)
    syscall("mount_setattr", fd, path.encode(), flags, ctypes.byref(what), ctypes.sizeof(what))


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("effective", "permitted", "inheritable")]


def drop_capabilities() -> None:
    header, data = _CapHeader(0x20080522, 0), (_CapData * 2)()
    syscall("capset", ctypes.byref(header), data)


def prctl(option: int, value: int) -> None:
    _checked("prctl", libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0))


def die_with_parent(parent: int) -> None:
    """Have this process killed when the thread that started it ends, however that ends."""
    if LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)
