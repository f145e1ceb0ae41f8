"""Right programs of the ways people really write: does the judge refuse any that plain Python accepts?

    python -m benchmarks.people --data FOLDER --icpc FOLDER [--source NAME ...] [--json FILE]

Every program runs in plain Python first (`python -I solution.py < input`, in an empty folder, a minute a test), then
in the judge, in each layer of the sandbox that works here. One that plain Python accepts and the judge does not is
listed. `--data` holds the files of public data sets under the names in programs.py, `--icpc` ICPC packages; none
is part of this repository. Plain Python runs them without any sandbox: give it programs that you trust.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.people.programs import DATA, Program, cases, packages
from microcoder import Judge, Solution
from microcoder.judge import JudgeError
from microcoder.judge.compare import compare_text

SECONDS = 60.0  # for a test in plain Python, for a program that holds its tests, and of CPU in the judge
MEMORY_MB = 2048
RERUNS = 8  # of a program that is refused: one that is right with some hash seeds only leans on the order of sets


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--icpc", type=Path, metavar="FOLDER")
    parser.add_argument("--source", nargs="*", metavar="NAME", help="only sources whose names begin so")
    parser.add_argument("--tests", type=int, default=10, help="so many of a package's or of EvalPlus's")
    parser.add_argument("--cpp", action="store_true", help="submissions in C++ too")
    parser.add_argument("--plain", type=Path, metavar="FILE", help="remember here what plain Python said")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    sys.set_int_max_str_digits(0)  # some tests hold long numbers
    layers = working_layers()
    known = json.loads(args.plain.read_text()) if args.plain and args.plain.exists() else {}
    figures: dict[str, Any] = {}
    for name, found in sources(args):
        programs = list(found)
        faults = plainly(programs, known)
        if args.plain:
            args.plain.write_text(json.dumps(known))
        figures[name] = measure(name, programs, faults, layers)
        if args.json:
            args.json.write_text(json.dumps(figures, indent=1) + "\n")
    report(figures, layers)
    return 1 if any(refused for found in figures.values() for refused in found["refused"].values()) else 0


def sources(args: argparse.Namespace) -> Iterator[tuple[str, Iterator[Program]]]:
    found = {"cases of this repository": cases(args.tests)}
    if args.data:
        found |= {name: read(args.data, args.tests) for name, read in DATA.items()}
    if args.icpc:
        found["ICPC packages"] = packages(args.icpc, args.tests, args.cpp)
    for name, programs in found.items():
        if not args.source or name.lower().startswith(tuple(s.lower() for s in args.source)):
            yield name, programs


def working_layers() -> list[str]:
    works = []
    for layer in ("full", "landlock"):
        try:
            Judge(workers=1, sandbox=layer).close()
            works.append(layer)
        except JudgeError as error:
            print(f"{layer}: {error}", file=sys.stderr)
    return works


def plainly(programs: list[Program], known: dict[str, str]) -> list[str]:
    """What is wrong with each program in plain Python, which is asked once and remembered."""
    keys = [digest(program) for program in programs]
    new = {key: program for key, program in zip(keys, programs, strict=True) if key not in known}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        known |= zip(new, pool.map(in_plain_python, new.values()), strict=True)
    return [known[key] for key in keys]


def digest(program: Program) -> str:
    tests = [(test.input, test.output) for test in program.problem.tests]
    decides = [sys.version, program.code, program.plain, program.language, tests, asdict(program.problem.compare)]
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def measure(name: str, programs: list[Program], faults: list[str], layers: list[str]) -> dict[str, Any]:
    start = time.monotonic()
    wrong = {p.problem.id: fault for p, fault in zip(programs, faults, strict=True) if fault}
    right = {p.problem.id: p for p in programs if p.problem.id not in wrong}
    assert len(right) + len(wrong) == len(programs), "two programs have the same name"
    refused: dict[str, dict[str, str]] = {}
    for layer in layers:
        refused[layer] = {}
        with Judge(sandbox=layer, time_limit_s=SECONDS, memory_mb=MEMORY_MB) as judge:
            pairs = ((p.problem, Solution(i, code=p.code, language=p.language)) for i, p in right.items())
            for solution, verdict in judge.map(pairs):
                if not verdict.accepted:
                    refused[layer][solution.problem_id] = f"{verdict.verdict}: {verdict.message[:200]}"
    for ident in {ident for found in refused.values() for ident in found}:
        if fault := next(filter(None, (in_plain_python(right[ident]) for _ in range(RERUNS))), ""):
            wrong[ident] = f"right at times, and at times not: {fault}"
            for found in refused.values():
                found.pop(ident, None)
    wall = time.monotonic() - start
    count = len(programs) - len(wrong)
    print(f"{name}: {len(programs)} programs, {count} right in plain Python, {wall:.0f} s", flush=True)
    for layer, found in refused.items():
        for ident, why in found.items():
            print(f"  {layer} refuses {ident}: {why}", flush=True)
    return {"programs": len(programs), "right": count, "not_right": wrong, "refused": refused, "wall_s": round(wall)}


def in_plain_python(program: Program) -> str:
    """What is wrong with a program in plain Python; nothing if it is right."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solution.py"
        command = [sys.executable, "-I", str(file)]
        if program.language == "cpp":
            file, command = Path(folder) / "solution.cpp", [str(Path(folder) / "solution")]
        file.write_text(program.plain or program.code, encoding="utf-8", errors="surrogatepass", newline="")
        if program.language == "cpp":
            built = run(["g++", "-std=c++17", "-O2", "-o", *command, str(file)], b"", folder)
            if isinstance(built, str):
                return built
        if program.plain:
            ran = run(command, b"", folder)
            return ran if isinstance(ran, str) else ""
        rules = program.problem.compare
        for number, test in enumerate(program.problem.tests):
            given, expected = test.input.encode("utf-8", "surrogatepass"), test.output.encode("utf-8", "surrogatepass")
            ran = run(command, given, folder)
            if isinstance(ran, str):
                return f"test {number}: {ran}"
            match = compare_text(ran, expected, "robust", rules, given)
            if not match.strategy:
                return f"test {number}: {match.message}"
    return ""


def run(command: list[str], given: bytes, folder: str) -> bytes | str:
    """What a program writes, or how it failed. Input and output are files, as with `<` and `>`, its folder is empty."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as own,
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
    ):
        source.write(given)
        source.seek(0)
        try:
            done = subprocess.run(command, stdin=source, stdout=out, stderr=subprocess.PIPE, cwd=own, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"over {SECONDS:.0f} s"
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
            return f"exit code {done.returncode}: {last[-1][:200]}"
        out.seek(0)
        return out.read()


def report(figures: dict[str, Any], layers: list[str]) -> None:
    print(f"\n| source | programs | right in plain Python |{''.join(f' accepted in {layer} |' for layer in layers)}")
    print("|---" * (3 + len(layers)) + "|")
    for name, found in figures.items():
        accepted = "".join(f" {found['right'] - len(found['refused'][layer])} |" for layer in layers)
        print(f"| {name} | {found['programs']} | {found['right']} |{accepted}")
    right = sum(found["right"] for found in figures.values())
    accepted = "".join(f" {right - sum(len(f['refused'][layer]) for f in figures.values())} |" for layer in layers)
    print(f"| all | {sum(found['programs'] for found in figures.values())} | {right} |{accepted}")
