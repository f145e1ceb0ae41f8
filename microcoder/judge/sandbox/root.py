"""The private root of a zygote: an empty tmpfs with the interpreter and the C library bound in, read-only.

Built once per zygote; a box gets its own copy of the mounts with its mount namespace and adds a fresh /tmp and /proc.
"""

import os
import stat
import sys
import sysconfig
from collections.abc import Iterable
from itertools import count

from . import kernel
from .kernel import AT_EMPTY_PATH, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MS_NODEV, MS_NOSUID

NOBODY = 65534
PRECOMPILED = "/precompiled"  # a user's cache may lie anywhere, such as in the /tmp that boxes replace
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo")
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def interpreter_paths() -> list[str]:
    """Return the paths that a Python program reads: libraries, the standard library, installed packages."""
    wanted = [*_SYSTEM]
    for prefix in (sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix):
        wanted += [os.path.join(prefix, "lib"), os.path.join(prefix, "lib64")]
    wanted += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    wanted += [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return outermost([p for p in wanted if p])


def outermost(paths: list[str]) -> list[str]:
    """Return the paths that exist and do not lie inside another of them."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(p) for p in paths if os.path.exists(p)}):
        if not any(path == k or path.startswith(k + "/") for k in kept):
            kept.append(path)
    return kept


def closed_to_others(paths: list[str]) -> str:
    """The first folder on the way to these that not every user can enter: as nobody a box could not import from it."""
    for path in paths:
        while path != "/":
            if os.path.isdir(path) and not os.stat(path).st_mode & 0o1:
                return path
            path = os.path.dirname(path)
    return ""


def without_package(paths: list[str]) -> tuple[list[str], list[str]]:
    """The paths less this package, where it is installed among them: what may be read, and what may be listed only."""
    readable, listable = [], []
    for path in paths:
        while PACKAGE.startswith(path + "/"):
            listable.append(path)
            entries = [os.path.join(path, name) for name in os.listdir(path)]
            readable += [e for e in entries if not (PACKAGE + "/").startswith(e + "/")]
            path = next(e for e in entries if (PACKAGE + "/").startswith(e + "/"))
        if path != PACKAGE:
            readable.append(path)
    return readable, listable


def enter_user_namespace() -> None:
    """A user namespace in which this process may mount. As root two users are mapped: root, and nobody for the boxes.

    A process cannot write a map of two lines for itself, so a helper that stays outside does.
    """
    uid, gid, pid = os.getuid(), os.getgid(), os.getpid()
    ready_r, ready_w = os.pipe()
    done_r, done_w = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(ready_w)
        ok = b"n"
        if os.read(ready_r, 1) and uid == 0:
            try:
                for name, ids in (("uid_map", uid), ("gid_map", gid)):
                    _write(f"/proc/{pid}/{name}", f"{ids} {ids} 1\n{NOBODY} {NOBODY} 1\n")
                ok = b"y"
            except OSError:
                pass  # root without the right to map others: one line must do
        os.write(done_w, ok)
        os._exit(0)
    try:
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
        os.write(ready_w, b"r")
        if os.read(done_r, 1) != b"y":
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
    finally:
        for fd in (ready_r, ready_w, done_r, done_w):
            os.close(fd)
        os.waitpid(helper, 0)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def build(programs: Iterable[str] = (), folders: Iterable[str] = (), precompiled: str = "") -> None:
    """Replace the root of this mount namespace by the private one. Call after enter_user_namespace.

    What is to be there besides: a compiler's `programs`, its `folders`, and a folder that will be PRECOMPILED.
    """
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    paths = outermost([*interpreter_paths(), *folders])
    links = {p: os.readlink(p) for p in paths if os.path.islink(p)}
    # Detached copies first: the new root is mounted over a folder that may hold some of them.
    trees = [(p, _detached(p, read_only=True)) for p in paths if p not in links]
    trees += [(PRECOMPILED, _detached(precompiled, read_only=True))] if precompiled else []
    hidden = [p for p in programs if not any(p.startswith(path + "/") for path in paths)]
    trees += [(p, _detached(p, read_only=True)) for p in hidden]  # under this name, be it a link or not
    trees += [(p, _detached(p, read_only=False)) for p in _DEVICES if os.path.exists(p)]
    trees += [("/proc", _detached("/proc", read_only=False))]  # a box may mount its own only where one is visible
    kernel.mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=1k,mode=755")
    os.chdir("/tmp")
    for path, fd in trees:
        target = "." + path
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
        kernel.syscall("move_mount", fd, b"", AT_FDCWD, target.encode(), kernel.MOVE_MOUNT_F_EMPTY_PATH)
        os.close(fd)
    for path, target in links.items():
        os.makedirs(os.path.dirname("." + path), exist_ok=True)
        os.symlink(target, "." + path)
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{fd}", f"./dev/{name}")
    os.symlink("/proc/self/fd", "./dev/fd")
    os.symlink("/tmp", "./dev/shm")  # semaphores, such as multiprocessing.Lock, are files there
    os.makedirs("./tmp", exist_ok=True)
    if os.path.isdir("." + PACKAGE):  # installed among the packages: its problems and answers are not for candidates
        kernel.mount("tmpfs", "." + PACKAGE, "tmpfs", kernel.MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=555")
    kernel.syscall("pivot_root", b".", b".")
    kernel.umount(".")
    os.chdir("/")
    kernel.set_mount_attributes(AT_FDCWD, "/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0)


def _detached(path: str, read_only: bool) -> int:
    flags = kernel.OPEN_TREE_CLONE | os.O_CLOEXEC | AT_RECURSIVE
    fd = kernel.syscall("open_tree", AT_FDCWD, path.encode(), flags)
    if read_only:
        kernel.set_mount_attributes(fd, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, AT_EMPTY_PATH | AT_RECURSIVE)
    return fd


def enter_box() -> list[str]:
    """Inside a box's own namespaces: a /proc that shows this box only, and a /tmp of its own.

    That is empty, unless the interpreter lies below /tmp: what of it must be seen is returned by its name there.
    """
    private = MS_NOSUID | MS_NODEV | kernel.MS_NOEXEC
    mounted = os.listdir("/tmp")
    trees = [_detached(f"/tmp/{name}", read_only=False) for name in mounted]  # they are read-only already
    kernel.mount("tmpfs", "/tmp", "tmpfs", private, "size=64m,nr_inodes=4k,mode=1777")
    for name, tree in zip(mounted, trees, strict=True):
        os.mkdir(f"/tmp/{name}")
        kernel.syscall("move_mount", tree, b"", AT_FDCWD, f"/tmp/{name}".encode(), kernel.MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    flags = kernel.MS_RDONLY | MS_NOSUID | MS_NODEV | kernel.MS_NOEXEC
    for data in ("subset=pid", ""):
        try:
            kernel.mount("proc", "/proc", "proc", flags, data)
            break
        except OSError:
            continue
    else:  # some containers mask parts of /proc, and then the kernel refuses: hide it instead
        kernel.mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,mode=555")
    return mounted


def clear(folder: str, keep: Iterable[str] = ()) -> None:
    """Remove everything in `folder` but the names in `keep`. OSError if something cannot be removed.

    A recursive removal needs a descriptor or a stack frame for each level, and a program can nest deeper than there are
    of either. So whatever lies in a subfolder is moved up to the folder itself first, and no path is ever long.
    """
    number = count()
    waiting = [name for name in os.listdir(folder) if name not in keep]
    while waiting:
        path = os.path.join(folder, waiting.pop())
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        os.chmod(path, 0o700)
        for name in os.listdir(path):
            inner = os.path.join(path, name)
            if not stat.S_ISDIR(os.lstat(inner).st_mode):
                os.unlink(inner)
                continue
            os.chmod(inner, 0o700)  # a folder that is moved must be writable itself
            while os.path.lexists(os.path.join(folder, free := f"{next(number)}")):
                pass
            os.rename(inner, os.path.join(folder, free))
            waiting.append(free)
        os.rmdir(path)
