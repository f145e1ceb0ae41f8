"""A zygote: a small single-threaded interpreter, warmed up, that clones a box for every candidate.

Started by exec with an empty environment, so nothing of the judge's memory is in it: no expected output, no key, no
open file. It enters its private root before it sees the first program.
"""

import gc
import os
import signal
import sys
from _socket import socket
from typing import Any

from . import kernel, program, root, seccomp, template, wire
from .box import SandboxedRun, Stock
from .native import BOXES

# Loaded ahead of time: what most programs for contests use, and no more. Each further module makes every fork of every
# candidate dearer, so the rest is imported by a box whose candidate asks for it (languages.py, AHEAD).
THREAD_STACK = 8 << 20  # what threads have elsewhere; by default they would reserve as much as the main stack has
WARM = "collections heapq bisect math itertools functools re string typing copy operator io json types atexit".split()


def main(fd: int, layer: str, tools: dict[str, Any]) -> None:
    """`tools`: the compiler's, as root.build takes them; nothing in them for a zygote whose boxes do not compile."""
    parent = os.getppid()
    sock = socket(fileno=fd)
    try:
        if layer == "full":
            root.enter_user_namespace()
            root.build(**tools)
        elif os.getuid() == 0 and (closed := root.closed_to_others(root.interpreter_paths())):
            raise OSError(f"{closed} is closed to other users, and a program must not run as root: use another Python")
        if kernel.LINUX:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.die_with_parent(parent)  # after the change of user namespace, which clears it
    except OSError as error:
        wire.send(sock, {"error": str(error)})
        return
    sys.path.remove(os.path.dirname(root.PACKAGE))  # put there to load this file; not for candidates
    sys.dont_write_bytecode = True
    for name in [n for n in os.environ if not n.endswith("_NUM_THREADS")]:  # these hold for late imports too
        del os.environ[name]
    for name in WARM:
        __import__(name)
    stock = _stock(layer)
    kernel.set_thread_stacks(THREAD_STACK)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 of a box gets no signal from inside but what it handles
    gc.collect()
    gc.disable()
    gc.freeze()
    wire.send(sock, {"ready": os.getpid()})
    serve(sock, layer, stock, tools)


def _stock(layer: str) -> Stock:
    filtered = layer != "rlimits"
    return Stock(
        program.prepare(template.make()),
        seccomp.Filter(seccomp.box_program()) if filtered else None,
        seccomp.Filter(seccomp.test_program()) if filtered else None,
    )


def serve(sock: socket, layer: str, stock: Stock, tools: dict[str, Any]) -> None:
    loaded: set[str] = set()
    common: dict[str, Any] = {"executable": tools["programs"]}
    if layer == "landlock":
        folders = [*tools["folders"], tools["precompiled"]]
        readable, listable = root.without_package(root.outermost([*root.interpreter_paths(), *folders]))
        common |= {"readable": [*readable, "/dev/urandom", "/dev/zero"], "listable": listable}
    flags = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    while True:
        try:
            job, fds = wire.receive(sock, max_fds=4)
        except (EOFError, ConnectionError):
            return
        if new := set(job["preload"]) - loaded:
            loaded |= new
            _import(new)
            if not kernel.single_thread():  # a fork would have none of the others, and wait for them for ever
                wire.send(sock, {"unfit": sorted(new)})
                return
        job |= common | {"own_bytes": _address_space()}
        try:
            pid = kernel.bare_clone(flags if layer == "full" else 0)
        except OSError as error:
            wire.send(sock, {"error": str(error)})
            continue
        if pid == 0:
            _enter_box(sock, job, fds, stock)
        for fd in fds:
            os.close(fd)
        if hasattr(os, "pidfd_open"):
            pidfd = os.pidfd_open(pid)
            wire.send(sock, {"pid": pid}, (pidfd,))
            os.close(pidfd)
        else:
            wire.send(sock, {"pid": pid})


def _import(names: set[str]) -> None:
    for name in names:
        try:
            __import__(name)
        except ImportError:
            pass  # the candidate's own import will say so


def _enter_box(zygote: socket, job: dict[str, Any], fds: list[int], stock: Stock) -> None:
    box = None
    try:
        zygote.close()
        os.setsid()  # or a signal to its process group would reach the zygote
        box = BOXES.get(job["kind"], SandboxedRun)(job, socket(fileno=fds[0]), fds[1:], stock)
        box.main()
    except BaseException as error:
        try:
            if box is None or not box.ready:  # later the trusted side expects results; it sees that the box is gone
                wire.send(box.sock if box else socket(fileno=fds[0]), {"error": f"{type(error).__name__}: {error}"})
        except OSError:
            pass
    finally:
        os._exit(0)


def _address_space() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 1 << 30
