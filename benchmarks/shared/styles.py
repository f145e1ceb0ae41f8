"""The ways in which people read standard input and print: text that surrounds a body with solve(lines) -> lines."""

from __future__ import annotations

_INPUT = """
lines = []
while True:
    try:
        lines.append(input())
    except EOFError:
        break
"""
_READLINE = """
import sys
lines = []
line = sys.stdin.readline()
while line:
    lines.append(line.rstrip("\\n"))
    line = sys.stdin.readline()
"""
_OS_READ = """
import os
parts = []
while True:
    part = os.read(0, 65536)
    if not part:
        break
    parts.append(part)
lines = b"".join(parts).decode().split("\\n")
"""

# name -> (weight, code that leaves the input in `lines`)
READ: dict[str, tuple[int, str]] = {
    "read": (26, "import sys\nlines = sys.stdin.read().split('\\n')\n"),
    "input": (26, _INPUT),
    "readline": (12, _READLINE),
    "iterate": (12, "import sys\nlines = [line.rstrip() for line in sys.stdin]\n"),
    "readlines": (6, "import sys\nlines = sys.stdin.readlines()\n"),
    "buffer": (10, "import sys\nlines = sys.stdin.buffer.read().decode().split('\\n')\n"),
    "open0": (5, "lines = open(0).read().split('\\n')\n"),
    "os.read": (3, _OS_READ),
}

# name -> (weight, code that prints `answer`, a list of lines)
WRITE: dict[str, tuple[int, str]] = {
    "print": (40, "for line in answer:\n    print(line)\n"),
    "join": (30, "print('\\n'.join(answer))\n"),
    "spread": (10, "print(*answer, sep='\\n')\n"),
    "write": (15, "import sys\nsys.stdout.write('\\n'.join(answer) + '\\n')\n"),
    "buffer": (5, "import sys\nsys.stdout.buffer.write(('\\n'.join(answer) + '\\n').encode())\n"),
}

# name -> (weight, how the three parts stand together)
SHAPE: dict[str, tuple[int, str]] = {
    "script": (50, "{body}\n{read}\nanswer = solve(lines)\n{write}"),
    "main": (
        35,
        "{body}\ndef main():\n{read4}\n    answer = solve(lines)\n{write4}\nif __name__ == '__main__':\n    main()\n",
    ),
    "global": (
        8,
        "{body}\nanswer = []\ndef work(lines):\n    global answer\n    answer = answer + solve(lines)\n"
        "{read}\nwork(lines)\n{write}",
    ),
    "thread": (
        7,
        "{body}\nimport threading\ndef main():\n{read4}\n    answer = solve(lines)\n{write4}\n"
        "threading.stack_size(1 << 26)\nworker = threading.Thread(target=main)\nworker.start()\nworker.join()\n",
    ),
}

# What goes wrong at once, whatever the problem: bodies of a function whose argument is `data`.
CRASH = [
    "table = {}\nreturn table[str(data)[:9]]",
    "return [str(len(data) // (len(data) - len(data)))]",
    "data = list(data)\nreturn data[len(data) + 1]",
    "def again(value):\n    return again(value + 1) + 1\nreturn again(0)",
]
LOOP = [
    "x = 1\nwhile x:\n    x = (x * 31 + 7) % 1000003 + 1\nreturn x",
    "low, high = 0, 9\nwhile low < high:\n    middle = (low + high) // 2\n    low = middle\nreturn low",
    "seen = [0]\nwhile seen[-1] >= 0:\n    seen[-1] = seen[-1] + 1\nreturn seen",
]
SWALLOW = [
    "while True:\n    try:\n        x = sum(range(500))\n    except BaseException:\n        pass",
    "while True:\n    try:\n        return int('x' + str(data)[:5])\n    except:\n        continue",
]


def indent(text: str, by: int = 4) -> str:
    return "\n".join(" " * by + line if line.strip() else "" for line in text.strip("\n").split("\n"))


def stdin_program(body: str, read: str, write: str, shape: str) -> str:
    reader, writer = READ[read][1].strip("\n"), WRITE[write][1].strip("\n")
    return SHAPE[shape][1].format(
        body=body.strip("\n"), read=reader, write=writer, read4=indent(reader), write4=indent(writer)
    )


def stdin_body(block: str) -> str:
    """A solve(lines) that does nothing but `block`."""
    return "def solve(data):\n" + indent(block)


def function_program(entry_point: str, block: str) -> str:
    """A program that defines the entry point with `block` as its body."""
    method, _, name = entry_point.rpartition(".")
    if method:
        return f"class {method}:\n    def {name}(self, *data):\n{indent(block, 8)}\n"
    return f"def {name}(*data):\n{indent(block)}\n"
