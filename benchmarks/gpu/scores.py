"""Scores of models on several suites. A model is loaded once for all of them, and a suite once for all models.

    python -m benchmarks.gpu scores --data DATA --out DIR --models base=model.gguf runs/a runs/b
    python -m benchmarks.gpu scores --data DATA --out DIR --models runs/a --suites test --limits 512 1024 --tries 8
    python -m benchmarks.gpu scores --data DATA --out TRY --models nano --suites test --size toy    # does it work?

    test            DATA/test.jsonl.gz: LeetCode problems that are newer than those of training, with all tests
    forged          DATA/validation-forged.jsonl.gz: the newest of the training file, examples and forged tests
    humaneval       DATA/humaneval.jsonl.gz
    humanevalplus   DATA/humanevalplus.jsonl.gz: HumanEval with the tests of EvalPlus; the base tests alone beside them
    mbppplus        DATA/mbppplus.jsonl.gz: MBPP, likewise
    livecodebench   DATA/livecodebench.jsonl:    what is new in v6, by public tests only: no LiveCodeBench score

Each evaluation lies in DIR/NAME.SUITE, as `microcoder eval` writes it; what is there already is kept.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

from microcoder.evaluation.folder import ResultFolder
from microcoder.evaluation.harness import Exam, prepare, run
from microcoder.evaluation.local import LocalModel

FILES = {
    "test": "test.jsonl.gz",
    "forged": "validation-forged.jsonl.gz",
    "humaneval": "humaneval.jsonl.gz",
    "humanevalplus": "humanevalplus.jsonl.gz",
    "mbppplus": "mbppplus.jsonl.gz",
    "livecodebench": "livecodebench.jsonl",
}
TRIES = {"test": 16, "forged": 8, "humaneval": 4, "humanevalplus": 2, "mbppplus": 1, "livecodebench": 2}
OURS = ("test", "forged")  # files of problems; the others are published suites, with prompts and limits of their own
TOY: dict[str, Any] = {"first": 3, "samples": 1, "limits": [24]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", required=True, metavar="[NAME=]MODEL")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--suites", nargs="+", choices=FILES, default=["test", "forged"])
    parser.add_argument("--limits", type=int, nargs="+", default=[1024], help="tokens of a response")
    parser.add_argument("--tries", type=int, default=0, help="0: by the table TRIES")
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--style", help="of the prompts of test and forged; without it a run has its own")
    parser.add_argument("--judge-workers", type=int, default=4)
    parser.add_argument("--memory", type=float, default=0.1, help="rollout.memory")
    parser.add_argument("--size", choices=("full", "toy"), default="full")
    args = parser.parse_args()
    models = [named(words) for words in args.models]
    if len({name for name, _ in models}) < len(models):
        parser.error("two models have one name: write NAME=MODEL")
    if absent := [name for name in args.suites if not (args.data / FILES[name]).exists()]:
        parser.error(f"{args.data} has no {', '.join(FILES[name] for name in absent)}: see `benchmarks.gpu prepare`")
    exams: dict[str, Exam] = {}
    for name, model in models:
        local = None
        for suite in args.suites:
            folder = args.out / f"{name}.{suite}"
            if (folder / "scores.json").exists():
                continue
            if suite not in exams:
                exams[suite] = exam_of(suite, args)
            exam = exams[suite].of(model, print)
            if local is None:
                local = LocalModel(model, exam.config.rollout, print, exam.common["chat"])
            started = time.perf_counter()
            ask = local.ask(exam.common)
            with ResultFolder(folder, ask) as kept:
                result = run(exam.suite, kept, partial(local.samples, ask, exam.suite.problems), exam.judge)
            print(f"{name} {suite}: {shown(result)}, {time.perf_counter() - started:.0f} s", flush=True)


def exam_of(suite: str, args: argparse.Namespace) -> Exam:
    path = str(args.data / FILES[suite])
    settings = [f"judge.workers={args.judge_workers}", f"rollout.memory={args.memory}"]
    asked: dict[str, Any] = {"samples": args.tries or TRIES[suite], "limits": sorted(args.limits)}
    if args.size == "toy":
        asked |= TOY
    asked |= {"temperature": args.temperature, "note": print}
    if suite in OURS:
        return prepare(path, [*settings, "judge.time_limit_s=2"], style=args.style, **asked)
    return prepare(suite, settings, data=path, unchecked=suite == "livecodebench", **asked)


def named(words: str) -> tuple[str, str]:
    """base=model.gguf -> (base, model.gguf); runs/a -> (a, runs/a)"""
    name, _, model = words.rpartition("=")
    return name or Path(model).stem, model


def shown(result: dict[str, Any]) -> str:
    cells = {limit: of_limit["robust"] for limit, of_limit in result["scores"].items()}
    return ", ".join(f"{cell['accuracy']:.1%} at {limit}" for limit, cell in cells.items())


if __name__ == "__main__":
    main()
