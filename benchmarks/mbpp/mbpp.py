"""A real model that really improves: SmolLM2-135M-Instruct on MBPP, every algorithm with the same settings and steps.

    python -m benchmarks.mbpp data   --mbpp mbpp.jsonl --humaneval humaneval.jsonl.gz --out DATA
    python -m benchmarks.mbpp train  --data DATA --out DIR --microcoder-temperature 1.2 --together 8
    python -m benchmarks.mbpp score  --data DATA --out DIR --together 4
    python -m benchmarks.mbpp report --out DIR --json FILE --plot FILE.png

Each command can be stopped, killed and typed again: finished runs and scores are kept, and a run that was begun goes on
from its last checkpoint. `--stop-after 570` ends it by itself, 15 s later at most. Runs are made in rounds, every arm
with the first seed before any with the second, so that what there is at any time is balanced.

What the arms share and how they differ is in `train.py`. T(D) is asked once (`train` without a temperature for
microcoder prints the command); what it chose is then given to every seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.mbpp.train import ARMS, train


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    data = commands.add_parser("data", help="the problems in our format")
    data.add_argument("--mbpp", required=True, metavar="FILE")
    data.add_argument("--humaneval", required=True, metavar="FILE")
    data.add_argument("--out", type=Path, required=True, metavar="DIR")

    training = commands.add_parser("train", help="every arm with every seed")
    training.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    training.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    training.add_argument("--lr", type=float, default=1e-5)
    training.add_argument("--eval-every", type=int, default=20, help="steps between evaluations on validation")
    training.add_argument("--baseline-temperature", type=float, default=1.0)
    training.add_argument("--microcoder-temperature", type=float, help="the one that `microcoder calibrate` chose")
    training.add_argument("--set", nargs="*", action="extend", default=[], metavar="section.key=value")

    scoring = commands.add_parser("score", help="the untrained model and every finished run, each on each set once")
    sets = ("validation", "test", "humaneval")
    scoring.add_argument("--sets", nargs="+", choices=sets, default=["test", "humaneval"])
    scoring.add_argument("--temperature", type=float, default=0.2)
    scoring.add_argument("--tries", type=int, default=8)
    scoring.add_argument("--limit", type=int, help="tokens in a response; else 192, and 256 for humaneval")
    scoring.add_argument("--batch", type=int, default=1024, help="responses that are written at once")
    scoring.add_argument("--model", default="smollm2-135m", help="the untrained model, where there is no run yet")
    scoring.add_argument("--names", nargs="+", help=argparse.SUPPRESS)  # what one of its processes scores

    for command, together in ((training, 8), (scoring, 4)):
        command.add_argument("--data", type=Path, required=True, metavar="DIR")
        command.add_argument("--out", type=Path, required=True, metavar="DIR")
        command.add_argument("--together", type=int, default=together, help="processes at a time")
        command.add_argument("--stop-after", type=float, default=float("inf"), metavar="SECONDS")

    reporting = commands.add_parser("report", help="tables, and curves over the steps")
    reporting.add_argument("--out", type=Path, required=True, metavar="DIR")
    reporting.add_argument("--json", type=Path, metavar="FILE")
    reporting.add_argument("--plot", type=Path, metavar="FILE.png")

    args = parser.parse_args()
    if args.command == "data":
        from benchmarks.mbpp.data import make

        make(args.mbpp, args.humaneval, args.out)
        return 0
    if args.command == "train":
        return train(args)
    if args.command == "score":
        from benchmarks.mbpp.score import score

        return score(args)
    from benchmarks.mbpp.report import report

    report(args.out, args.json, args.plot)
    return 0
