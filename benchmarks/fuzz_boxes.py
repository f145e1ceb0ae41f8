"""The result channel through the real sandbox: programs made of hostile acts, none of which knows the answer.

A case is a list of acts, run in `f(x)` or as a script. Whatever they do, the verdict comes in time, is neither
`accepted` nor `internal_error`, and the next program, which is right, is accepted at once. One judge for each layer and
way of running tests; between cases they are at rest, and what they hold then must not grow.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from typing import Any

import psutil  # type: ignore[import-untyped,unused-ignore]
from fuzz_recipes import Case, Malformed, as_python, mutated
from fuzz_shapes import RESULT_SHAPES, VALUE_SHAPES, text, value

from microcoder import Judge, Problem, Verdict
from microcoder.judge import JudgeError

LIMIT_S = 0.5
LATE_S = 2.0  # beyond what the limits allow
MODES = [(layer, reuse) for layer in ("full", "landlock") for reuse in (False, True)]
KINDS = ("stdin", "function", "assert", "rest", "inside", "checker")
FIELDS = ("acts", "source")
HEAD = "import os, sys, signal, time, threading, fcntl, resource, ctypes, mmap, json, select, socket, gc, atexit, errno\n"

SIGNALS = (0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 28, 31, 34, 64)
TARGETS = ("os.getpid()", "os.getppid()", "0", "1", "2", "3", "-1", "-2", "-os.getpid()", "os.getpgrp()")
FDS = (0, 1, 2, 3, 3, 4, 4, 4, 5, 6, 7, 32, 33, 34, 35, 100, -1)
OFFSETS = (0, 1, 4095, 1 << 20, (4 << 20) - 1, 4 << 20, 16 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -1)
FLAGS = ("os.O_APPEND", "os.O_NONBLOCK", "os.O_ASYNC", "os.O_APPEND|os.O_NONBLOCK|os.O_ASYNC", "0o40000", "os.O_SYNC")
ENDS = (
    "os._exit({n})", "sys.exit({n})", "sys.exit('x' * {big})", "sys.exit(10**5000)", "sys.exit(-1)", "raise KeyboardInterrupt",
    "raise MemoryError", "raise RecursionError", "raise SystemExit(True)", "raise StopIteration", "raise OSError(5, 'x')",
    "raise type('E', (BaseException,), {{'__str__': lambda s: 'x' * {big}}})",
    "raise type('E', (Exception,), {{'__str__': lambda s: time.sleep(9)}})",
    "raise type('E', (Exception,), {{'__str__': lambda s: '\\ud800' * 9}})", "raise type('E' * {big}, (Exception,), {{}})",
    "raise ExceptionGroup('x', [ValueError()] * 9)", "ctypes.string_at(0)", "os.abort()",
    "exec('def g(): g()'); sys.setrecursionlimit(10**9); g()", "time.sleep(9)", "signal.pause()", "[0 for _ in iter(int, 1)]",
    "threading.Event().wait()", "signal.sigwait(range(1, 32))", "select.select([], [], [])", "bytearray({huge})", "x = [b'x' * 9999 for _ in range({big})]",
    "x = b'x' * ({huge})", "os.write(1, b'x' * (20 << 20))", "print('x' * (17 << 20))", "sys.stdout.write('9' * (4 << 20))",
)  # fmt: skip
RETURNS = (
    "x", "None", "1 << 4000000", "10**100000", "float('nan')", "[x] * 1000000", "range(10**12)", "object()", "type", "f", "(i for i in iter(int, 1))",
    "[[]] * 1000000", "b'x' * 3000000", "'\\ud800' * 100000", "'\\0' * 1000000", "{{n * (2**61 - 1) for n in range(999)}}",
    "[{{n * (2**61 - 1): 0 for n in range(999)}} for _ in range(20)]", "deep({n})", "cycle()", "Liar()", "complex(10**300, 1)", "1e308 * 10",
    "memoryview(b'x')", "bytearray(3000000)", "__import__('datetime').date.max", "__import__('decimal').Decimal('1e999999')",
    "__import__('fractions').Fraction(1, 10**5000)", "__import__('collections').deque(range(100000))", "__import__('collections').Counter('ab' * 9)",
    "__import__('array').array('d', [1.0] * 9)", "[Liar()] * 100", "(Liar(), Liar())", "{{(): Liar()}}", "[10**4000] * 1000", "Node()",
)  # fmt: skip
CLASSES = """
class Liar:
    __class__ = property(lambda s: {cls})
    __name__ = 'Decimal'; __module__ = 'decimal'
    def __eq__(s, o): return True
    def __hash__(s): return {n}
    def __iter__(s): return iter(int, 1)
    def __len__(s): return {big}
    def __repr__(s): return 'x' * {big}
    def __int__(s): return 1 << 4000000
    def __bool__(s): raise KeyboardInterrupt
class Node:
    val = {n}
    next = property(lambda s: Node())
def deep(n):
    x = []
    for _ in range(n): x = [x]
    return x
def cycle():
    x = []; x.append(x); return x
"""
TREES = (  # left in the scratch folder: what is emptied after a test
    "for n in range({count}): os.mkdir('d'); os.chdir('d')",
    "for n in range({count}): open(str(n), 'w').close()",
    "os.mkdir('d'); open('d/f', 'w').close(); os.chmod('d', 0)",
    "os.mkdir('d', 0); os.chmod('.', 0)",
    "os.symlink('/', 'l'); os.symlink('l', 'm'); os.symlink('.', 'n')",
    "os.mkfifo('p')",
    "open(b'\\xff' * 250, 'w').close()",
    "open('a\\nb', 'w').close(); os.link('a\\nb', 'c')",
    "file = open('big', 'wb'); [file.write(b'x' * (1 << 20)) for _ in range(80)]",
    "fd = os.open('s', os.O_RDWR | os.O_CREAT); os.ftruncate(fd, {offset})",
    "os.rename('.', 'x')",
    "os.rmdir('.')",
    "os.rmdir(os.getcwd())",
)
SOURCES = (  # programs that are hard to compile
    "{open}{inner}{close}", "x = {digits}", "x = '''{text}", "{text}", "#{text}", "x = {sum}", "lambda: {lambdas}0", "{ifs}", "\0", "\f", "\ufeff\ufeff1",
    "# -*- coding: {codec} -*-\nprint(1)", "x = f'{braces}'", "def f({args}): pass", "f({args})", "x = [{items}]", "x = {{{items}}}", "{excepts}",
    "x = 9**9**9**9", "x = (1 << 99999) * (1 << 99999)", "x = 'a' * 10**9 * 10**9", "x = ((1,) * 9999) * 99999", "{nots}1", "'\ud800'", "{semicolons}", "{deco}",
    "import {dots}", "class A({args}): pass", "match 1:\n case {cases}: pass", "{withs}", "x: {items}", "{unicode} = 1",
)  # fmt: skip


def cases(draw: random.Random) -> Case:
    """The next program."""
    layer, reuse = draw.choice(MODES)
    case: Case = {"target": "box", "layer": layer, "reuse": reuse, "kind": draw.choice(KINDS)}
    if draw.random() < 0.15:
        n = draw.choice((5, 90, 150, 210, 1000, 5000, 30_000))
        return case | {"name": "source", "source": draw.choice(SOURCES), "n": n, "acts": []}
    acts = [_act(draw) for _ in range(draw.choice((1, 1, 2, 3, 6)))]
    end = draw.random()
    if end < 0.35:
        acts.append(_filled(draw, draw.choice(ENDS)))
    elif end < 0.8:
        acts.append("return " + _filled(draw, draw.choice(RETURNS)))
    return case | {"name": "acts", "acts": acts}


def _filled(draw: random.Random, act: str) -> str:
    big = draw.choice((10, 1000, 10**6, 10**7))
    names = {
        "n": draw.choice((0, 1, 2, 70, 127, 128, 137, 140, 160, 255, 990, 1000, 20000)), "big": big, "huge": draw.choice((100 << 20, 1 << 30, 1 << 40)),
        "count": draw.choice((30, 120, 300, 2000, 20000)), "offset": draw.choice(OFFSETS), "cls": draw.choice(("int", "list", "str", "float", "dict")),
    }  # fmt: skip
    return act.format(**names)


def _act(draw: random.Random) -> str:
    fd, other = draw.choice(FDS), draw.choice(FDS)
    offset, flag = draw.choice(OFFSETS), draw.choice(FLAGS)
    data = as_python(_bytes(draw))
    signal, target = draw.choice(SIGNALS), draw.choice(TARGETS)
    return draw.choice((
        f"os.write({fd}, {data})", f"os.write({fd}, {data})", f"os.write({fd}, {data}); os._exit({draw.choice((0, 1, 70))})",
        f"os.pwrite({fd}, {data}, {offset})", f"os.lseek({fd}, {offset}, {draw.randrange(5)})", f"os.ftruncate({fd}, {offset})",
        f"os.close({fd})", f"os.dup2({fd}, {other})", f"os.closerange({draw.choice((0, 3, 6))}, 128)", f"os.open('/dev/null', 2); os.dup2(os.open('/dev/zero', 2), {fd})",
        f"fcntl.fcntl({fd}, fcntl.F_SETFL, {flag})", f"fcntl.fcntl({fd}, {draw.choice((0, 2, 8, 10, 15, 36, 1024, 1025, 1026, 1030, 1031, 1033, 1036))}, {draw.choice((0, 1, 2, 15, 1 << 20))})",
        f"fcntl.fcntl({fd}, fcntl.F_SETOWN, {target}); fcntl.fcntl({fd}, 10, {signal}); fcntl.fcntl({fd}, fcntl.F_SETFL, os.O_ASYNC)",
        f"fcntl.flock({fd}, 2)", f"fcntl.lockf({fd}, 2)", f"os.fchmod({fd}, 0)", f"os.posix_fallocate({fd}, 0, {max(1, offset)})",
        f"ctypes.CDLL(None).fallocate({fd}, {draw.randrange(8)}, ctypes.c_long(0), ctypes.c_long({max(1, offset)}))",
        f"m = mmap.mmap({fd}, {draw.choice((1, 4096, 1 << 20))}); m[0] = 123; m.resize({draw.choice((1, 1 << 22))})",
        f"os.kill({target}, {signal})", f"os.kill({target}, {signal})", f"os.killpg(0, {signal})", f"signal.raise_signal({signal or 15})",
        f"signal.signal({signal or 1}, signal.SIG_IGN)", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))", f"signal.alarm({draw.choice((0, 1))})",
        f"signal.setitimer({draw.randrange(3)}, 0.01, 0.001)", f"signal.set_wakeup_fd({fd})",
        f"[os.dup({max(0, fd)}) for _ in range(200)]", "[threading.Thread(target=time.sleep, args=(9,), daemon=True).start() for _ in range(300)]",
        "[threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start() for _ in range(3)]",
        f"threading.Thread(target=lambda: [os.pwrite({fd}, {data}, 0) for _ in iter(int, 1)], daemon=True).start()",
        f"threading.Thread(target=lambda: os.write({fd}, {data})).start()", "threading.Thread(target=time.sleep, args=(9,)).start()",
        f"resource.setrlimit({draw.randrange(16)}, ({draw.choice((0, 1, 4096, 1 << 20))},) * 2)", "os.fork()", "os.execv('/bin/true', ['x'])", "os.setsid()", "os.setpgid(0, 0)",
        f"atexit.register(lambda: os.write({fd}, {data}))", "atexit.register(lambda: time.sleep(9))", f"atexit.register(lambda: os.kill({target}, {signal}))",
        f"json.dumps = lambda *a: ({data}).decode('latin-1')", "os.write = lambda *a: 1 << 60", "os.write = lambda *a: 0", "os.pread = lambda *a: b''", "sys.stdout = None", "sys.stdout.close()", "sys.stdin.close()",
        "sys.modules.clear()", "import builtins; builtins.__dict__.clear()", "gc.set_threshold(1)", "sys.settrace(lambda *a: time.sleep(1))", f"sys.setrecursionlimit({draw.choice((60, 10**9))})",
        "sys.setswitchinterval(1e9)", "sys.excepthook = None", "sys.set_int_max_str_digits(640)", "threading.stack_size(1 << 28)", "threading._shutdown = lambda: time.sleep(9)",
        f"socket.socket(fileno={max(0, fd)}).send(b'd' * {draw.choice((1, 2, 100000))})", f"socket.socket(fileno={max(0, fd)}).shutdown(2)", f"socket.socket(fileno={max(0, fd)}).recv(9)",
        f"socket.send_fds(socket.socket(fileno={max(0, fd)}), [b'd'], [0] * {draw.choice((1, 100, 253))})", f"[os.write({max(0, fd)}, b'd') for _ in range(9)]; time.sleep(9)",
        "a, b = socket.socketpair(); a.setblocking(False); [a.send(b'x' * 4096) for _ in iter(int, 1)]", "open('/proc/self/comm', 'w').write('a b) R 1\\nVmHWM: 9')", "open('/proc/self/oom_score_adj', 'w').write('1000')",
        "open('/proc/self/mem', 'wb').write(b'x')", "os.listdir('/proc/self/fd')", "open('/proc/self/clear_refs', 'w').write('5')", "open('/dev/stdin', 'wb').write(b'x' * 999)", "os.environ.clear()", "os.chdir('/'); os.umask(0o777)",
        "__import__('faulthandler').dump_traceback_later(0.1, exit=True)", "__import__('tracemalloc').start(99)", "sys.stdout.reconfigure(encoding='utf-16')", "ctypes.memset(id(None), 0, 64)", "ctypes.CDLL(None).exit(0)",
        _filled(draw, draw.choice(TREES)), _filled(draw, draw.choice(TREES)), _filled(draw, draw.choice(TREES)),
    ))  # fmt: skip


def _bytes(draw: random.Random) -> list[Any]:
    way, n = draw.randrange(5), draw.choice((50, 5000, 100_000, 1_000_000, 4_190_000, 4_200_000, 17_000_000))
    if way == 0:
        return RESULT_SHAPES[draw.choice(list(RESULT_SHAPES))](n)
    if way == 1:
        return ['{"r":', *VALUE_SHAPES[draw.choice(list(VALUE_SHAPES))](n), "}"]
    if way == 2:
        return text(draw)
    found = ['{"r":', *value(draw), "}"]
    return mutated(draw, found) if way == 3 else found


def program(case: Case) -> str:
    """The source of a case."""
    if "source" in case:
        return _source(case["source"], case["n"])
    scope = _filled(random.Random(0), CLASSES) if any("Liar" in a or "Node" in a or "deep" in a or "cycle" in a for a in case["acts"]) else ""
    body = "".join(
        f"    {act}\n" if act.startswith(("return", "raise")) else f"    try:\n        {act}\n    except Exception: pass\n" for act in case["acts"]
    )
    call = "print(f(input()))\n" if case["kind"] == "stdin" else ""
    return f"{HEAD}{scope}def f(x):\n{body or '    pass'}\n{call}"


def _source(template: str, n: int) -> str:
    names = {
        "open": "(" * n, "inner": "1", "close": ")" * n, "digits": "9" * n, "text": "x" * n, "sum": "1+" * n + "1", "lambdas": "lambda: " * n,
        "ifs": "".join(f"{' ' * k}if 1:\n" for k in range(min(n, 300))) + " " * 300 + "pass", "codec": ("utf-16", "rot13", "x" * n)[n % 3],
        "braces": "{" * n, "args": ", ".join(f"a{k}" for k in range(n)), "items": "1, " * n, "excepts": "try: pass\nexcept: pass\n" * n, "nots": "not " * n,
        "semicolons": "1;" * n, "deco": "@f\n" * n + "def f(): pass", "dots": "a." * n + "a", "cases": "[" * n + "]" * n,
        "withs": "with a:\n " * 1 + "with " + "a, " * n + "a: pass", "unicode": "\U0001d400" * n,
    }  # fmt: skip
    return template.format(**names)


class Boxes:
    """Judges of every mode, and what a case does to them."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="fuzz-")
        os.chmod(self.folder, 0o755)  # boxes of a root user are another user's
        self.judges: dict[tuple[str, bool], Judge | None] = {}

    def judge(self, layer: str, reuse: bool) -> Judge | None:
        """None where the layer does not work here."""
        if (layer, reuse) not in self.judges:
            before = os.environ.get("TMPDIR")
            os.environ["TMPDIR"] = self.folder
            try:
                self.judges[layer, reuse] = Judge(workers=1, sandbox=layer, reuse=reuse, time_limit_s=LIMIT_S, memory_mb=128)
            except JudgeError:
                self.judges[layer, reuse] = None
            finally:
                os.environ.pop("TMPDIR")
                if before is not None:
                    os.environ["TMPDIR"] = before
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
        return {"verdict": verdict.verdict, "message": verdict.message, "wall_s": seconds, "next": after.verdict, "next_message": after.message, "next_s": waited}

    def held(self) -> dict[str, float]:
        """What the judges hold while they are at rest."""
        row = {"MB": 0.0, "processes": 0.0, "descriptors": float(len(os.listdir("/proc/self/fd"))), "files": float(len(os.listdir(self.folder)))}
        for process in psutil.Process().children(recursive=True):
            try:
                with process.oneshot():
                    rss, fds = process.memory_info().rss, process.num_fds()
            except psutil.Error:
                continue
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
    Problem.from_dict({"id": "right", "kind": "function", "entry_point": "f", "tests": [{"input": "[4]", "output": "[16, 4]"}]}),
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
        record |= {"kind": "function", "compare": {"checker": "def check(given, output, expected):\n    return bool(output == expected)"}}
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

