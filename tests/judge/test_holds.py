"""What a program does to its box, its zygote or its host changes no verdict but its own, and nobody notices it."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from microcoder import Judge, Problem, Test
from microcoder.judge import boxes, pool
from microcoder.judge.boxes import Box, BoxError, Limits, Zygote
from microcoder.judge.sandbox import kernel, root, seccomp

pytestmark = pytest.mark.skipif(not kernel.supported(), reason="needs Linux on x86_64 or aarch64")
SQUARE = Problem("square", tests=[Test("4\n", "16\n"), Test("5\n", "25\n")])
RIGHT = "print(int(input()) ** 2)"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, time_limit_s=2) as judge:
        yield judge


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in path.read_text().split()]


def test_locks_that_a_program_takes_are_felt_by_nobody(judge: Judge) -> None:
    path = os.__file__
    program = f"""
import fcntl, os, time
file = open({path!r})
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.lockf(file, fcntl.LOCK_SH)
os.fsync(file.fileno())
time.sleep(1)
print(int(input()) ** 2)
"""
    future = judge.submit(SQUARE, code=program)
    with open(path) as file:
        while not future.done():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.02)
    assert future.result().accepted, future.result().message


ASYNC = {
    "an owner for signals": "fcntl.fcntl(r, fcntl.F_SETOWN, os.getpid())",
    "an owner by its kind": "fcntl.fcntl(r, 15, struct.pack('ii', 1, os.getpid()))",
    "a signal of one's choice": "fcntl.fcntl(r, 10, 9)",
    "signals on readiness, by flag": "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)",
    "signals on readiness, by ioctl": "fcntl.ioctl(r, 0x5452, struct.pack('i', 1))",
    "a lease": "fcntl.fcntl(os.open(file, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "truncation by path": "os.truncate(file, 0)",
    "a mode": "os.chmod(file, 0o777)",
    "notices of changes": "fcntl.fcntl(os.open('.', os.O_RDONLY), fcntl.F_NOTIFY, 1)",
}


@pytest.mark.parametrize("what", ASYNC)
def test_the_filter_alone_refuses(what: str, tmp_path: Path) -> None:
    """Whatever the kernel's Landlock scopes: older versions of it let a signal on readiness reach any process."""
    own = tmp_path / "own"
    own.touch()
    attempt = f"import fcntl, os, struct\nfile = {str(own)!r}\nr, w = os.pipe()\n{ASYNC[what]}\n"
    filtered = (
        "from microcoder.judge.sandbox import kernel, seccomp\nimport os\n"
        "kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)\nseccomp.Filter(seccomp.test_program(os.getpid())).install()\n"
    )
    bare = subprocess.run([sys.executable, "-c", attempt], capture_output=True, text=True, cwd=tmp_path)
    assert bare.returncode == 0, bare.stderr  # else the filter would get credit for what never works
    done = subprocess.run([sys.executable, "-c", filtered + attempt], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith(("PermissionError", "OSError: [Errno 25]"))


def test_every_filter_ends_in_a_decision() -> None:
    for program in (seccomp.box_program(), seccomp.test_program(), seccomp.test_program(7), seccomp.test_program(7, 9)):
        steps = list(struct.iter_unpack("HBBI", program))
        for at, (code, if_true, if_false, _) in enumerate(steps):
            assert at + 1 + max(if_true, if_false) < len(steps) or code == 0x06
        assert steps[-1][0] == 0x06


def test_a_setup_is_not_found_in_the_memory_of_later_boxes(judge: Judge) -> None:
    secret = f"zq{os.getpid():06d}kappa"
    other = Problem("other", kind="assert", setup=f"SECRET = '{secret}'", asserts=["assert f(1) == 1"])
    for _ in range(5):
        assert judge.check(other, code="def f(x): return x").accepted
    hunter = """
import ctypes
input()
shape = "zq" + "%06d"
found = 0
for line in open("/proc/self/maps"):
    words = line.split()
    if "r" in words[1] and "vvar" not in line and "vsyscall" not in line:
        first, last = (int(x, 16) for x in words[0].split("-"))
        data = ctypes.string_at(first, last - first)
        at = data.find(b"kappa")
        while at >= 0:
            found += data[at - 8:at - 6] == b"zq" and data[at - 6:at].isdigit()
            at = data.find(b"kappa", at + 1)
print(found)
"""
    verdict = judge.check(Problem("hunt", time_limit_s=10, tests=[Test("1\n", "0\n")]), code=hunter)
    assert verdict.accepted, verdict.message


def test_memory_is_watched_while_a_program_runs(judge: Judge) -> None:
    greedy = "import time\nkept = []\nfor _ in range(14):\n    kept.append(bytearray(b'x') * (64 << 20))\ntime.sleep(9)"
    problem = Problem("greedy", memory_mb=128, time_limit_s=10, tests=[Test("", "")])
    verdict = judge.check(problem, code=greedy)
    assert verdict.verdict == "memory_limit"
    assert verdict.wall_s < 8 and verdict.memory_mb < 128 + 600  # it would have had 900 more, and nine seconds


def test_a_process_that_leaves_its_judge_is_not_waited_for() -> None:
    silent = "import os, time\nos.closerange(3, 100)\ntime.sleep(60)"
    with Judge(workers=1, reuse=True, time_limit_s=1) as judge:
        start = time.monotonic()
        verdict = judge.check(SQUARE, code=silent)
        assert verdict.verdict in ("runtime_error", "time_limit") and time.monotonic() - start < 30
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_reuse_gives_no_second_guess() -> None:
    """A process that has run a test before can be told from a fresh one; the answer there must not count."""
    two_guesses = """
import math
input()
print("no" if hasattr(math, "seen") else 16)
math.seen = True
"""
    problem = Problem("same", tests=[Test("1\n", "16\n"), Test("2\n", "16\n"), Test("3\n", "16\n")])
    with Judge(workers=1, reuse=True) as judge:
        assert judge.check(problem, code=two_guesses).verdict == "wrong_answer"


def test_a_program_whose_sandbox_dies_each_time_gets_a_verdict_of_its_own() -> None:
    with Judge(workers=1) as judge:
        assert judge.check(SQUARE, code=RIGHT).accepted
        known = children(os.getpid())
        future = judge.submit(SQUARE, code="import time\ninput()\ntime.sleep(1.5)\nprint(16)")
        killed = set()
        while not future.done():
            for worker in children(os.getpid()):
                for box in [b for z in children(worker) for b in children(z)]:
                    if children(box) and box not in killed:  # a test runs in it
                        killed.add(box)
                        os.kill(box, signal.SIGKILL)
            time.sleep(0.05)
        verdict = future.result()
        assert verdict.verdict == "runtime_error" and "broke its sandbox" in verdict.message and len(killed) == 3
        assert children(os.getpid()) == known
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_a_zygote_that_is_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "ZYGOTE_SECONDS", 1)
    zygote = Zygote("full")
    try:
        os.kill(zygote.process.pid, signal.SIGSTOP)
        with pytest.raises(BoxError, match="gone"):
            Box(zygote, RIGHT, "stdin", Limits(1.0, 1 << 28, 1 << 20))
    finally:
        zygote.close()


def test_a_worker_without_a_sign_of_life_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SILENT_SECONDS", 1.0)
    others = set(children(os.getpid()))
    with Judge(workers=1) as judge:
        (worker,) = set(children(os.getpid())) - others
        os.kill(worker, signal.SIGSTOP)
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_an_environment_below_tmp_is_seen_and_its_packages_may_start_threads() -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        venv.create(folder, with_pip=False)
        packages = next(Path(folder).glob("lib/python*/site-packages"))
        (packages / "late.py").write_text("answer = 16\n")
        # one of the packages that zygotes load ahead of time
        (packages / "sortedcontainers.py").write_text(
            "import threading\nevent = threading.Event()\nthreading.Thread(target=event.wait, daemon=True).start()\n"
        )
        script = """
from microcoder import Judge, Problem, Test
problem = Problem("p", tests=[Test("4", "16"), Test("4", "16")])
with Judge(workers=1) as judge:
    for program in (
        "import late\\nprint(late.answer)",
        "import sortedcontainers, threading\\nassert threading.active_count() == 2\\nprint(16)",
        "open('/tmp/own', 'w').write('x')\\nprint(16)",
        "import os\\ntry:\\n    open(os.path.join(%r, 'own'), 'w')\\nexcept OSError:\\n    print(16)" % FOLDER,
    ):
        verdict = judge.check(problem, code=program)
        print(verdict.verdict, verdict.message)
"""
        paths = [str(Path(__file__).parents[2]), *(p for p in sys.path if p.endswith("site-packages"))]
        done = subprocess.run(
            [f"{folder}/bin/python", "-c", f"FOLDER = {folder!r}\n{script}"],
            capture_output=True, text=True, timeout=120, env={"PYTHONPATH": ":".join(paths)},
        )  # fmt: skip
        assert done.stdout.split("\n")[:-1] == ["accepted "] * 4, done.stdout + done.stderr


def test_folders_deeper_than_descriptors_and_frames_are_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "0").write_text("a name that the sweep would use")
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
        Path("file").touch()
    finally:
        os.chdir(here)
    root.clear(str(tmp_path), ["kept"])
    assert os.listdir(tmp_path) == ["kept"]


def test_a_process_that_says_it_is_done_is_stopped() -> None:
    """Or it would use CPU that nobody counts, and make files while they are being removed."""
    busy = "import os\ndef f(x):\n  os.write(6, b'd')\n  while True:\n    os.mkdir('d')\n    os.chdir('d')\n"
    problem = Problem("f", kind="function", entry_point="f", tests=[Test("[1]", "1"), Test("[2]", "2")])
    with Judge(workers=1, reuse=True, time_limit_s=1) as judge:
        start = time.monotonic()
        assert not judge.check(problem, code=busy).accepted
        assert time.monotonic() - start < 20
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_compiling_has_a_limit_near_that_of_a_test(judge: Judge) -> None:
    constants = "\n".join(f"x = {n * (2**61 - 1)}" for n in range(20000))  # all of one hash
    start = time.monotonic()
    verdict = judge.check(SQUARE, code=f"{constants}\n{RIGHT}")
    assert verdict.verdict == "compile_error" and "compiling took over 2 s" in verdict.message
    assert time.monotonic() - start < 60
