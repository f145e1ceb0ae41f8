"""What judging other languages costs beside Python: the same three programs in each, arms taking turns in one run.

    python -m benchmarks.judge languages --workers 2 --rounds 5 --json languages.json

Arms: Python; C++ with the precompiled <bits/stdc++.h>; C++ without; C++ that includes only what it uses; Java,
JavaScript, Go and Rust where their tools are installed. A candidate has `--tests` tests. The steps are timed one by
one besides: compiling (in a box of its own), opening the box of the program, and each test in it.
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
JAVA = tuple(
    "import java.util.*;\npublic class Main { public static void main(String[] args) {"
    f" Scanner in = new Scanner(System.in); {body} }} }}\n"
    for body in (
        "long a = in.nextLong(), b = in.nextLong(); System.out.println(a + b);",
        "long a = in.nextLong(), b = in.nextLong(); while (b > 0) { long c = a % b; a = b; b = c; }"
        " System.out.println(a);",
        "Map<Long, Integer> c = new TreeMap<>(); while (in.hasNextLong()) c.merge(in.nextLong(), 1, Integer::sum);"
        " long s = 0; for (var e : c.entrySet()) s += e.getKey() * e.getValue(); System.out.println(s);",
    )
)
JAVASCRIPT = tuple(
    f"const all = require('fs').readFileSync(0, 'utf8').split(/\\s+/).filter(x => x).map(Number);\n{body}\n"
    for body in (
        "console.log(all[0] + all[1]);",
        "let [a, b] = all; while (b) [a, b] = [b, a % b]; console.log(a);",
        "const c = new Map(); for (const x of all) c.set(x, (c.get(x) || 0) + 1);"
        " let s = 0; for (const [k, v] of c) s += k * v; console.log(s);",
    )
)
GO = tuple(
    f'package main\n\nimport "fmt"\n\nfunc main() {{ {body} }}\n'
    for body in (
        "var a, b int64; fmt.Scan(&a, &b); fmt.Println(a + b)",
        "var a, b int64; fmt.Scan(&a, &b); for b > 0 { a, b = b, a%b }; fmt.Println(a)",
        "c := map[int64]int64{}; for { var x int64; if n, _ := fmt.Scan(&x); n == 0 { break }; c[x]++ };"
        " var s int64; for k, v := range c { s += k * v }; fmt.Println(s)",
    )
)
RUST = tuple(
    "use std::io::Read;\nfn main() { let mut t = String::new(); std::io::stdin().read_to_string(&mut t).unwrap();"
    f" let all: Vec<i64> = t.split_whitespace().map(|x| x.parse().unwrap()).collect(); {body} }}\n"
    for body in (
        'println!("{}", all[0] + all[1]);',
        'let (mut a, mut b) = (all[0], all[1]); while b > 0 { let c = a % b; a = b; b = c; } println!("{}", a);',
        "let mut c = std::collections::BTreeMap::new(); for x in all { *c.entry(x).or_insert(0i64) += 1; }"
        ' println!("{}", c.iter().map(|(k, v)| k * v).sum::<i64>());',
    )
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


EVERY = (
    Arm("Python", "python", PYTHON),
    Arm("C++, precompiled header", "cpp", tuple(ALL + code for code in CPP)),
    Arm("C++, no precompiled header", "cpp", tuple(ALL + code for code in CPP), NO_CACHE),
    Arm("C++, few headers", "cpp", tuple(FEW + code for code in CPP)),
    Arm("Java", "java", JAVA),
    Arm("JavaScript", "javascript", JAVASCRIPT),
    Arm("Go", "go", GO),
    Arm("Rust", "rust", RUST),
)


def usable(arm: Arm) -> bool:
    try:
        return arm.language == "python" or bool(languages.toolchain(arm.language))
    except languages.NoCompiler as error:
        print(f"left out: {error}")
        return False


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
        if arm.language != "python":
            examiner.zygote(arm.language)
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
    parser.add_argument(
        "--candidates", type=int, default=24, help="of a language in a round; of Python ten times as many"
    )
    parser.add_argument("--tests", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="arms take turns; the median counts")
    parser.add_argument("--json", type=Path, help="write every figure here")
    options = parser.parse_args()

    arms = [arm for arm in EVERY if usable(arm)]
    judges = []
    for arm in arms:
        with_cache(arm)
        judges.append(Judge(workers=options.workers))
        seconds(judges[-1], arm, 3 * options.workers, 1)  # zygotes are up, the header is there
    rates: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for _ in range(options.rounds):
        for arm, judge in zip(arms, judges, strict=True):
            count = options.candidates * (10 if arm.language == "python" else 1)
            rates[arm.name].append(count / seconds(judge, arm, count, options.tests))
    for judge in judges:
        judge.close()
    print(f"{options.workers} workers, {options.tests} tests a candidate, median of {options.rounds}; steps in ms")
    rows = {}
    for arm in arms:
        row = rows[arm.name] = {"candidates/s": statistics.median(rates[arm.name]), **costs(arm, options.rounds)}
        if arm is arms[0]:
            print(f"{'':28}" + "".join(f"{column:>14}" for column in row))
        print(f"{arm.name:28}" + "".join(f"{figure:14.2f}" for figure in row.values()))
    if options.json:
        about = {"machine": platform.machine(), "cores": os.cpu_count(), "options": vars(options)}
        options.json.write_text(json.dumps({**about, "arms": rows}, indent=1, default=str))
