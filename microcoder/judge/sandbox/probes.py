"""Find out which layers of the sandbox work on this machine, and what to do about the others."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from . import kernel, landlock, root, seccomp

_PROBE = "import sys; sys.path.insert(0, {root!r}); from microcoder.judge.sandbox import probes; probes.main()"


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    ok: bool
    detail: str
    remedy: str = ""  # what to do if it is not ok


def probe() -> list[Layer]:
    """Try each layer of the sandbox, each in a child process."""
    code = _PROBE.format(root=os.path.dirname(root.PACKAGE))
    command = [sys.executable, "-s", "-P", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or ["no reason given"]
        return [Layer("probe", False, lines[-1], "run `microcoder doctor` with the interpreter you judge with")]
    return [Layer(**record) for record in json.loads(run.stdout)]


def best(layers: list[Layer] | None = None) -> str:
    """The layer that `sandbox = "auto"` would take: "full", "landlock", or "rlimits" if there is nothing better."""
    works = {layer.name for layer in (probe() if layers is None else layers) if layer.ok}
    if {"private_root", "namespaces", "seccomp"} <= works:
        return "full"
    return "landlock" if {"landlock", "seccomp"} <= works else "rlimits"


def main() -> None:
    trials = (_user_namespace, _private_root, _namespaces, _seccomp, _landlock, _descriptors, _schedstat)
    found = [trial() for trial in trials]
    print(json.dumps([{"name": f.name, "ok": f.ok, "detail": f.detail, "remedy": f.remedy} for f in found]))


def _user_namespace() -> Layer:
    remedy = (
        "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
        "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04 and later), user.max_user_namespaces > 0; in "
        "Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    )
    return _trial("user_namespace", root.enter_user_namespace, "programs can be given namespaces of their own", remedy)


def _private_root() -> Layer:
    def work() -> None:
        root.enter_user_namespace()
        root.build()

    remedy = "needs user namespaces and Linux 5.12 or later (open_tree, mount_setattr)"
    return _trial("private_root", work, "only the interpreter is visible, read-only", remedy)


def _namespaces() -> Layer:
    def work() -> None:
        paths = root.interpreter_paths()
        root.enter_user_namespace()
        root.build()
        flags = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
        pid = kernel.bare_clone(flags)
        if pid == 0:
            try:
                root.enter_box()
                hidden = [n for n, path in enumerate(paths, start=2) if not os.path.exists(path)]
                os._exit(hidden[0] if hidden else os.getpid() != 1)
            finally:
                os._exit(1)
        if status := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            if status > 1:
                raise OSError(f"programs do not see {paths[status - 2]}, where their modules are")
            raise OSError("a box could not mount its own /tmp and /proc")

    detail = "own processes, network, IPC, /tmp and /proc"
    return _trial("namespaces", work, detail, "needs user namespaces; see user_namespace")


def _seccomp() -> Layer:
    def work() -> None:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.Filter(seccomp.box_program()).install()
        seccomp.Filter(seccomp.test_program()).install()

    if not kernel.supported():
        return Layer("seccomp", False, f"not for {sys.platform} on {kernel.MACHINE}", "use Linux on x86_64 or aarch64")
    return _trial("seccomp", work, "system calls are filtered", "use a kernel built with CONFIG_SECCOMP_FILTER")


def _landlock() -> Layer:
    abi = landlock.version()
    remedy = "needs Linux 5.13 or later with landlock among the boot parameter lsm="
    return Layer("landlock", abi > 0, f"version {abi}" if abi else "not in this kernel", "" if abi else remedy)


def _descriptors() -> Layer:
    missing = [name for name in ("memfd_create", "pidfd_open") if not hasattr(os, name)]
    if missing:
        return Layer("descriptors", False, f"no {missing[0]}", "use Linux 5.3 or later")
    return Layer("descriptors", True, "memfd and pidfd")


def _schedstat() -> Layer:
    ok = os.path.exists("/proc/self/schedstat")
    detail = "waiting for a core is told from sleeping" if ok else "a loaded host may make sleepers of slow programs"
    return Layer("schedstat", ok, detail, "" if ok else "use a kernel built with CONFIG_SCHED_INFO")


def _trial(name: str, work: Callable[[], None], detail: str, remedy: str) -> Layer:
    """Run `work` in a child: it may change the process for good."""
    if not kernel.supported():
        return Layer(name, False, f"not for {sys.platform} on {kernel.MACHINE}", "use Linux on x86_64 or aarch64")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = ""
        try:
            work()
        except BaseException as error:
            text = str(error) or type(error).__name__
        os.write(write, text.encode()[:500])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        reason = pipe.read()
    os.waitpid(pid, 0)
    return Layer(name, not reason, reason or detail, remedy if reason else "")
