"""Assertions of public data sets: how many are taken apart, how many run inside, and which references are refused.

    python -m benchmarks.judge asserts --mbpp FILE --humaneval FILE --leetcode FILE FILE --kodcode FILE [--json FILE]

Taken apart: the candidate's process sees the arguments and nothing that is expected. Inside: it could see or claim what
is expected, and the verdict says so. LeetCodeDataset is read twice: as the data pipeline reads it (most of its tests
become tests of a function), and as its own check(candidate) programs. `--against` compares with the figures of an
earlier version, written with `--json`: which references it accepted that are refused now, and where `inside` changed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from microcoder import Judge, Problem, Solution
from microcoder.data.record import Record
from microcoder.data.sources import humaneval, kodcode, leetcode, mbpp
from microcoder.judge.checks import checks
from microcoder.judge.examine import Examiner, Settings, _Boxes
from microcoder.judge.worker import start
from microcoder.schema import SchemaError

Row = tuple[Problem, str]  # a problem and its reference
SOURCES = {"mbpp": mbpp, "humaneval": humaneval, "leetcode": leetcode, "kodcode": kodcode}


def references(name: str, path: str) -> Iterator[Row]:
    """What the data pipeline makes of the file."""
    for record in SOURCES[name].read(path):
        if isinstance(record, Record):
            record.problem.id = f"{name}/{record.problem.id}"
            yield record.problem, record.problem.solutions[0]["code"]


def check_programs(path: str) -> Iterator[Row]:
    """LeetCodeDataset's own tests: a program with check(candidate), and the prompt before it."""
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            problem = Problem(
                f"check/{row['task_id']}", "assert", asserts=[row["test"]], setup=row["prompt"],
                entry_point=row["entry_point"].replace("()", ""), starter_code=row.get("starter_code") or "",
            )  # fmt: skip
            yield problem, row["completion"]


def taken_apart(examiner: Examiner, problem: Problem) -> tuple[int, int, str]:
    """(tests, those of them that run inside, what is wrong with the problem)."""
    try:
        with _Boxes(examiner, problem) as helpers:
            found = checks(problem, "robust", helpers)
    except SchemaError as error:
        return 0, 0, str(error)
    finally:
        examiner.forget()
    return len(found), sum(check.inside for check in found), ""


def measure(judge: Judge, examiner: Examiner, name: str, rows: list[Row]) -> dict[str, Any]:
    begin = time.monotonic()
    read = {problem.id: taken_apart(examiner, problem) for problem, _ in rows}
    reading = time.monotonic() - begin
    begin = time.monotonic()
    pairs = [(problem, Solution(problem.id, code=code)) for problem, code in rows]
    verdicts = {solution.problem_id: verdict for solution, verdict in judge.map(pairs)}
    figures = {
        "problems": len(rows),
        "assertions": sum(tests for tests, _, _ in read.values()),
        "inside": sum(inside for _, inside, _ in read.values()),
        "problems_inside": sum(v.inside for v in verdicts.values()),
        "accepted": sum(v.accepted for v in verdicts.values()),
        "reading_s": round(reading, 1),
        "judging_s": round(time.monotonic() - begin, 1),
        "verdicts": {i: [v.verdict, v.inside, v.message[:200]] for i, v in verdicts.items()},
    }
    refused = Counter(v.verdict for v in verdicts.values() if not v.accepted)
    print(
        f"| {name} | {figures['problems']} | {figures['assertions']} | {figures['assertions'] - figures['inside']} | "
        f"{figures['inside']} | {figures['problems_inside']} | {figures['accepted']} | "
        f"{', '.join(f'{n} {v}' for v, n in refused.items()) or '-'} | {reading:.1f} | {figures['judging_s']:.1f} |",
        flush=True,
    )
    return figures


def compare(before: dict[str, Any], now: dict[str, Any]) -> None:
    for name in now:
        old, new = before.get(name, {"verdicts": {}})["verdicts"], now[name]["verdicts"]
        lost = [i for i in new if i in old and old[i][0] == "accepted" != new[i][0]]
        won = [i for i in new if i in old and new[i][0] == "accepted" != old[i][0]]
        more = [i for i in new if i in old and new[i][1] and not old[i][1]]
        less = [i for i in new if i in old and old[i][1] and not new[i][1]]
        print(f"\n{name}: accepted before and refused now {len(lost)}, the other way {len(won)}; "
              f"inside now and not before {len(more)}, the other way {len(less)}")  # fmt: skip
        for what, ids in (("LOST", lost), ("won", won), ("now inside", more), ("no longer inside", less)):
            for ident in ids[:20]:
                print(f"  {what} {ident}: {new[ident]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SOURCES:
        parser.add_argument(f"--{name}", metavar="FILE", nargs="+", default=[])
    parser.add_argument("--against", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    sets = {name: [row for path in getattr(args, name) for row in references(name, path)] for name in SOURCES}
    sets["leetcode check"] = [row for path in args.leetcode for row in check_programs(path)]
    figures = {}
    print("| data | problems | assertions | taken apart | inside | problems inside | accepted | refused | "
          "reading s | judging s |\n|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    examiner = start(Settings(layer="auto"), None)
    with Judge(time_limit_s=20, memory_mb=2048) as judge:
        for name, rows in sets.items():
            if rows:
                figures[name] = measure(judge, examiner, name, rows)
    examiner.close()
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))
    if args.against:
        compare(json.loads(Path(args.against).read_text()), figures)
