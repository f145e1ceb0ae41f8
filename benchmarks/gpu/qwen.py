"""Qwen2.5-Coder-0.5B-Instruct on LeetCode problems, on one GPU: what it scores before training, which learning rate and
temperature it learns with, and what other algorithms make of these. README.md beside this says what to run.

    python -m benchmarks.gpu qwen run    --model FOLDER --data DATA --out DIR --budget 1100
    python -m benchmarks.gpu qwen report --out DIR
    python -m benchmarks.gpu qwen pack   --out DIR --to FOLDER

`run` can be stopped, killed and typed again. What there is at any time is in DIR/report.md and DIR/events.jsonl.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.gpu.qwen_plan import SIZES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    running = commands.add_parser("run", help="train and score, in order of worth")
    running.add_argument(
        "--model", type=Path, required=True, metavar="FOLDER", help="the model, as transformers has it"
    )
    running.add_argument("--data", type=Path, required=True, metavar="DATA", help="what prepare wrote")
    running.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="then it ends by itself")
    running.add_argument("--steps", type=int, default=20, help="of a training")
    running.add_argument("--together", type=int, default=3, help="trainings at a time, beside one scoring")
    running.add_argument("--judge-workers", type=int, default=8, help="of all processes together")
    running.add_argument("--micro", type=int, default=8, help="responses in a pass: memory, not results")
    running.add_argument("--drop-weights", action="store_true", help="remove a run's weights once it is scored")
    running.add_argument("--size", choices=SIZES, default="full", help="toy: to see that all of it works")
    running.add_argument("--set", nargs="*", action="extend", default=[], metavar="section.key=value")

    reporting = commands.add_parser("report", help="the table of what there is so far")
    packing = commands.add_parser("pack", help="everything but weights, in files of 15 MB at most")
    packing.add_argument("--to", type=Path, required=True, metavar="FOLDER")
    packing.add_argument("--rollouts", type=int, default=3, metavar="N", help="steps of a run whose rollouts go along")
    for command in (running, reporting, packing):
        command.add_argument("--out", type=Path, required=True, metavar="DIR")

    args = parser.parse_args()
    args.out = args.out.resolve()
    if args.command == "run":
        from benchmarks.gpu.qwen_run import Experiment

        args.model, args.data = args.model.resolve(), args.data.resolve()
        return Experiment(args).run()
    from benchmarks.gpu.qwen_report import pack, report

    if args.command == "report":
        print(report(args.out))
    else:
        for path in pack(args.out, args.to, args.rollouts):
            print(f"{path} {path.stat().st_size:,} bytes")
    return 0
