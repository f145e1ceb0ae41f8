"""Reference solutions and programs that are wrong by construction, as files of completions: 100% and 0%?

    python -m benchmarks.evaluation references --humaneval humaneval.jsonl.gz --mbpp mbpp.jsonl
    python -m benchmarks.evaluation references --humanevalplus HumanEvalPlus.jsonl.gz --mbppplus MbppPlus.jsonl.gz

A wrong program is the reference with its function replaced by one that calls it and gives another answer: `not` of a
truth value, and anything else in a list beside a word. So it compiles, runs, takes as long, and is never right.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from microcoder.evaluation.catalog import load_suite
from microcoder.schema import Problem

SUITES = ("humaneval", "mbpp", "humanevalplus", "mbppplus")
WRONG = """
def _wrong(function):
    def replaced(*args, **kwargs):
        found = function(*args, **kwargs)
        return (not found) if isinstance(found, bool) else ["wrong", found]
    return replaced


{name} = _wrong({name})
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for suite in SUITES:
        parser.add_argument(f"--{suite}", metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    suites = [suite for suite in SUITES if getattr(args, suite)]
    if not suites:
        parser.error(f"name a file with one or more of --{', --'.join(SUITES)}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for suite in suites:
            for what, make in (("references", reference), ("wrong", wrong)):
                found = scored(Path(folder), suite, getattr(args, suite), make)
                rows.append({"suite": suite, "programs": what, **found})
    print("| suite | programs | problems | robust | exact | verdicts (robust) |\n|---|---|---|---|---|---|")
    for row in rows:
        shares = f"{row['robust']:.1%} | {row['exact']:.1%}"
        print(f"| {row['suite']} | {row['programs']} | {row['problems']} | {shares} | {row['verdicts']} |")
        for ident in row["unexpected"]:
            print(f"  unexpected: {ident}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(row["unexpected"] for row in rows) else 0


def reference(problem: Problem) -> str:
    return problem.solutions[0]["code"]


def wrong(problem: Problem) -> str:
    return reference(problem) + "\n" + WRONG.format(name=problem.entry_point)


def scored(folder: Path, suite: str, data: str, make: Any) -> dict[str, Any]:
    problems = load_suite(suite, data=data).problems
    file, out = folder / f"{suite}-{make.__name__}.jsonl", folder / f"{suite}-{make.__name__}"
    lines = [json.dumps({"problem_id": problem.id, "code": make(problem)}) for problem in problems]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "microcoder.cli", "bench", "--completions", str(file), "--suite", suite]
    subprocess.run([*command, "--data", data, "-o", str(out)], check=True, capture_output=True)
    found = json.loads((out / "scores.json").read_text())["scores"]["0"]
    verdicts = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    expected = make is reference
    return {
        "problems": found["robust"]["problems"],
        **{policy: found[policy]["accuracy"] for policy in ("robust", "exact")},
        "verdicts": found["robust"]["verdicts"],
        "unexpected": [line["id"] for line in verdicts if (line["verdict"] == "accepted") != expected],
    }
