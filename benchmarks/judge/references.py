"""Right: are the reference solutions of public data sets accepted, and are the rest truly wrong?

    python -m benchmarks.judge references --mbpp mbpp.jsonl --humaneval humaneval.jsonl.gz \\
        --leetcode leetcode-train.jsonl.gz

Each reference that is not accepted is run once more by a plain interpreter with the data set's own assertions, no
judge involved. If that fails too, the reference truly fails and is listed with the reason; if it passes, the judge is
wrong. The files are the data sets' own; none is part of this repository.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from microcoder import Judge, Problem, Solution
from microcoder.judge.asserts import probes

Row = tuple[Problem, str, str]  # problem, reference program, the same with its tests as one plain program


def rows(path: str) -> Iterator[dict]:
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        for line in file:
            yield json.loads(line)


def mbpp(path: str) -> Iterator[Row]:
    for row in rows(path):
        code, setup = row["code"].replace("\r\n", "\n"), row["test_setup_code"]
        problem = Problem(
            f"mbpp/{row['task_id']}", "assert", asserts=row["test_list"], setup=setup, entry_point=called(row, code)
        )
        yield problem, code, "\n".join([setup, code, *row["test_list"]])


def called(row: dict, code: str) -> str:
    """The function that the first assert calls and the reference defines."""
    defined = {n.name for n in ast.walk(ast.parse(code)) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names = [n.func.id for n in ast.walk(ast.parse(row["test_list"][0])) if isinstance(getattr(n, "func", 0), ast.Name)]
    return next((n for n in names if n in defined), "")


def humaneval(path: str) -> Iterator[Row]:
    for row in rows(path):
        code = row["prompt"] + row["canonical_solution"]
        problem = Problem(row["task_id"], "assert", asserts=[row["test"]], entry_point=row["entry_point"])
        yield problem, code, f"{code}\n{row['test']}\ncheck({row['entry_point']})"


def leetcode(path: str) -> Iterator[Row]:
    for row in rows(path):
        entry = row["entry_point"].replace("()", "")
        problem = Problem(
            f"leetcode/{row['task_id']}", "assert", asserts=[row["test"]], setup=row["prompt"], entry_point=entry
        )
        plain = [row["prompt"], row["completion"], row["test"], f"check({row['entry_point']})"]
        yield problem, row["completion"], "\n".join(plain)


def plainly(program: str) -> str:
    """The data set's own test in a plain interpreter: what it says on failure, nothing on success.

    Four hash seeds, because a program that passes under some of them only leans on the order of a set.
    """
    failures = []
    for seed in "0123":
        command, env = [sys.executable, "-c", program], {"PYTHONHASHSEED": seed}
        try:
            run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "over 60 s"
        if run.returncode:
            failures.append((run.stderr.strip().splitlines() or ["?"])[-1][:160])
    some = "" if len(failures) in (0, 4) else f" (with {len(failures)} of 4 hash seeds)"
    return failures[0] + some if failures else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    readers = {"mbpp": mbpp, "humaneval": humaneval, "leetcode": leetcode}
    for name in readers:
        parser.add_argument(f"--{name}", metavar="FILE")
    parser.add_argument("--policy", default="robust", choices=("exact", "robust", "paper"))
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    figures = {}
    with Judge(policy=args.policy, time_limit_s=20, memory_mb=2048) as judge:
        for name, reader in readers.items():
            path = getattr(args, name)
            if path:
                figures[name] = measure(judge, name, list(reader(path)))
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))


def measure(judge: Judge, name: str, data: list[Row]) -> dict:
    plain = {problem.id: program for problem, _, program in data}
    ops = Counter(p.op for problem, _, _ in data for p in probes(problem.asserts, problem.entry_point, problem.setup))
    start = time.monotonic()
    pairs = ((problem, Solution(problem.id, code=code)) for problem, code, _ in data)
    verdicts = {solution.problem_id: verdict for solution, verdict in judge.map(pairs)}
    wall = time.monotonic() - start
    counts = Counter(v.verdict for v in verdicts.values())
    strategies = Counter(v.strategy for v in verdicts.values() if v.accepted)
    refused = [(i, v, plainly(plain[i])) for i, v in sorted(verdicts.items()) if not v.accepted]
    mistaken = [i for i, _, reason in refused if not reason]
    print(f"\n{name}: {len(data)} references, {sum(ops.values())} assertions, {wall:.1f} s")
    failing = len(refused) - len(mistaken)
    print(f"  accepted {counts['accepted']}, truly failing {failing}, judge mistaken {len(mistaken)}")
    print(f"  decided inside the candidate's process: {sum(v.inside for v in verdicts.values())} problems")
    print(f"  strategies: {dict(strategies)}")
    for ident, verdict, reason in refused:
        print(f"  {ident}: {verdict.verdict} ({verdict.message[:150]}) | plain Python: {reason or 'PASSES'}")
    return {
        "references": len(data), "assertions": sum(ops.values()), "accepted": counts["accepted"],
        "truly_failing": {i: reason for i, _, reason in refused if reason}, "judge_mistaken": mistaken,
        "inside": sum(v.inside for v in verdicts.values()), "strategies": dict(strategies), "wall_s": round(wall, 1),
    }  # fmt: skip
