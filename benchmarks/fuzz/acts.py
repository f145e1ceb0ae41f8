"""Hostile acts, as lines of Python with places to be filled: what the programs of the sandbox's fuzzer are made of."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.fuzz.recipes import as_python, mutated
from benchmarks.fuzz.shapes import PRIME, RESULT_SHAPES, VALUE_SHAPES, text, value

SIGNALS = (0, 1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 28, 31, 34, 64)
TARGETS = ("os.getpid()", "os.getppid()", "0", "1", "2", "3", "-1", "-2", "-os.getpid()", "os.getpgrp()")
FDS = (0, 1, 2, 3, 3, 4, 4, 4, 5, 6, 7, 32, 33, 34, 35, 100, -1)
COMMANDS = (0, 2, 8, 10, 15, 36, 1024, 1025, 1026, 1030, 1031, 1033, 1036)  # of fcntl
OFFSETS = (0, 1, 4095, 1 << 20, (4 << 20) - 1, 4 << 20, 16 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -1)
FLAGS = ("os.O_APPEND", "os.O_NONBLOCK", "os.O_ASYNC", "os.O_APPEND|os.O_NONBLOCK|os.O_ASYNC", "0o40000", "os.O_SYNC")
ENDS = (
    "os._exit({n})", "sys.exit({n})", "sys.exit('x' * {big})", "sys.exit(10**5000)", "sys.exit(-1)",
    "raise KeyboardInterrupt",
    "raise MemoryError", "raise RecursionError", "raise SystemExit(True)", "raise StopIteration",
    "raise OSError(5, 'x')",
    "raise type('E', (BaseException,), {{'__str__': lambda s: 'x' * {big}}})",
    "raise type('E', (Exception,), {{'__str__': lambda s: time.sleep(9)}})",
    "raise type('E', (Exception,), {{'__str__': lambda s: '\\ud800' * 9}})",
    "raise type('E' * {big}, (Exception,), {{}})",
    "raise ExceptionGroup('x', [ValueError()] * 9)", "ctypes.string_at(0)", "os.abort()",
    "exec('def g(): g()'); sys.setrecursionlimit(10**9); g()", "time.sleep(9)", "signal.pause()",
    "[0 for _ in iter(int, 1)]",
    "threading.Event().wait()", "signal.sigwait(range(1, 32))", "select.select([], [], [])", "bytearray({huge})",
    "x = [b'x' * 9999 for _ in range({big})]",
    "x = b'x' * ({huge})", "os.write(1, b'x' * (20 << 20))", "print('x' * (17 << 20))",
    "sys.stdout.write('9' * (4 << 20))",
)  # fmt: skip
RETURNS = (
    "x", "None", "1 << 4000000", "10**100000", "float('nan')", "[x] * 1000000", "range(10**12)", "object()", "type",
    "f", "(i for i in iter(int, 1))",
    "[[]] * 1000000", "b'x' * 3000000", "'\\ud800' * 100000", "'\\0' * 1000000",
    "{{n * (2**61 - 1) for n in range(999)}}",
    "[{{n * (2**61 - 1): 0 for n in range(999)}} for _ in range(20)]", "deep({n})", "cycle()", "Liar()",
    "complex(10**300, 1)", "1e308 * 10",
    "memoryview(b'x')", "bytearray(3000000)", "__import__('datetime').date.max",
    "__import__('decimal').Decimal('1e999999')",
    "__import__('fractions').Fraction(1, 10**5000)", "__import__('collections').deque(range(100000))",
    "__import__('collections').Counter('ab' * 9)",
    "__import__('array').array('d', [1.0] * 9)", "[Liar()] * 100", "(Liar(), Liar())", "{{(): Liar()}}",
    "[10**4000] * 1000", "Node()",
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
    'exec(\'while 1: os.mkdir("d"); os.chdir("d")\')',
    "[os.mkdir(str(n)) for n in range(10**9)]",
    "[os.close(os.open(str(n), 66)) for n in range(10**9)]",
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
    "{open}{inner}{close}", "x = {digits}", "x = '''{text}", "{text}", "#{text}", "x = {sum}", "lambda: {lambdas}0",
    "{ifs}", "\0", "\f", "\ufeff\ufeff1",
    "# -*- coding: {codec} -*-\nprint(1)", "x = f'{braces}'", "def f({args}): pass", "f({args})", "x = [{items}]",
    "x = {{{items}}}", "{excepts}",
    "x = 9**9**9**9", "x = (1 << 99999) * (1 << 99999)", "x = 'a' * 10**9 * 10**9", "x = ((1,) * 9999) * 99999",
    "{nots}1", "'\ud800'", "{semicolons}", "{deco}",
    "import {dots}", "class A({args}): pass", "match 1:\n case {cases}: pass", "{withs}", "x: {items}", "{unicode} = 1",
    "x = [{collide}]", "1 in {{{collide}}}",
)  # fmt: skip
ACTS = (
    "os.write({fd}, {data})", "os.write({fd}, {data})",
    "os.write({fd}, {data}); os._exit({few})",
    "os.pwrite({fd}, {data}, {offset})", "os.lseek({fd}, {offset}, {few})",
    "os.ftruncate({fd}, {offset})",
    "os.close({fd})", "os.dup2({fd}, {other})", "os.closerange({few}, 128)",
    "os.open('/dev/null', 2); os.dup2(os.open('/dev/zero', 2), {fd})",
    "fcntl.fcntl({fd}, fcntl.F_SETFL, {flag})",
    "fcntl.fcntl({fd}, {command}, {few})",
    "c = fcntl.fcntl; c({fd}, fcntl.F_SETOWN, {target}); c({fd}, 10, {signal}); c({fd}, fcntl.F_SETFL, os.O_ASYNC)",
    "fcntl.flock({fd}, 2)", "fcntl.lockf({fd}, 2)", "os.fchmod({fd}, 0)",
    "os.posix_fallocate({fd}, 0, {offset})",
    "ctypes.CDLL(None).fallocate({fd}, {few}, ctypes.c_long(0), ctypes.c_long({offset}))",
    "m = mmap.mmap({fd}, {many}); m[0] = 123; m.resize({many})",
    "os.kill({target}, {signal})", "os.kill({target}, {signal})", "os.killpg(0, {signal})",
    "signal.raise_signal({signal})",
    "signal.signal({signal}, signal.SIG_IGN)", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "signal.alarm({few})",
    "signal.setitimer({few}, 0.01, 0.001)", "signal.set_wakeup_fd({fd})",
    "[os.dup({fd}) for _ in range(200)]",
    "[threading.Thread(target=time.sleep, args=(9,), daemon=True).start() for _ in range(300)]",
    "[threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start() for _ in range(3)]",
    "threading.Thread(target=lambda: [os.pwrite({fd}, {data}, 0) for _ in iter(int, 1)], daemon=True).start()",
    "threading.Thread(target=lambda: os.write({fd}, {data})).start()",
    "threading.Thread(target=time.sleep, args=(9,)).start()",
    "resource.setrlimit({limit}, ({many},) * 2)", "os.fork()",
    "os.execv('/bin/true', ['x'])", "os.setsid()", "os.setpgid(0, 0)",
    "atexit.register(lambda: os.write({fd}, {data}))", "atexit.register(lambda: time.sleep(9))",
    "atexit.register(lambda: os.kill({target}, {signal}))",
    "json.dumps = lambda *a: ({data}).decode('latin-1')", "os.write = lambda *a: 1 << 60",
    "os.write = lambda *a: 0", "os.pread = lambda *a: b''", "sys.stdout = None", "sys.stdout.close()",
    "sys.stdin.close()",
    "sys.modules.clear()", "import builtins; builtins.__dict__.clear()", "gc.set_threshold(1)",
    "sys.settrace(lambda *a: time.sleep(1))", "sys.setrecursionlimit({many})",
    "sys.setswitchinterval(1e9)", "sys.excepthook = None", "sys.set_int_max_str_digits(640)",
    "threading.stack_size(1 << 28)", "threading._shutdown = lambda: time.sleep(9)",
    "socket.socket(fileno={fd}).send(b'd' * {many})",
    "socket.socket(fileno={fd}).shutdown(2)", "socket.socket(fileno={fd}).recv(9)",
    "socket.send_fds(socket.socket(fileno={fd}), [b'd'], [0] * {many})",
    "[os.write({fd}, b'd') for _ in range(9)]; time.sleep(9)",
    "a, b = socket.socketpair(); a.setblocking(False); [a.send(b'x' * 4096) for _ in iter(int, 1)]",
    "open('/proc/self/comm', 'w').write('a b) R 1\\nVmHWM: 9')",
    "open('/proc/self/oom_score_adj', 'w').write('1000')",
    "open('/proc/self/mem', 'wb').write(b'x')", "os.listdir('/proc/self/fd')",
    "open('/proc/self/clear_refs', 'w').write('5')", "open('/dev/stdin', 'wb').write(b'x' * 999)",
    "os.environ.clear()", "os.chdir('/'); os.umask(0o777)",
    "__import__('faulthandler').dump_traceback_later(0.1, exit=True)", "__import__('tracemalloc').start(99)",
    "sys.stdout.reconfigure(encoding='utf-16')", "ctypes.memset(id(None), 0, 64)", "ctypes.CDLL(None).exit(0)",
    "{tree}", "{tree}", "{tree}",
    # on the socket that a reused process is ordered by: done, it says, and is not
    "os.write({control}, b'd' * {many})",
    "os.write({control}, b'd'); {tree}",
)  # fmt: skip


def act(draw: random.Random) -> str:
    return filled(draw, draw.choice(ACTS))


def end(draw: random.Random) -> str:
    return filled(draw, draw.choice(ENDS))


def returned(draw: random.Random) -> str:
    return "return " + filled(draw, draw.choice(RETURNS))


def filled(draw: random.Random, template: str) -> str:
    """The template with something in each of its places."""
    names = {
        "n": draw.choice((0, 1, 2, 70, 127, 128, 137, 140, 160, 255, 990, 1000, 20000)),
        "few": draw.choice((0, 0, 1, 2, 3, 4, 6, 15, 70)), "many": draw.choice((1, 2, 50, 253, 4096, 100_000, 1 << 22)),
        "big": draw.choice((10, 1000, 10**6, 10**7)), "huge": draw.choice((100 << 20, 1 << 30, 1 << 40)),
        "count": draw.choice((30, 120, 300, 2000, 20000)), "offset": draw.choice(OFFSETS), "flag": draw.choice(FLAGS),
        "fd": draw.choice(FDS), "other": draw.choice(FDS), "control": draw.choice((4, 6)), "limit": draw.randrange(16),
        "signal": draw.choice(SIGNALS), "target": draw.choice(TARGETS), "command": draw.choice(COMMANDS),
        "cls": draw.choice(("int", "list", "str", "float", "dict")),
        "data": as_python(_bytes(draw)) if "{data}" in template else "",
        "tree": filled(draw, draw.choice(TREES)) if "{tree}" in template else "",
    }  # fmt: skip
    return template.format(**names)


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


def source(template: str, n: int) -> str:
    names = {
        "open": "(" * n, "inner": "1", "close": ")" * n, "digits": "9" * n, "text": "x" * n, "sum": "1+" * n + "1",
        "lambdas": "lambda: " * n,
        "ifs": "".join(f"{' ' * k}if 1:\n" for k in range(min(n, 300))) + " " * 300 + "pass",
        "codec": ("utf-16", "rot13", "x" * n)[n % 3],
        "braces": "{" * n, "args": ", ".join(f"a{k}" for k in range(n)), "items": "1, " * n,
        "excepts": "try: pass\nexcept: pass\n" * n, "nots": "not " * n,
        "semicolons": "1;" * n, "deco": "@f\n" * n + "def f(): pass", "dots": "a." * n + "a",
        "cases": "[" * n + "]" * n,
        "withs": "with a:\n " * 1 + "with " + "a, " * n + "a: pass", "unicode": "\U0001d400" * n,
        "collide": ", ".join(str(k * PRIME) for k in range(n)),
    }  # fmt: skip
    return template.format(**names)
