"""The problems of `arms`, from LeetCodeDataset and HumanEval, in files that need no more than the core package.

    python -m benchmarks.gpu prepare --train leetcode-train-v0.2.0.jsonl.gz --test leetcode-test-v0.3.1.jsonl.gz \
        --humaneval humaneval.jsonl.gz --out DATA

With --humanevalplus, --mbppplus and --livecodebench (test6.jsonl) further suites for `scores` go along.

1. The training file goes through `microcoder data run` with its default settings (what has weak tests, a reference that
   fails, or a twin is dropped), with the test file and HumanEval as the sets that nothing may resemble.
2. By `question_id`, which rises with time, the newest problems of what is left are validation, the others train. The
   problems of books (-lcci, -lcof) have numbers of their own and are train's.
3. The test file stays whole, with all of its tests.
4. Reference solutions stay behind. So do predicted difficulties: scores are then told by the labels easy to hard.

    DATA/train.jsonl.gz  validation.jsonl.gz  test.jsonl.gz  data.json  and the suites    what travels, 1 to 4 MB
    DATA/pipeline/                                                                        what does not
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from microcoder import Problem
from microcoder.data.record import Record
from microcoder.data.sources import READERS
from microcoder.files import json_line, read_problems

BOOKS = ("-lcci", "-lcof", "-lcof-ii")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, metavar="FILE")
    parser.add_argument("--test", type=Path, required=True, metavar="FILE")
    parser.add_argument("--humaneval", type=Path, required=True, metavar="FILE")
    parser.add_argument("--humanevalplus", type=Path, metavar="FILE")
    parser.add_argument("--mbppplus", type=Path, metavar="FILE")
    parser.add_argument("--livecodebench", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--validation", type=int, default=100, help="how many of the newest problems are validation")
    args = parser.parse_args()
    pipeline = (args.out / "pipeline").resolve()
    pipeline.mkdir(parents=True, exist_ok=True)
    _run(args, pipeline)

    kept = [problem for problem in read_problems(pipeline / "out/dataset/problems.parquet") if _usable(problem)]
    numbers = {record.problem.id: record.notes["question_id"] for record in _leetcode(args.train)}
    kept.sort(key=lambda problem: (not problem.id.endswith(BOOKS), numbers[problem.id]))
    test = [record.problem for record in _leetcode(args.test)]
    parts = {"train": kept[: -args.validation], "validation": kept[-args.validation :], "test": test}
    for name, problems in parts.items():
        _write(args.out / f"{name}.jsonl.gz", problems)
    for name in ("humaneval", "humanevalplus", "mbppplus"):
        if (path := getattr(args, name)) is not None:
            with _opened(path) as rows:
                _compressed(args.out / f"{name}.jsonl.gz", rows.read())
    if args.livecodebench is not None:
        with _opened(args.livecodebench) as rows:  # a file of several releases says which one a problem is of
            new = [line for line in rows if json.loads(line).get("_version", "v6") == "v6"]
        (args.out / "livecodebench.jsonl").write_bytes(b"".join(new))
    told = {name: _told(problems) for name, problems in parts.items()}
    (args.out / "data.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))


def _run(args: argparse.Namespace, folder: Path) -> None:
    """`microcoder data run`, which goes on where it was stopped."""
    settings = f"""\
[[collect.sources]]
path = {json.dumps(str(args.train.resolve()))}

[[filter.evaluation]]
path = {json.dumps(str(args.test.resolve()))}

[[filter.evaluation]]
path = {json.dumps(str(args.humaneval.resolve()))}

[judge]
time_limit_s = 3.0

[output]
folder = {json.dumps(str(folder / "out"))}
"""
    (folder / "data.toml").write_text(settings)
    command = [sys.executable, "-m", "microcoder.cli", "data", "run", str(folder / "data.toml")]
    if subprocess.run(command).returncode:
        sys.exit("the data pipeline failed; mend what it says, then the same command goes on")


def _leetcode(path: Path) -> list[Record]:
    return [record for record in READERS["leetcode"](path) if isinstance(record, Record)]


def _usable(problem: Any) -> bool:
    return isinstance(problem, Problem)


def _write(path: Path, problems: list[Problem]) -> None:
    bare = [dataclasses.replace(problem, solutions=[], lineage=[], difficulty_score=None) for problem in problems]
    _compressed(path, b"".join(json_line(dataclasses.asdict(problem)) for problem in bare))


def _opened(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


def _compressed(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def _told(problems: list[Problem]) -> dict[str, Any]:
    levels = [problem.difficulty for problem in problems]
    tests = [len(problem.tests) or len(problem.asserts) for problem in problems]
    return {
        "problems": len(problems),
        "difficulty": {level: levels.count(level) for level in ("easy", "medium", "hard")},
        "tests, median": statistics.median(tests),
        "tests, mean": round(statistics.mean(tests), 1),
        "first": problems[0].id,
        "last": problems[-1].id,
    }
