"""What judging C++ costs beside Python: the same three programs in both, arms taking turns in one run.

    python -m benchmarks.judge cpp --workers 2 --rounds 5 --json cpp.json

Arms: Python; C++ with the precompiled <bits/stdc++.h>; C++ without; C++ that includes only what it uses. A candidate
has `--tests` tests. The steps are timed one by one besides: compiling (in a box of its own), opening the box of the
program, and each test in it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from microcoder import Judge, Problem, Solution, Test
from microcoder.judge import languages
from microcoder.judge.boxes import Limits
from microcoder.judge.examine import Examiner, Settings
from microcoder.judge.languages import opener

PYTHON = (
    "a, b = map(int, input().split())\nprint(a + b)\n",
    "a, b = map(int, input().split())\nwhile b:\n    a, b = b, a % b\nprint(a)\n",
    "from collections import Counter\nc = Counter(input().split())\nprint(sum(int(k) * v for k, v in c.items()))\n",
)
CPP = (
    "int main() { long long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n",
    "int main() { long long a, b; std::cin >> a >> b; while (b) a %= b, std::swap(a, b); std::cout << a << '\\n'; }\n",
    "int main() { std::map<long long, int> c; for (long long x; std::cin >> x;) c[x]++; long long s = 0;"
    " for (auto [k, v] : c) s += k * v; std::cout << s << '\\n'; }\n",
)
ALL, FEW = "#include <bits/stdc++.h>\n", "#include <iostream>\n#include <map>\n#include <utility>\n"
LIMITS = Limits(6.0, 1 << 30, 16 << 20)
T = TypeVar("T")
NO_CACHE = "/dev/null"  # no folder can be made there, so no header is precompiled


class Arm(NamedTuple):
    name: str
    language: str
    programs: tuple[str, ...]
    cache: str | None = None


ARMS = (
    Arm("Python", "python", PYTHON),
    Arm("C++, precompiled header", "cpp", tuple(ALL + code for code in CPP)),
    Arm("C++, no precompiled header", "cpp", tuple(ALL + code for code in CPP), NO_CACHE),
    Arm("C++, few headers", "cpp", tuple(FEW + code for code in CPP)),
)


def problems(tests: int) -> list[Problem]:
    answers = (lambda a, b: a + b, math.gcd, lambda a, b: a + b)
    pairs = [(7 * n + 3, 5 * n + 10) for n in range(tests)]
    return [
        Problem(f"p{k}", tests=[Test(f"{a} {b}\n", f"{answer(a, b)}\n") for a, b in pairs])
        for k, answer in enumerate(answers)
    ]


def seconds(judge: Judge, arm: Arm, candidates: int, tests: int) -> float:
    """Wall time of so many candidates, all of which must be accepted."""
    asked = problems(tests)
    solutions = [Solution(f"p{k}", code=code, language=arm.language) for k, code in enumerate(arm.programs)]
    work = [(asked[n % 3], solutions[n % 3]) for n in range(candidates)]
    start = time.perf_counter()
    for _, verdict in judge.map(work):
        if not verdict.accepted:
            raise SystemExit(f"{arm.name}: {verdict.verdict}: {verdict.message}")
    return time.perf_counter() - start


def costs(arm: Arm, repeat: int) -> dict[str, float]:
    """Median milliseconds of each step of a candidate's way, one step at a time in one process."""
    with_cache(arm)
    languages.toolchain.cache_clear()
    examiner = Examiner(Settings())
    taken: dict[str, list[float]] = {"compile": [], "open a box": [], "run a test": []}

    def timed(step: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        taken[step].append(1000 * (time.perf_counter() - start))
        return result

    try:
        if arm.language == "cpp":
            examiner.zygote("cpp")
        for code in arm.programs * repeat:
            opened = timed("compile", partial(opener, examiner, code, arm.language, "stdin", LIMITS))
            with timed("open a box", opened) as box:
                for _ in range(30):
                    assert timed("run a test", partial(box.run, b"30 42\n")).output
    finally:
        examiner.close()
    return {step: statistics.median(times) for step, times in taken.items()}


def with_cache(arm: Arm, own: str | None = os.environ.get("MICROCODER_CACHE")) -> None:
    """A worker looks for the cache when it needs the compiler for the first time."""
    os.environ.pop("MICROCODER_CACHE", None)
    if cache := arm.cache or own:
        os.environ["MICROCODER_CACHE"] = cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--candidates", type=int, default=24, help="of C++ in a round; of Python ten times as many")
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="arms take turns; the median counts")
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args()

    judges = []
    for arm in ARMS:
        with_cache(arm)
        judges.append(Judge(workers=options.workers))
        seconds(judges[-1], arm, 3 * options.workers, 1)  # zygotes are up, the header is there
    rates: dict[str, list[float]] = {arm.name: [] for arm in ARMS}
    for _ in range(options.rounds):
        for arm, judge in zip(ARMS, judges, strict=True):
            count = options.candidates * (10 if arm.language == "python" else 1)
            rates[arm.name].append(count / seconds(judge, arm, count, options.tests))
    for judge in judges:
        judge.close()
    print(f"{options.workers} workers, {options.tests} tests a candidate, median of {options.rounds}; steps in ms")
    rows = {}
    for arm in ARMS:
        row = rows[arm.name] = {"candidates/s": statistics.median(rates[arm.name]), **costs(arm, options.rounds)}
        if arm is ARMS[0]:
            print(f"{'':28}" + "".join(f"{column:>14}" for column in row))
        print(f"{arm.name:28}" + "".join(f"{figure:14.2f}" for figure in row.values()))
    if options.json:
        about = {"machine": platform.machine(), "cores": os.cpu_count(), "options": vars(options)}
        options.json.write_text(json.dumps({**about, "arms": rows}, indent=1, default=str))
