"""Small programs with known verdicts, for the steadiness runs: many in a second, or a good part of the time limit."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.shared.workload import Candidate
from microcoder.schema import Problem, Test

# Uses the given seconds of CPU, whatever else the machine does, and answers.
BURN = """
import time
started = time.process_time()
x = 0
while time.process_time() - started < {seconds}:
    for i in range(2000):
        x ^= i
print(int(input()) + {add})
"""
SLEEP = "import time\ntime.sleep({seconds})\nprint(int(input()) + 1)\n"

_TINY = [  # (share, code, verdict)
    (40, "print(int(input()) + 1)", "accepted"),
    (10, "import sys\nsys.stdout.write(str(int(sys.stdin.read()) + 1))", "accepted"),
    (4, "import numpy as np\nprint(np.int64(input()) + 1)", "accepted"),
    (4, "open('note.txt', 'w').write('x' * 9000)\nprint(int(input()) + 1)", "accepted"),
    (20, "print(int(input()) + 2)", "wrong_answer"),
    (10, "print(1 // 0)", "runtime_error"),
    (4, "raise SystemExit(3)", "runtime_error"),
    (7, "print(int(input()) + 1", "compile_error"),
]
_LOOP = "while True:\n    pass"


def _problem(limit: float) -> Problem:
    tests = [Test("1\n", "2\n"), Test("41\n", "42\n")]
    return Problem(id=f"next-{limit}", statement="The next whole number.", tests=tests, time_limit_s=limit)


def stream(count: int, seed: int, first: int = 0) -> Iterator[Candidate]:
    """`count` tiny candidates; about one in 400 loops until its limit of 0.2 s."""
    rng = random.Random(f"{seed}-{first}")
    usual, short = _problem(2), _problem(0.2)
    for number in range(first, first + count):
        if rng.random() < 0.0025:
            yield Candidate(f"t{number}", short, f"# {number}\n{_LOOP}", "loop", "time_limit")
            continue
        _, code, truth = rng.choices(_TINY, [share for share, _, _ in _TINY])[0]
        yield Candidate(f"t{number}", usual, f"# {number}\n{code}", truth, truth)


def heavy(count: int = 64) -> list[Candidate]:
    """Candidates that a loaded host tempts a judge to get wrong: one test, a limit of 2 seconds."""
    problem = Problem(id="next", tests=[Test("1\n", "2\n")], time_limit_s=2)
    kinds = [
        (32, "burn 0.6 s", BURN.format(seconds=0.6, add=1), "accepted"),
        (8, "burn 1.2 s", BURN.format(seconds=1.2, add=1), "accepted"),
        (8, "sleep 0.5 s", SLEEP.format(seconds=0.5), "accepted"),
        (8, "burn and wrong", BURN.format(seconds=0.3, add=2), "wrong_answer"),
        (4, "exception", "print(1 // 0)", "runtime_error"),
        (4, "loop", _LOOP, "time_limit"),
    ]
    rows = [(name, code, truth) for share, name, code, truth in kinds for _ in range(round(share * count / 64))]
    random.Random(0).shuffle(rows)
    return [Candidate(f"h{i}", problem, f"# {i}\n{code}", name, truth) for i, (name, code, truth) in enumerate(rows)]
