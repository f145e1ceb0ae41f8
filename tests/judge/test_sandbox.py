"""The layers: found by trying, and what the judge does where the best is forbidden."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from microcoder.judge.sandbox import kernel, root
from microcoder.judge.sandbox import probes as layers

NO_USER_NAMESPACES = """
from microcoder.judge.sandbox import kernel, seccomp
load, refuse = seccomp._op(seccomp._LOAD, 0), seccomp._op(seccomp._RETURN, seccomp._EPERM)
program = load + seccomp._op(seccomp._EQUAL, {unshare}, 0, 1) + refuse + seccomp._op(seccomp._RETURN, seccomp._ALLOW)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.Filter(program).install()
"""
USE = """
from microcoder import Judge, Problem, Test
with Judge(workers=1) as judge:
    verdict = judge.check(Problem("p", tests=[Test("2", "4")]), code="import tempfile\\nprint(int(input()) ** 2)")
    print(verdict.verdict, verdict.sandbox)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(not kernel.supported(), reason="needs Linux on x86_64 or aarch64")
def test_without_user_namespaces_the_judge_falls_back_to_landlock_or_refuses() -> None:
    forbid = NO_USER_NAMESPACES.format(unshare={"x86_64": 272, "aarch64": 97}[platform.machine()])
    done = run(forbid + USE)
    if os.getuid() == 0 and root.closed_to_others(root.interpreter_paths()):
        assert done.returncode != 0 and "must not run as root" in done.stderr
    elif "landlock" in {layer.name for layer in layers.probe() if layer.ok}:
        assert done.stdout == "accepted landlock\n", done.stderr
    else:
        assert done.returncode != 0 and "microcoder doctor" in done.stderr


@pytest.mark.skipif(not kernel.supported(), reason="needs Linux on x86_64 or aarch64")
def test_doctor_sees_what_is_forbidden() -> None:
    forbid = NO_USER_NAMESPACES.format(unshare={"x86_64": 272, "aarch64": 97}[platform.machine()])
    done = run(forbid + "from microcoder.judge.sandbox import probes\nprobes.main()")
    assert '"user_namespace", "ok": false' in done.stdout and "unprivileged_userns_clone" in done.stdout


def test_the_best_layer_needs_all_its_parts() -> None:
    def found(*names: str) -> list[layers.Layer]:
        return [layers.Layer(name, True, "") for name in names]

    assert layers.best(found("private_root", "namespaces", "seccomp", "landlock")) == "full"
    assert layers.best(found("private_root", "seccomp", "landlock")) == "landlock"
    assert layers.best(found("private_root", "namespaces")) == "rlimits"


def test_the_interpreter_paths_hold_no_home_and_do_not_overlap() -> None:
    paths = root.interpreter_paths()
    assert os.path.expanduser("~") not in paths and "/" not in paths
    assert not [(a, b) for a in paths for b in paths if a != b and a.startswith(b + "/")]


def test_a_package_among_the_paths_is_left_out(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    library = os.path.join(str(tmp_path), "lib")
    for name in ("a", "packages/numpy", "packages/microcoder"):
        os.makedirs(os.path.join(library, name))
    monkeypatch.setattr(root, "PACKAGE", os.path.join(library, "packages", "microcoder"))
    readable, listable = root.without_package([library])
    assert sorted(os.path.relpath(p, library) for p in readable) == ["a", "packages/numpy"]
    assert [os.path.relpath(p, library) for p in listable] == [".", "packages"]
