"""The result channel through the real sandbox: programs made of hostile acts, none of which knows the answer.

A case is a list of acts, run in `f(x)` or as a script. Whatever they do, the verdict comes in time, is neither
`accepted` nor `internal_error`, and the next program, which is right, is accepted at once. One judge for each layer and
way of running tests; between cases they are at rest, and what they hold then must not grow.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import tempfile
import threading
import time
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]

from benchmarks.fuzz.acts import CLASSES, SOURCES, act, end, filled, returned, source
from benchmarks.fuzz.recipes import Case, Malformed
from microcoder import Judge, Problem, Verdict
from microcoder.judge import JudgeError

LIMIT_S = 0.5
LATE_S = 2.0  # beyond what the limits allow
LOOKING_S = 2.0  # that the problem's own code may look at what a program gave
_STARTING = threading.Lock()  # the environment is everybody's
MODES = [(layer, reuse) for layer in ("full", "landlock") for reuse in (False, True)]
KINDS = ("stdin", "function", "assert", "rest", "inside", "checker")
HEAD = (
    "import os, sys, signal, time, threading, fcntl, resource, ctypes, mmap, json, select, socket, gc, atexit, errno\n"
)


def cases(draw: random.Random) -> Case:
    """The next program."""
    layer, reuse = draw.choice(MODES)
    case: Case = {"target": "box", "layer": layer, "reuse": reuse, "kind": draw.choice(KINDS)}
    if draw.random() < 0.15:
        n = draw.choice((5, 90, 150, 210, 1000, 5000, 30_000))
        return case | {"name": "source", "source": draw.choice(SOURCES), "n": n, "acts": []}
    acts = [act(draw) for _ in range(draw.choice((1, 1, 2, 3, 6)))]
    way = draw.random()
    if way < 0.35:
        acts.append(end(draw))
    elif way < 0.8:
        acts.append(returned(draw))
    return case | {"name": "acts", "acts": acts}


def program(case: Case) -> str:
    """The source of a case."""
    if "source" in case:
        return source(case["source"], case["n"])
    needed = any(name in act for act in case["acts"] for name in ("Liar", "Node", "deep", "cycle"))
    scope = filled(random.Random(0), CLASSES) if needed else ""
    body = "".join(map(_guarded, case["acts"]))
    call = "print(f(input()))\n" if case["kind"] == "stdin" else ""
    return f"{HEAD}{scope}def f(x):\n{body or '    pass'}\n{call}"


def _guarded(act: str) -> str:
    """An act that fails does not keep the next one from being tried."""
    if act.startswith(("return", "raise")):
        return f"    {act}\n"
    return f"    try:\n        {act}\n    except Exception: pass\n"


class Boxes:
    """Judges of every mode, and what a case does to them."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="fuzz-")
        os.chmod(self.folder, 0o755)  # boxes of a root user are another user's
        self.judges: dict[tuple[str, bool], Judge | None] = {}

    def judge(self, layer: str, reuse: bool) -> Judge | None:
        """None where the layer does not work here."""
        if (layer, reuse) not in self.judges:
            with _STARTING:
                before = os.environ.get("TMPDIR")
                os.environ["TMPDIR"] = self.folder  # a worker inherits it, and puts scratch folders there
                try:
                    found: Judge | None = Judge(
                        workers=1, sandbox=layer, reuse=reuse, time_limit_s=LIMIT_S, memory_mb=128
                    )
                except JudgeError:
                    found = None
                finally:
                    del os.environ["TMPDIR"]
                    if before is not None:
                        os.environ["TMPDIR"] = before
                self.judges[layer, reuse] = found
        return self.judges[layer, reuse]

    def run(self, case: Case) -> dict[str, Any]:
        """Verdict and seconds of the program, and of the right one after it."""
        judge = self.judge(case["layer"], case["reuse"])
        if judge is None:
            raise Malformed(f"{case['layer']} does not work here")
        try:
            code = program(case)
        except (KeyError, IndexError, ValueError) as error:
            raise Malformed(str(error)) from None
        verdict, seconds = _asked(judge, _problem(case["kind"]), code)
        after, waited = _asked(judge, RIGHT[0], RIGHT[1])
        return {
            "verdict": verdict.verdict, "message": verdict.message, "wall_s": seconds,
            "next": after.verdict, "next_message": after.message, "next_s": waited,
        }  # fmt: skip

    def held(self) -> dict[str, float]:
        """What the judges hold while they are at rest."""
        files, fds = len(os.listdir(self.folder)), len(os.listdir("/proc/self/fd"))
        row = {"MB": 0.0, "processes": 0.0, "descriptors": float(fds), "files": float(files)}
        for worker in psutil.Process().children():
            try:
                if "microcoder.judge.worker" not in " ".join(worker.cmdline()):
                    continue
                family = [worker, *worker.children(recursive=True)]
            except psutil.Error:
                continue
            for process in family:
                with contextlib.suppress(psutil.Error), process.oneshot():
                    rss, fds = process.memory_info().rss, process.num_fds()
                    row["MB"] += rss / 1e6
                    row["descriptors"] += fds
                    row["processes"] += 1
        return row

    def close(self) -> None:
        for judge in self.judges.values():
            if judge is not None:
                judge.close(cancel=True)
        subprocess.run(["rm", "-rf", self.folder], check=False)  # shutil gives up on deep folders


RIGHT = (
    Problem.from_dict(
        {"id": "right", "kind": "function", "entry_point": "f", "tests": [{"input": "[4]", "output": "[16, 4]"}]}
    ),
    "def f(x):\n    return [x * x, x]\n",
)


def _problem(kind: str) -> Problem:
    """Two tests whose answers nobody can know: drawn anew for each program."""
    secret = random.SystemRandom().getrandbits(100)
    record: dict[str, Any] = {"id": f"secret-{kind}", "kind": kind, "entry_point": "f"}
    if kind in ("stdin", "function", "checker"):
        outputs = [str(secret), str(secret + 1)]
        given = ["1\n", "2\n"] if kind == "stdin" else ["[1]", "[2]"]
        record["tests"] = [{"input": i, "output": o} for i, o in zip(given, outputs, strict=True)]
    if kind == "checker":
        checker = "def check(given, output, expected):\n    return set(output) == {expected}"
        record |= {"kind": "function", "compare": {"checker": checker}}
    statements = {
        "assert": [f"assert f(1) == {secret}", f"assert f(2) == {secret + 1}"],
        "rest": [f"assert sorted(f(1)) == [{secret}] or len(f(1)) == {secret}", f"assert str(f(2)) == '{secret}'"],
        "inside": [f"for n in (1, 2):\n    assert f(n) == n + {secret}"],
    }
    if kind in statements:
        record |= {"kind": "assert", "asserts": statements[kind]}
    return Problem.from_dict(record)


def _asked(judge: Judge, problem: Problem, code: str) -> tuple[Verdict, float]:
    start = time.monotonic()
    verdict = judge.check(problem, code=code)
    return verdict, time.monotonic() - start


def finding(case: Case, result: dict[str, Any]) -> tuple[str, str]:
    """(kind, words) of what is wrong; two empty texts where nothing is."""
    runs = 2 if case["reuse"] else 1
    allowed = runs * max(2 * LIMIT_S, LIMIT_S + 1) + LATE_S
    if case["kind"] in ("checker", "rest"):
        allowed += LOOKING_S
    if result["verdict"] == "internal_error":
        return "internal_error", result["message"][:300]
    if result["verdict"] == "accepted" and case["kind"] != "inside":
        return "accepted", "without knowing the answer"
    if result["wall_s"] > allowed:
        return "stall", f"{result['verdict']} after {result['wall_s']:.1f} s, {allowed:.1f} s allowed"
    if result["next"] != "accepted":
        return "next refused", f"{result['next']}: {result['next_message'][:200]}"
    if result["next_s"] > LATE_S:
        return "next late", f"{result['next_s']:.1f} s"
    return "", ""
